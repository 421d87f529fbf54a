"""Title and version: what a run's document names as its software agent."""

from __future__ import annotations

__all__ = ["__title__", "__version__"]

__title__ = "provml-lightning"
__version__ = "0.1.0"
