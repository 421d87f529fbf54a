"""One small document, read by a person and kept byte by byte.

A wanted change is written with ``pytest tests/conformance/test_prov_gold.py --update-gold``, read,
and committed with its reason.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from provml_lightning.domain.records import Artifact, Dataset, Model, ModelVersion, Parameter
from tests.conformance.prov.checker import complaints
from tests.conformance.prov.reading import parse, stated
from tests.conformance.prov.runs import at, contents, ended, metric, opened, stored

if TYPE_CHECKING:
    import pytest

    from provml_lightning.domain.reading import RunContents

GOLD = Path(__file__).parents[1] / "gold" / "prov_digits_0.json"


def small() -> RunContents:
    """Return a training as the first page of the documentation shows it."""
    return contents(
        opened(),
        Parameter(time=at(1), key="lr", value=0.1),
        Parameter(time=at(20), key="lr", value=0.01),
        Parameter(time=at(1), key="epochs", value=3),
        Dataset(time=at(2), label="train", context="Training", attributes={"total_samples": 1797}),
        Artifact(
            time=at(3),
            name="config",
            stored=stored("artifacts/config.yaml", "c", media_type="application/yaml"),
            original=stored("config.yaml", "c", media_type="application/yaml"),
            is_input=True,
        ),
        ModelVersion(
            time=at(15), name="net", version=0, stored=stored("artifacts/net/net_0.pt", "0"),
            context="Training", step=100,
        ),
        ModelVersion(
            time=at(25), name="net", version=1, stored=stored("artifacts/net/net_1.pt", "1"),
            context="Training", step=200,
        ),
        Model(time=at(30), name="net", stored=stored("artifacts/net/net.pt", "2")),
        Parameter(time=at(31), key="accuracy", value=0.97, is_output=True),
        ended(),
        series=[metric("loss"), metric("val/loss", "Validation", last=0.5, minimum=0.5)],
    )  # fmt: skip


def test_the_small_document_is_the_gold_one(request: pytest.FixtureRequest) -> None:
    content = stated(small())
    if request.config.getoption("--update-gold"):
        GOLD.write_bytes(content)
    assert content == GOLD.read_bytes()


def test_the_gold_document_is_valid() -> None:
    assert complaints(parse(GOLD.read_bytes())) == []
