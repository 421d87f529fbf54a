"""A checkpoint that lies somewhere, and what was told of it."""

from __future__ import annotations

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
        looks: How often a remote one is still looked for.
    """

    path: str
    place: Place
    mark: Mark
    told: ModelVersion
    last: int
    looks: int = 0

    def may_be_gone(self, listed: Collection[str]) -> bool:
        """Tell whether it is to be looked for, given what the callbacks list.

        That is one that none of them lists; in a remote store one that was listed until lately.
        """
        if self.path in listed:
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

    def marked(self, marks: Mapping[str, Plain]) -> ModelVersion | None:
        """Return the version with other marks; None where it has these already."""
        told = self.told.attributes
        others = {name: value for name, value in told.items() if name not in _MARKS}
        return (
            None
            if told == {**others, **marks}
            else replace(self.told, attributes={**others, **marks})
        )
