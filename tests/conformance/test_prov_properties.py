"""Any names and any values: the document holds them, and every form of PROV gives them back."""

from __future__ import annotations

import json
import math
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prov.model import ProvDocument

from provml_lightning.domain.records import Dataset, Opened, Parameter
from provml_lightning.provenance.vocabulary import attribute, entity_id, parent_of, run_iri
from tests.conformance.prov.checker import complaints
from tests.conformance.prov.reading import facts, parse, stated
from tests.conformance.prov.runs import UUID, at, contents, ended, metric, opened

# Everything that Unicode calls a character.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
# What XML 1.0, so RDF/XML and PROV-XML too, can hold: no control characters, no non-characters.
XML_TEXT = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Cn"], exclude_characters="\ufffe\uffff"),
    max_size=12,
)
ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
# A year that has the day before and the day after in every zone.
TIMES = st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=ZONES)  # noqa: DTZ001
VALUES = (
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | TEXT | TIMES
)


def read_parameter(value: Any) -> Any:
    run = contents(opened(), Parameter(time=at(1), key="p", value=value))
    (record,) = parse(stated(run)).get_record("param/~~/p")
    (read,) = record.get_attribute("prov:value")
    return read


@given(VALUES)
def test_prov_reads_every_value_that_was_told(value: Any) -> None:
    read = read_parameter(value)
    assert read == value
    assert type(read) is type(value)
    if isinstance(value, float):
        assert math.copysign(1, read) == math.copysign(1, value)


@given(st.lists(TEXT, unique=True, max_size=6), st.lists(TEXT, unique=True, max_size=3))
def test_any_names_make_a_valid_document_that_holds_them(
    names: list[str], contexts: list[str]
) -> None:
    places: list[str | None] = [None, *contexts]
    told = [
        Parameter(time=at(1), key=name, value=name, context=place, source=name)
        for name in names
        for place in places
    ]
    series = [metric(name, place) for name in names for place in places]
    run = contents(opened(), *told, ended(), series=series)
    content = stated(run)
    assert complaints(parse(content)) == []
    entities = json.loads(content).get("entity", {}).values()
    found = sorted(
        (one["prov:label"], one.get("yprov:context") or "", one["prov:value"])
        for one in entities
        if "prov:value" in one
    )
    assert found == sorted((name, place or "", name) for name in names for place in places)


@pytest.mark.filterwarnings("ignore:Dataset\\.\\w+ is deprecated:DeprecationWarning")
@pytest.mark.parametrize(
    ("form", "options"), [("json", {}), ("xml", {}), ("rdf", {"rdf_format": "turtle"})]
)
@given(name=XML_TEXT, value=VALUES.filter(lambda value: not isinstance(value, str)) | XML_TEXT)
def test_any_name_and_value_come_back_from_every_form(
    form: str, options: dict[str, str], name: str, value: Any
) -> None:
    dataset = Dataset(time=at(1), label=name, attributes={name: value})
    run = contents(
        opened(experiment=name, user=name),
        Parameter(time=at(1), key=name, value=value, context=name, source=name),
        dataset,
        series=[metric(name, name)],
    )
    read = parse(stated(run))
    written = read.serialize(format=form, **options)
    again = ProvDocument.deserialize(content=written, format=form, **options)
    assert facts(again) == facts(read)


@given(st.lists(st.none() | st.text(max_size=8), min_size=2, max_size=2, unique=True), TEXT)
def test_two_contexts_never_share_an_id(contexts: list[str | None], name: str) -> None:
    one, other = contexts
    assert entity_id("metric", one, name) != entity_id("metric", other, name)


@given(st.lists(st.tuples(st.text(max_size=8), st.none() | st.text(max_size=8)), unique=True))
def test_two_names_never_share_an_id(names: list[tuple[str, str | None]]) -> None:
    assert len({entity_id("metric", None, *name) for name in names}) == len(names)


@given(st.lists(st.text(max_size=8), unique=True, min_size=2))
def test_two_facts_never_share_an_attribute(names: list[str]) -> None:
    assert len({attribute(name) for name in names}) == len(names)


@given(TEXT, st.none() | st.just("www.example.org/run/"))
def test_a_child_reads_its_parent_from_the_iri(experiment: str, namespace: str | None) -> None:
    outer = Opened(
        time=at(0), experiment=experiment, run_id="3", uuid=UUID, user="a", namespace=namespace
    )
    document = parse(stated(contents(outer)))
    (activity,) = [
        record for record in document.get_records() if record.get_type().localpart == "Activity"
    ]
    assert activity.identifier.uri == run_iri(outer)
    found = parent_of(run_iri(outer))
    assert found is not None
    namespace_read, local, name = found
    assert namespace_read + local == run_iri(outer)
    assert name == f"{experiment}_3"
