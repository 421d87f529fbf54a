from __future__ import annotations

import json
import zipfile
from typing import TYPE_CHECKING

import pytest

from provml_lightning.errors import MalformedDocumentError, QueryError, RecordNotFoundError
from provml_lightning.query import list_activities, list_entities

if TYPE_CHECKING:
    from pathlib import Path

EMPTY = json.dumps({"prefix": {}, "activity": {"a": {}}})


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1, 2]", '"prov"', '{"provml_run": 1}', '{"entity": []}', '{"entity": {"e": [1]}}'],
)
def test_what_is_no_document_is_refused_by_name(text: str, tmp_path: Path) -> None:
    (tmp_path / "prov_x.json").write_text(text)
    with pytest.raises(MalformedDocumentError, match=r"prov_x\.json"):
        list_entities(tmp_path / "prov_x.json")


def test_a_document_that_is_too_deep_is_refused(tmp_path: Path) -> None:
    (tmp_path / "prov_x.json").write_text('{"entity": ' + '{"e":' * 100_000)
    with pytest.raises(MalformedDocumentError):
        list_entities(tmp_path)


def test_a_folder_is_asked_through_its_document(tmp_path: Path) -> None:
    (tmp_path / "prov_x.json").write_bytes(b"\xef\xbb\xbf" + EMPTY.encode())
    (tmp_path / "other.json").write_text("{}")
    assert list_activities(str(tmp_path)) == list_activities(tmp_path) == ["a"]


def test_a_folder_with_several_documents_asks_for_one(tmp_path: Path) -> None:
    for rank in (0, 1):
        (tmp_path / f"prov_e_GR{rank}_0.json").write_text(EMPTY)
    with pytest.raises(QueryError, match=r"2 documents.*GR0_0\.json, prov_e_GR1_0\.json"):
        list_activities(tmp_path)
    assert list_activities(tmp_path / "prov_e_GR1_0.json") == ["a"]


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(RecordNotFoundError, match="no document at"):
        list_activities(tmp_path / "prov_absent.json")
    with pytest.raises(RecordNotFoundError, match="holds no PROV-JSON"):
        list_activities(tmp_path)


def test_an_archive_holds_one_document(tmp_path: Path) -> None:
    path = tmp_path / "run.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("prov/e_0/ro-crate-metadata.json", "{}")
        archive.writestr("prov/e_0/prov_e.json", EMPTY)
    assert list_activities(path) == ["a"]
    path.write_bytes(b"no archive")
    with pytest.raises(MalformedDocumentError, match=r"run\.zip cannot be read as a ZIP file"):
        list_activities(path)


def test_an_empty_document_is_a_document() -> None:
    assert list_entities({}) == []
