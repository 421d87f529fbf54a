"""Secrets are taken out of text before it is written."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from provml_lightning.domain.values import Plain, to_plain

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["MASK", "redact", "redact_arguments", "safe_value"]

MASK = "***"

# A name is secret by its last word: api_token and accessToken are, tokenizer and max_tokens not.
_WORDS = (
    r"(?:token|passwords?|passwd|pwd|passphrases?|secrets?|credentials?|authorization"
    r"|(?:api|access|private)[_-]?keys?)"
)
_NAME = rf"(?:[\w.-]*(?:[_.-]|(?-i:(?<=[a-z0-9])(?=[A-Z]))))?{_WORDS}(?:[_-](?:id|key))?"
# A password may have a slash in it, as keys of AWS do; what follows a port has none before its @.
_URL_CREDENTIALS = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]{0,30}://)"
    r"(?:[^/\s]+@|[^/\s:@]{1,128}:(?!\d{1,5}/)[^\s@]{1,256}@)",
    re.IGNORECASE,
)
# Signatures and keys in the query of a URL, or in a connection string.
_SIGNED = re.compile(
    r"(?P<name>(?:(?<=[?&])(?:sig|signature)|(?<![\w.-])(?:x-(?:amz|goog)-(?:signature|credential)"
    r"|accountkey|sharedaccesssignature))=)[^&;\s\"']+",
    re.IGNORECASE,
)
_ASSIGNED = re.compile(
    # Quotes stand around a name in JSON and in a dictionary's text, with backslashes in a copy.
    rf"(?<![\w.-])(?P<name>(?P<quote>\\{{0,3}}[\"'])?{_NAME}(?(quote)(?P=quote)))"
    r"(?P<sep>\s*[=:]\s*)"
    r"(?P<value>\\{0,3}\"[^\"]*\"|\\{0,3}'[^']*'|(?:(?:bearer|basic|token)\s+)?\S+)",
    re.IGNORECASE,
)
_PASSWORD = re.compile(r"(?:passwords?|passwd|pwd|passphrases?)$", re.IGNORECASE)
_OPTION = re.compile(rf"--?{_NAME}", re.IGNORECASE)
_KNOWN_SHAPES = re.compile(
    r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|hf_[A-Za-z0-9]{20,}"
    r"|sk-[\w-]{20,}|xox[abprs]-[\w-]{10,}|AKIA[0-9A-Z]{16}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]+"
    r"|[Bb]earer\s+[\w.~+/-]{16,}=*)"
)


def safe_value(name: str, value: Any) -> Plain:
    """Return a setting's value as a document can hold it; masked where its name says secret.

    So are texts below such a name, as in ``password/production``, but not below a ``token``, which
    is a word of models too; of numbers only passwords are.
    """
    plain = to_plain(value)
    *above, last = name.split("/")
    if isinstance(plain, str):
        groups = [one for one in above if "token" not in one.lower()]
        secret = any(map(_is_secret, [*groups, last]))
        return MASK if secret else redact(plain)
    is_password = isinstance(plain, int) and _PASSWORD.search(last) is not None
    return MASK if is_password and not isinstance(plain, bool) else plain


def _is_secret(name: str) -> bool:
    return re.fullmatch(_NAME, name, re.IGNORECASE) is not None


def redact(text: str) -> str:
    """Return ``text`` with credentials in URLs, assigned secrets and known tokens masked."""
    text = _URL_CREDENTIALS.sub(rf"\g<scheme>{MASK}@", text)
    text = _SIGNED.sub(rf"\g<name>{MASK}", text)
    text = _ASSIGNED.sub(rf"\g<name>\g<sep>{MASK}", text)
    return _KNOWN_SHAPES.sub(MASK, text)


def redact_arguments(arguments: Sequence[str]) -> list[str]:
    """Return a command line with the values of options that name a secret masked too."""
    shown: list[str] = []
    hide = False
    for argument in arguments:
        shown.append(MASK if hide else redact(argument))
        hide = not hide and _OPTION.fullmatch(argument) is not None
    return shown
