"""The command line, ``prov4ml``: one command, one file."""

from __future__ import annotations

from provml_lightning.cli.app import main

__all__ = ["main"]
