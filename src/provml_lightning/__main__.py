"""The command line as ``python -m provml_lightning``."""

from __future__ import annotations

from provml_lightning.cli import main

__all__: list[str] = []

if __name__ == "__main__":
    main()
