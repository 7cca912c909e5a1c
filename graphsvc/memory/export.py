"""The ledger as neutral events, one JSON a line: what `graphsvc capture` stores elsewhere as it stood here.

Whoever exports gets what they may see. An event that was published can be seen while the event that published it
cannot; it then counts as one that was never isolated.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from graphsvc.model import EventKind, Stored
from graphsvc.store import events, sessions
from graphsvc.store.database import Connection
from graphsvc.store.sessions import SessionRow
from graphsvc.store.view import View
from graphsvc.store.visibility import Viewer, visible


def export(db: Connection, viewer: Viewer, since: int, until: int) -> Iterator[tuple[int, bytes]]:
    """Yield position and line of every event the viewer may see behind `since`, up to `until`, in ledger order.

    One event is held at a time, and no transaction stays open while the lines are read: others go on writing.
    """
    published, known = _Published(db, viewer, until), dict[int, SessionRow]()
    for number in events.shown_between(db, viewer, since, until):
        event = events.get(db, number)
        if event is None:
            continue
        session = known.get(event.session) or sessions.by_numbers(db, [event.session])[event.session]
        known[event.session] = session
        meta = session.tells(viewer, event.meta)
        isolated = event.isolated and published.keeps(event)
        yield number, _line(event, session.project_key, meta, isolated=isolated)


@dataclass(slots=True)
class _Published:
    """What the published events of isolated sessions look like to the viewer."""

    db: Connection
    viewer: Viewer
    until: int
    origins: dict[int, set[str]] = field(default_factory=dict)  # by session: what visible events published

    def keeps(self, event: Stored) -> bool:
        """Say whether an isolated event can go as one: it is hidden still, or what published it goes along."""
        return View(self.db).hidden(event.id) or event.origin in self._named(event.session)

    def _named(self, session: int) -> set[str]:
        if session not in self.origins:
            self.origins[session] = {
                origin
                for event in events.in_session(self.db, session, EventKind.PUBLISH, self.until)
                if visible(self.db, self.viewer, event.id)
                for origin in _texts(event.meta.get("of"))
            }
        return self.origins[session]


def _line(event: Stored, project: str, meta: Mapping[str, object], *, isolated: bool) -> bytes:
    """Write one event. Lone surrogates become JSON's own escapes, so a body comes back as it was."""
    entry: dict[str, object] = {"received_at": event.received_at, "isolated": isolated}
    if event.ts is None:
        entry["at"] = event.at
    given = {"ts": event.ts, "actor": event.actor, "meta": meta or None}
    line = {
        "session_id": event.session_id,
        "kind": event.kind,
        "origin": event.origin,
        "body": event.body,
        "project": project,
        **{name: value for name, value in given.items() if value is not None},
        "ledger": entry,
    }
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace") + b"\n"


def _texts(value: object) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
