"""A document as a graph, in the colours and shapes that the W3C draws provenance in."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, cast

from provml_lightning.errors import ExportError
from provml_lightning.exporters.folding import fold
from provml_lightning.exporters.labels import html_label, quoted
from provml_lightning.exporters.rendering import write_svg
from provml_lightning.exporters.source import load_document
from provml_lightning.exporters.statements import read_statements
from provml_lightning.storage.index import write_whole

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pydot

    from provml_lightning.exporters.statements import Element, Relation, Statements

__all__ = ["graph_from_document", "write_dot", "write_svg"]

# Source: W3C, "PROV Graph Layout Conventions"; the colours are those of the specifications.
_NODES = {
    "entity": {"shape": "ellipse", "fillcolor": '"#FFFC87"', "color": '"#808080"'},
    "activity": {"shape": "box", "fillcolor": '"#9FB1FC"', "color": '"#0000FF"'},
    "agent": {"shape": "house", "fillcolor": '"#FED37F"', "color": '"#A06000"'},
}
_EDGES = {
    "used": '"#B22222"',
    "wasGeneratedBy": '"#1E7B34"',
    "wasAssociatedWith": '"#A06000"',
    "wasAttributedTo": '"#A06000"',
    "actedOnBehalfOf": '"#A06000"',
    "hadMember": '"#808080"',
}
_FONT = "Helvetica"
_CONTEXTS = frozenset({"LearningStage", "Context"})


def graph_from_document(document: Mapping[str, Any], *, alike: int = 8, largest: int = 80) -> str:
    """Return a PROV-JSON document as DOT; the same document gives the same text.

    Time goes from left to right and arrows point back, to what a thing came from.

    Args:
        document: PROV-JSON of any tool.
        alike: The most like elements that are drawn one by one; the rest is one node that counts
            them. Chains of derivations keep first, last and best [1].
        largest: The most nodes; where there would be more, ``alike`` is halved [1].

    Raises:
        MalformedDocumentError: It does not have the shape of PROV-JSON.
    """
    return _drawn(fold(read_statements(document), alike=alike, largest=largest)).to_string()


def write_dot(source: Path, target: Path) -> Path:
    """Write the graph of a run's folder, or of a PROV-JSON file, as DOT; return the file.

    Raises:
        ExportError: There is nothing to read, or the disk did not take it.
        MalformedDocumentError: It is not PROV-JSON.
    """
    text = graph_from_document(load_document(source))
    try:
        write_whole(target, text.encode())
    except OSError as error:
        raise ExportError(f"{target} cannot be written: {error.strerror or error}") from error
    return target


def _drawn(statements: Statements) -> pydot.Dot:
    import pydot

    graph = pydot.Dot(
        graph_type="digraph", rankdir="RL", ranksep="0.6", nodesep="0.15", charset='"UTF-8"',
        fontname=_FONT, fontsize="12", bgcolor="white",
    )  # fmt: skip
    graph.add_node(pydot.Node("node", style="filled", fontname=_FONT, fontsize="12"))
    graph.add_node(pydot.Node("edge", fontname=_FONT, fontsize="9", arrowsize="0.7"))
    # A colon in a node's name is a port, so nodes are numbered.
    names = {key: f"n{number}" for number, key in enumerate(statements.elements, start=1)}
    frames = _frames(statements)
    for number, frame in enumerate(dict.fromkeys(frames.values())):
        place = graph if frame is None else _cluster(f"c{number}", statements.bundles.get(frame))
        for key, element in statements.elements.items():
            if frames[key] == frame:
                place.add_node(_node(names[key], element))
        if place is not graph:
            graph.add_subgraph(cast("pydot.Subgraph", place))
    for one in statements.relations:
        graph.add_edge(_edge(one, names))
    return graph


def _frames(statements: Statements) -> dict[str, str | None]:
    """Return the key of the frame that each element is drawn in: its bundle's, or its context's."""
    contexts = _contexts(statements)
    return {
        key: element.bundle if element.bundle is not None else contexts.get(key)
        for key, element in statements.elements.items()
    }


def _contexts(statements: Statements) -> dict[str, str]:
    """Return the context of itself and of each entity that no other activity made or used."""
    near: dict[str, set[str]] = defaultdict(set)
    for one in statements.relations:
        if one.kind in {"used", "wasGeneratedBy"}:
            near[one.source].add(one.target)
            near[one.target].add(one.source)
    own = {
        key
        for key, element in statements.elements.items()
        if element.kind == "activity" and _CONTEXTS.intersection(element.types)
    }
    only = {
        key: next(iter(found))
        for key, found in near.items()
        if statements.elements[key].kind == "entity" and len(found) == 1 and found <= own
    }
    return only | {key: key for key in own}


def _cluster(name: str, label: str | None) -> pydot.Cluster:
    import pydot

    colors = {"fillcolor": '"#F7F7F7"', "color": '"#C8C8C8"'}
    shown = {} if label is None else {"label": quoted(label)}
    attributes: dict[str, Any] = {"style": '"rounded,filled"', **colors, **shown}
    return pydot.Cluster(name, **attributes)


def _node(name: str, element: Element) -> pydot.Node:
    import pydot

    style: dict[str, Any] = dict(_NODES[element.kind])
    if element.count > 1:
        style["peripheries"] = "2"
    if not element.declared:
        style["fillcolor"] = "lightgray"
    return pydot.Node(name, label=html_label(element), **style)


def _edge(relation: Relation, names: Mapping[str, str]) -> pydot.Edge:
    import pydot

    color = _EDGES.get(relation.kind, '"#404040"')
    ends = names[relation.source], names[relation.target]
    return pydot.Edge(*ends, label=quoted(relation.kind), color=color, fontcolor=color)
