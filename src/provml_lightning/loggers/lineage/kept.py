"""A checkpoint that lies somewhere, and what was told of it."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from provml_lightning.domain.records import ModelVersion
from provml_lightning.loggers.lineage.places import Mark, Place

if TYPE_CHECKING:
    from provml_lightning.domain.files import StoredFile
    from provml_lightning.domain.values import Plain

__all__ = ["Kept"]

_LOOKS = 8  # at a remote file that no callback lists any more: each is a request
_MARKS = frozenset({"is_best", "is_last"})


@dataclass(slots=True)
class Kept:
    """A checkpoint that lies there, as it was told last.

    Attributes:
        path: As the Trainer has it.
        place: Where that is.
        mark: What it looked like when it was told.
        told: The version.
        last: When it was last made or used [ns].
        is_listed: Whether a ModelCheckpoint listed it lately.
        looks: How often a remote one that was listed until then is still looked for.
    """

    path: str
    place: Place
    mark: Mark
    told: ModelVersion
    last: int
    is_listed: bool = False
    looks: int = 0

    @property
    def is_looked_for(self) -> bool:
        """Whether to look for it now: each look at a remote store is a request."""
        return not self.place.is_remote or (self.looks > 0 and not self.is_listed)

    def may_be_gone(self, listed: Collection[str]) -> bool:
        """Tell whether it is to be looked for, given what the callbacks list.

        That is one that none of them lists; in a remote store one that was listed until lately.
        """
        if listed:  # a Trainer that only tests lists none, which says nothing
            self.is_listed = self.path in listed
        if self.is_listed:
            self.looks = _LOOKS
            return False
        self.looks -= 1
        return self.looks >= 0 or not self.place.is_remote

    @property
    def file(self) -> StoredFile | None:
        """What it was told to be; None where nobody could look."""
        return self.told.stored or self.told.original

    @property
    def lacks_digest(self) -> bool:
        """Whether its bytes are still to be read; what lies in a remote store never is."""
        return self.file is not None and self.file.sha256 is None and not self.place.is_remote

    def seen(self, file: StoredFile) -> ModelVersion:
        """Return the version now that somebody could look at its file."""
        told = self.told.attributes
        others = {name: value for name, value in told.items() if name != "location"}
        inside = self.place.is_inside
        return replace(
            self.told,
            told=time.time_ns(),
            stored=file if inside else None,
            original=None if inside else file,
            attributes=others,
        )

    def marked(self, marks: Mapping[str, Plain]) -> ModelVersion | None:
        """Return the version with other marks; None where it has these already."""
        told = self.told.attributes
        others = {name: value for name, value in told.items() if name not in _MARKS}
        return (
            None
            if told == {**others, **marks}
            else replace(self.told, told=time.time_ns(), attributes={**others, **marks})
        )
