"""What a crate says of a run, its files and its values, in schema.org's words."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from provml_lightning.domain.records import Status
from provml_lightning.exporters.account import Account, facts_of, label_of, value_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provml_lightning.exporters.holdings import Holding
    from provml_lightning.exporters.statements import Element

__all__ = [
    "action_facts",
    "cost_facts",
    "describe_file",
    "instrument_facts",
    "license_facts",
    "moment",
    "person_facts",
    "root_facts",
    "value_facts",
]

_SSH = re.compile(r"(?:ssh://)?(?:[^@/]+@)([^:/]+)(?::\d+(?=/))?[:/]/?(.+)")
# Source: Process Run Crate 0.5: one of these two, or none for an action that goes on.
_COMPLETED = "http://schema.org/CompletedActionStatus"
_FAILED = "http://schema.org/FailedActionStatus"
_STATUS = {
    Status.COMPLETED: _COMPLETED,
    Status.FAILED: _FAILED,
    Status.INTERRUPTED: _FAILED,
    Status.INCOMPLETE: _FAILED,
}
_KINDS = {
    "Artifact": "Artifact",
    "Dataset": "Data set",
    "MetricsFile": "All values of all metrics",
    "Model": "Model",
    "ModelLayers": "Layers of a model",
    "ModelVersion": "Weights of a model at one moment",
    "SourceCode": "Source code",
}
_OWN_FILES = {
    "run.json": "Index of the run: status, times, files with sizes and digests",
    "card.md": "Card that sums the run up for people",
}
_OWN_SUFFIXES = {
    ".dot": "The run's provenance as a graph for Graphviz",
    ".html": "Page for a web browser",
    ".svg": "The run's provenance as a picture",
}


def root_facts(account: Account) -> dict[str, Any]:
    """Return what is said of the crate as a whole."""
    experiment = account.facts.get("experiment_name", account.name)
    return {
        "name": f"Machine learning run {account.name}",
        "description": f"Record of one run of the experiment {experiment}: its parameters, metrics,"
        " files and models, and their provenance in W3C PROV",
        "datePublished": _time(account.ended or account.started) or "1970-01-01",
    }


def action_facts(account: Account) -> dict[str, Any]:
    """Return what is said of the run as an action."""
    command = account.facts.get("command_line")
    told = f", started with: {command}" if command else ""
    status = _STATUS.get(account.status)
    failed = status == _FAILED
    return {
        "@type": "CreateAction",
        "name": f"Run {account.name}",
        "description": f"The run {account.name}, {account.status.value}{told}",
        "startTime": _time(account.started),
        "endTime": _time(account.ended),
        "actionStatus": status,
        "error": _error(account) if failed else None,
    }


def person_facts(account: Account) -> tuple[str, dict[str, Any]]:
    """Return who started the run, as an IRI and what is said of them."""
    return f"#user/{quote(account.user)}", {"@type": "Person", "name": account.user}


def instrument_facts(account: Account) -> tuple[str, dict[str, Any]]:
    """Return the software that ran, as its IRI and what is said of it.

    It is the repository at its commit where both are known, else the interpreter.
    """
    version = account.facts.get("python_version", "unknown")
    platform = f"{account.facts.get('python_implementation', 'Python')} {version}"
    for code in account.code:
        address = _web_address(code.get("remote", ""))
        if address and "commit" in code:
            where = f"{address}/tree/{code['commit']}"
            changed = ", with changes that are not committed" if code.get("dirty") == "true" else ""
            return where, {
                "@type": "SoftwareSourceCode",
                "name": PurePosixPath(address).name,
                "description": f"The code that ran{changed}",
                "url": where,
                "codeRepository": address,
                "version": code["commit"],
                "programmingLanguage": "Python",
                "runtimePlatform": platform,
            }
    release = quote(version.replace(".", ""), safe="")
    return f"https://www.python.org/downloads/release/python-{release}/", {
        "@type": "SoftwareApplication",
        "name": platform,
        "url": "https://www.python.org/",
        "softwareVersion": version,
    }


def license_facts(name: str | None) -> tuple[str, dict[str, Any]]:
    """Return the terms of use, as their IRI and what is said of them."""
    if name is None:
        return "#license", {
            "@type": "CreativeWork",
            "name": "No license stated",
            "description": "Whoever made this run has not stated under which terms it may be used;"
            " ask before you do",
        }
    address = name if "://" in name else f"https://spdx.org/licenses/{quote(name)}"
    return address, {
        "@type": "CreativeWork",
        "name": name,
        "description": f"The terms under which this run may be used: {name}",
        "url": address,
    }


def describe_file(holding: Holding, element: Element | None, document: str) -> dict[str, Any]:
    """Return what is said of a file or folder of the run."""
    return {
        "name": label_of(element) if element else holding.path,
        "description": _description(holding, element, document),
        "contentSize": str(holding.size),
        **({"encodingFormat": holding.media_type} if holding.media_type else {}),
        **({"sha256": holding.sha256} if holding.sha256 else {}),
    }


def value_facts(element: Element) -> dict[str, Any]:
    """Return what is said of a parameter, a metric, or a thing that lies elsewhere."""
    context = value_of(element, "context")
    told = ["last value"] if "Metric" in element.types else []
    told += [f"in {context}"] if context else []
    named = {"name": label_of(element)} | ({"description": ", ".join(told)} if told else {})
    words = {"value": ("value", "last"), "minValue": ("min",), "maxValue": ("max",)}
    values = {word: value_of(element, *names) for word, names in words.items()}
    if values["value"] is not None or "Metric" in element.types:
        words_and_unit = {**values, "unitText": value_of(element, "unit")}
        known = {word: value for word, value in words_and_unit.items() if value is not None}
        return {"@type": "PropertyValue", **named, **known}
    kind = _KINDS.get(element.family[1], "Thing that the run recorded")
    where = value_of(element, "identifier")
    said = f"{kind}{f' at {where}' if where else ''}"
    return {"@type": "CreativeWork", "name": named["name"], "description": said}


def cost_facts(account: Account) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what the whole run used: energy, emissions, FLOPs, each with an identifier."""
    for name, amount in account.facts.items():
        if name.startswith("total_") and f"{name}_unit" in account.facts:
            yield (
                f"#{name}",
                {
                    "@type": "PropertyValue",
                    "name": name.replace("_", " "),
                    "description": f"of the whole run, from {account.facts[f'{name}_source']}",
                    "value": float(amount),
                    "unitText": account.facts[f"{name}_unit"],
                },
            )


