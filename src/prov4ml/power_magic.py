"""``%load_ext prov4ml.power_magic``."""

from __future__ import annotations

from provml_lightning.wrappers.power_magic import load_ipython_extension

__all__ = ["load_ipython_extension"]
