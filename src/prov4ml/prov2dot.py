"""``python -m prov4ml.prov2dot --prov_json FILE --output FILE``."""

from __future__ import annotations

from provml_lightning.cli.graph import prov2dot_main

__all__: list[str] = []

if __name__ == "__main__":
    prov2dot_main()
