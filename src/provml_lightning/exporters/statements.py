"""A PROV-JSON document as elements and relations, whoever wrote it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from provml_lightning.errors import MalformedDocumentError

__all__ = [
    "SETTING",
    "Element",
    "Relation",
    "Statements",
    "literal_text",
    "local_part",
    "read_statements",
]

# The family of what a library tells of its own settings.
SETTING = ("entity", "Setting")

# What a relation's arrow leaves and what it points to, and of which kind each is.
# Source: PROV-JSON 3, PROV-DM 5; the arrow points from the later thing to the earlier one.
_ENDS = {
    "wasGeneratedBy": (("entity", "entity"), ("activity", "activity")),
    "used": (("activity", "activity"), ("entity", "entity")),
    "wasInformedBy": (("informed", "activity"), ("informant", "activity")),
    "wasStartedBy": (("activity", "activity"), ("trigger", "entity"), ("starter", "activity")),
    "wasEndedBy": (("activity", "activity"), ("trigger", "entity"), ("ender", "activity")),
    "wasInvalidatedBy": (("entity", "entity"), ("activity", "activity")),
    "wasDerivedFrom": (("generatedEntity", "entity"), ("usedEntity", "entity")),
    "wasAttributedTo": (("entity", "entity"), ("agent", "agent")),
    "wasAssociatedWith": (("activity", "activity"), ("agent", "agent"), ("plan", "entity")),
    "actedOnBehalfOf": (("delegate", "agent"), ("responsible", "agent")),
    "wasInfluencedBy": (("influencee", "entity"), ("influencer", "entity")),
    "specializationOf": (("specificEntity", "entity"), ("generalEntity", "entity")),
    "alternateOf": (("alternate1", "entity"), ("alternate2", "entity")),
    "mentionOf": (("specificEntity", "entity"), ("generalEntity", "entity")),
    "hadMember": (("collection", "entity"), ("entity", "entity")),
}
# Source: PROV-DM 5.2.2 to 5.2.4, the derivations with a name of their own.
_DERIVATIONS = {
    "Revision": "wasRevisionOf",
    "Quotation": "wasQuotedFrom",
    "PrimarySource": "hadPrimarySource",
}


@dataclass(frozen=True, slots=True)
class Element:
    """An entity, activity or agent.

    Attributes:
        key: Its IRI, or its id as it stands where the prefix is unknown.
        name: Its id as the document writes it.
        types: Local parts of its types, the most specific last.
        bundle: Key of the bundle that describes it.
        count: How many elements it stands for [1].
        declared: Whether the document describes it, and not only relates to it.
    """

    key: str
    kind: str
    name: str
    types: tuple[str, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    bundle: str | None = None
    count: int = 1
    declared: bool = True

    @property
    def family(self) -> tuple[str, str]:
        """Elements of one family are alike: the same kind and the same most specific type.

        A parameter that a library told of itself is none of the user's.
        """
        name = self.types[-1] if self.types else ""
        is_setting = name == "HyperParameter" and "yprov:source" in self.attributes
        return SETTING if is_setting else (self.kind, name)


@dataclass(frozen=True, slots=True)
class Relation:
    """An arrow from what is later to what it depends on."""

    kind: str
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Statements:
    """Elements by key, relations without repetition, names of bundles by key; document order."""

    elements: Mapping[str, Element]
    relations: tuple[Relation, ...]
    bundles: Mapping[str, str] = field(default_factory=dict)


def read_statements(document: Mapping[str, Any]) -> Statements:
    """Return what a document states.

    Ids that stand for several records are one element with the attributes of all; what is related
    but never described is an element of the kind that the relation says.

    Raises:
        MalformedDocumentError: It does not have the shape of PROV-JSON.
    """
    try:
        return _Reader().read(document)
    except (AttributeError, TypeError, ValueError) as error:
        raise MalformedDocumentError(f"the document is not PROV-JSON: {error}") from error


def literal_text(value: Any) -> str:
    """Return a PROV-JSON value as text for people: of a list the first, numbers to 6 digits."""
    if isinstance(value, list):
        return literal_text(value[0]) if value else ""
    if isinstance(value, Mapping):
        return _typed_text(value)
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def local_part(name: str) -> str:
    """Return a qualified name without its prefix."""
    return name.partition(":")[2] or name


def _typed_text(literal: Mapping[str, Any]) -> str:
    text = str(literal.get("$", ""))
    if local_part(str(literal.get("type"))) not in {"double", "float"}:
        return text
    try:
        return f"{float(text):.6g}"
    except ValueError:
        return text


class _Reader:
    """Collects the statements of a document and of its bundles."""

    def __init__(self) -> None:
        self._elements: dict[str, Element] = {}
        self._relations: dict[Relation, None] = {}
        self._bundles: dict[str, str] = {}

    def read(self, document: Mapping[str, Any]) -> Statements:
        prefixes = dict(document.get("prefix", {}))
        self._add(document, prefixes, None)
        for name, bundle in document.get("bundle", {}).items():
            key = _resolve(name, prefixes)
            self._bundles[key] = name
            self._add(bundle, {**prefixes, **bundle.get("prefix", {})}, key)
        return Statements(self._elements, tuple(self._relations), self._bundles)

    def _add(
        self, section: Mapping[str, Any], prefixes: Mapping[str, str], bundle: str | None
    ) -> None:
        for kind in ("activity", "entity", "agent"):
            for name, records in section.get(kind, {}).items():
                self._describe(
                    Element(_resolve(name, prefixes), kind, name, bundle=bundle), records
                )
        for kind, ends in _ENDS.items():
            for records in section.get(kind, {}).values():
                for record in _records(records):
                    self._relate(kind, record, ends, prefixes, bundle)

    def _describe(self, new: Element, records: Any) -> None:
        known = self._elements.get(new.key, new)
        listed = _records(records)
        attributes = listed[0] if known is new and listed else dict(known.attributes)
        for record in listed[1 if known is new else 0 :]:
            attributes = {**attributes, **record}
        self._elements[new.key] = Element(
            new.key,
            known.kind,
            known.name,
            tuple(_type_names(attributes)),
            attributes,
            known.bundle,
        )

    def _relate(
        self,
        kind: str,
        record: Mapping[str, Any],
        ends: tuple[tuple[str, str], ...],
        prefixes: Mapping[str, str],
        bundle: str | None,
    ) -> None:
        found = [
            [self._reach(name, end, prefixes, bundle) for name in _listed(record[f"prov:{role}"])]
            for role, end in ends
            if f"prov:{role}" in record
        ]
        sources = found[0] if f"prov:{ends[0][0]}" in record else []
        label = _derivation(record) if kind == "wasDerivedFrom" else kind
        for source in sources:
            for targets in found[1:]:
                self._relations.update(
                    (Relation(label, source, target), None) for target in targets
                )

    def _reach(self, name: str, kind: str, prefixes: Mapping[str, str], bundle: str | None) -> str:
        key = _resolve(name, prefixes)
        if key not in self._elements:
            self._elements[key] = Element(key, kind, name, bundle=bundle, declared=False)
        return key


def _resolve(name: str, prefixes: Mapping[str, str]) -> str:
    prefix, colon, local = name.partition(":")
    if colon and prefix in prefixes:
        return f"{prefixes[prefix]}{local}"
    return name if colon else f"{prefixes.get('default', '')}{name}"


def _listed(values: Any) -> list[Any]:
    return values if isinstance(values, list) else [values]


def _records(values: Any) -> list[Mapping[str, Any]]:
    records = _listed(values)
    if not all(isinstance(record, Mapping) for record in records):
        raise TypeError(f"{values!r:.60} is no record")
    return records


def _type_names(attributes: Mapping[str, Any]) -> Iterator[str]:
    for name in ("prov:type", "prov-ml:type"):
        if name in attributes:
            for value in _listed(attributes[name]):
                yield local_part(literal_text(value))


def _derivation(record: Mapping[str, Any]) -> str:
    names = (_DERIVATIONS.get(kind) for kind in _type_names(record))
    return next(filter(None, names), "wasDerivedFrom")
