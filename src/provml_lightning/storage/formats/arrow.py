"""Blocks as Arrow tables and back: what the forms with one table a context share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from provml_lightning.domain.reading import MetricKey
from provml_lightning.storage.formats.base import ROWS, Block
from provml_lightning.storage.point_log import ABSENT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

__all__ = ["groups", "only", "schema", "to_blocks", "to_table"]

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


def groups(blocks: Iterable[Block]) -> Iterator[list[Block]]:
    """Return blocks in lists of at most 100 000 rows (a block has no more)."""
    group: list[Block] = []
    rows = 0
    for block in blocks:
        if group and rows + len(block.value) > ROWS:
            yield group
            group, rows = [], 0
        group.append(block)
        rows += len(block.value)
    if group:
        yield group


def to_table(group: list[Block], columns: pa.Schema) -> pa.Table:
    """Return blocks as one table with the columns of a :func:`schema`."""
    import numpy as np
    import pyarrow as pa

    lengths = np.array([len(block.value) for block in group])
    codes = np.repeat(np.arange(len(group), dtype=np.int32), lengths)

    def repeated(values: list[Any], kind: pa.DataType) -> pa.Array:
        return pa.DictionaryArray.from_arrays(codes, pa.array(values, kind)).cast(kind)

    def optional(name: str) -> pa.Array:
        numbers = np.concatenate([getattr(block, name) for block in group])
        return pa.array(numbers, mask=numbers == ABSENT)

    time = np.concatenate([block.time for block in group])
    text = pa.string()
    made = {
        "metric": repeated([block.name.key for block in group], text),
        "context": repeated([block.name.context for block in group], text),
        "source": repeated([block.name.source for block in group], text),
        "step": optional("step"),
        "epoch": optional("epoch"),
        "value": pa.array(np.concatenate([block.value for block in group])),
        "timestamp": pa.array(time // 1000).cast(pa.timestamp("us", "UTC")),
        "rank": repeated([block.rank for block in group], pa.int32()),
        "segment": repeated([block.segment for block in group], pa.int32()),
        "unit": repeated([block.unit for block in group], text),
    }
    return pa.Table.from_arrays([made[name] for name in columns.names], schema=columns)


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
