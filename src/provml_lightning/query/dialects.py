"""Where each generation of documents keeps what we ask for; one row of a table each.

=========  ============================  ==============================================
generation its mark                      metrics
=========  ============================  ==============================================
embedded   prefix ``prov-ml``            type in ``prov-ml:type``, values as text inside
files      prefix ``yProv4ML``           no type: an entity with a path under ``metrics/``
typed      prefix ``provml``             ``prov:type`` is ``provml:Metric``, a file each
own        ``provml`` is an absolute IRI as typed, one file for each context
=========  ============================  ==============================================
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from provml_lightning.query.literals import text_of, texts_of

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["EXPERIMENT_DIR", "Dialect", "Element", "Relation", "dialect_of", "local_part"]

EXPERIMENT_DIR = ("yprov:experiment_dir", "yProv4ML:experiment_dir")
_FAMILY = frozenset({"", "provml", "prov-ml", "yprov", "yProv4ML"})
_SYNONYMS = {"Parameter": "HyperParameter", "LearningExecution": "RunExecution"}


class Element(NamedTuple):
    """One record of an activity or an entity."""

    kind: str
    id: str
    attributes: Mapping[str, Any]


class Relation(NamedTuple):
    """One record of a relation, of any kind."""

    kind: str
    attributes: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The attribute names of one generation.

    Attributes:
        embedded: Where epochs, values and timestamps stand inside the document.
        no_name: The texts that stand for no context and no source.
        typed: Elements have a type.
        paths_from_document: Paths are relative to the document, not to a working directory.
    """

    type: str = "prov:type"
    label: str = "prov:label"
    context: str = "yprov:context"
    source: str = "yprov:source"
    path: str = "dcterms:identifier"
    value: str = "prov:value"
    embedded: tuple[str, str, str] | None = None
    no_name: frozenset[str] = frozenset({"", "None"})
    typed: bool = True
    paths_from_document: bool = False

    def label_of(self, element: Element) -> str:
        """Return the name that the user gave, the identifier where there is none."""
        label = text_of(element.attributes.get(self.label))
        return element.id if label is None else label

    def context_of(self, element: Element) -> str | None:
        """Return the context as the document spells it."""
        stated = self._stated(element, self.context)
        return _context_in(element, self.label_of(element)) if stated is None else stated

    def source_of(self, element: Element) -> str | None:
        """Return the source, None where there is none."""
        return self._stated(element, self.source)

    def path_of(self, element: Element) -> str | None:
        """Return the path of the element's file as the document has it."""
        return text_of(element.attributes.get(self.path)) or None

    def has_type(self, element: Element, wanted: str) -> bool:
        """Tell whether an element is of a type, however its generation spells it."""
        return any(_same_type(stated, wanted) for stated in self._types(element))

    def is_metric(self, element: Element) -> bool:
        """Tell whether an element is a metric."""
        return element.kind == "entity" and self.has_type(element, "provml:Metric")

    def is_parameter(self, element: Element) -> bool:
        """Tell whether an element is a parameter, which has its value inside."""
        return self.value in element.attributes and self.has_type(element, "provml:HyperParameter")

    def is_run(self, element: Element) -> bool:
        """Tell whether an activity is the run itself."""
        told = element.attributes.keys() & set(EXPERIMENT_DIR)
        return bool(told) or self.has_type(element, "provml:RunExecution")

    def _stated(self, element: Element, attribute: str) -> str | None:
        text = text_of(element.attributes.get(attribute))
        return None if text in self.no_name else text

    def _types(self, element: Element) -> list[str]:
        stated = texts_of(element.attributes.get(self.type))
        metric = not self.typed and _lies_under_metrics(self.path_of(element))
        return [*stated, "provml:Metric"] if metric else stated


_TYPED = Dialect()
_OWN = replace(_TYPED, no_name=frozenset(), paths_from_document=True)
_EMBEDDED = Dialect(
    type="prov-ml:type",
    label="prov-ml:name",
    context="prov-ml:context",
    source="prov-ml:source",
    path="prov-ml:artifact_uri",
    value="prov-ml:parameter_value",
    embedded=(
        "prov-ml:metric_epoch_list",
        "prov-ml:metric_value_list",
        "prov-ml:metric_timestamp_list",
    ),
)
_FILES = Dialect(
    label="yProv4ML:label",
    context="yProv4ML:context",
    source="yProv4ML:source",
    path="yProv4ML:path",
    typed=False,
)


def dialect_of(prefixes: Mapping[str, Any]) -> Dialect:
    """Tell from its prefixes which generation a document is of."""
    if "yProv4ML" in prefixes:
        return _FILES
    if "provml" in prefixes:
        return _OWN if "://" in str(prefixes["provml"]) else _TYPED
    return _EMBEDDED if "prov-ml" in prefixes else _TYPED


def local_part(name: str) -> str:
    """Return a qualified name without its prefix."""
    return name.rpartition(":")[2]


def _same_type(stated: str, wanted: str) -> bool:
    if stated == wanted:
        return True
    prefixes = {stated.rpartition(":")[0], wanted.rpartition(":")[0]}
    if not prefixes <= _FAMILY:
        return False
    names = [local_part(name) for name in (stated, wanted)]
    return len({_SYNONYMS.get(name, name) for name in names}) == 1


def _context_in(element: Element, label: str) -> str | None:
    """Return the context in a full label ``[<source>//]<label>//<context>``, if it has one."""
    full = text_of(element.attributes.get("yprov:fullLabel")) or ""
    if full.startswith(f"{label}//"):
        return full[len(label) + 2 :]
    return full.partition(f"//{label}//")[2] or None


def _lies_under_metrics(path: str | None) -> bool:
    folders = ["", "", *(path or "").replace("\\", "/").split("/")]
    return folders[-2] == "metrics" and folders[-3] != "artifacts"
