"""``python -m prov4ml.prov_collection --experiment_path FOLDER --output_dir FOLDER``."""

from __future__ import annotations

from provml_lightning.cli.merge import prov_collection_main

__all__: list[str] = []

if __name__ == "__main__":
    prov_collection_main()
