"""Thousands of like things drawn as one, so that a picture of a big run can be read."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING

from provml_lightning.domain.catalogue import is_source_of_ours
from provml_lightning.exporters.statements import (
    SETTING,
    Element,
    Relation,
    Statements,
    literal_text,
    local_part,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

__all__ = ["fold"]

_DERIVATIONS = frozenset({"wasDerivedFrom", "wasRevisionOf"})
_FEWEST = 2


def fold(statements: Statements, *, alike: int, largest: int) -> Statements:
    """Return the statements with like elements folded into one that counts them.

    A chain of derivations keeps its first, its last and its best element. Of other elements that
    are of one type and related to the same things in the same way, the first ``alike`` - 1 stay,
    of metrics the user's own first; of what a library tells of its own settings, none.

    Args:
        statements: What a document states.
        alike: The most like elements that are drawn one by one [1].
        largest: The most elements of a picture; where there are more, ``alike`` is halved [1].
    """
    while True:
        chained = _merge(statements, dict(_fold_chains(statements, alike)))
        folded = _merge(chained, dict(_fold_families(chained, alike)))
        if len(folded.elements) <= largest or alike <= _FEWEST:
            return folded
        alike = max(_FEWEST, alike // 2)


def _merge(statements: Statements, into: Mapping[str, str]) -> Statements:
    """Contract elements into the ones that stand for them; no arrow leads to its own start."""
    if not into:
        return statements
    counts: dict[str, int] = defaultdict(int)
    for key, element in statements.elements.items():
        counts[into.get(key, key)] += element.count
    elements = {
        key: dataclasses.replace(statements.elements[key], count=count)
        for key, count in counts.items()
    }
    moved = (
        Relation(one.kind, into.get(one.source, one.source), into.get(one.target, one.target))
        for one in statements.relations
    )
    kept = dict.fromkeys(one for one in moved if one.source != one.target)
    return Statements(elements, tuple(kept), statements.bundles)


def _fold_chains(statements: Statements, alike: int) -> Iterator[tuple[str, str]]:
    """Say which elements of which chains are drawn as which."""
    for chain in _chains(statements):
        if len(chain) <= alike:
            continue
        best = [i for i, key in enumerate(chain) if _is_best(statements.elements[key])]
        kept = sorted({0, len(chain) - 1, *best[-1:]})
        for start, end in pairwise(kept):
            for key in chain[start + 1 : end]:
                yield key, chain[start + 1]


def _chains(statements: Statements) -> Iterator[list[str]]:
    """Return the paths of derivations between elements of one family, the oldest first."""
    newer: dict[str, list[str]] = defaultdict(list)
    older: dict[str, list[str]] = defaultdict(list)
    for one in statements.relations:
        ends = statements.elements[one.source], statements.elements[one.target]
        if one.kind in _DERIVATIONS and ends[0].family == ends[1].family:
            newer[one.target].append(one.source)
            older[one.source].append(one.target)
    for key in statements.elements:
        inner = len(older[key]) == 1 and len(newer[older[key][0]]) == 1
        if not inner and len(newer[key]) == 1:
            yield _walk(key, newer, older)


def _walk(start: str, newer: Mapping[str, list[str]], older: Mapping[str, list[str]]) -> list[str]:
    chain = [start]
    while len(newer[chain[-1]]) == 1:
        following = newer[chain[-1]][0]
        if len(older[following]) != 1 or following == start:
            break
        chain.append(following)
    return chain


def _is_best(element: Element) -> bool:
    marks = (
        literal_text(value)
        for name, value in element.attributes.items()
        if local_part(name) in {"best", "is_best"}
    )
    return "true" in (mark.lower() for mark in marks)


def _fold_families(statements: Statements, alike: int) -> Iterator[tuple[str, str]]:
    """Say which elements are drawn as which, being related to the same things in the same way.

    What belongs to a crowded family counts as its family there, everything else as itself: the
    metrics of a thousand epochs are alike, those of two contexts are not.
    """
    sizes: dict[Hashable, int] = defaultdict(int)
    for element in statements.elements.values():
        sizes[element.family] += 1
    standing = {
        key: element.family if sizes[element.family] > alike else key
        for key, element in statements.elements.items()
    }
    ties: dict[str, set[Hashable]] = defaultdict(set)
    for one in statements.relations:
        ties[one.source].add((one.kind, "to", standing[one.target]))
        ties[one.target].add((one.kind, "from", standing[one.source]))
    groups: dict[tuple[Hashable, ...], list[str]] = defaultdict(list)
    for key, element in statements.elements.items():
        groups[element.family, element.bundle, frozenset(ties[key])].append(key)
    for (family, *_), group in groups.items():
        group.sort(key=lambda key: _is_measured(statements.elements[key]))
        yield from _drawn_as_one(group, 1 if family == SETTING else alike)


def _is_measured(element: Element) -> bool:
    """Tell whether this is a metric of the library's, and not one of the user's own."""
    source = element.attributes.get("yprov:source")
    is_metric = "Metric" in element.types and source is not None
    return is_metric and is_source_of_ours(literal_text(source))


def _drawn_as_one(group: Sequence[str], alike: int) -> Iterable[tuple[str, str]]:
    rest = group[alike - 1 :] if len(group) > alike else ()
    return ((key, rest[0]) for key in rest)
