"""Namespaces and identifiers: the only place where a URI or an id is spelled."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from provml_lightning.domain.names import local_name
from provml_lightning.errors import ConfigurationError

if TYPE_CHECKING:
    from provml_lightning.domain.records import Opened

__all__ = [
    "NAMESPACES",
    "ORIGIN",
    "PARENT",
    "PEER_ATTRIBUTES",
    "activity_id",
    "agent_id",
    "attribute",
    "document_namespace",
    "entity_id",
    "parent_of",
    "require_iri",
    "run_iri",
    "run_name",
]

# prov and xsd are PROV-JSON's own. provml and yprov are the prefixes of the nearest peer's files.
NAMESPACES = {
    "provml": "https://w3id.org/provml#",
    "yprov": "https://github.com/HPCI-Lab/yProv4ML#",
    "dcterms": "http://purl.org/dc/terms/",
}
PARENT = "parent"
ORIGIN = "origin"
# Facts that the peer's files name too keep its prefix, so that its readers find them.
PEER_ATTRIBUTES = frozenset(
    {
        "PID", "artifact_uri", "context", "experiment_dir", "experiment_name", "file_size",
        "global_rank", "host_name", "machine", "operating_system", "processor",
        "provenance_path", "python_version", "release", "run_id", "source", "time_zone",
    }
)  # fmt: skip

_RUN = "run/"
_NOT_IN_ATTRIBUTE = re.compile(r"[^A-Za-z0-9_-]")
_STARTS_NAME = re.compile(r"[A-Za-z_]")
_place = lru_cache(maxsize=4096)(local_name)  # of a context, which thousands of entities share
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_IRI = re.compile(r"[^\s<>\"{}|\\^`\x00-\x20]+")


@lru_cache(maxsize=4096)
def attribute(name: str) -> str:
    """Return the qualified name of a fact that we state ourselves.

    Letters, digits, ``_`` and ``-`` stand for themselves, every other byte is ``.`` and two hex
    digits; a name that no XML name can begin with, or an empty one, stands between ``n..`` and
    ``_``. Other than in an id, ``%`` is not possible: RDF/XML makes an element of each attribute.

    Source:
        Namespaces in XML 1.0, NCName.
    """
    prefix = "yprov" if name in PEER_ATTRIBUTES else "provml"
    encoded = _NOT_IN_ATTRIBUTE.sub(_dotted, name)
    return f"{prefix}:{encoded}" if _STARTS_NAME.match(encoded) else f"{prefix}:n..{encoded}_"


def activity_id(context: str | None, run: str) -> str:
    """Return the id of a context's activity, or of the run's where there is no context."""
    return f"{_RUN}{local_name(run)}" if context is None else f"context/{_place(context)}"


def agent_id(kind: str, name: str) -> str:
    """Return the id of an agent."""
    return f"{kind}/{local_name(name)}"


def entity_id(kind: str, context: str | None, *names: str | None) -> str:
    """Return the id of an entity; every part is encoded, so different names have different ids.

    No context is ``~~``, which no encoding yields; names that are None are left out.
    """
    place = "~~" if context is None else _place(context)
    return "/".join([kind, place, *[local_name(name) for name in names if name is not None]])


def require_iri(namespace: str) -> str:
    """Return a user's namespace as an absolute IRI; a bare host gets ``https://``.

    Raises:
        ConfigurationError: It holds what no IRI may hold.

    Source:
        RFC 3987; the documents' examples give ``www.example.org``.
    """
    text = namespace.strip()
    absolute = text if _SCHEME.match(text) and not _is_host_and_port(text) else f"https://{text}"
    if not _IRI.fullmatch(absolute) or (absolute.startswith("http") and not _host(absolute)):
        raise ConfigurationError(
            f"prov_user_namespace={namespace!r} is not an IRI; give something like"
            " 'https://www.example.org/'"
        )
    return absolute if absolute[-1] in "/#" else f"{absolute}/"


def document_namespace(namespace: str | None, run: str, uuid: str) -> str:
    """Return the namespace of everything that one run's document names.

    It is the run's own for ever: under the user's namespace the UUID follows the name, because
    every machine has a ``digits_0`` and documents of several runs are put together.
    """
    if namespace is None:
        return f"urn:uuid:{uuid}#"
    return f"{require_iri(namespace)}{local_name(run)}/{uuid}/"


def run_name(opened: Opened) -> str:
    """Return what a run is called."""
    return f"{opened.experiment}_{opened.run_id}"


def run_iri(opened: Opened) -> str:
    """Return the IRI by which a run's own document names the run's activity."""
    run = run_name(opened)
    return document_namespace(opened.namespace, run, opened.uuid) + activity_id(None, run)


def parent_of(iri: str) -> tuple[str, str, str] | None:
    """Return namespace, local name and run name of what :func:`run_iri` gave; else None."""
    namespace, found, encoded = iri.rpartition(_RUN)
    if not found or not namespace:
        return None
    return namespace, _RUN + encoded, unquote(encoded)


def _dotted(found: re.Match[str]) -> str:
    return "".join(f".{byte:02x}" for byte in found[0].encode("utf-8", "surrogatepass"))


def _is_host_and_port(text: str) -> bool:
    return re.fullmatch(r"[\w.-]+:\d+(/.*)?", text) is not None


def _host(iri: str) -> str | None:
    try:
        return urlsplit(iri).hostname
    except ValueError:
        return None
