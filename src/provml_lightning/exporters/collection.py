"""Several documents as one, nothing lost: each in a bundle of its own, or all merged."""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from provml_lightning.errors import ExportError
from provml_lightning.exporters.source import load_document
from provml_lightning.provenance.provjson import dumps
from provml_lightning.storage.index import write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

__all__ = ["write_collection"]

_FOREIGN = "https://w3id.org/provml/names/"
_ELEMENTS = ("entity", "activity", "agent")
# The arguments of relations that are no names of things.
_VALUES = frozenset({"prov:time", "prov:role", "prov:label", "prov:value", "prov:location"})
_RESERVED = frozenset({"prov", "xsd", "default"})
# PROV-N 3.7.1: what may stand in a local name, and the colon behind a prefix.
_UNWRITABLE = re.compile(r"[^\w\-./@~&+*?#$!%:]|\.(?=$)")
_PATH = "dcterms:identifier"


@dataclass(frozen=True, slots=True)
class _Member:
    """A document of a collection: where it was read, and what to call it here."""

    tag: str
    label: str
    place: Path
    document: Mapping[str, Any]


def write_collection(sources: Sequence[Path], target: Path, *, merged: bool = False) -> Path:
    """Write one PROV-JSON that holds the documents of several runs or processes.

    Paths of files are rewritten so that they are found from the collection's folder; written
    above the runs, the collection can be moved together with them.

    Args:
        sources: Run folders or PROV-JSON files, ours or other tools'.
        target: The file to write.
        merged: All records side by side, each document's ids under a prefix of its own. False:
            each document is a bundle, whose ids and prefixes stay as they are.

    Raises:
        ExportError: There is nothing to collect, or a file cannot be read or written.
        MalformedDocumentError: A file is not PROV-JSON.
    """
    if not sources:
        raise ExportError(
            "nothing to collect: no run and no PROV-JSON file; name some, or a folder of them"
        )
    members = [
        _Member(f"r{number}", _label(path), _folder(path), load_document(path))
        for number, path in enumerate(sources, start=1)
    ]
    folder = target.absolute().parent
    document = _merge(members, folder) if merged else _bundle(members, folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(target, dumps(document))
    except OSError as error:
        raise ExportError(f"{target} cannot be written: {error.strerror or error}") from error
    return target


def _bundle(members: Iterable[_Member], folder: Path) -> dict[str, Any]:
    """Return a document of bundles, each described as an entity.

    Source:
        PROV-DM 5.4, bundles; PROV-JSON 3.9.
    """
    listed = list(members)
    digests = [_digest(member.document) for member in listed]
    identity = uuid.uuid5(uuid.NAMESPACE_URL, "\n".join(digests))
    collection: dict[str, Any] = {
        "prefix": {"default": f"urn:uuid:{identity}#"},
        "entity": {},
        "bundle": {},
    }
    for member, digest in zip(listed, digests, strict=True):
        name = f"bundle/{member.tag}"
        collection["entity"][name] = {
            "prov:type": {"$": "prov:Bundle", "type": "prov:QUALIFIED_NAME"},
            "prov:label": f"{member.label} (sha256 {digest})",
        }
        collection["bundle"][name] = _cleaned(_rehomed(member, folder))
    return collection


def _cleaned(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document whose names PROV-N can write; what its namespaces are stays."""
    prefixes = document.pop("prefix")
    sections = {
        section: {
            _encoded(name): _renamed(record, section, _encoded) for name, record in told.items()
        }
        for section, told in document.items()
    }
    return {"prefix": prefixes, **sections}


def _merge(members: Iterable[_Member], folder: Path) -> dict[str, Any]:
    """Return a document of all records, ids under a prefix of their own document."""
    prefixes: dict[str, str] = {}
    sections: dict[str, dict[str, Any]] = {"prefix": prefixes}
    for member in members:
        document = _rehomed(member, folder)
        renamed = _rename_prefixes(document.pop("prefix", {}), member.tag, prefixes)

        def rename(name: str, tag: str = member.tag, known: dict[str, str] = renamed) -> str:
            prefix, colon, local = name.partition(":")
            if name.startswith("_:"):
                return f"_:{tag}-{local}"
            if colon and (prefix in known or prefix in _RESERVED):
                return f"{known.get(prefix, prefix)}:{_encoded(local)}"
            return f"{tag}:{_encoded(name)}"

        for section, records in document.items():
            if section == "bundle":
                raise ExportError(f"{member.label} holds bundles; collect it without merging")
            stated = sections.setdefault(section, {})
            for name, record in records.items():
                stated[rename(name)] = _renamed(record, section, rename)
    return sections


def _rename_prefixes(own: Mapping[str, str], tag: str, prefixes: dict[str, str]) -> dict[str, str]:
    """Return what each prefix of a document is called in the collection, and tell it there."""
    renamed: dict[str, str] = {}
    prefixes[tag] = own.get("default", f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, tag)}#")
    for prefix, iri in own.items():
        if prefix in _RESERVED:
            continue
        free = prefix
        if prefixes.get(prefix, iri) != iri:
            free = f"{prefix}_{tag}"
        prefixes[free] = iri
        renamed[prefix] = free
    return renamed


def _renamed(record: Any, section: str, rename: Callable[[str], str]) -> Any:
    if isinstance(record, list):
        return [_renamed(one, section, rename) for one in record]
    stated: dict[str, Any] = {}
    for name, value in record.items():
        key = rename(name)
        argument = section not in _ELEMENTS and name.startswith("prov:") and name not in _VALUES
        stated[key] = (
            rename(value) if argument and isinstance(value, str) else _value(value, rename)
        )
    return stated


def _encoded(name: str) -> str:
    """Return a name with what PROV-N cannot write in its percent-escapes; ``_:`` ids stay."""
    if name.startswith("_:"):
        return name
    return _UNWRITABLE.sub(lambda found: quote(found[0], safe=""), name)


def _value(value: Any, rename: Callable[[str], str]) -> Any:
    if isinstance(value, list):
        return [_value(one, rename) for one in value]
    if isinstance(value, dict) and value.get("type") in {"prov:QUALIFIED_NAME", "xsd:QName"}:
        return {**value, "$": rename(str(value["$"]))}
    return value


def _valid_prefixes(member: _Member) -> dict[str, Any]:
    """Return a document whose prefixes all stand for absolute IRIs, as PROV-JSON asks.

    Some tools write ``"provml": "prov-ml"``; what they mean is kept in an IRI made from it.
    """
    document = dict(member.document)
    prefixes = {"default": f"{member.tag}/{member.label}", **document.get("prefix", {})}
    document["prefix"] = {name: _absolute(iri) for name, iri in prefixes.items()}
    return document


def _absolute(iri: str) -> str:
    scheme, colon, _ = iri.partition(":")
    if colon and scheme.isalnum():
        return iri
    return f"{_FOREIGN}{quote(iri, safe='')}#"


def _rehomed(member: _Member, folder: Path) -> dict[str, Any]:
    """Return a document whose paths of files hold from another folder.

    They are relative where the files lie below it, else absolute: no path leads out by ``..``.
    """
    document, place = _valid_prefixes(member), member.place

    def moved(record: Any) -> Any:
        if isinstance(record, list):
            return [moved(one) for one in record]
        path = record.get(_PATH)
        if not isinstance(path, str) or not path or Path(path).is_absolute():
            return record
        if not (place / path).exists():
            return record
        file = place / path
        below = file.relative_to(folder) if file.is_relative_to(folder) else file
        return {**record, _PATH: below.as_posix()}

    entities = document.get("entity", {})
    return document | {"entity": {name: moved(record) for name, record in entities.items()}}


def _digest(document: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _folder(path: Path) -> Path:
    return (path if path.is_dir() else path.parent).absolute()


def _label(path: Path) -> str:
    return path.resolve().stem if path.is_file() else path.resolve().name
