"""The one shape of an answer: step, epoch, value, timestamp (UTC), rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from provml_lightning.errors import MalformedDocumentError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["empty", "from_arrow", "from_columns"]

Numbers = Sequence[float | int | None]


def from_arrow(table: Any) -> pd.DataFrame:
    """Return a table of our own files, ``timestamp`` in µs UTC, without slow conversions."""
    import numpy as np
    import pandas as pd
    import pyarrow as pa

    times = table.column("timestamp").cast(pa.timestamp("us")).to_numpy()
    values = table.column("value").to_numpy()
    columns = {
        "step": _nullable(table.column("step")),
        "epoch": _nullable(table.column("epoch")),
        "value": np.require(values, "float64", "W"),
        "timestamp": _utc(np.require(times, None, "W")),
        "rank": _nullable(table.column("rank")),
    }
    return pd.DataFrame(columns, copy=False)


def from_columns(epochs: Any, values: Any, times: Any, *, name: str) -> pd.DataFrame:
    """Return what others wrote: one counter, values, times [ms since 1970].

    Their counter is called epoch and is what they were given as step: it is both here.

    Raises:
        MalformedDocumentError: The columns differ in length, or hold what is no number.
    """
    import numpy as np
    import pandas as pd

    lengths = {"epochs": len(epochs), "values": len(values), "timestamps": len(times)}
    if len(set(lengths.values())) > 1:
        raise MalformedDocumentError(f"{name}: the columns differ in length: {lengths}")
    try:
        steps = _whole(epochs)
        numbers = _numbers(values).to_numpy("float64", na_value=np.nan)
        milliseconds = _whole(times)
    except (OverflowError, TypeError, ValueError) as error:
        raise MalformedDocumentError(f"{name}: not a series of numbers: {error}") from error
    moments = milliseconds.to_numpy("int64", na_value=0).astype("datetime64[ms]")
    moments[milliseconds.isna()] = np.datetime64("NaT")
    return pd.DataFrame(
        {
            "step": steps,
            "epoch": steps.copy(),
            "value": numbers,
            "timestamp": _utc(moments.astype("datetime64[us]")),
            "rank": pd.array([None] * len(steps), dtype="Int64"),
        }
    )


def empty(name: str) -> pd.DataFrame:
    """Return the frame of a metric that has no values."""
    return from_columns([], [], [], name=name)


def _numbers(column: Any) -> pd.Series:
    import pandas as pd

    kind = getattr(column, "dtype", object)  # of a list: each item as what it is
    return pd.to_numeric(pd.Series(column, dtype=kind))


def _whole(column: Any) -> Any:
    return _numbers(column).astype("Int64").array


def _nullable(column: Any) -> Any:
    import numpy as np
    import pandas as pd

    if column.null_count:
        missing = np.require(column.is_null().to_numpy(), "bool", "W")
        column = column.fill_null(0)
    else:
        missing = np.zeros(len(column), "bool")
    return pd.arrays.IntegerArray(np.require(column.to_numpy(), "int64", "W"), missing)


def _utc(moments: Any) -> Any:
    import pandas as pd

    return pd.DatetimeIndex(moments).tz_localize("UTC").array
