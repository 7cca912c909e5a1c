"""Where the mirror of a home lies."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from graphsvc.config import Settings

ASKED: Final = b"asked"  # what the doubt file holds when somebody wants a new graph


@dataclass(frozen=True, slots=True)
class Place:
    """A folder of its own, and what lies in it."""

    folder: Path

    @property
    def graph(self) -> Path:
        """The file itself; Kuzu keeps others beside it."""
        return self.folder / "graph.kuzu"

    @property
    def new(self) -> Path:
        """One that is being filled."""
        return self.folder / "new.kuzu"

    @property
    def damaged(self) -> Path:
        """The newest one that could not be read, for who wants to know why."""
        return self.folder / "damaged.kuzu"

    @property
    def doubt(self) -> Path:
        """Stands there as long as the graph must not be trusted: whoever finds it makes the graph anew."""
        return self.folder / "doubt"

    @property
    def lock(self) -> Path:
        """Held by the one process that keeps the mirror."""
        return self.folder / "lock"


def place(settings: Settings) -> Place:
    """Return where the mirror of this home lies."""
    return Place(settings.home / "graph")
