"""Who may see an event: one clause that every read goes through.

A row belongs to an event (a record, a version or an edge to the event that made it), and is visible when the event is
not hidden, or when the viewer's session contains it. Without a viewer only shared rows are visible: the answer never
depends on an argument the asker chooses.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from graphsvc.store.database import Connection

# Constant texts, whatever was asked.
NOTE: Final = "isolated sessions exist; their content is visible to them only"
NO_VIEWER: Final = "the viewer is no session that is known: leave it out, or name one that is"


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who asks, as the transport says, by the store's keys.

    `project` bounds listings and searches, None means all of them; `everywhere` lets a typed id of any project resolve.
    """

    session: int | None = None
    project: int | None = None
    everywhere: bool = False

    def reaches(self, project: int) -> bool:
        """Say whether ids of this project resolve for the viewer."""
        return self.everywhere or self.project is None or self.project == project

    def reach(self, column: str) -> tuple[str, list[object]]:
        """Return `reaches` as a WHERE condition on the column of a project, and its parameters."""
        return ("1", []) if self.everywhere or self.project is None else (f"{column} = ?", [self.project])


def held(viewer: Viewer, table: str) -> tuple[str, list[object]]:
    """Return which rows of `records` are in the viewer's scope, as a WHERE condition and its parameters.

    Those of its project, and what holds in every project. For nobody, whose project is none, nothing does.
    """
    if not viewer.project:
        return ("1", []) if viewer.project is None else ("0", [])
    return f"({table}.project = ? OR {table}.scope = 'global')", [viewer.project]


def clause(viewer: Viewer, event: str) -> tuple[str, list[object]]:
    """Return a WHERE condition on the column `event` (an event id) and its parameters."""
    hidden = f"NOT EXISTS (SELECT 1 FROM hidden WHERE hidden.event = {event})"
    if viewer.session is None:
        return hidden, []
    return (
        f"({hidden} OR EXISTS (SELECT 1 FROM events own WHERE own.id = {event} AND own.session = ?)"
        f" OR EXISTS (SELECT 1 FROM membership WHERE membership.event = {event} AND membership.session = ?))",
        [viewer.session, viewer.session],
    )


def stands(viewer: Viewer, edge: str) -> tuple[str, list[object]]:
    """Return a WHERE condition that an edge has not ended, and its parameters: an end that is not seen is none.

    An edge that was drawn and ended in isolation can be published without what ended it.
    """
    condition, values = clause(viewer, f"{edge}.end_event")
    return f"({edge}.end_event IS NULL OR NOT {condition})", values


def visible(db: Connection, viewer: Viewer, event: int) -> bool:
    """Say whether the viewer may see what belongs to this event."""
    condition, values = clause(viewer, "probe.id")
    row = db.execute(f"SELECT {condition} FROM (SELECT ? AS id) probe", [*values, event]).fetchone()
    return bool(row[0])


class Rule(StrEnum):
    """Why a viewer sees a row, or does not."""

    SHARED = "shared"
    GLOBAL = "global"  # of another project, and holds in every one
    PUBLISHED = "published"  # it was isolated before
    OWN = "own"  # isolated, in the viewer's own session
    MEMBER = "member"  # isolated, and the viewer's session contains a copy
    ISOLATED = "isolated"
    OTHER_PROJECT = "other_project"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Reason:
    """The rule by which a viewer sees an event or does not, and the switch or the publishing that decided it."""

    rule: Rule
    by: int | None = None


