"""Final metrics: all values of a metric folded into one, read from the run's own files."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from provml_lightning.domain.folding import fold_of
from provml_lightning.domain.records import FinalMetric
from provml_lightning.storage.metrics import read_blocks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from provml_lightning.domain.folding import Fold
    from provml_lightning.domain.reading import MetricKey
    from provml_lightning.domain.records import Record
    from provml_lightning.storage.contents import Ledger

__all__ = ["fold_metric", "with_folds"]


def with_folds(
    ledger: Ledger, told: Iterable[tuple[int, Record]], names: Sequence[MetricKey]
) -> Iterator[tuple[int, Record]]:
    """Return the facts, final metrics of the named operations with their values.

    A function of the user's lives in the user's process alone, which has told its result.
    """
    for rank, record in told:
        if isinstance(record, FinalMetric) and record.value is None:
            fold = fold_of(record.operation)
            yield rank, record if fold is None else fold_metric(ledger, record, fold, names)
        else:
            yield rank, record


def fold_metric(
    ledger: Ledger, final: FinalMetric, fold: Fold, names: Iterable[MetricKey]
) -> FinalMetric:
    """Fold the values of every metric of that name, in the order of their times."""
    import numpy as np

    fitting = [name for name in names if name.key == final.metric]
    blocks = [
        block
        for name in fitting
        for block in read_blocks(ledger.layout, name, ledger.sources, ledger.sealed, ledger.form)
    ]
    values = np.concatenate([block.value for block in blocks]) if blocks else np.empty(0)
    if len(fitting) > 1:
        values = values[np.argsort(np.concatenate([block.time for block in blocks]), kind="stable")]
    folded = final.initial
    for value in values.tolist():
        folded = fold(folded, value)
    return dataclasses.replace(final, value=float(folded), rows=len(values))
