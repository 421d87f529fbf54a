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
_INT64 = range(-(2**63), 2**63)


def misfit(kind: type, values: Mapping[str, Any]) -> str | None:
    """Return the name of the first value that is not what the dataclass ``kind`` declares.

    Numbers that no time, size or step can be, being of more than 64 bits, are none. Fields that
    are missing, and values of no field, do not count.
    """
    for name, checks in _checks(kind):
        if name in values and not any(check(values[name]) for check in checks):
            return name
    return None


@cache
def _checks(kind: type) -> list[tuple[str, list[_Check]]]:
    fields = dataclasses.fields(kind)
    return [(field.name, [_DECLARED[one] for one in _choices(field.type)]) for field in fields]


def _choices(declared: Any) -> list[str]:
    return str(declared).split(" | ")


def _is(*kinds: type) -> _Check:
    return lambda value: isinstance(value, kinds)


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and value in _INT64


def _list_of(check: _Check) -> _Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _mapping_to(check: _Check) -> _Check:
    return lambda value: isinstance(value, Mapping) and all(map(check, value.values()))


_is_plain = _is(bool, int, float, str, datetime)
_DECLARED: dict[str, _Check] = {
    "None": _is(NoneType),
    "Plain": _is_plain,
    "Status": _is(Status),
    "StoredFile": _is(StoredFile),
    "bool": _is(bool),
    "float": _is(int, float),
    "int": _is_number,
    "str": _is(str),
    "Mapping[str, Any]": _mapping_to(lambda _: True),
    "Mapping[str, Plain]": _mapping_to(_is_plain),
    "Mapping[str, list[int]]": _mapping_to(_list_of(_is_number)),
    "list[Mapping[str, Any]]": _list_of(_is(Mapping)),
    "list[int]": _list_of(_is_number),
    "list[str]": _list_of(_is(str)),
}
