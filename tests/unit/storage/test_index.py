from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from provml_lightning.errors import MalformedDocumentError
from provml_lightning.storage.index import read_index

if TYPE_CHECKING:
    from pathlib import Path

SOUND = {
    "provml_run": 1,
    "experiment": "net",
    "run_id": "0",
    "uuid": "u",
    "document": "prov_net_0.json",
    "status": "completed",
    "sealed": ["rank-00000"],
    "covers": {"rank-00000": [10, 20]},
}


def written(folder: Path, **changes: Any) -> Path:
    path = folder / "run.json"
    path.write_text(json.dumps({**SOUND, **changes}))
    return path


def test_a_sound_index_is_read(tmp_path: Path) -> None:
    index = read_index(written(tmp_path))
    assert index is not None
    assert (index.document, index.sealed) == ("prov_net_0.json", ["rank-00000"])


@pytest.mark.parametrize(
    "changes",
    [
        {"document": "/home/ann/.bashrc"},
        {"document": "../other/prov.json"},
        {"document": ".."},
        {"document": ""},
        {"sealed": ["../../results"]},
        {"sealed": ["a\\b"]},
        {"covers": {"/home/x": [1, 1]}},
    ],
    ids=repr,
)
def test_an_index_that_names_files_elsewhere_is_refused(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(MalformedDocumentError, match="is not the name of a file"):
        read_index(written(tmp_path, **changes))


def test_an_index_that_is_nested_without_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text('{"provml_run": ' + "[" * 200_000)
    with pytest.raises(MalformedDocumentError, match="is not the index of a run"):
        read_index(path)
