from __future__ import annotations

from typing import Any

import pytest

from provml_lightning.query import list_metrics


@pytest.mark.parametrize("odd", [[1, 2], "many", {}, {"$": [], "type": {}}, None, 10**400])
def test_what_is_no_number_in_a_document_is_absent_in_the_list(
    odd: Any, own: dict[str, Any]
) -> None:
    for entity in own["entity"].values():
        entity.update({"provml:rows": odd, "provml:first": odd, "provml:max": odd})
    listed = list_metrics(own)
    assert len(listed) > 1
    assert listed[["rows", "first", "max"]].isna().all(axis=None)
