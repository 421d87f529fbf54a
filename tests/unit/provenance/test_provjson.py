"""PROV-JSON as text."""

from __future__ import annotations

import json
import math

import pytest

from provml_lightning.provenance.provjson import dumps


def test_a_document_is_ascii_with_one_record_a_line() -> None:
    document = {"prefix": {"ex": "urn:x#"}, "entity": {"a": {"prov:label": "é"}, "b": {}}}
    content = dumps(document)
    assert content == (
        b'{\n"prefix": {\n "ex": "urn:x#"\n},\n'
        b'"entity": {\n "a": {"prov:label": "\\u00e9"},\n "b": {}\n}\n}\n'
    )
    assert json.loads(content) == document


def test_what_json_cannot_hold_is_an_error_not_a_broken_file() -> None:
    with pytest.raises(ValueError, match="JSON"):
        dumps({"entity": {"a": {"prov:value": math.nan}}})
