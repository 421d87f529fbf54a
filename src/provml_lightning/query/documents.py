"""Load what a caller points to: a PROV-JSON, a run's folder, an archive, a dictionary."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath
from typing import TYPE_CHECKING, Any

from provml_lightning.errors import (
    IncompleteRunWarning,
    MalformedDocumentError,
    QueryError,
    RecordNotFoundError,
)
from provml_lightning.query.dialects import Dialect, Element, Relation, dialect_of

if TYPE_CHECKING:
    from provml_lightning.storage.layout import RunLayout

__all__ = ["Document", "is_document_name", "load"]

_SECTIONS = frozenset({"prefix", "entity", "activity", "agent", "bundle"})
_RELATIONS = ("used", "wasDerivedFrom", "wasInformedBy", "wasInvalidatedBy")
_LARGEST = 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A PROV-JSON document, ready to be asked.

    Attributes:
        elements: Activities and entities in the document's order; an identifier that several
            records share is here once for each of them.
        name: What to call the document in a message.
        folder: The folder that it lies in (inside ``archive``, if there is one); None for a
            dictionary.
        archive: The ZIP file that it lies in.
        unsettled: The run whose document was compiled just now, because it has no end.
        agents: Who answers for it.
        relations: Those of the kinds that a run at a glance needs.
    """

    elements: tuple[Element, ...]
    dialect: Dialect
    name: str
    folder: PurePath | None = None
    archive: Path | None = None
    unsettled: RunLayout | None = None
    agents: tuple[Element, ...] = ()
    relations: tuple[Relation, ...] = ()

    def of_kind(self, kind: str) -> list[Element]:
        """Return the elements of one section, ``"activity"`` or ``"entity"``."""
        return [element for element in self.elements if element.kind == kind]

    def related(self, kind: str, source: str, target: str) -> list[tuple[str, str]]:
        """Return the two ends of each relation of one section, such as ``"used"``.

        Args:
            kind: The section.
            source: The role of the first end, such as ``"activity"``.
            target: That of the second.
        """
        ends = (f"prov:{source}", f"prov:{target}")
        return [
            (str(one.attributes[ends[0]]), str(one.attributes[ends[1]]))
            for one in self.relations
            if one.kind == kind and all(end in one.attributes for end in ends)
        ]


def load(source: Mapping[str, Any] | str | PurePath, *, quiet: bool = False) -> Document:
    """Load a document.

    Args:
        source: A PROV-JSON as a dictionary, the path of one, the path of a run's folder, or that
            of a ZIP file that holds one document.
        quiet: The caller says itself where the run has no end.

    Raises:
        RecordNotFoundError: There is no such file or folder, or no document in it.
        MalformedDocumentError: It is not PROV-JSON.
        QueryError: A folder or archive holds several documents.
    """
    if isinstance(source, Mapping):
        return _document(source, "the dictionary")
    path = Path(source)
    if unsettled := _unsettled(path):
        return _compiled(unsettled, quiet=quiet)
    if path.is_dir():
        names = [entry.name for entry in path.iterdir() if is_document_name(entry.name)]
        return _from_file(path / _only(names, str(path)))
    if not path.exists():
        raise RecordNotFoundError(f"there is no document at {str(path)!r} (from {Path.cwd()})")
    return _from_archive(path) if path.suffix.lower() == ".zip" else _from_file(path)


def is_document_name(name: str) -> bool:
    """Tell whether a file's name is that of a run's PROV-JSON."""
    return name.startswith("prov_") and name.endswith(".json")


def _from_file(path: Path) -> Document:
    try:
        _check_size(path.stat().st_size, str(path))
        data = path.read_bytes()
    except OSError as error:
        raise QueryError(f"{path} cannot be read: {error.strerror or error}") from error
    return _document(_parse(data, str(path)), str(path), folder=path.absolute().parent)


