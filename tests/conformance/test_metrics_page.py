from __future__ import annotations

import inspect

from docs.write_metrics import PAGE, page

import prov4ml
from provml_lightning.domain.catalogue import SYSTEM_METRICS


def test_the_reference_of_the_metrics_is_what_the_catalogue_says() -> None:
    assert PAGE.read_text("utf-8") == page(), "run: python docs/write_metrics.py"


def test_the_call_s_own_help_names_every_metric_with_its_unit() -> None:
    told = " ".join((inspect.getdoc(prov4ml.log_system_metrics) or "").split())
    for metric in SYSTEM_METRICS:
        assert f"``{metric.name}`` [{metric.unit}]" in told
