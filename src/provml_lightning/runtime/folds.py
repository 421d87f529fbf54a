"""Final metrics whose function lives in this process alone: folded before the run is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provml_lightning.domain.folding import fold_of
from provml_lightning.domain.reading import MetricKey
from provml_lightning.domain.records import FinalMetric, Series
from provml_lightning.errors import RecordError
from provml_lightning.runtime.run import Run
from provml_lightning.storage.contents import open_ledger
from provml_lightning.storage.folding import fold_metric

if TYPE_CHECKING:
    from provml_lightning.domain.folding import Fold
    from provml_lightning.runtime.active import AnyRun

__all__ = ["register_fold"]


def register_fold(run: AnyRun, final: FinalMetric, fold: Fold) -> None:
    """Tell a run that a metric is to be folded.

    The named operations are folded whenever the run's files are read; a function of the user's
    is called here, before each writing, and its result is told.
    """
    run.record(final)
    if isinstance(run, Run) and fold_of(final.operation) is None:
        told: list[FinalMetric] = []
        run.contributors.add(lambda: _fold(run, final, fold, told))


def _fold(run: Run, final: FinalMetric, fold: Fold, told: list[FinalMetric]) -> None:
    run.flush()
    ledger = open_ledger(run.layout)
    names = {
        MetricKey(record.key, record.context, record.source)
        for journal in ledger.journals
        for record in journal.records
        if isinstance(record, Series) and record.key == final.metric
    }
    try:
        folded = fold_metric(ledger, final, fold, sorted(names, key=str))
    except Exception as error:  # noqa: BLE001  the function is the user's and may raise anything
        reason = f"{type(error).__name__}: {error}"
        run.excuse(
            "final metric", RecordError(f"{final.operation} failed on {final.metric}: {reason}")
        )
        return
    if [folded] != told:
        told[:] = [folded]
        run.record(folded)
