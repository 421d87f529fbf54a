"""PROV-JSON (W3C member submission of 24 April 2013), part by part; the classes are its parts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from prov.model import ProvDocument

from provml_lightning.domain.records import Status
from tests.conformance.prov.reading import facts, parse, stated
from tests.conformance.prov.runs import NAMES, PARENT, UUID, contents, opened, rich, runs

if TYPE_CHECKING:
    from provml_lightning.domain.reading import RunContents

# What rdflib says of its own methods when prov calls them.
QUIET = [
    "ignore:ConjunctiveGraph is deprecated:DeprecationWarning",
    "ignore:Dataset\\.\\w+ is deprecated:DeprecationWarning",
]
EVERY_RUN = pytest.mark.parametrize("run", runs().values(), ids=runs())


def document(run: RunContents | None = None) -> dict[str, Any]:
    """Return a document as any JSON reader gets it."""
    read: dict[str, Any] = json.loads(stated(run or rich()))
    return read


def schema() -> dict[str, Any]:
    """Return the submission's JSON schema, its two slips corrected.

    It spells ``wasEndedBy`` with a small b, and the times of an activity stand outside of
    ``properties``, where they bind nothing.
    """
    text = (files("prov") / "tests/schemas/prov-json.schema.json").read_text("utf-8")
    read: dict[str, Any] = json.loads(text.replace("wasEndedby", "wasEndedBy"))
    activity = read["definitions"]["activity"]
    activity["properties"] = {name: activity.pop(name) for name in list(activity) if ":" in name}
    return read


class TestSchema:
    @EVERY_RUN
    def test_the_published_schema_takes_every_document(self, run: RunContents) -> None:
        jsonschema.validate(document(run), schema())

    @pytest.mark.parametrize(
        ("kind", "identifier", "wrong"),
        [
            ("activity", "run/digits_0", {"prov:startTime": 1767323045}),
            ("entity", "param/~~/loss", {"prov:value": {"$": 1, "type": "xsd:int"}}),
            ("entity", "param/~~/loss", {"prov:value": None}),
            ("wasGeneratedBy", "_:x", {"prov:activity": "run/digits_0"}),
        ],
    )
    def test_the_published_schema_refuses_a_broken_one(
        self, kind: str, identifier: str, wrong: dict[str, Any]
    ) -> None:
        broken = document()
        broken[kind][identifier] = wrong
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(broken, schema())


class TestReaders:
    @EVERY_RUN
    def test_prov_reads_every_document_without_a_warning(self, run: RunContents) -> None:
        assert sum(facts(parse(stated(run))).values()) > 0

    @pytest.mark.filterwarnings(*QUIET)
    @pytest.mark.parametrize(
        ("form", "options"),
        [
            ("json", {}),
            ("xml", {}),
            ("provn", {}),
            ("rdf", {"rdf_format": "turtle"}),
            ("rdf", {"rdf_format": "xml"}),
            ("rdf", {"rdf_format": "trig"}),
        ],
    )
    @EVERY_RUN
    def test_every_form_of_prov_gives_the_same_document_back(
        self, run: RunContents, form: str, options: dict[str, str]
    ) -> None:
        read = parse(stated(run))
        written = read.serialize(format=form, **options)
        again = ProvDocument.deserialize(content=written, format=form, **options)
        assert facts(again) == facts(read)

    def test_the_comparison_sees_one_changed_value(self) -> None:
        content = stated(rich())
        changed = content.replace(b'"provml:rank": 1', b'"provml:rank": 2', 1)
        assert changed != content
        assert facts(parse(changed)) != facts(parse(content))


class TestNamespaces:
    def test_every_prefix_is_an_absolute_iri_of_its_own(self) -> None:
        assert document()["prefix"] == {
            "default": f"urn:uuid:{UUID}#",
            "provml": "https://w3id.org/provml#",
            "yprov": "https://github.com/HPCI-Lab/yProv4ML#",
            "dcterms": "http://purl.org/dc/terms/",
            "parent": "urn:uuid:0b54d6c2-1f3c-4b57-8d3e-ba9876543210#",
            "origin": "urn:uuid:5d1f0c52-63a0-4b0e-9c40-3a0e4f7d6b11#",
        }

    def test_the_users_namespace_holds_the_runs_name_and_uuid(self) -> None:
        run = contents(opened(namespace="www.example.org"))
        expected = f"https://www.example.org/digits_0/{UUID}/"
        assert document(run)["prefix"]["default"] == expected

    @EVERY_RUN
    def test_every_prefix_that_is_used_is_declared(self, run: RunContents) -> None:
        read = document(run)
        known = {*read["prefix"], "prov", "xsd", "_"}
        for section in read.keys() - {"prefix"}:
            for identifier, record in read[section].items():
                names = [identifier, *record, *(_references(record))]
                used = {name.partition(":")[0] for name in names if ":" in name}
                assert used <= known


class TestIdentifiers:
    @EVERY_RUN
    def test_there_is_one_record_an_id(self, run: RunContents) -> None:
        read = document(run)
        elements = [read.get(kind, {}) for kind in ("agent", "activity", "entity")]
        ids = [identifier for section in elements for identifier in section]
        assert len(ids) == len(set(ids))
        assert all(isinstance(record, dict) for section in elements for record in section.values())

    def test_names_of_every_kind_stay_as_they_are_and_have_ids_of_their_own(self) -> None:
        entities = document()["entity"]
        for kind, typed in (
            ("param/~~/", "provml:HyperParameter"),
            ("metric/~~/", "provml:Metric"),
        ):
            found = [
                record["prov:label"]
                for identifier, record in entities.items()
                if identifier.startswith(kind) and record["prov:type"]["$"] == typed
            ]
            assert set(NAMES) <= set(found)

    def test_an_id_is_the_kind_the_context_and_the_encoded_name(self) -> None:
        entities = document()["entity"]
        assert entities["metric/Training/a%2fb"]["prov:label"] == "a/b"
        assert entities["metric/my%2fown/~"]["prov:label"] == ""
        assert entities["metric/~~/%7e"]["prov:label"] == "~"
        assert entities["metric/~~/power/nvml.power"]["yprov:source"] == "nvml.power"


class TestActivity:
    def test_its_times_are_provs_own_with_a_zone(self) -> None:
        run = document()["activity"]["run/digits_0"]
        assert run["prov:startTime"] == "2026-01-02T03:04:05.000000+00:00"
        assert run["prov:endTime"] == "2026-01-02T03:05:05.000000+00:00"

    def test_prov_finds_them(self) -> None:
        (run,) = parse(stated(rich())).get_record("run/digits_0")
        assert run.get_startTime() == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
        assert run.get_endTime() == datetime(2026, 1, 2, 3, 5, 5, tzinfo=UTC)

    def test_a_run_without_an_end_has_no_end_time(self) -> None:
        activities = document(rich(Status.INCOMPLETE))["activity"].values()
        assert not any("prov:endTime" in activity for activity in activities)

    def test_a_run_opened_inside_another_names_its_activity_by_its_iri(self) -> None:
        read = parse(stated(rich()))
        (parent,) = read.get_record("parent:run/sweep%201_7")
        assert parent.identifier.uri == PARENT
        told = document()["wasInformedBy"].values()
        assert {"prov:informed": "run/digits_0", "prov:informant": "parent:run/sweep%201_7"} in told


class TestRelations:
    @EVERY_RUN
    def test_each_has_an_id_of_its_own_and_every_time_a_zone(self, run: RunContents) -> None:
        read = document(run)
        sections = [read[kind] for kind in read if kind not in ("prefix", "entity", "agent")]
        ids = [name for section in sections for name in section if name.startswith("_:")]
        assert len(ids) == len(set(ids))
        times = [
            record[name]
            for section in sections
            for record in section.values()
            for name in ("prov:time", "prov:startTime", "prov:endTime")
            if name in record
        ]
        assert all(datetime.fromisoformat(time).utcoffset() == timedelta() for time in times)


class TestFiles:
    def test_every_file_has_its_size_format_and_the_digest_of_what_was_read(self) -> None:
        entities = document()["entity"].values()
        files_told = [one for one in entities if "dcterms:format" in one]
        assert len(files_told) == 25
        unread = [one for one in files_told if "provml:sha256" not in one]
        assert [one["prov:label"] for one in unread] == ["resumed_3"]
        assert all(len(one["provml:sha256"]) == 64 for one in files_told if one not in unread)
        assert all({"yprov:file_size", "dcterms:identifier"} <= one.keys() for one in files_told)

    def test_every_path_is_relative_but_that_of_an_original(self) -> None:
        entities = document()["entity"].items()
        absolute = {
            identifier
            for identifier, one in entities
            if one.get("dcterms:identifier", "").startswith("/")
        }
        assert absolute == {
            "original/~~/config",
            "artifact/~~/corpus",
            "artifact/~~/log",
            "version/Training/resumed/0/lightning",
        }


class TestDeterminism:
    def test_the_same_run_is_the_same_bytes_in_every_process(self, tmp_path: Path) -> None:
        script = (
            "import sys; from tests.conformance.prov.reading import stated;"
            "from tests.conformance.prov.runs import runs;"
            "sys.stdout.buffer.write(b''.join(stated(run) for run in runs().values()))"
        )
        here = b"".join(stated(run) for run in runs().values())
        for seed in ("0", "1", "4294967295"):
            environment = {
                **os.environ,
                "PYTHONHASHSEED": seed,
                "PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path]),
                "TZ": "Asia/Kathmandu",
            }
            there = subprocess.run(
                [sys.executable, "-c", script],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                check=True,
            )
            assert there.stdout == here

    def test_a_record_is_a_line_of_ascii(self) -> None:
        content = stated(rich())
        assert content.isascii()
        lines = content.decode().splitlines()
        records = sum(len(section) for section in document().values())
        assert sum(line.startswith(' "') for line in lines) == records


def _references(record: dict[str, Any]) -> list[str]:
    """Return the names that a record's typed values and types use."""
    values = [
        one for told in record.values() for one in (told if isinstance(told, list) else [told])
    ]
    typed = [one for one in values if isinstance(one, dict)]
    names = [one["$"] for one in typed if one["type"] == "prov:QUALIFIED_NAME"]
    return names + [one["type"] for one in typed]
