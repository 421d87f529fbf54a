"""Namespaces and ids are spelled in one place."""

from __future__ import annotations

import pytest

from provml_lightning.domain.records import Opened
from provml_lightning.errors import ConfigurationError
from provml_lightning.provenance.vocabulary import (
    activity_id,
    attribute,
    document_namespace,
    entity_id,
    parent_of,
    require_iri,
    run_iri,
)

UUID = "6f1c2f1e-5b0a-4a53-9d0e-0123456789ab"


@pytest.mark.parametrize(
    ("name", "qualified"),
    [
        ("total_params", "provml:total_params"),
        ("python_version", "yprov:python_version"),
        ("torch/version", "provml:torch.2fversion"),
        ("a.b", "provml:a.2eb"),
        ("a b", "provml:a.20b"),
        ("é", "provml:n...c3.a9_"),
        ("1st", "provml:n..1st_"),
        ("-x", "provml:n..-x_"),
        ("", "provml:n.._"),
    ],
)
def test_a_facts_name_is_one_that_xml_can_write(name: str, qualified: str) -> None:
    assert attribute(name) == qualified


def test_ids_are_the_kind_the_context_and_the_encoded_names() -> None:
    assert activity_id(None, "my run_0") == "run/my%20run_0"
    assert activity_id("a/b", "my run_0") == "context/a%2fb"
    assert entity_id("metric", None, "loss", None) == "metric/~~/loss"
    assert entity_id("metric", "", "loss", "psutil") == "metric/~/loss/psutil"


@pytest.mark.parametrize(
    ("given", "iri"),
    [
        ("www.example.org", "https://www.example.org/"),
        ("localhost:8080/runs", "https://localhost:8080/runs/"),
        (" http://example.org/ns# ", "http://example.org/ns#"),
        ("urn:example:lab", "urn:example:lab/"),
        ("https://example.org/é/", "https://example.org/é/"),
    ],
)
def test_a_users_namespace_becomes_an_absolute_iri(given: str, iri: str) -> None:
    assert require_iri(given) == iri


@pytest.mark.parametrize("given", ["", "my lab", "<x>", "https://", "http://[", 'a"b'])
def test_what_no_iri_can_be_is_refused_by_its_value(given: str) -> None:
    with pytest.raises(ConfigurationError, match="prov_user_namespace="):
        require_iri(given)


def test_a_documents_namespace_is_the_runs_alone() -> None:
    assert document_namespace(None, "digits_0", UUID) == f"urn:uuid:{UUID}#"
    one, other = (document_namespace("example.org", "digits_0", uuid) for uuid in (UUID, "2"))
    assert one == f"https://example.org/digits_0/{UUID}/"
    assert other == "https://example.org/digits_0/2/"


@pytest.mark.parametrize(
    ("namespace", "experiment", "iri", "parts"),
    [
        (
            None,
            "digits",
            f"urn:uuid:{UUID}#run/digits_0",
            (f"urn:uuid:{UUID}#", "run/digits_0", "digits_0"),
        ),
        (
            "http://example.org/run/",
            "run/a b",
            f"http://example.org/run/run%2fa%20b_0/{UUID}/run/run%2fa%20b_0",
            (
                f"http://example.org/run/run%2fa%20b_0/{UUID}/",
                "run/run%2fa%20b_0",
                "run/a b_0",
            ),
        ),
    ],
)
def test_a_parents_iri_is_taken_apart_as_it_was_put_together(
    namespace: str | None, experiment: str, iri: str, parts: tuple[str, str, str]
) -> None:
    opened = Opened(
        time=0, experiment=experiment, run_id="0", uuid=UUID, user="ann", namespace=namespace
    )
    assert run_iri(opened) == iri
    assert parent_of(iri) == parts


@pytest.mark.parametrize("text", ["", UUID, "run/digits_0"])
def test_what_is_no_runs_iri_names_no_parent(text: str) -> None:
    assert parent_of(text) is None