def _from_archive(path: Path) -> Document:
    import zlib
    from zipfile import BadZipFile, ZipFile

    try:
        with ZipFile(path) as archive:
            names = [name for name in archive.namelist() if is_document_name(PurePath(name).name)]
            inner = _only(names, str(path))
            _check_size(archive.getinfo(inner).file_size, f"{path}/{inner}")
            data = _parse(archive.read(inner), f"{path}/{inner}")
    except (BadZipFile, OSError, RuntimeError, zlib.error) as error:  # RuntimeError: encrypted
        raise MalformedDocumentError(f"{path} cannot be read as a ZIP file: {error}") from error
    folder = PurePosixPath(inner).parent
    return _document(data, f"{path}/{inner}", folder=folder, archive=path.absolute())


def _only(names: list[str], place: str) -> str:
    if not names:
        raise RecordNotFoundError(f"{place} holds no PROV-JSON (prov_*.json)")
    if len(names) > 1:
        listed = ", ".join(sorted(names)[:8])
        raise QueryError(f"{place} holds {len(names)} documents; pass the path of one: {listed}")
    return names[0]


def _check_size(size: int, name: str) -> None:
    if size > _LARGEST:
        raise MalformedDocumentError(f"{name} has {size} bytes; a document has at most {_LARGEST}")


def _parse(data: bytes, name: str) -> Any:
    try:
        return json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise MalformedDocumentError(f"{name} is not JSON: {error}") from error


def _unsettled(path: Path) -> RunLayout | None:
    """Return the run of this folder or document, if its files say more than its document."""
    folder = path.parent if is_document_name(path.name) else path
    if not (folder / "journal").is_dir():
        return None
    from provml_lightning.storage.contents import is_settled
    from provml_lightning.storage.layout import RunLayout

    layout = RunLayout(folder.absolute())
    return layout if layout.is_run() and not is_settled(layout) else None


def _compiled(layout: RunLayout, *, quiet: bool) -> Document:
    """Compile the document of a run without an end, in memory alone."""
    from provml_lightning.provenance.statement import state
    from provml_lightning.storage.contents import read_contents

    contents = read_contents(layout)
    if not quiet:
        warnings.warn(
            f"{layout.directory} is {contents.status}, and its documents lack what was logged last:"
            " answered from its journal. 'prov4ml recover' brings them up to date",
            IncompleteRunWarning,
            stacklevel=4,  # over load and the question to the one who asked
        )
    name = str(layout.directory)
    return _document(state(contents), name, folder=layout.directory, unsettled=layout)


def _document(data: Any, name: str, **place: Any) -> Document:
    if not isinstance(data, Mapping) or (data and not data.keys() & _SECTIONS):
        raise MalformedDocumentError(
            f"{name} is not a PROV-JSON document: it has none of {', '.join(sorted(_SECTIONS))}"
        )
    prefixes = _mapping(data, "prefix", name)
    elements = tuple(_elements(data, name, "activity", "entity"))
    agents = tuple(_elements(data, name, "agent"))
    dialect = dialect_of(prefixes)
    return Document(
        elements=elements,
        agents=agents,
        relations=tuple(_relations(data)),
        dialect=dialect,
        name=name,
        **place,
    )


def _elements(data: Mapping[str, Any], name: str, *kinds: str) -> Iterator[Element]:
    for kind in kinds:
        for identifier, found in _mapping(data, kind, name).items():
            records = found if isinstance(found, list) else [found]
            for record in records:
                if not isinstance(record, Mapping):
                    raise MalformedDocumentError(f"{name}: {kind} {identifier!r} is no record")
                yield Element(kind, identifier, record)
    for bundle in _mapping(data, "bundle", name).values():
        yield from _elements(bundle, name, *kinds)


def _relations(data: Mapping[str, Any]) -> Iterator[Relation]:
    """Yield relations as far as they have a shape: nothing that is read before depends on them."""
    for kind in _RELATIONS:
        section = data.get(kind)
        for found in section.values() if isinstance(section, Mapping) else ():
            for record in found if isinstance(found, list) else [found]:
                if isinstance(record, Mapping):
                    yield Relation(kind, record)
    for bundle in _mapping(data, "bundle", "").values():
        yield from _relations(bundle)


def _mapping(data: Mapping[str, Any], section: str, name: str) -> Mapping[str, Any]:
    found = data.get(section, {})
    if not isinstance(found, Mapping):
        raise MalformedDocumentError(f"{name}: {section!r} is not an object")
    return found
