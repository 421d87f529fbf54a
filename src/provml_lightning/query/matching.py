"""Say what is not there, and what comes closest to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provml_lightning.errors import RecordNotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["not_found"]

_SHOWN = 5


def not_found(what: str, name: str, known: Iterable[str], *, where: str) -> RecordNotFoundError:
    """Return the error for a name that is not there, with the closest that are.

    Args:
        what: The kind of thing that was asked for.
        name: The name that was asked for.
        known: The names that are there.
        where: The document.
    """
    from difflib import get_close_matches

    names = list(dict.fromkeys(known))
    folded = {one.casefold(): one for one in names}
    close = [folded[one] for one in get_close_matches(name.casefold(), folded, n=_SHOWN)]
    if close:
        hint = f"; the closest are {', '.join(map(repr, close))}"
    elif names:
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        hint = f"; there are {', '.join(map(repr, names[:_SHOWN]))}{more}"
    else:
        hint = "; there are none"
    return RecordNotFoundError(f"{where} has no {what} {name!r}{hint}")
