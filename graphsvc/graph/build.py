"""A new graph file, filled from a store in one go: a mirror that is made anew, and the copies that users take."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

from graphsvc import resources
from graphsvc.graph.driver import DDL, FILLING, At, Graph, Meta, nowhere
from graphsvc.graph.place import remove
from graphsvc.store import database, events
from graphsvc.store.database import Connection
from graphsvc.store.edges import shared

SHAPE: Final = "1"  # of what `shared` reads; the tables of the mirror stand for themselves
Progress = Callable[[int, int], None]  # rows written, rows expected


def build(db: Connection, path: Path, rules: str, progress: Progress, at: At = nowhere) -> Meta:
    """Fill a new file at `path`, which nobody may have open; return what it says of itself. Raise driver.Failed."""
    remove(path)
    with database.snapshot(db), closing(Graph(path, at, FILLING)) as graph:
        expected, done = shared.size(db), 0
        everything = shared.Everything(db)
        for rows in graph.load(everything.intervals(), everything.nodes()):
            done += rows
            progress(done, max(done, expected))
        meta = described(db, rules)
        graph.stamp(meta)
    return meta


def described(db: Connection, rules: str) -> Meta:
    """Return what a mirror of the store as it is now would say of itself."""
    position = events.position(db)
    shape = hashlib.sha256(resources.text(DDL).encode()).hexdigest()[:12]
    return Meta(position=position, versions=f"{SHAPE}/{shape}/{rules}", ledger=shared.ledger(db, position))
