from __future__ import annotations

from typing import TYPE_CHECKING

import prov4ml as library

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from typer.testing import Result

    Command = Callable[..., Result]


def test_a_killed_run_is_recovered_once(prov4ml: Command, killed: Path) -> None:
    first, second = prov4ml("recover", killed), prov4ml("recover", killed)

    assert (first.exit_code, second.exit_code) == (0, 0)
    assert "recovered" in first.output
    assert "4 values" in first.output
    assert "status incomplete" in first.output
    assert "nothing to do" in second.output
    assert not list((killed / "journal").glob("*.points"))
    assert library.get_metric(killed, "loss")["value"].tolist() == [2.0, 0.5, 1.0]


def test_a_torn_line_is_told_of(prov4ml: Command, killed: Path) -> None:
    with (killed / "journal" / "rank-00000.jsonl").open("a") as journal:
        journal.write('{"kind":"Para\n')

    assert "1 torn line of the journals" in prov4ml("recover", killed).output


def test_a_living_process_keeps_its_values_and_the_status_is_1(
    prov4ml: Command, tmp_path: Path
) -> None:
    with library.start_run("now", provenance_save_dir=tmp_path):
        library.log_metric("loss", 1.0)
        tried = prov4ml("recover", tmp_path / "now_0")
        kept = list((tmp_path / "now_0" / "journal").glob("*.points"))
        library.log_metric("loss", 2.0)

    assert tried.exit_code == 1
    assert "may still be writing" in tried.output
    assert len(kept) == 1
    assert library.get_metric(tmp_path / "now_0", "loss")["value"].tolist() == [1.0, 2.0]


def test_all_recovers_what_needs_it_and_nothing_else(
    prov4ml: Command, killed: Path, finished: Path
) -> None:
    top = killed.parent.parent
    first, second = prov4ml("recover", "--all", top), prov4ml("recover", "--all", top)

    assert (first.exit_code, second.exit_code) == (0, 0)
    assert str(killed) in "".join(first.output.splitlines())
    assert str(finished) not in "".join(first.output.splitlines())
    assert second.output.startswith("nothing to recover")


def test_a_document_of_another_tool_has_nothing_to_recover(
    prov4ml: Command, tmp_path: Path
) -> None:
    (tmp_path / "prov_x.json").write_text('{"entity": {}}')

    wrong = prov4ml("recover", tmp_path)

    assert wrong.exit_code == 2
    assert "no journal" in wrong.stderr
