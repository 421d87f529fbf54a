"""Whether the fields of a record hold what they were declared to hold."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from types import NoneType
from typing import Any

from provml_lightning.domain.records import Status, StoredFile

__all__ = ["misfit"]

_Check = Callable[[Any], bool]
_LEAST, _GREATEST = -(2**63), 2**63 - 1


def misfit(kind: type, values: Mapping[str, Any]) -> str | None:
    """Return the name of the first value that is not what the dataclass ``kind`` declares.

    Numbers that no time, size or step can be, being of more than 64 bits, are none. Fields that
    are missing, and values of no field, do not count.
    """
    checks = _checks(kind)
    for name, value in values.items():
        if name in checks and not checks[name](value):
            return name
    return None


@cache
def _checks(kind: type) -> dict[str, _Check]:
    return {field.name: _check(field.type) for field in dataclasses.fields(kind)}


def _check(declared: Any) -> _Check:
    """Return the check of a field: whether a value is of a type, or passes another's check."""
    choices = str(declared).split(" | ")
    types = tuple(kind for choice in choices for kind in _TYPES.get(choice, ()))
    others = [_CHECKS[choice] for choice in choices if choice not in _TYPES]
    if not others:
        return lambda value: isinstance(value, types)
    return lambda value: isinstance(value, types) or any(check(value) for check in others)


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and _LEAST <= value <= _GREATEST


def _list_of(check: _Check) -> _Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _mapping_to(check: _Check) -> _Check:
    return lambda value: isinstance(value, Mapping) and all(map(check, value.values()))


_TYPES: dict[str, tuple[type, ...]] = {
    "None": (NoneType,),
    "Plain": (bool, int, float, str, datetime),
    "Status": (Status,),
    "StoredFile": (StoredFile,),
    "bool": (bool,),
    "float": (int, float),
    "str": (str,),
}
_CHECKS: dict[str, _Check] = {
    "int": _is_number,
    "Mapping[str, Any]": _mapping_to(lambda _: True),
    "Mapping[str, Plain]": _mapping_to(_check("Plain")),
    "Mapping[str, list[int]]": _mapping_to(_list_of(_is_number)),
    "list[Mapping[str, Any]]": _list_of(lambda value: isinstance(value, Mapping)),
    "list[int]": _list_of(_is_number),
    "list[str]": _list_of(_check("str")),
}
