"""What stands in a picture: names and few facts, escaped and cut."""

from __future__ import annotations

import html
from datetime import datetime
from typing import TYPE_CHECKING, Any

from provml_lightning.exporters.statements import SETTING, literal_text, local_part

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provml_lightning.exporters.statements import Element

__all__ = ["html_label", "quoted"]

_LONGEST = 60
_SMALL = '<font point-size="10" color="#444444">'
# What is said of an element beside its name, in this order.
_SHOWN = {
    "value": "{}",
    "last": "last {}",
    "rows": "{} values",
    "step": "step {}",
    "status": "{}",
    "version": "version {}",
    "host": "on {}",
}
_SEVERAL = {
    "Artifact": "artifacts",
    "Context": "contexts",
    "Dataset": "data sets",
    "HyperParameter": "parameters",
    "LearningStage": "contexts",
    "Metric": "metrics",
    "MetricsFile": "metrics files",
    "Model": "models",
    "ModelLayers": "descriptions of layers",
    "ModelVersion": "model versions",
    "Person": "people",
    "Process": "processes",
    "Setting": "settings",
}
_KINDS = {"entity": "entities", "activity": "activities", "agent": "agents"}


def html_label(element: Element) -> str:
    """Return an element's label: its name, and below it, smaller, what is said of it."""
    if element.count > 1:
        return f"<<i>{_escaped(_several(element))}</i>>"
    name = _escaped(_cut(_name(element)))
    facts = _escaped(_cut(" · ".join(_facts(element.attributes))))
    return f"<{name}<br/>{_SMALL}{facts}</font>>" if facts else f"<{name}>"


def quoted(text: str) -> str:
    """Return a text as a quoted string of DOT, which shows it as it is.

    Source:
        Graphviz, DOT language: in a quoted string a backslash begins an escape.
    """
    return '"' + _plain(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _several(element: Element) -> str:
    kind, name = element.family
    noun = _SEVERAL.get(name) or f"{_KINDS[kind]}{f' ({name})' if name else ''}"
    more = "" if element.family == SETTING else "more "
    return f"{element.count:,}".replace(",", " ") + f" {more}{noun}"


def _name(element: Element) -> str:
    label = element.attributes.get("prov:label")
    return (literal_text(label) if label is not None else element.name) or "“”"


def _facts(attributes: Mapping[str, Any]) -> Iterator[str]:
    facts = {local_part(name): value for name, value in attributes.items()}
    for name, form in _SHOWN.items():
        if name in facts:
            unit = literal_text(facts["unit"]) if name == "last" and "unit" in facts else ""
            shown = f"{form.format(literal_text(facts[name]))} {unit}".rstrip()
            yield "1 value" if shown == "1 values" else shown
    yield from _duration(facts)


def _duration(facts: Mapping[str, Any]) -> Iterator[str]:
    try:
        start, end = (datetime.fromisoformat(facts[name]) for name in ("startTime", "endTime"))
        yield f"{(end - start).total_seconds():.3g} s"
    except (KeyError, TypeError, ValueError):
        return


def _cut(text: str) -> str:
    """Return a text in one line; of a long one its beginning and its end, which names a file."""
    line = " ".join(text.split()) or text
    half = _LONGEST // 2
    return line if len(line) <= _LONGEST else f"{line[:half]}…{line[1 - half :]}"


def _escaped(text: str) -> str:
    # Graphviz 2.43 to 16 read \N as the node's name even in a label of this kind.
    return html.escape(_plain(text)).replace("\\", "\\\\")


def _plain(text: str) -> str:
    """Return a text with what neither XML nor UTF-8 can hold replaced."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