def reason(db: Connection, viewer: Viewer, event: int) -> Reason:
    """Return why the viewer sees what belongs to this event, or does not. It tells more than others may know."""
    row = db.execute(
        "SELECT e.project, e.session, e.origin, e.isolated, e.at,"
        " (SELECT r.scope FROM records r WHERE r.id = e.id) AS scope,"
        " EXISTS (SELECT 1 FROM hidden h WHERE h.event = e.id) AS hidden,"
        " EXISTS (SELECT 1 FROM membership m WHERE m.event = e.id AND m.session = ?) AS member"
        " FROM events e WHERE e.id = ?",
        (viewer.session, event),
    ).fetchone()
    if not viewer.reaches(row["project"]):
        return Reason(Rule.GLOBAL if not row["hidden"] and row["scope"] == "global" else Rule.OTHER_PROJECT)
    if not row["isolated"]:
        return Reason(Rule.SHARED)
    if not row["hidden"]:
        return Reason(Rule.PUBLISHED, _publishing(db, row["session"], row["origin"], event))
    own = Rule.OWN if viewer.session == row["session"] else Rule.MEMBER if row["member"] else Rule.ISOLATED
    return Reason(own, _switch(db, row["session"], row["at"], event))


def _publishing(db: Connection, session: int, origin: str, event: int) -> int | None:
    """Return the event that published one of its session."""
    row = db.execute(
        "SELECT e.id FROM events e LEFT JOIN bodies b ON b.event = e.id"
        " WHERE e.session = ? AND e.kind = 'publish' AND e.id > ? AND EXISTS (SELECT 1"
        " FROM json_each(COALESCE(e.meta, inflated(b.meta)), '$.of') o WHERE o.value = ?) ORDER BY e.id LIMIT 1",
        (session, event, origin),
    ).fetchone()
    return row["id"] if row else None


def _switch(db: Connection, session: int, at: str, event: int) -> int | None:
    """Return the switch by which an event is isolated: the last one before it by time, else by position."""
    row = db.execute(
        "SELECT id FROM (SELECT id, body, 0 AS rank FROM (SELECT id, body FROM events WHERE session = ?"
        " AND kind = 'isolation' AND at <= ? ORDER BY at DESC, id DESC LIMIT 1)"
        " UNION ALL SELECT id, body, 1 FROM (SELECT id, body FROM events WHERE session = ?"
        " AND kind = 'isolation' AND id <= ? ORDER BY id DESC LIMIT 1)) WHERE CAST(body AS TEXT) = 'on' ORDER BY rank",
        (session, at, session, event),
    ).fetchone()
    return row["id"] if row else None


def unseen(db: Connection, viewer: Viewer) -> list[int]:
    """List the isolated events, of all projects, that the viewer may not see, in order."""
    condition, values = clause(viewer, "h.event")
    return [
        row[0] for row in db.execute(f"SELECT h.event FROM hidden h WHERE NOT {condition} ORDER BY h.event", values)
    ]


def beneath(db: Connection) -> set[int]:
    """Return the isolated events whose content went along when another one was published.

    The earlier writes of a file whose later version was published, and what moved a record that was published.
    """
    rows = db.execute(
        "WITH published (event) AS (SELECT e.id FROM events e WHERE e.isolated = 1"
        " AND NOT EXISTS (SELECT 1 FROM hidden h WHERE h.event = e.id)), writes AS ("
        " SELECT o.event, o.call, o.result FROM published p JOIN asset_versions v ON v.event = p.event"
        " JOIN asset_versions o ON o.asset = v.asset AND o.session = v.session)"
        " SELECT h.event FROM hidden h WHERE h.event IN (SELECT event FROM writes UNION SELECT call FROM writes"
        " UNION SELECT result FROM writes UNION SELECT s.event FROM published p JOIN record_states s"
        " ON s.record = p.event)"
    )
    return {row["event"] for row in rows}


def any_hidden(db: Connection, viewer: Viewer) -> bool:
    """Say whether isolated rows exist in the viewer's reach that it may not see."""
    condition, values = clause(viewer, "h.event")
    reach, project = viewer.reach("e.project")
    row = db.execute(
        f"SELECT 1 FROM hidden h JOIN events e ON e.id = h.event WHERE {reach} AND NOT {condition} LIMIT 1",
        [*project, *values],
    ).fetchone()
    return row is not None
