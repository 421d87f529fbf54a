"""What the tests of tracked models share."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

import prov4ml
from provml_lightning.wrappers.chunks import read_chunks

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["chunks", "document", "network", "notes", "samples", "start"]


def network() -> nn.Sequential:
    """Return a small network, the same at every call."""
    torch.manual_seed(7)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(inplace=True), nn.Linear(4, 2))


def start(folder: Path, **options: Any) -> Any:
    """Open the run ``digits_0``."""
    return prov4ml.start_run("digits", provenance_save_dir=folder, **options)


def document(folder: Path) -> Any:
    """Return the document of ``digits_0``."""
    return json.loads((folder / "digits_0" / "prov_digits_0.json").read_text("utf-8"))


def notes(folder: Path) -> Any:
    """Return what the reader of ``digits_0`` must know."""
    return document(folder)["activity"]["run/digits_0"].get("provml:note", [])


def chunks(folder: Path, label: str, name: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return marks and samples of a layer's file, chunk by chunk."""
    return list(read_chunks(folder / "digits_0" / "artifacts" / label / f"{name}.npys"))


def samples(folder: Path, label: str, name: str) -> np.ndarray:
    """Return all samples of a layer's file."""
    return np.concatenate([samples for _, samples in chunks(folder, label, name)])
