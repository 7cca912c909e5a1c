"""Where the mirror of a home lies."""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from graphsvc.config import Settings, write_whole

SUFFIXES: Final = (".wal", ".shadow", ".tmp", "")  # what Kuzu adds to the name of a file
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


def ask_anew(where: Place) -> None:
    """Ask whoever keeps the mirror to make it anew, now or when it begins: nothing of what it holds now is kept."""
    where.folder.mkdir(mode=0o700, exist_ok=True)
    write_whole(where.doubt, ASKED)


def clear(where: Place) -> bool:
    """Remove the mirror and all that was kept of earlier ones; False when a process keeps it, and nothing was done."""
    if not where.folder.is_dir():
        return True
    with open(os.open(where.lock, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600), "rb") as lock:  # noqa: PTH123 # a handle
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        for path in where.folder.iterdir():
            if path != where.lock:
                path.unlink(missing_ok=True)
    return True


def remove(path: Path) -> None:
    """Remove a graph file and what Kuzu keeps beside it."""
    # The file goes last: without it, what is beside it means nothing.
    for one in beside(path):
        one.unlink(missing_ok=True)


def beside(path: Path) -> list[Path]:
    """List the files of a graph that are there, itself last."""
    return [one for suffix in SUFFIXES if (one := path.with_name(path.name + suffix)).exists()]
