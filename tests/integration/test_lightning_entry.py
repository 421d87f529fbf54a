"""The entry point by which Lightning asks for callbacks: nobody pays who has no logger of ours."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.loggers import CSVLogger

import prov4ml
from provml_lightning.entry import callbacks
from provml_lightning.loggers.lineage.watcher import Lineage
from tests.training import Digits, Witness, digits, trainer

OTHERS = """
import sys
import PACKAGE as L
none = dict.fromkeys(("logger", "enable_checkpointing", "enable_progress_bar"), False)
assert L.Trainer(**none, enable_model_summary=False).callbacks == []
ours = {name for name in sys.modules if name.partition(".")[0] in ("prov4ml", "provml_lightning")}
print(sorted(ours))
"""


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def ours(teacher: Any) -> list[Callback]:
    return [one for one in teacher.callbacks if isinstance(one, Lineage)]


@pytest.mark.parametrize("group", ["lightning.pytorch", "pytorch_lightning"])
def test_both_packages_of_lightning_find_it(group: str) -> None:
    found = [one.load() for one in entry_points(group=f"{group}.callbacks_factory")]
    assert callbacks in found


@pytest.mark.timeout(120)
@pytest.mark.parametrize("package", ["lightning.pytorch", "pytorch_lightning"])
def test_a_trainer_of_who_does_not_use_us_gets_nothing_and_loads_nothing(
    package: str, tmp_path: Path
) -> None:
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", OTHERS.replace("PACKAGE", package)],
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    loaded = ["provml_lightning", "provml_lightning.__about__", "provml_lightning.entry"]
    assert ended.stdout.strip() == str(loaded)


def test_a_trainer_has_the_callbacks_of_the_loggers_that_it_is_given_and_no_others() -> None:
    first, second, silent = (
        prov4ml.ProvMLLogger(name, lineage=name != "silent") for name in ("a", "b", "silent")
    )
    assert (
        ours(trainer()) == ours(trainer(Witness(), CSVLogger("."))) == ours(trainer(silent)) == []
    )
    assert ours(trainer(Witness(), first)) == [first.lineage_callback]
    for several in (
        (first, second),
        [first, silent, second],
        dict.fromkeys([first, second]).keys(),
    ):
        teacher = trainer(logger=several)
        assert ours(teacher) == [first.lineage_callback, second.lineage_callback]
    assert ours(trainer(logger=first)) == [first.lineage_callback]
    assert not Path("prov").exists()


def test_loggers_that_can_be_gone_through_once_all_reach_the_trainer() -> None:
    loggers = [prov4ml.ProvMLLogger("a"), Witness()]
    assert trainer(logger=iter(loggers)).loggers == loggers


def test_who_takes_the_logger_away_again_has_a_trainer_without_us() -> None:
    teacher = trainer(prov4ml.ProvMLLogger())
    teacher.logger = None
    teacher.fit(Digits(), digits(), digits())
    assert ours(teacher) == []
    assert not Path("prov").exists()


@pytest.mark.parametrize("late", [False, True])
def test_ours_is_the_first_that_hears_of_a_stage_and_is_there_once(late: bool) -> None:
    class Other(Callback):
        """Stands where the user put it."""

    logger, other = prov4ml.ProvMLLogger(), Other()
    teacher = trainer(*([] if late else [logger]), callbacks=[other])
    teacher.logger = logger
    teacher.fit(Digits(), digits(), digits())
    assert teacher.callbacks == [logger.lineage_callback, other]
    teacher.test(Digits(), digits(), verbose=False)
    assert teacher.callbacks == [logger.lineage_callback, other]
