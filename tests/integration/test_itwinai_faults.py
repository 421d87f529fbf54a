"""Items that itwinai's ``log`` cannot keep: no training ends for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

import prov4ml
from provml_lightning.errors import ConfigurationError, RecordDroppedWarning, RecordError


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


class Wordless:
    """Has no text."""

    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


class Stateless:
    """Has no state, though it says that it has."""

    def state_dict(self) -> dict[str, Any]:
        raise RuntimeError("no state")


class Unlisted(dict[str, Any]):
    """A mapping that nobody can list."""

    def items(self) -> Any:
        raise RuntimeError("no items")


class UnspeakableError(Exception):
    """An error without a text."""

    __str__ = __repr__ = Wordless.__str__  # type: ignore[assignment]


class Raising:
    """Has a state that raises what has no text."""

    def state_dict(self) -> dict[str, Any]:
        raise UnspeakableError


def endless() -> dict[str, Any]:
    """Return a dictionary that contains itself."""
    itself: dict[str, Any] = {}
    itself["a"] = itself
    return itself


def made(**options: Any) -> prov4ml.ProvMLItwinAILogger:
    return prov4ml.ProvMLItwinAILogger(**{"create_graph": False, "create_svg": False, **options})


FAULTS = [
    pytest.param(lambda one: one.log([1.0, 2.0], ["a"]), "as many items", id="lists"),
    pytest.param(lambda one: one.log(1.0, Wordless()), "no words", id="name"),
    pytest.param(lambda one: one.log(1.0, "a", context=Wordless()), "no words", id="context"),
    pytest.param(lambda one: one.log(Wordless(), "a", "text"), "no words", id="text"),
    pytest.param(lambda one: one.log(Stateless(), "a", "torch"), "no state", id="state"),
    pytest.param(
        lambda one: one.log(Raising(), "a", "torch"), "UnspeakableError", id="unspeakable"
    ),
    pytest.param(lambda one: one.log(endless(), "a", "torch"), "RecursionError", id="recursion"),
    pytest.param(
        lambda one: one.log(torch.zeros(4, 4).to_sparse(), "a", "image"), "Sparse", id="sparse"
    ),
    pytest.param(lambda one: one.save_hyperparameters(Unlisted(a=1)), "no items", id="parameters"),
    pytest.param(lambda one: one.serialize(1, Wordless()), "no words", id="serialize"),
]


@pytest.mark.parametrize(("call", "told"), FAULTS)
def test_what_a_foreign_object_raises_is_a_warning_and_a_note(call: Any, told: str) -> None:
    logger = made()
    with logger.start_logging():
        with pytest.warns(RecordDroppedWarning, match=told):
            call(logger)
        call(logger)  # a second warning would be an error
        logger.log(1.0, "after")
    kept = prov4ml.list_parameters(logger.log_dir)
    assert told in str(kept["provml:note"])
    assert kept["provml:status"] == "completed"
    assert len(prov4ml.get_metric(logger.log_dir, "after")) == 1


@pytest.mark.parametrize(("call", "told"), FAULTS)
def test_what_a_foreign_object_raises_is_our_own_error_where_the_logger_is_strict(
    call: Any, told: str
) -> None:
    logger = made(strict=True)
    with logger.start_logging(), pytest.raises(RecordError, match=told):
        call(logger)


def test_of_several_items_those_that_can_be_kept_are() -> None:
    logger = made()
    with logger.start_logging(), pytest.warns(RecordDroppedWarning, match="'b'.*no words"):
        logger.log(["1", Wordless(), "3"], ["a", "b", "c"], kind="text")
    kept = Path(logger.log_dir, "artifacts")
    assert {path.name for path in kept.glob("?.txt")} == {"a.txt", "c.txt"}


def test_documents_that_cannot_be_written_now_are_a_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logger = made()
    with logger.start_logging():
        with monkeypatch.context() as patch:
            patch.setattr(type(logger.experiment), "snapshot", lambda _: [].index("a page"))
            with pytest.warns(RecordDroppedWarning, match="a page"):
                logger.log(None, None, kind="prov_documents")
        logger.log(1.0, "after")
    assert len(prov4ml.get_metric(logger.log_dir, "after")) == 1


def test_a_kind_that_nobody_knows_is_the_callers_error_whatever_the_item() -> None:
    logger = made()
    with logger.start_logging(), pytest.raises(ConfigurationError, match="'histo' is unknown"):
        logger.log(Wordless(), Wordless(), kind="histo")


@pytest.mark.parametrize("form", [torch.bfloat16, torch.float16, torch.float64])
def test_a_picture_may_have_numbers_of_any_width(form: torch.dtype) -> None:
    logger = made()
    with logger.start_logging():
        logger.log(torch.full((3, 2, 5), 0.5, dtype=form), "grey", "image")
    with Image.open(Path(logger.log_dir, "artifacts", "grey.png")) as image:
        assert (image.size, image.getpixel((0, 0))) == ((5, 2), (128, 128, 128))
