"""Blocks as Arrow tables and back: what the forms with one table a context share."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from provml_lightning.domain.reading import MetricKey
from provml_lightning.errors import StorageError
from provml_lightning.storage.formats.base import Block, groups
from provml_lightning.storage.point_log import ABSENT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

__all__ = ["only", "schema", "to_blocks", "to_table", "to_tables"]

_MOST_TEXT = 2**31 - 1  # offsets are of 32 bits [B]
_MUCH_TEXT = 2**26  # what one table holds at most, if it has more than one row [B]
_LABELS = ("metric", "context", "source", "rank", "segment", "unit")


def schema(*, unit: bool = False) -> pa.Schema:
    """Return the columns of a table, the last of them the unit if it is to be one."""
    import pyarrow as pa

    text = pa.string()
    columns = [
        pa.field("metric", text, nullable=False),
        pa.field("context", text),
        pa.field("source", text),
        pa.field("step", pa.int64()),
        pa.field("epoch", pa.int64()),
        pa.field("value", pa.float64(), nullable=False),
        pa.field("timestamp", pa.timestamp("us", "UTC"), nullable=False),
        pa.field("rank", pa.int32(), nullable=False),
        pa.field("segment", pa.int32(), nullable=False),
    ]
    return pa.schema([*columns, pa.field("unit", text)] if unit else columns)


def to_tables(
    blocks: Iterable[Block], columns: pa.Schema
) -> Iterator[tuple[list[Block], pa.Table]]:
    """Return blocks as tables of at most 100 000 rows, of fewer where names are long."""
    for group in groups(blocks):
        for few in _light(group):
            yield few, to_table(few, columns)


def _light(group: list[Block]) -> Iterator[list[Block]]:
    """Halve a group until no part repeats too much text."""
    rows = sum(len(block.value) for block in group)
    if rows <= 1 or sum(len(block.value) * _longest(block) for block in group) <= _MUCH_TEXT:
        yield group
        return
    middle = rows // 2
    first: list[Block] = []
    for position, block in enumerate(group):
        if len(block.value) > middle:
            yield from _light([*first, *_rows(block, slice(0, middle))])
            yield from _light([*_rows(block, slice(middle, None)), *group[position + 1 :]])
            return
        first.append(block)
        middle -= len(block.value)


def _longest(block: Block) -> int:
    """Return the length of a block's longest name [B]."""
    names = (block.name.key, block.name.context, block.name.source, block.unit)
    return max(len((name or "").encode()) for name in names)


def _rows(block: Block, rows: slice) -> list[Block]:
    """Return a part of a block; nothing where it is empty."""
    columns = (getattr(block, name)[rows] for name in ("time", "step", "epoch", "value"))
    cut = Block(block.name, block.unit, block.rank, block.segment, *columns)
    return [cut] if len(cut.value) else []


def to_table(group: list[Block], columns: pa.Schema) -> pa.Table:
    """Return blocks as one table with the columns of a :func:`schema`."""
    import numpy as np
    import pyarrow as pa

    lengths = np.array([len(block.value) for block in group])

    def joined(name: str) -> Any:
        return np.concatenate([getattr(block, name) for block in group])

    def repeated(values: list[str | None]) -> pa.Array:
        return _texts(values, lengths)

    def counted(values: list[int]) -> pa.Array:
        return _numbers(np.repeat(np.array(values, "i4"), lengths), pa.int32())

    made = {
        "metric": repeated([block.name.key for block in group]),
        "context": repeated([block.name.context for block in group]),
        "source": repeated([block.name.source for block in group]),
        "step": _numbers(joined("step"), pa.int64(), absent=ABSENT),
        "epoch": _numbers(joined("epoch"), pa.int64(), absent=ABSENT),
        "value": _numbers(joined("value"), pa.float64()),
        "timestamp": _numbers(joined("time") // 1000, pa.timestamp("us", "UTC")),
        "rank": counted([block.rank for block in group]),
        "segment": counted([block.segment for block in group]),
    }
    if "unit" in columns.names:
        made["unit"] = repeated([block.unit for block in group])
    return pa.Table.from_arrays([made[name] for name in columns.names], schema=columns)


# What the next two do, pa.array() and cast() do too. But pa.array() loads pandas to look whether it
# was given some of it, 0.4 s and 45 MB at the end of a run that has no other use for it, and cast()
# loads pyarrow.compute, 0.05 s.


def _numbers(values: Any, kind: pa.DataType, *, absent: int | None = None) -> pa.Array:
    """Return numbers as an Arrow array, null where they are ``absent``."""
    import pyarrow as pa

    known = None if absent is None else _bits(values != absent)
    return pa.Array.from_buffers(kind, len(values), [known, pa.py_buffer(values)])


def _texts(values: list[str | None], lengths: Any) -> pa.Array:
    """Return texts, each as often as ``lengths`` says, as an Arrow array.

    Raises:
        StorageError: They are more than such an array can hold.

    Source:
        Arrow's columnar format, variable-size binary layout: validity, offsets, bytes.
    """
    import numpy as np
    import pyarrow as pa

    encoded = [(value or "").encode() for value in values]
    sizes = np.array([len(text) for text in encoded], "i4")
    if (sizes * lengths.astype("i8")).sum() > _MOST_TEXT:
        raise StorageError(
            "the name of a metric holds more than 2 GiB of text; log it under a shorter one"
        )
    offsets = np.zeros(lengths.sum() + 1, "i4")
    np.repeat(sizes, lengths).cumsum(dtype="i4", out=offsets[1:])
    known = _bits(np.repeat(np.array([value is not None for value in values]), lengths))
    content = b"".join(map(operator.mul, encoded, lengths.tolist()))
    buffers = [known, pa.py_buffer(offsets), pa.py_buffer(content)]
    return pa.Array.from_buffers(pa.string(), len(offsets) - 1, buffers)


def _bits(known: Any) -> pa.Buffer | None:
    """Return a validity bitmap; None where everything is valid."""
    import numpy as np
    import pyarrow as pa

    return None if known.all() else pa.py_buffer(np.packbits(known, bitorder="little"))


def to_blocks(table: pa.Table) -> Iterator[Block]:
    """Cut a table where metric, source or writer changes."""
    import numpy as np

    if not table.num_rows:
        return
    labels = [name for name in _LABELS if name in table.column_names]
    columns = [table[name].combine_chunks().dictionary_encode() for name in labels]
    codes = [column.indices.fill_null(-1).to_numpy(zero_copy_only=False) for column in columns]
    changes = np.flatnonzero(np.any([np.diff(code) != 0 for code in codes], axis=0)) + 1
    starts = [0, *changes.tolist()]
    step, epoch = (table[name].fill_null(ABSENT).to_numpy() for name in ("step", "epoch"))
    value = table["value"].to_numpy()
    time = table["timestamp"].cast("int64").to_numpy() * 1000
    for start, stop in zip(starts, [*starts[1:], table.num_rows], strict=True):
        metric, context, source, rank, segment, *unit = (c[start].as_py() for c in columns)
        rows = slice(start, stop)
        yield Block(
            MetricKey(metric, context, source), unit[0] if unit else None, rank, segment,
            time[rows], step[rows], epoch[rows], value[rows],
        )  # fmt: skip


def only(table: pa.Table, name: MetricKey) -> pa.Table:
    """Return the rows of one metric."""
    import pyarrow.compute as pc

    source = table["source"]
    fits = pc.is_null(source) if name.source is None else pc.equal(source, name.source)
    return table.filter(pc.and_(pc.equal(table["metric"], name.key), fits))
