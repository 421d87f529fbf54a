from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provml_lightning.domain.reading import MetricKey
from provml_lightning.storage.formats.grouped import group_name

# Characters that the encoding itself uses, so that collisions would be found.
texts = st.text(alphabet="aA0_~=@%.2f\0/é", max_size=6) | st.just("x" * 200) | st.text()
names = st.builds(MetricKey, texts, st.just("Training"), st.none() | texts)


@pytest.mark.parametrize(
    ("key", "source", "name"),
    [
        ("loss", None, "loss"),
        ("Loss", None, "_~@loss"),
        ("train/loss", None, "train%2floss"),
        ("loss", "gpu", "loss=gpu"),
        ("loss", "", "loss="),
        ("", None, "_~~"),
        ("__init__", None, "_~__init__"),
        ("zarr.json", None, "_~zarr.json"),
    ],
)
def test_a_group_is_called_as_its_metric_where_it_can_be(
    key: str, source: str | None, name: str
) -> None:
    assert group_name(MetricKey(key, "Training", source)) == name


@given(st.lists(names, unique=True))
def test_no_two_metrics_of_a_context_share_a_group(metrics: list[MetricKey]) -> None:
    assert len({group_name(metric).lower() for metric in metrics}) == len(metrics)


@given(names)
def test_a_group_has_a_name_that_netcdf_and_zarr_allow(metric: MetricKey) -> None:
    assert re.fullmatch(r"([a-z0-9]|_~)[a-z0-9_.@%=~-]{0,200}", group_name(metric))
