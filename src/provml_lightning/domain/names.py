"""Names of the user's, written where only some characters may stand.

The encodings are injective: two different names never share a file or an identifier.
"""

from __future__ import annotations

import hashlib
import re
import string
from functools import lru_cache

__all__ = ["file_name", "folder_name", "local_name"]

_SMALL = frozenset(string.ascii_lowercase + string.digits + "_-.")
_FOLDER = frozenset(string.ascii_letters + string.digits + "_-.=+@")
_NOT_LOCAL = re.compile(r"[^A-Za-z0-9_.-]")
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
_LONGEST = 150
_EMPTY = "~"  # no encoding yields it: a tilde in a name becomes %7e


def file_name(name: str, *more: str) -> str:
    """Return a file name for ``name`` that no other name has, on any file system.

    Small letters, digits, ``_``, ``-`` and ``.`` stay; a capital becomes ``@`` and its small
    letter, so that names that differ in case alone differ on every file system; the rest becomes
    the ``%xx`` of its UTF-8 bytes. A very long name ends in ``~`` and a digest. A name of several
    parts has ``=`` between them.
    """
    return _whole("=".join("".join(map(_small, part)) for part in (name, *more)))


def folder_name(name: str) -> str:
    """Return a folder name for ``name``; capitals stay, since ``mkdir`` reserves folders."""
    return _whole("".join(char if char in _FOLDER else _percent(char) for char in name))


def local_name(name: str) -> str:
    """Return the local part of a qualified name for ``name``.

    Source:
        PROV-N 3.7.1: letters, digits, ``_``, ``-`` and ``.`` stand for themselves, but a dot may
        not end a name; the rest is percent-encoded.
    """
    encoded = _NOT_LOCAL.sub(lambda found: _percent(found[0]), name) or _EMPTY
    return encoded[:-1] + _percent(".") if encoded[-1] == "." else encoded


def _small(char: str) -> str:
    if char in _SMALL:
        return char
    return "@" + char.lower() if char in string.ascii_uppercase else _percent(char)


@lru_cache(maxsize=4096)
def _percent(char: str) -> str:
    return "".join(f"%{byte:02x}" for byte in char.encode("utf-8", "surrogatepass"))


def _whole(encoded: str) -> str:
    """Make an encoded name fit for every file system: not empty, not reserved, not too long."""
    if not encoded:
        return _EMPTY
    if encoded[0] == "." or _RESERVED.fullmatch(encoded):
        encoded = _percent(encoded[0]) + encoded[1:]
    if encoded[-1] == ".":
        encoded = encoded[:-1] + _percent(".")
    if len(encoded) > _LONGEST:
        digest = hashlib.sha256(encoded.encode()).hexdigest()[:24]
        encoded = f"{encoded[: _LONGEST - 25]}~{digest}"
    return encoded
