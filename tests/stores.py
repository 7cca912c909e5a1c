"""Stores that are open: filled with what another one holds, and asked without being opened for every question."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from graphsvc.audit import asking
from graphsvc.client.tool import Executor
from graphsvc.graph.mirror import Mirror
from graphsvc.recall.scope import Asker
from graphsvc.store import database
from graphsvc.store.database import Connection


def fill(db: Connection, store: Path) -> None:
    """Put what a store holds in the place of what this one does."""
    with closing(database.open_file(store)) as source:
        source.backup(db)


def reader(db: Connection, asker: Asker, mirror: Mirror | None = None) -> Executor:
    """Return an executor that answers questions as `executor.in_process` does, from an open store and its mirror."""
    ask = asking.carry(asking.Place(db, mirror), asker)

    def execute(document: str, variables: Mapping[str, object]) -> Mapping[str, object]:
        [response] = ask(document, variables, False)
        return response

    return execute
