"""Which status changes an event made: what it created, what it moved, and from where.

A row of `records` says what the newest change was. An older one is read off its machine where that leaves one way only;
a decision that was proposed may have been active in between, and that is looked up in the ledger.
"""

from __future__ import annotations

from dataclasses import dataclass

from graphsvc.memory import apply
from graphsvc.model import EventKind, Record, Stored
from graphsvc.store import events, records
from graphsvc.store.database import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A record that has another status than before; `before` is None for a new one."""

    record: Record
    before: str | None
    after: str


def of(db: Connection, event: Stored) -> list[Change]:
    """List what an event changed, what it moved first. What changed nothing, such as a late loser, has no change."""
    found = []
    moved = _moved(db, event)
    if moved is not None:
        steps = _steps(db, moved)
        found += [Change(record=moved, before=old, after=new) for by, old, new in steps if by == event.id]
    created = records.get(db, event.id)
    if created is not None:
        found.append(Change(record=created, before=None, after=apply.first_status(event)))
    return found


def _moved(db: Connection, event: Stored) -> Record | None:
    """Return the record that an event would move."""
    origin = event.meta.get("of")
    if apply.action_of(event) in {"record", "propose"} or not isinstance(origin, str):
        return None
    source = events.by_origin(db, event.project, origin)
    return records.get(db, source.id) if source is not None else None


def _steps(db: Connection, record: Record) -> list[tuple[int, str, str]]:
    """List the moves of a record as (event, status before, status after)."""
    created = events.get(db, record.id)
    if created is None or record.changed_event == record.id:
        return []
    first, last = apply.first_status(created), record.changed_event
    between = _activation(db, created, last) if first == "proposed" and record.status != "active" else None
    if between is None:
        return [(last, first, record.status)]
    return [(between, first, "active"), (last, "active", record.status)]


def _activation(db: Connection, created: Stored, before: int) -> int | None:
    """Find the event that made a proposed decision active, by the rules of `apply`."""
    for event in events.of_kind(db, created.project, EventKind.DECISION, after=created.id, before=before):
        if event.meta.get("of") != created.origin or apply.action_of(event) != "activate":
            continue
        late = event.ts is not None and created.ts is not None and event.ts < created.ts
        hidden = created.isolated and not _published(db, created, event.id)
        may = event.session == created.session if hidden else not event.isolated
        if may and not late:
            return event.id
    return None


def _published(db: Connection, event: Stored, before: int) -> bool:
    """Say whether an event had been shown to all before a position."""
    told = events.of_kind(db, event.project, EventKind.PUBLISH, after=event.id, before=before)
    return any(one.session == event.session and event.origin in _origins(one) for one in told)


def _origins(event: Stored) -> list[object]:
    named = event.meta.get("of")
    return named if isinstance(named, list) else []
