"""The one lawful way for events to leave the ledger, or to be written again without a secret.

One transaction: the triggers go and come back, events go or are written, everything that follows from the ledger is
computed from what is left, and an event says how many there were. Then the files are cleaned: `clean`.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from graphsvc import clock
from graphsvc.memory import capture, paths, record
from graphsvc.memory.erase.clean import PATIENCE_S, clean
from graphsvc.memory.erase.reach import Reach, Wanted, reach
from graphsvc.memory.rebuild import Progress, rebuild
from graphsvc.model import OWN_HOST, Event, EventKind
from graphsvc.store import database, events
from graphsvc.store.access import tokens
from graphsvc.store.database import Connection
from graphsvc.store.erase import ledger, traces
from graphsvc.store.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """What was forgotten, or would be when `position` is None. `remains` says where bytes of it are still, and why."""

    count: int  # events of the ledger
    kinds: Mapping[str, int]
    sessions: int  # of which nothing is left
    shared: int  # events that the wanted sessions had copied from others, and that stay with those
    delegated: tuple[str, ...] = ()  # sessions that the wanted ones began for a part of the work, and that stay
    position: int | None = None  # of the event that says so
    remains: tuple[str, ...] = field(default=())


def plan(db: Connection, wanted: Wanted) -> Forgotten:
    """Count what would be forgotten."""
    with database.snapshot(db):
        return _counted(reach(db, wanted))


def forget(
    db: Connection,
    wanted: Wanted,
    progress: Progress,
    *,
    now: clock.Clock = clock.system,
    patience_s: float = PATIENCE_S,
) -> Forgotten:
    """Forget it, and clean the files; nothing is changed when there is nothing to forget."""
    with database.transaction(db):
        found = reach(db, wanted)
        done = _counted(found)
        if not found.events:
            return done
        isolated = _isolated(db, found)
        traces.begin(db)
        traces.remember(db, ((one.project_key, one.session_id, one.origin) for one in found.events.values()))
        for session in isolated:
            traces.remember_isolated(db, session)
        with ledger.unlocked(db):
            ledger.remove(db, found.events)
            for number, (body, meta) in found.rewritten.items():
                events.rewrite(db, number, body, meta)
            ledger.remove_empty(db, *({getattr(one, name) for one in found.events.values()} for name in _PLACES))
        traces.forget_files(db, {one.session_id for one in found.events.values()})
        tokens.drop(db, {one.session_id for one in found.events.values() if one.session in found.ended})
        counts = Counter(one.project_key for one in found.events.values())
        position = settle(db, "forget", counts, progress, now)
    return replace(done, position=position, remains=clean(db, patience_s=patience_s))


def settle(db: Connection, action: str, counts: Mapping[str, int], progress: Progress, now: clock.Clock) -> int:
    """Compute everything anew from the ledger as it is now, and say in each project how many events were changed.

    A project that is gone is not named. Return the position of the last of these events.
    """
    rebuild(db, progress)
    told: Counter[str] = Counter()
    for key, count in counts.items():
        told[key if events.find_project(db, key) is not None else paths.NO_PROJECT] += count
    return max(_say(db, action, key, count, now) for key, count in told.items())


def _say(db: Connection, action: str, project: str, count: int, now: clock.Clock) -> int:
    done = {"forget": "forgot", "redact": "redacted"}[action]
    event = Event(
        session_id=record.own_session(db, project),
        kind=EventKind.FORGET,
        origin=f"{OWN_HOST}:{uuid.uuid4().hex}",
        body=f"{done} {count} {'event' if count == 1 else 'events'}",
        ts=clock.utc_text(now()),
        project=project,
        meta={"action": action, "count": count, "host": OWN_HOST},
    )
    return capture.store(db, event, now=now)


def _counted(found: Reach) -> Forgotten:
    kinds = Counter(str(one.kind) for one in found.events.values())
    return Forgotten(
        count=len(found.events),
        kinds=dict(sorted(kinds.items())),
        sessions=len(found.ended),
        shared=found.shared,
        delegated=found.delegated,
    )


def _isolated(db: Connection, found: Reach) -> Iterable[str]:
    """List the sessions that are isolated and of which nothing is left, by the host's ids."""
    view = View(db)
    names = {one.session: one.session_id for one in found.events.values() if one.session in found.ended}
    states = {name: view.session(number) for number, name in names.items()}
    return [name for name, state in states.items() if state is not None and state.isolated]


_PLACES = ("session", "project")
