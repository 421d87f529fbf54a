"""What stands in a run's overview for what its document says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from provml_lightning.domain.measured import Total
from provml_lightning.domain.power_measure import PowerMeasure
from provml_lightning.domain.records import (
    ContextDeclared,
    Continued,
    FileDeleted,
    FileUsed,
    ModelVersion,
    Note,
    Parameter,
)
from provml_lightning.provenance.statement import state
from tests.conformance.prov.runs import at, contents, ended, opened, stored

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest
    from typer.testing import Result

    from provml_lightning.domain.records import Record

    Command = Callable[..., Result]


def document(folder: Path, *records: Record, **changes: Any) -> Path:
    """Write the document of a run of 60 seconds in which some records were told."""
    path = folder / "prov_digits_0.json"
    path.write_text(json.dumps(state(contents(opened(), *records, ended(), **changes))))
    return path


def rows(shown: Result) -> list[list[str]]:
    return [line.split() for line in shown.output.splitlines()]


def test_the_stages_are_a_table_with_their_times_and_costs(
    prov4ml: Command, tmp_path: Path
) -> None:
    told = [ContextDeclared(time=at(second), context="Training") for second in (2, 12)]
    joules = Total(quantity="energy", context="Training", amount=110.5, unit="J", source="rapl")
    run = document(tmp_path, *told, totals=[joules])

    stages = rows(prov4ml("show", run))
    (training,) = json.loads(prov4ml("show", run, "--json").output)["stages"]

    assert ["name", "start", "duration", "energy", "[J]"] in stages
    assert ["Training", "2026-01-02", "03:04:07", "UTC", "10", "s", "110.5"] in stages
    assert (training["name"], training["duration"]) == ("Training", 10.0)
    assert training["costs"] == [{"name": "energy", "amount": 110.5, "unit": "J", "source": "rapl"}]


def test_models_say_which_is_best_and_none_that_is_gone_has_a_file(
    prov4ml: Command, tmp_path: Path
) -> None:
    told = {"name": "net", "context": "Training"}
    marks = {"is_best": True, "is_last": True, "score": 0.125}
    run = document(
        tmp_path,
        ModelVersion(time=at(1), stored=stored("a.ckpt", "a"), attributes={"score": 0.5}, **told),
        ModelVersion(time=at(2), stored=stored("b.ckpt", "b"), attributes=marks, **told),
        FileDeleted(time=at(3), path="a.ckpt", context="Training"),
    )

    models = rows(prov4ml("show", run))

    net_1 = ["net_1", "Training", "best,", "last", "net_0", "0.125", "1.02", "kB", "b.ckpt"]
    kept = models.index(net_1)
    assert models[kept + 1] == ["net_0", "Training", "deleted", "–", "0.5", "–", "–"]


def test_models_say_what_they_come_from_who_used_them_and_all_of_them_their_digest(
    prov4ml: Command, tmp_path: Path
) -> None:
    told = {"name": "net", "context": "Training"}
    run = document(
        tmp_path,
        ModelVersion(time=at(1), stored=stored("a.ckpt", "a"), **told),
        ModelVersion(time=at(2), stored=stored("b.ckpt", "b"), **told),
        FileUsed(time=at(3), path="b.ckpt", context="Testing"),
        FileUsed(time=at(4), path="b.ckpt", context="Testing"),
    )

    net_1 = ["net_1", "Training", "net_0", "Testing", "1.02", "kB", "b.ckpt"]
    assert net_1 in rows(prov4ml("show", run))
    assert [*net_1, stored("b.ckpt", "b").sha256[:12]] in rows(prov4ml("show", run, "--all"))
    (_, model) = json.loads(prov4ml("show", run, "--json").output)["models"]
    assert (model["origins"], model["used_by"]) == (["net_0"], ["Testing"])


def test_a_run_says_which_one_it_continues(prov4ml: Command, tmp_path: Path) -> None:
    there = {"namespace": "https://e.org/#", "run": "r", "name": "digits_3"}

    shown = prov4ml("show", document(tmp_path, Continued(time=at(1), path="/a.ckpt", **there)))

    assert ["continues", "digits_3"] in rows(shown)


def test_measures_are_a_table(prov4ml: Command, tmp_path: Path) -> None:
    measure = PowerMeasure(
        time=at(1),
        package="sklearn",
        algorithm="forest",
        step="training",
        seconds=2.5,
        measured={"energy_consumed": 12.5, "emissions": 0.125},
    )

    shown = rows(prov4ml("show", document(tmp_path, measure)))

    assert ["Measures", "1"] in shown
    assert ["sklearn", "forest", "training", "2.5", "s", "12.5", "0.125"] in shown


def test_the_settings_that_are_asked_for_most_are_one_line(
    prov4ml: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    told = {
        "seed/global": 42,
        "seed/torch": 7,
        "trainer/precision": "32-true",
        "trainer/max_epochs": 5,
        "trainer/accelerator": "CPUAccelerator",
        "optimizer/Adam": "torch.optim.adam.Adam",
        "optimizer/Adam/betas": "(0.9, 0.999)",
        "optimizer/Adam/lr": 0.01,
    }
    run = document(
        tmp_path,
        *(
            Parameter(time=at(1), key=name, value=value, source="lightning")
            for name, value in told.items()
        ),
    )

    lines = [line.strip() for line in prov4ml("show", run).output.splitlines()]

    heading = lines.index("Settings of lightning  8")
    assert lines[heading + 1].split(" · ") == [
        "optimizer Adam",
        "lr 0.01",
        "max_epochs 5",
        "precision 32-true",
        "accelerator CPU",
        "seed 42",
    ]
    assert lines[heading + 2] == "… and 2 more (--all)"


def test_many_notes_on_what_a_machine_does_not_measure_are_one_line(
    prov4ml: Command, tmp_path: Path
) -> None:
    topics = ["storage", "storage", "storage"] + ["system metrics"] * 3
    notes = [
        Note(time=at(1), topic=topic, message=f"m{number}") for number, topic in enumerate(topics)
    ]
    run = document(tmp_path, *notes)

    cut, whole = rows(prov4ml("show", run)), rows(prov4ml("show", run, "--all"))

    assert [row for row in cut if row[:1] == ["note"]] == [
        ["note", "storage:", "m0"],
        ["note", "storage:", "m1"],
        ["note", "storage:", "m2"],
        ["note", "system", "metrics:", "3", "notes", "(--all)"],
    ]
    assert ["note", "system", "metrics:", "m5"] in whole
    assert "notes" not in [word for row in whole for word in row]


def test_two_notes_on_what_a_machine_does_not_measure_are_shown(
    prov4ml: Command, tmp_path: Path
) -> None:
    notes = [Note(time=at(1), topic="system metrics", message=f"m{number}") for number in (0, 1)]

    shown = rows(prov4ml("show", document(tmp_path, *notes)))

    assert ["note", "system", "metrics:", "m0"] in shown
    assert ["note", "system", "metrics:", "m1"] in shown


def test_in_a_pipe_no_line_is_filled_up_to_an_endless_width(
    prov4ml: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = [
        Parameter(time=at(1), key=key, value=5, source="lightning")
        for key in ("trainer/max_epochs", "trainer/min_epochs", "seed/global")
    ]
    run = document(tmp_path, *settings)
    monkeypatch.delenv("COLUMNS")
    lines = prov4ml("show", run).output.splitlines()
    assert any("max_epochs 5" in line for line in lines)
    assert max(map(len, lines)) < 200
