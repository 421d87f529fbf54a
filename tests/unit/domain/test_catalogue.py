from __future__ import annotations

import pytest

from provml_lightning.domain.catalogue import is_source_of_ours


@pytest.mark.parametrize(
    "source",
    [
        "rapl",
        "rapl+nvml.energy+model.dimm",
        "carbon:rapl+nvml.energy",
        "flops.meta+perf_counter",
        "thop+perf_counter",
        "lightning",
        "perf_counter",
    ],
)
def test_what_the_library_measures_has_a_source_of_the_library_s(source: str) -> None:
    assert is_source_of_ours(source)


@pytest.mark.parametrize("source", [None, "", "wandb", "rapl+mine", "rap"])
def test_any_other_source_is_the_user_s(source: str | None) -> None:
    assert not is_source_of_ours(source)
