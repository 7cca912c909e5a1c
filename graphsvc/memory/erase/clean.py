"""The files of the home after something left the store: no byte of it stays in any of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from graphsvc.graph.place import Place, ask_anew, clear
from graphsvc.store import database
from graphsvc.store.database import BusyError, Connection, interrupted
from graphsvc.store.erase import traces

PATIENCE_S: Final = 10.0  # for others to let go of what they read, and for the graph
_POLL_S: Final = 0.05
# What a step that could not be done leaves, by its name.
_LEFT: Final = {
    traces.FILE: "the database file",
    traces.LOG: "the log of the database",
    traces.COPIES: "copies that migrations made",
    traces.GRAPH: "the graph",
    traces.ASKED: "the graph",
}


def clean(db: Connection, *, patience_s: float = PATIENCE_S) -> tuple[str, ...]:
    """Take out of the files what was forgotten; say of each that still holds bytes of it, why.

    What could not be done is done when the store is opened next, and by the service in the background.
    """
    path = traces.path_of(db)
    steps: dict[str, Callable[[], str | None]] = {
        traces.FILE: lambda: _file(db),
        traces.LOG: lambda: _log(db, patience_s),
        traces.COPIES: lambda: _copies(path),
        traces.GRAPH: lambda: _graph(db, path.parent, patience_s),
        traces.ASKED: lambda: _asked(path.parent, patience_s),
    }
    left: dict[str, str] = {}
    for name in traces.remains(db):
        if name == traces.LOG and traces.FILE in left:
            continue  # what is written anew goes through the log
        try:
            why = steps[name]()
            if why is None:
                traces.cleaned(db, name)
        except (OSError, BusyError, database.Error) as error:
            why = "there was no time" if interrupted(error) else str(error)
        if why is not None:
            left[name] = why
    return tuple(f"{_LEFT[name]}: {why}" for name, why in left.items())


def told(remains: tuple[str, ...]) -> str:
    """Name what of the home is still to be cleaned."""
    return ", ".join(_LEFT[name] for name in remains)


def _file(db: Connection) -> None:
    traces.write_anew(db)


def _copies(path: Path) -> None:
    traces.remove_copies(path)


def _log(db: Connection, patience_s: float) -> str | None:
    return None if traces.empty_log(db, patience_s) else "somebody still reads what was stored before"


def _graph(db: Connection, home: Path, patience_s: float) -> str | None:
    """Remove the mirror; a process that keeps it is asked to make it anew."""
    where = Place(home / "graph")
    if clear(where):
        return None
    ask_anew(where)
    traces.cleaned(db, traces.GRAPH, traces.ASKED)
    why = _asked(home, patience_s)
    if why is None:
        traces.cleaned(db, traces.ASKED)
    return why


def _asked(home: Path, patience_s: float) -> str | None:
    """Wait until the mirror was made anew, or nobody keeps it any more."""
    where = Place(home / "graph")
    end = time.monotonic() + patience_s
    while where.doubt.exists() and not clear(where):
        if time.monotonic() > end:
            return "who keeps it has not made it anew yet"
        time.sleep(_POLL_S)
    return None
