from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = (
    "codecarbon",
    "lightning",
    "networkx",
    "numpy",
    "pandas",
    "prov",
    "psutil",
    "pyarrow",
    "pydot",
    "rocrate",
    "torch",
)


@pytest.mark.parametrize("package", ["prov4ml", "provml_lightning"])
def test_importing_the_package_loads_no_heavy_library(package: str) -> None:
    program = f"import sys, {package}; print(*(m for m in {HEAVY!r} if m in sys.modules))"

    loaded = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stdout.split()

    assert loaded == []
