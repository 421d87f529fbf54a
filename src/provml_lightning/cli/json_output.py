"""Answers as JSON, for scripts."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any

import typer

__all__ = ["plain", "print_json"]


def print_json(value: Any) -> None:
    """Print a value of the library's as JSON that every reader takes."""
    typer.echo(json.dumps(plain(value), indent=2))


def plain(value: Any) -> Any:
    """Return a value in JSON's types; NaN and infinity, which JSON lacks, as their names."""
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return _scalar(value)


def _scalar(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "INF" if value > 0 else "-INF"
    if value is None or isinstance(value, (str, int, float)):
        return value
    return value.isoformat() if isinstance(value, datetime) else str(value)
