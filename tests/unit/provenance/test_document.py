"""A document in PROV-JSON's own shape; values are tried in the conformance tests."""

from __future__ import annotations

import pytest

from provml_lightning.provenance.document import Document, iri, qualified, timestamp


def test_a_taken_id_gets_a_number() -> None:
    document = Document("urn:x#")
    ids = [document.element("entity", name, {}) for name in ("a", "a", "b", "a")]
    assert ids == ["a", "a~2", "b", "a~3"]


def test_every_relation_has_an_id_of_its_own() -> None:
    document = Document("urn:x#")
    document.relate("used", {"prov:activity": "a", "prov:entity": "e"})
    document.relate("hadMember", {"prov:collection": "c", "prov:entity": "e"})
    assert document.as_dict() == {
        "prefix": {
            "default": "urn:x#",
            "provml": "https://w3id.org/provml#",
            "yprov": "https://github.com/HPCI-Lab/yProv4ML#",
            "dcterms": "http://purl.org/dc/terms/",
        },
        "used": {"_:id1": {"prov:activity": "a", "prov:entity": "e"}},
        "hadMember": {"_:id2": {"prov:collection": "c", "prov:entity": "e"}},
    }


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "1970-01-01T00:00:00.000000+00:00"),
        (1_767_323_045_123_456_789, "2026-01-02T03:04:05.123456+00:00"),
        (-1, "1969-12-31T23:59:59.999999+00:00"),
    ],
)
def test_a_time_is_utc_to_the_microsecond(nanoseconds: int, text: str) -> None:
    assert timestamp(nanoseconds) == text


def test_one_qualified_name_is_a_value_and_several_are_a_list() -> None:
    one = {"$": "prov:Plan", "type": "prov:QUALIFIED_NAME"}
    assert qualified(["prov:Plan"]) == one
    assert qualified(["prov:Plan", "prov:Plan"]) == [one, one]


def test_an_iri_is_typed() -> None:
    assert iri("urn:x#y") == {"$": "urn:x#y", "type": "xsd:anyURI"}
