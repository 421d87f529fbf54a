"""How itwinai's contexts end, and what they leave to the next."""

from __future__ import annotations

import gc
import json
import weakref
from pathlib import Path
from typing import Any, NoReturn

import pytest

import prov4ml
from provml_lightning.errors import StorageWarning
from tests.training import Digits, digits, trainer


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def made() -> prov4ml.ProvMLItwinAILogger:
    return prov4ml.ProvMLItwinAILogger(create_graph=False, create_svg=False)


def status(logger: Any) -> str:
    return str(prov4ml.list_parameters(logger.log_dir)["provml:status"])


def fail(kind: type[BaseException] = ValueError, **held: Any) -> NoReturn:
    """Raise, from a frame that holds things."""
    assert held is not None
    raise kind


class SlottedError(ValueError):
    """Has no attributes of its own, and takes no weak reference."""

    __slots__ = ()


class ClosedError(Exception):
    """Lets nobody set an attribute, or see those that there are."""

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(name)

    @property
    def __dict__(self) -> Any:
        raise AttributeError


def test_what_fails_in_a_context_is_not_taken_for_the_failure_that_was_handled_before() -> None:
    logger, found = made(), []
    for _ in range(5):
        try:
            fail()
        except ValueError:
            logger.create_logger_context()
        # The first is gone now: the next one lies where that lay.
        try:
            fail()
        except ValueError:
            logger.destroy_logger_context()
        found.append(status(logger))
    assert found == ["failed"] * 5


@pytest.mark.parametrize(
    "kind", [ValueError, MemoryError, KeyboardInterrupt, SlottedError, ClosedError]
)
def test_an_exception_of_any_class_that_was_handled_around_a_context_is_not_the_runs(
    kind: type[BaseException],
) -> None:
    first, second = made(), made()
    try:
        fail(kind)
    except kind:
        for logger in (first, second):
            logger.create_logger_context()
        for logger in (first, second):
            logger.destroy_logger_context()
    assert [status(logger) for logger in (first, second)] == ["completed"] * 2


def test_a_context_keeps_nothing_of_a_failed_attempt_alive() -> None:
    class Weights:
        """As large as a model's."""

    weights = Weights()
    held, logger = weakref.ref(weights), made()
    try:
        fail(weights=weights)
    except ValueError:
        del weights
        logger.create_logger_context()
    gc.collect()
    assert held() is None
    logger.destroy_logger_context()


def test_a_fault_at_the_end_of_a_context_does_not_replace_the_users_own_error() -> None:
    logger = made()
    with pytest.warns(StorageWarning, match="no picture"), pytest.raises(RuntimeError):
        _end_badly(logger)
    assert status(logger) == "failed"


def _end_badly(logger: Any) -> None:
    with logger.start_logging():
        logger.experiment.finishers.append(lambda: [].index("no picture"))
        fail(RuntimeError)


def test_a_trainer_that_uses_the_logger_after_its_context_goes_on_in_that_run() -> None:
    logger = made()
    with logger.start_logging():
        logger.log(1.0, "before")
    trainer(logger).fit(Digits(), digits(), digits())
    assert logger.is_initialized
    logger.destroy_logger_context()
    assert [path.name for path in Path(logger.root_dir).iterdir()] == ["version_0"]
    assert len(prov4ml.get_metric(logger.log_dir, "before")) == 1
    assert len(prov4ml.get_metric(logger.log_dir, "loss")) == 8


def test_the_run_of_the_next_context_has_no_checkpoints_of_the_one_before() -> None:
    logger, found = made(), []
    for extra in ("only_first.ckpt", None):
        logger.create_logger_context()
        teacher = trainer(logger, enable_checkpointing=True, max_epochs=1)
        teacher.fit(Digits(), digits(), digits())
        if extra:
            teacher.save_checkpoint(Path(logger.log_dir, extra))
        logger.destroy_logger_context()
        found.append(versions(logger.log_dir))
    kept = "checkpoints/epoch=0-step=4.ckpt"
    assert found == [{kept, "only_first.ckpt"}, {kept}]


def versions(run: str) -> set[str]:
    """Return the files of the versions of the model that a run's document has."""
    (path,) = Path(run).glob("prov_*.json")
    entities = json.loads(path.read_text("utf-8"))["entity"].values()
    return {
        str(entity["dcterms:identifier"])
        for entity in entities
        if "provml:ModelVersion" in json.dumps(entity.get("prov:type"))
    }
