"""PROV-CONSTRAINTS (W3C recommendation of 30 April 2013) on every run, and on broken ones.

The checker knows nothing of the code under test; that it can fail is shown clause by clause.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from prov.model import ProvDocument

from tests.conformance.prov.checker import complaints
from tests.conformance.prov.reading import parse, stated
from tests.conformance.prov.runs import rich, runs

if TYPE_CHECKING:
    from provml_lightning.domain.reading import RunContents

RUN = "run/digits_0"
TRAINING = "context/Training"


def relation(**fields: str) -> dict[str, str]:
    """Return a relation in PROV-JSON's shape."""
    return {f"prov:{name}": value for name, value in fields.items()}


def complaints_after(kind: str, identifier: str, record: Any) -> list[str]:
    """Return what is wrong once a record was added to the rich run."""
    document = json.loads(stated(rich()))
    document.setdefault(kind, {})[identifier] = record
    return complaints(parse(json.dumps(document).encode()))


@pytest.mark.parametrize("run", runs().values(), ids=runs())
def test_every_document_is_valid(run: RunContents) -> None:
    assert complaints(parse(stated(run))) == []


def test_the_rich_run_has_every_kind_of_event_that_is_checked() -> None:
    document = json.loads(stated(rich()))
    assert document.keys() == {
        "prefix", "agent", "activity", "entity", "actedOnBehalfOf", "wasAssociatedWith",
        "wasInformedBy", "used", "wasGeneratedBy", "wasDerivedFrom", "wasInvalidatedBy",
        "hadMember",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("constraint", "kind", "identifier", "record"),
    [
        (
            "24",
            "wasGeneratedBy",
            "_:x",
            relation(entity="metric/Training/loss", activity=TRAINING),
        ),
        (
            "house: wasGeneratedBy",
            "wasGeneratedBy",
            "_:x",
            relation(entity="metric/Training/loss", activity=RUN),
        ),
        (
            "25",
            "wasInvalidatedBy",
            "_:x",
            relation(entity="version/Training/net/1", activity=TRAINING),
        ),
        (
            "50",
            "wasGeneratedBy",
            "_:x",
            relation(entity="version/Training/net/9", activity=RUN),
        ),
        ("50", "used", "_:x", relation(activity="metric/Training/loss", entity="param/~~/loss")),
        ("50", "wasInformedBy", "_:x", relation(informed=RUN, informant="context/none")),
        ("51", "wasDerivedFrom", "_:x", relation(
            generatedEntity="param/~~/loss", usedEntity="param/~~/.", usage="u")),
        ("52", "specializationOf", "_:x", relation(
            specificEntity="param/~~/loss", generalEntity="param/~~/loss")),
        ("54", "used", "param/~~/loss", relation(activity=RUN, entity="param/~~/.")),
        ("55", "activity", "param/~~/loss", {}),
        ("55", "entity", RUN, {}),
    ],
)  # fmt: skip
def test_a_record_that_breaks_a_constraint_is_found(
    constraint: str, kind: str, identifier: str, record: dict[str, str]
) -> None:
    found = complaints_after(kind, identifier, record)
    assert any(one.startswith(constraint) for one in found), found


@pytest.mark.parametrize(
    ("constraints", "kind", "record"),
    [
        # Two versions, each derived from the other.
        ("42", "wasDerivedFrom", relation(
            generatedEntity="version/Training/net/1", usedEntity="version/Training/net/3")),
        # Something made of itself.
        ("42", "wasDerivedFrom", relation(
            generatedEntity="param/~~/loss", usedEntity="param/~~/loss")),
    ],
)  # fmt: skip
def test_events_that_precede_themselves_are_found(
    constraints: str, kind: str, record: dict[str, str]
) -> None:
    found = complaints_after(kind, "_:x", record)
    assert any(one.startswith("[") and constraints in one for one in found), found


@pytest.mark.parametrize(
    ("event", "kind", "record"),
    [
        # 33: the run was not yet there.
        ("used", "used", relation(
            activity=RUN, entity="param/~~/loss", time="2026-01-02T03:04:04+00:00")),
        # 33: the run was over.
        ("end", "used", relation(
            activity=RUN, entity="param/~~/loss", time="2026-01-02T03:05:06+00:00")),
        # 34: made by a context that was over.
        ("end", "wasGeneratedBy", relation(
            entity="param/~~/loss", activity=TRAINING, time="2026-01-02T03:05:05+00:00")),
        # 37: used (second 5) before it was made (second 10).
        ("used", "used", relation(
            activity=RUN, entity="metric/Training/loss", time="2026-01-02T03:04:10+00:00")),
        # 38: used (second 50) after it was overwritten (second 22).
        ("gone", "used", relation(
            activity=RUN, entity="version/Training/net/1", time="2026-01-02T03:04:55+00:00")),
        # 36: gone (second 2) before it was made.
        ("gone", "wasInvalidatedBy", relation(
            entity="metric/Training/loss", activity=RUN, time="2026-01-02T03:04:07+00:00")),
        # 42: the later version made (second 21) the earlier one (second 23).
        ("made", "wasDerivedFrom", relation(
            generatedEntity="metric/Training/loss", usedEntity="version/Training/net/3")),
        # 35: informed by what began after it had ended.
        ("end", "wasInformedBy", relation(informed="context/Validation", informant="context/late")),
    ],
)  # fmt: skip
def test_clocks_that_contradict_the_order_are_found(
    event: str, kind: str, record: dict[str, str]
) -> None:
    document = json.loads(stated(rich()))
    late = "2026-01-02T03:04:50+00:00"
    document["activity"]["context/late"] = {"prov:startTime": late, "prov:endTime": late}
    assert complaints(parse(json.dumps(document).encode())) == []
    document.setdefault(kind, {})["_:x"] = record
    found = complaints(parse(json.dumps(document).encode()))
    assert any(one.startswith("house") and event in one for one in found), found


@pytest.mark.parametrize(
    ("name", "time"),
    [
        ("prov:startTime", "2026-01-02T03:04:04+00:00"),
        ("prov:endTime", "2026-01-02T03:05:06+00:00"),
    ],
)
def test_a_context_that_leaves_its_run_is_found(name: str, time: str) -> None:
    document = json.loads(stated(rich()))
    document["activity"][TRAINING][name] = time
    found = complaints(parse(json.dumps(document).encode()))
    assert any("context/Training" in one and "run/digits_0" in one for one in found)


def test_an_activity_that_ends_before_it_starts_is_found() -> None:
    document = json.loads(stated(rich()))
    document["activity"]["context/back"] = {
        "prov:startTime": "2026-01-02T03:04:30+00:00",
        "prov:endTime": "2026-01-02T03:04:29+00:00",
    }
    assert complaints(parse(json.dumps(document).encode()))


def test_an_id_that_is_told_twice_is_found() -> None:
    document = ProvDocument()
    document.set_default_namespace("https://example.org/")
    document.entity("a")
    document.entity("a")
    assert complaints(document) == ["22: https://example.org/a is told twice"]


@pytest.mark.parametrize("namespace", ["www.example.org", "prov-ml", "context"])
def test_a_namespace_that_is_no_absolute_iri_is_found(namespace: str) -> None:
    document = ProvDocument()
    document.add_namespace("ex", namespace)
    assert complaints(document)
