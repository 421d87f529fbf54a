"""One metric of a run as a table, wherever its values lie."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provml_lightning.errors import StorageError
from provml_lightning.storage.contents import Ledger, read_steadily
from provml_lightning.storage.formats import format_of
from provml_lightning.storage.metrics import read_blocks
from provml_lightning.storage.point_log import ABSENT

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from provml_lightning.domain.reading import MetricKey
    from provml_lightning.storage.formats.base import Block
    from provml_lightning.storage.layout import RunLayout

__all__ = ["read_file", "read_series"]


def read_series(layout: RunLayout, name: MetricKey) -> pa.Table:
    """Return a metric's values in the order in which each process logged them.

    Returns:
        Columns step, epoch, value, timestamp [µs, UTC], rank; no rows where there is no such
        metric.

    Raises:
        StorageError: A file of the run cannot be read.
    """

    def read(ledger: Ledger) -> list[Block]:
        return list(read_blocks(layout, name, ledger.sources, ledger.sealed, ledger.form))

    return _table(read_steadily(layout, read))


def read_file(path: Path, name: MetricKey) -> pa.Table:
    """Return what one metrics file of any form, known by its name, holds of a metric.

    Returns:
        As of :func:`read_series`.

    Raises:
        MissingExtraError: The package that reads the form is not installed.
        StorageError: It is not a metrics file of ours, or cannot be read.
    """
    form = format_of(path.name)
    if form is None:
        raise StorageError(f"{path} is in none of the forms of metrics files")
    return _table(list(form.read(path, name)))


def _table(blocks: list[Block]) -> pa.Table:
    import numpy as np
    import pyarrow as pa

    def column(field: str, kind: str) -> np.ndarray:
        parts = [getattr(block, field) for block in blocks]
        return np.concatenate(parts) if parts else np.empty(0, kind)

    step, epoch = column("step", "i8"), column("epoch", "i8")
    rank = np.repeat([block.rank for block in blocks], [len(block.value) for block in blocks])
    return pa.table(
        {
            "step": pa.array(step, mask=step == ABSENT),
            "epoch": pa.array(epoch, mask=epoch == ABSENT),
            "value": pa.array(column("value", "f8")),
            "timestamp": pa.array(column("time", "i8") // 1000).cast(pa.timestamp("us", "UTC")),
            "rank": pa.array(rank.astype("i4")),
        }
    )
