"""One call of `query_session_memory`: check, resolve who asks, answer. Every transport comes through here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from graphsvc.envelope import NavResult, SearchResult
from graphsvc.errors import NotFoundError
from graphsvc.recall import content, fit, index, nav, search
from graphsvc.recall.budget import cost
from graphsvc.recall.request import Request, check
from graphsvc.recall.scope import Asker, UnknownViewer, resolve
from graphsvc.store import events, visibility
from graphsvc.store.database import Connection, snapshot
from graphsvc.store.visibility import Viewer

EMPTY: Final = "nothing is stored yet: graphsvc import brings in the histories of the agents on this machine"
_VERBS: Final = {"ls": nav.ls, "cd": nav.cd, "cat": content.cat}


def answer(
    db: Connection, asker: Asker, arguments: Mapping[str, object], *, catch_up: bool = False
) -> NavResult | SearchResult:
    """Answer one call, indexing before a search if told to; raise InvalidInput for arguments outside the contract."""
    request = check(arguments)
    try:
        viewer, notes = resolve(db, asker, request.project)
    except UnknownViewer as error:
        if request.nav is None:
            result = SearchResult(
                status="not-found", results=[], suggestion=error.suggestion, notes=[visibility.NO_VIEWER]
            )
            return fit.trimmed(result, request)
        return fit.trimmed(replace(nav.not_found(request, error), notes=[visibility.NO_VIEWER]), request)
    request = replace(request, asker=(viewer.session, viewer.project))
    if catch_up and request.nav in {None, "grep"}:
        index.catch_up(db)
    if not events.position(db):
        notes = [*notes, EMPTY]
    if request.nav is None:
        return search.search(db, viewer, request, notes=notes)
    if request.nav == "grep":
        return search.grep(db, viewer, request, notes=notes)
    return _noted(_walked(db, viewer, request), db, viewer, notes, request)


def _walked(db: Connection, viewer: Viewer, request: Request) -> NavResult:
    try:
        with snapshot(db):
            return _VERBS[str(request.nav)](db, viewer, request)
    except NotFoundError as error:
        return nav.not_found(request, error)


def _noted(result: NavResult, db: Connection, viewer: Viewer, notes: list[str], request: Request) -> NavResult:
    """Add what the reader should know, as far as the budget takes it."""
    if visibility.any_hidden(db, viewer):
        notes = [*notes, visibility.NOTE]
    every = list(dict.fromkeys([*(result.notes or []), *notes]))
    noted = replace(result, notes=every or None)
    return noted if cost(noted) <= request.token_budget else result