def moment(account: Account) -> datetime:
    """Return the time that an archive's entries bear: the run's end, or its start."""
    return datetime.fromisoformat(account.ended or account.started or "1980-01-01")


def _description(holding: Holding, element: Element | None, document: str) -> str:
    if element is not None:
        context = facts_of(element).get("context")
        kind = _KINDS.get(element.family[1], "File of the run")
        return f"{kind}, of the context {context}" if context else kind
    path = PurePosixPath(holding.path)
    if holding.path == document:
        return "The run's provenance in W3C PROV, as PROV-JSON"
    if path.parts[0] == "journal":
        what = "Values that wait for the run's end" if path.suffix == ".points" else "Facts"
        return f"{what}, as the process {path.stem} told them"
    own = _OWN_FILES.get(holding.path) or _OWN_SUFFIXES.get(path.suffix)
    return own or f"File of the run, {path.name}"


def _error(account: Account) -> str:
    words = (account.facts.get("error_type"), account.facts.get("error_message"))
    told = ": ".join(filter(None, words))
    if account.status is Status.INCOMPLETE:
        return told or "The process died, or lost its disk: the run has no end"
    return told or account.status.value


def _time(text: str | None) -> str | None:
    """Return a time as the profile wants it: ISO 8601, three digits of a second, an offset.

    Source:
        Process Run Crate 0.5, the pattern of startTime and endTime.
    """
    return datetime.fromisoformat(text).isoformat(timespec="milliseconds") if text else None


def _web_address(remote: str) -> str | None:
    """Return where a browser finds a repository, None where git alone does."""
    ssh = _SSH.fullmatch(remote)
    address = f"https://{ssh[1]}/{ssh[2]}" if ssh else remote
    if not address.startswith(("https://", "http://")):
        return None
    return quote(address.rstrip("/").removesuffix(".git"), safe=":/@%~+")
