"""When stages begin and end and how long epochs take, between the Trainer's own hooks."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import torch
from lightning.pytorch.callbacks import Callback

import prov4ml
from tests.stories import document
from tests.training import BATCHES, Digits, Witness, digits, trainer

if TYPE_CHECKING:
    from pathlib import Path

    from lightning.pytorch import Trainer


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(7)


class Word(NamedTuple):
    """What the Trainer spoke of, and what it counted then."""

    hook: str
    time: datetime
    seconds: float
    step: int
    epoch: int


class Clock(Callback):
    """Takes down when the Trainer speaks of its stages, epochs and batches.

    The logger's own callback hears of each before it, and after all that it heard of earlier.
    """

    def __init__(self) -> None:
        self.told: list[Word] = []

    def places(self, hook: str) -> list[int]:
        return [place for place, word in enumerate(self.told) if word.hook == hook]

    def around(self, hook: str, number: int = 0) -> tuple[datetime, datetime]:
        """Return when the Trainer spoke before a word, and when it said that."""
        place = self.places(hook)[number]
        return self.told[place - 1].time, self.told[place].time

    def behind(self, hook: str) -> tuple[datetime, datetime]:
        """Return when the Trainer said a word for the last time, and when it spoke again."""
        place = self.places(hook)[-1]
        return self.told[place].time, self.told[place + 1].time


def _hook(name: str) -> Any:
    def hear(clock: Clock, teacher: Trainer, *_: Any, **__: Any) -> None:
        now, seconds = datetime.now(UTC), time.perf_counter()
        clock.told.append(Word(name, now, seconds, teacher.global_step, teacher.current_epoch))

    return hear


for _name in (
    "setup", "teardown", "on_sanity_check_start", "on_sanity_check_end",
    *(
        f"on_{stage}{unit}_{end}"
        for stage in ("train", "validation", "test", "predict")
        for unit in ("", "_epoch", "_batch")
        for end in ("start", "end")
    ),
):  # fmt: skip
    setattr(Clock, _name, _hook(_name))


def span(logger: Any, context: str) -> tuple[datetime, datetime]:
    told = document(logger)["activity"][f"context/{context.replace(' ', '%20')}"]
    start, end = (datetime.fromisoformat(told[f"prov:{each}Time"]) for each in ("start", "end"))
    return start, end


def is_within(moment: datetime, bounds: tuple[datetime, datetime]) -> bool:
    return bounds[0] < moment <= bounds[1]


def test_every_stage_is_a_context_with_the_trainers_own_times() -> None:
    logger, clock, model = prov4ml.ProvMLLogger(), Clock(), Digits()
    teacher = trainer(logger, callbacks=[clock], num_sanity_val_steps=1)
    teacher.fit(model, digits(), digits())
    teacher.test(model, digits(), verbose=False)
    teacher.predict(model, digits())

    for stage, name in {"train": "Training", "test": "Testing", "predict": "Prediction"}.items():
        start, end = span(logger, name)
        assert is_within(start, clock.around(f"on_{stage}_start"))
        assert is_within(end, clock.behind(f"on_{stage}_end"))
    start, end = span(logger, "Sanity checking")
    assert is_within(start, clock.around("on_sanity_check_start"))
    assert is_within(end, clock.around("on_sanity_check_end"))
    start, end = span(logger, "Validation")
    assert is_within(start, clock.around("on_validation_start", 1))  # the first is the check's
    assert is_within(end, clock.around("on_validation_end", -1))


def test_a_validation_by_itself_lasts_until_it_is_torn_down() -> None:
    logger, clock = prov4ml.ProvMLLogger(), Clock()
    trainer(logger, callbacks=[clock]).validate(Digits(), digits(), verbose=False)
    start, end = span(logger, "Validation")
    assert is_within(start, clock.around("on_validation_start"))
    assert is_within(end, clock.behind("on_validation_end"))


def test_a_stage_that_comes_again_lasts_from_its_first_start_to_its_last_end() -> None:
    logger, clock, model = prov4ml.ProvMLLogger(), Clock(), Digits()
    teacher = trainer(logger, callbacks=[clock], max_epochs=1)
    teacher.fit(model, digits(), digits())
    first = span(logger, "Training")
    teacher.test(model, digits(), verbose=False)
    teacher.fit_loop.max_epochs = 2
    teacher.fit(model, digits(), digits())
    teacher.test(model, digits(), verbose=False)

    assert teacher.current_epoch == 2
    assert span(logger, "Training")[0] == first[0]
    for stage, name in {"train": "Training", "test": "Testing"}.items():
        start, end = span(logger, name)
        assert is_within(start, clock.around(f"on_{stage}_start"))
        assert is_within(end, clock.behind(f"on_{stage}_end"))
        assert clock.places(f"on_{stage}_start")[1] > clock.places(f"on_{stage}_end")[0]
    start, end = span(logger, "Validation")
    assert is_within(start, clock.around("on_validation_start"))
    assert is_within(end, clock.around("on_validation_end", -1))


def test_a_stage_that_an_exception_ends_ends_with_it() -> None:
    class Broken(Digits):
        def on_validation_batch_end(self, *_: Any) -> None:
            self.raised = datetime.now(UTC)
            raise RuntimeError("in validation")

    logger, model = prov4ml.ProvMLLogger(), Broken()
    with pytest.raises(RuntimeError, match="in validation"):
        trainer(logger).fit(model, digits(), digits())
    for name in ("Training", "Validation"):
        assert is_within(span(logger, name)[1], (model.raised, datetime.now(UTC)))


class LogsEpochs(Digits):
    def training_step(self, batch: Any) -> torch.Tensor:
        loss = self.loss(batch)
        self.log("loss", loss, on_step=False, on_epoch=True)
        return loss


def test_every_epoch_has_its_number_and_a_duration_that_the_trainers_hooks_enclose() -> None:
    logger, witness, clock, model = prov4ml.ProvMLLogger(), Witness(), Clock(), LogsEpochs()
    teacher = trainer(logger, witness, callbacks=[clock], max_epochs=3, num_sanity_val_steps=1)
    teacher.fit(model, digits(), digits())
    teacher.validate(model, digits(), verbose=False)
    teacher.test(model, digits(), verbose=False)
    teacher.predict(model, digits())

    # Lightning logs metrics of an epoch at these places; a prediction has none.
    places = {
        name: [(step, epoch) for _, step, epoch, told in witness.told if name in told]
        for name in ("loss", "val_loss", "test_loss")
    }
    after = [(word.step, word.epoch) for word in clock.told if word.hook == "on_predict_epoch_end"]
    assert after == [(3 * BATCHES, 3)]
    compare(logger, clock, "Training", "train", places["loss"])
    compare(logger, clock, "Validation", "validation", places["val_loss"], first=1)
    compare(logger, clock, "Testing", "test", places["test_loss"])
    compare(logger, clock, "Prediction", "predict", after)
    listed = prov4ml.list_metrics(logger.log_dir)
    contexts = listed[listed["label"] == "epoch_time"]["context"].tolist()
    assert sorted(contexts) == ["Prediction", "Testing", "Training", "Validation"]


def compare(
    logger: Any, clock: Clock, context: str, stage: str, places: list[Any], first: int = 0
) -> None:
    """Compare the durations of epochs, from a first one on, with what a clock shows."""
    frame = prov4ml.get_metric(logger.log_dir, "epoch_time", context)
    assert list(zip(frame["step"], frame["epoch"], strict=True)) == places
    starts = clock.places(f"on_{stage}_epoch_start")[first:]
    ends = clock.places(f"on_{stage}_epoch_end")[first:]
    shown = [word.seconds for word in clock.told]
    least = [shown[end - 1] - shown[start] for start, end in zip(starts, ends, strict=True)]
    most = [shown[end] - shown[start - 1] for start, end in zip(starts, ends, strict=True)]
    assert len(least) == len(places) > 0
    for seconds, lower, upper in zip(frame["value"], least, most, strict=True):
        assert 0 < lower < seconds < upper

    entity = document(logger)["entity"][f"metric/{context}/epoch_time/lightning"]
    assert (entity["provml:unit"], entity["provml:rows"]) == ("s", len(places))
    assert least[0] < entity["provml:first"] < most[0]
    assert least[-1] < entity["provml:last"] < most[-1]
    assert min(least) < entity["provml:min"] < min(most)
    assert max(least) < entity["provml:max"] < max(most)


class Wordless(Digits):
    """Logs nothing, so that all that is in the record comes from the Trainer."""

    def training_step(self, batch: Any) -> torch.Tensor:
        return self.loss(batch)

    def validation_step(self, batch: Any) -> None:
        self.loss(batch)


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ("seeds", set()),
        ("stages", {"context/Sanity%20checking", "context/Training", "context/Validation"}),
    ],
)
def test_stages_of_which_nothing_else_is_told_are_there_if_they_are_wanted(
    part: str, expected: set[str]
) -> None:
    logger = prov4ml.ProvMLLogger(lineage=[part])
    trainer(logger, num_sanity_val_steps=1).fit(Wordless(), digits(), digits())
    activities = document(logger)["activity"]
    assert {name for name in activities if name.startswith("context/")} == expected


def test_without_stages_a_context_lasts_as_long_as_what_is_told_in_it() -> None:
    logger, clock = prov4ml.ProvMLLogger(lineage=["optimizers", "epochs"]), Clock()
    trainer(logger, callbacks=[clock]).fit(Wordless(), digits(), digits())
    start, end = span(logger, "Training")
    assert is_within(start, clock.around("on_train_start"))
    assert is_within(end, clock.around("on_train_epoch_end", -1))
