"""Several values or parameters in one call."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import torch

import prov4ml
from provml_lightning.errors import RecordError

RUN = Path("prov/digits_0")


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_metrics_of_one_moment_have_one_time_step_and_epoch() -> None:
    with prov4ml.start_run("digits"):
        prov4ml.log_metrics(
            {"loss": torch.tensor(0.5), "val": {"acc": 0.75}}, prov4ml.Context.TRAINING, 3, epoch=1
        )
    frames = [prov4ml.get_metric(RUN, name, "Training") for name in ("loss", "val/acc")]
    assert [frame["value"].tolist() for frame in frames] == [[0.5], [0.75]]
    assert [frame["step"].tolist() for frame in frames] == [[3], [3]]
    assert [frame["epoch"].tolist() for frame in frames] == [[1], [1]]
    assert frames[0]["timestamp"].tolist() == frames[1]["timestamp"].tolist()


def test_metrics_that_are_told_before_the_run_wait_for_it() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    prov4ml.log_metrics({"loss": 1}, "Validation", 2, timestamp=moment)
    with prov4ml.start_run("digits"):
        pass
    frame = prov4ml.get_metric(RUN, "loss", "Validation")
    assert frame["value"].tolist() == [1.0]
    assert [time.to_pydatetime() for time in frame["timestamp"]] == [moment]


def test_of_metrics_with_one_that_is_no_number_none_is_kept() -> None:
    with prov4ml.start_run("digits"):
        with pytest.raises(RecordError, match="acc"):
            prov4ml.log_metrics({"loss": 0.5, "acc": "high"})
        prov4ml.log_metric("other", 1.0)
    assert prov4ml.list_metrics(RUN)["label"].tolist() == ["other"]


def test_a_metric_is_the_same_whether_it_is_told_alone_or_with_others() -> None:
    with prov4ml.start_run("digits"):
        prov4ml.log_metric("loss", 0.5, "Training", 0)
        prov4ml.log_metrics({"loss": 0.25}, "Training", 1)
    assert prov4ml.get_metric(RUN, "loss", "Training")["value"].tolist() == [0.5, 0.25]


def test_parameters_are_taken_from_mappings_and_namespaces_nested_ones_too() -> None:
    with prov4ml.start_run("digits"):
        prov4ml.log_params({"lr": 0.1, "model": {"layers": 2, "password": "hunter2"}})
        prov4ml.log_params(Namespace(batch_size=8), "Training", is_output=True)
    told = prov4ml.list_parameters(str(RUN))
    expected = {"lr": 0.1, "model/layers": 2, "model/password": "***", "batch_size": 8}
    assert {name: told.get(name) for name in expected} == expected


@pytest.mark.parametrize("told", [None, 0.5, [("loss", 1.0)], "loss"])
def test_what_has_no_names_is_refused(told: Any) -> None:
    with prov4ml.start_run("digits"):
        with pytest.raises(RecordError, match="must be a mapping"):
            prov4ml.log_metrics(told)
        with pytest.raises(RecordError, match="must be a mapping"):
            prov4ml.log_params(told)


def test_a_name_that_cannot_be_written_is_refused_before_anything_is_kept() -> None:
    with prov4ml.start_run("digits"):
        with pytest.raises(RecordError, match="no text that can be written"):
            prov4ml.log_metrics({"first": 1.0, "b\ud800": 2.0})
        prov4ml.log_metric("other", 1.0)
    assert prov4ml.list_metrics(RUN)["label"].tolist() == ["other"]


class Arguments(Namespace):
    """What a parser of the user's returns."""


@dataclass
class Settings:
    """Has a field that nobody has set."""

    lr: float = 0.1
    steps: int = field(init=False)


def test_parameters_of_a_kind_of_namespace_and_of_a_dataclass_with_a_hole_are_kept() -> None:
    with prov4ml.start_run("digits"):
        prov4ml.log_params(Arguments(batch_size=8))
        prov4ml.log_params(Settings())
    told = prov4ml.list_parameters(str(RUN))
    assert (told["batch_size"], told["lr"]) == (8, 0.1)
    assert "steps" not in told
