"""A run as an RO-Crate, which repositories and people can open without this library."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from provml_lightning.errors import ExportError
from provml_lightning.exporters.account import Account, facts_of, give_account, label_of
from provml_lightning.exporters.archive import write_archive
from provml_lightning.exporters.crate_words import (
    action_facts,
    cost_facts,
    describe_file,
    instrument_facts,
    license_facts,
    moment,
    person_facts,
    root_facts,
    value_facts,
)
from provml_lightning.exporters.holdings import METADATA, Holding, list_files, take_stock
from provml_lightning.exporters.source import RecordedRun, load_run
from provml_lightning.storage.index import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rocrate.rocrate import ROCrate

__all__ = ["write_crate"]

# Source: Process Run Crate 0.5, which extends RO-Crate 1.1 and demands exactly that version.
_VERSION = "1.1"
_PROFILE = "https://w3id.org/ro/wfrun/process/0.5"
_TERMS = "https://w3id.org/ro/terms/workflow-run/context"
_RUN = "#run"


def write_crate(directory: Path, *, archive: bool = False, license_name: str | None = None) -> Path:
    """Make a run's folder an RO-Crate; return the metadata file, or the archive.

    The facts come from the run's files alone, and the same run gives the same bytes. A run in any
    state will do; one that failed, or died, is a crate of a failed action.

    Args:
        directory: The run's folder.
        archive: Write ``<run>.zip`` beside the folder too, which unpacks to the same crate.
        license_name: SPDX identifier, such as ``CC-BY-4.0``, or the URL of a license. None: the
            crate says that none was stated.

    Raises:
        ExportError: It is no run, a file cannot be read, or the disk does not take the crate.
        MalformedDocumentError: The run's document is damaged.
        StorageError: The run's journal cannot be read.
    """
    run = load_run(Path(directory))
    folder = run.layout.directory
    try:
        account = give_account(run)
        content = _metadata(run, account, license_name)
        write_whole(folder / METADATA, content)
        if not archive:
            return folder / METADATA
        files = {METADATA: folder / METADATA, **list_files(folder)}
        target = folder.parent / f"{folder.name}.zip"
        return write_archive(files, target, moment(account))
    except OSError as error:
        raise ExportError(
            f"no crate of {folder}: {error.filename or ''} {error.strerror or error}"
        ) from error


def _metadata(run: RecordedRun, account: Account, license_name: str | None) -> bytes:
    from rocrate.rocrate import ROCrate

    crate = ROCrate(version=_VERSION)
    crate.metadata.extra_contexts.append(_TERMS)
    files = _add_files(crate, run, account)
    action = _add_action(crate, run, account, files)
    author = _reference(person_facts(account)[0])
    root = root_facts(account)
    root["license"] = _add(crate, *license_facts(license_name))
    root["conformsTo"] = _add(
        crate,
        _PROFILE,
        {"@type": "CreativeWork", "name": "Process Run Crate", "version": "0.5"},
    )
    for name, value in {**root, "author": author, "mentions": action}.items():
        crate.root_dataset[name] = value
    return _written(crate.metadata.generate())


def _add_files(crate: ROCrate, run: RecordedRun, account: Account) -> dict[str, Any]:
    """Add every file of the run; return the references by path."""
    folder = run.layout.directory
    folders = {path for path in account.files if (folder / path).is_dir()}
    formats = {
        path: facts["format"]
        for path, one in account.files.items()
        if "format" in (facts := facts_of(one))
    }
    return {
        holding.path: _add_file(crate, holding, account, run.index.document)
        for holding in take_stock(folder, folders, formats)
    }


def _add_file(crate: ROCrate, holding: Holding, account: Account, document: str) -> Any:
    facts = describe_file(holding, account.files.get(holding.path), document)
    if holding.sha256 is None:
        return _reference(crate.add_dataset(dest_path=f"{holding.path}/", properties=facts).id)
    return _reference(crate.add_file(dest_path=holding.path, properties=facts).id)


def _add_action(
    crate: ROCrate, run: RecordedRun, account: Account, files: dict[str, Any]
) -> dict[str, str]:
    used = _distinct(_things(crate, account, account.used, files))
    made = _distinct(_things(crate, account, account.made, files))
    both = _distinct(_things(crate, account, set(account.made) & set(account.used), files))
    made |= _distinct(_add(crate, *cost) for cost in cost_facts(account))
    if (document := files.get(run.index.document)) is not None:
        made[document["@id"]] = document
    instrument, facts = instrument_facts(account)
    if facts["@type"] == "SoftwareSourceCode" and (parts := _scripts(account, files)):
        facts["hasPart"] = parts
    action = {
        **action_facts(account),
        "instrument": _add(crate, instrument, facts),
        "agent": _add(crate, *person_facts(account)),
        "object": list(used.values()),
        # The run copies what it uses; such a copy is no result. What it made and then used is one,
        # such as a checkpoint that it tested.
        "result": [one for name, one in made.items() if name not in used or name in both],
    }
    return _add(crate, _RUN, {name: value for name, value in action.items() if value})


def _things(
    crate: ROCrate, account: Account, keys: Iterable[str], files: dict[str, Any]
) -> Iterator[dict[str, str]]:
    """Yield references to files of the run and, made here, to values and to things elsewhere."""
    by_key = {one.key: files[path] for path, one in account.files.items() if path in files}
    for key in keys:
        inside = by_key.get(key) or by_key.get(account.copies.get(key, ""))
        if inside is not None:
            yield inside
        else:
            element = account.elements[key]
            yield _add(crate, f"#{element.name}", value_facts(element))


def _scripts(account: Account, files: dict[str, Any]) -> list[dict[str, str]]:
    return [
        files[path]
        for path, one in account.files.items()
        if path in files and ("SourceCode" in one.types or label_of(one).endswith(".py"))
    ]


def _add(crate: ROCrate, identifier: str, facts: dict[str, Any]) -> dict[str, str]:
    from rocrate.model.contextentity import ContextEntity

    return _reference(crate.add(ContextEntity(crate, identifier, properties=facts)).id)


def _reference(identifier: str) -> dict[str, str]:
    return {"@id": identifier}


def _distinct(references: Iterable[dict[str, str]]) -> dict[str, dict[str, str]]:
    return {one["@id"]: one for one in references}


def _written(metadata: dict[str, Any]) -> bytes:
    """Return the metadata as JSON; one value stands as a value and not as a list.

    Source:
        RO-Crate 1.1, appendix "RO-Crate JSON-LD": the flattened, compacted form.
    """
    for entity in metadata["@graph"]:
        for name, value in entity.items():
            if isinstance(value, list) and len(value) == 1:
                entity[name] = value[0]
    text = json.dumps(metadata, indent=1, ensure_ascii=False, allow_nan=False)
    return text.encode(errors="replace") + b"\n"
