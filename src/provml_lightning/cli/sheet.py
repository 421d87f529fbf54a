"""A run's overview on a terminal: a header, and a section for each kind of thing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from provml_lightning.cli.amounts import ABSENT, bytes_of, count, duration, moment, number
from provml_lightning.cli.header import print_header
from provml_lightning.cli.tables import Row, print_table
from provml_lightning.cli.terminal import console, more, shown, title
from provml_lightning.query.files import FileFacts
from provml_lightning.query.items import ItemFacts
from provml_lightning.query.literals import number_of
from provml_lightning.query.overview import ParameterFacts, RunOverview
from provml_lightning.query.settings import asked_most
from provml_lightning.query.stages import StageFacts
from provml_lightning.query.summaries import MetricFacts

__all__ = ["print_sheet"]

_DIGEST = 12
_LONGEST_VALUE = 120


def print_sheet(overview: RunOverview, longest: int | None) -> None:
    """Print everything that a person asks first.

    Args:
        overview: The run.
        longest: Rows of a list that are shown [1]; None for all.
    """
    out = console()
    print_header(out, overview, everything=longest is None)
    _section(out, "Stages", overview.stages, _STAGE, longest)
    _section(out, "Measures", overview.measures, _MEASURE, longest)
    _print_parameters(out, overview.parameters, longest)
    _print_metrics(out, overview.metrics, longest)
    _section(out, "Data sets", overview.datasets, _DATASET, longest)
    models = _MODEL_AND_ALL if longest is None else _MODEL
    _section(out, "Models", overview.models, models, longest)
    _section(out, "Artifacts", overview.artifacts, _ARTIFACT, longest)
    _print_files(out, overview.files, longest)


def _state(one: ItemFacts) -> str:
    marks = {"best": one.facts.get("is_best"), "last": one.facts.get("is_last")}
    told = [word for word, holds in {**marks, "deleted": one.deleted}.items() if holds is True]
    return ", ".join(told) or ABSENT


Columns = dict[str, Callable[[Any], str | Text]]

_STAGE: Columns = {
    "name": lambda one: one.name,
    "start": lambda one: moment(one.started),
    ">duration": lambda one: duration(one.duration),
    ">energy [J]": lambda one: _cost(one, "energy"),
    ">emissions [gCO2eq]": lambda one: _cost(one, "emissions"),
}
_MEASURE: Columns = {
    "package": lambda one: one.package or ABSENT,
    "algorithm": lambda one: one.algorithm,
    "step": lambda one: one.step or ABSENT,
    ">duration": lambda one: duration(one.seconds),
    ">energy [J]": lambda one: number(one.energy),
    ">emissions [gCO2eq]": lambda one: number(one.emissions),
}
_PARAMETER: Columns = {
    "name": lambda one: one.name,
    "context": lambda one: one.context or ABSENT,
    "value": lambda one: shown(", ".join(map(str, one.values)), _LONGEST_VALUE),
}
_METRIC: Columns = {
    "name": lambda one: one.name,
    "source": lambda one: one.source or "",
    "unit": lambda one: one.unit or "",
    ">rows": lambda one: count(one.rows),
    ">first": lambda one: number(one.first),
    ">last": lambda one: number(one.last),
    ">min": lambda one: number(one.min),
    ">max": lambda one: number(one.max),
}
_ITEM: Columns = {"name": lambda one: one.name, "context": lambda one: one.context or ABSENT}
_FILE: Columns = {"file": lambda one: one.path, ">size": lambda one: bytes_of(one.size)}
_STORED: Columns = {">size": lambda one: bytes_of(one.size), "file": lambda one: one.path or ABSENT}
_DATASET: Columns = _ITEM | {
    ">samples": lambda one: _fact(one, "total_samples"),
    ">batch size": lambda one: _fact(one, "batch_size"),
    "fingerprint": lambda one: _fact(one, "fingerprint")[:_DIGEST],
}
_MODEL: Columns = _ITEM | {
    "state": _state,
    "from": lambda one: shown(", ".join(one.origins) or ABSENT),
    "used by": lambda one: shown(", ".join(one.used_by) or ABSENT),
    ">step": lambda one: _fact(one, "step"),
    ">score": lambda one: number(number_of(one.facts.get("score"))),
    ">parameters": lambda one: _fact(one, "total_params"),
    ">size": lambda one: bytes_of(None if one.deleted else one.size),
    "file": lambda one: ABSENT if one.deleted else one.path or ABSENT,
}
_MODEL_AND_ALL: Columns = _MODEL | {"sha256": lambda one: _fact(one, "sha256")[:_DIGEST]}
_ARTIFACT: Columns = {**_ITEM, **_STORED}


def _fact(one: ItemFacts, name: str) -> str:
    value = one.facts.get(name)
    return count(value) if isinstance(value, int) else ABSENT if value is None else str(value)


def _cost(one: StageFacts, name: str) -> str:
    return number(next((cost.amount for cost in one.costs if cost.name == name), None))


def _print_parameters(
    out: Console, parameters: Sequence[ParameterFacts], longest: int | None
) -> None:
    """Print what the user set; of what a library tells of itself, what is asked for most."""
    own = [one for one in parameters if one.source is None]
    _section(out, "Parameters", own, _PARAMETER, longest)
    for source in dict.fromkeys(one.source for one in parameters if one.source is not None):
        told = [one for one in parameters if one.source == source]
        name = f"Settings of {shown(source)}"
        if longest is None:
            _section(out, name, told, _PARAMETER, None)
        else:
            _print_settings(out, name, told)


def _print_settings(out: Console, name: str, told: Sequence[ParameterFacts]) -> None:
    """Print a heading and one line with the few that are asked for most."""
    few = asked_most(told)
    out.print(title(name, len(told)))
    if few:
        line = shown(" · ".join(map(_setting, few)))
        out.print(Padding(line, (0, 0, 0, 2), expand=False))  # in a pipe the width has no end
    if len(told) > len(few):
        out.print(more(len(told) - len(few)))


def _setting(one: ParameterFacts) -> str:
    """Return ``max_epochs 5`` for ``trainer/max_epochs``, ``optimizer Adam`` for its class."""
    kind, *names = one.name.split("/")
    is_class = kind == "optimizer" and len(names) == 1
    name = kind if is_class or kind == "seed" else names[-1]
    values = [str(value) for value in one.values]
    if is_class:
        values = [value.rpartition(".")[2] for value in values]
    return f"{name} {', '.join(value.removesuffix('Accelerator') for value in values)}"


def _print_metrics(out: Console, metrics: Sequence[MetricFacts], longest: int | None) -> None:
    ordered = sorted(metrics, key=lambda one: one.context or "")
    for context, group in groupby(ordered, key=lambda one: one.context):
        name = "Metrics" if context is None else f"Metrics of {shown(context)}"
        _section(out, name, list(group), _METRIC, longest)


def _print_files(out: Console, files: Sequence[FileFacts], longest: int | None) -> None:
    total = f"{len(files)}, {bytes_of(sum(file.size for file in files))} in all"
    _section(out, "Files", files, _FILE, longest, amount=total)


def _section(
    out: Console,
    name: str,
    items: Sequence[Any],
    columns: Columns,
    longest: int | None,
    amount: object = None,
) -> None:
    """Print a heading and as many rows as there may be; nothing where there are no items."""
    if not items:
        return
    rows: list[Row] = [
        {name: value(one) for name, value in columns.items()} for one in items[:longest]
    ]
    out.print(title(name, amount or len(items)))
    if rows:
        print_table(rows)
    if len(items) > len(rows):
        out.print(more(len(items) - len(rows)))
