"""``python -m prov4ml.dot2svg --dot FILE --output FILE``."""

from __future__ import annotations

from provml_lightning.cli.graph import dot2svg_main

__all__: list[str] = []

if __name__ == "__main__":
    dot2svg_main()
