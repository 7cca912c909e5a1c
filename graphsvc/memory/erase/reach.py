"""What leaves the ledger when something is forgotten: that, and all that is nothing without it.

An event by rule goes with its cause, a change with the record it changes, a result with its call, the note that a
session holds a copy with the event, an edge by hand with either of its ends. Whatever else names an event that goes
(the evidence of a decision, what a checkpoint replaced) stays, and no longer names it.

Two kinds of events stay: what tells of an earlier `forget`, and the switches of isolation, unless their whole session
goes. A session must not become shared because of what was forgotten of it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from graphsvc import clock
from graphsvc.errors import InvalidInput, NotFoundError
from graphsvc.memory import paths
from graphsvc.memory.apply import CREATES, DECLARE, WRITES, action_of
from graphsvc.memory.named import call
from graphsvc.model import MAX_NAME, RECORD_KINDS, EventKind, NodeType, Stored
from graphsvc.store import events, records, sessions
from graphsvc.store.database import Connection
from graphsvc.store.erase import ledger
from graphsvc.store.events import EventRow
from graphsvc.store.view import View
from graphsvc.store.visibility import Viewer

ALL: Final = "all"  # projects
_ID: Final = re.compile(r"(?:(event|asset|goal|decision|feedback|candidate|todo)-)?([0-9]{1,17})")
_STAY: Final = (EventKind.FORGET, EventKind.ISOLATION)
_NAMING: Final = (*RECORD_KINDS, EventKind.ASSET, EventKind.EDGE, EventKind.PUBLISH)
_LISTS: Final = ("evidence", "replaces", "of")  # origins in the meta of an event
_NAMES: Final = ("basis", "call", "of")
_END: Final = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What somebody wants to forget: whole sessions, single ids, and a time of one project or all of them."""

    sessions: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    since: str | None = None  # as it was given
    until: str | None = None
    project: str | None = None  # a key, a folder, or all


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What goes. `rewritten`: the meta of events that stay and named something that goes."""

    events: Mapping[int, EventRow]
    rewritten: Mapping[int, tuple[str, Mapping[str, object]]]
    ended: frozenset[int]  # sessions of which nothing is left
    shared: int  # events of other sessions that the wanted sessions hold copies of; they stay there
    delegated: tuple[str, ...]  # sessions that the wanted ones began for a part of the work; they stay


def reach(db: Connection, wanted: Wanted) -> Reach:
    """Find what goes; raise InvalidInput for what cannot be forgotten, NotFoundError for what is not there."""
    whole = {_session(db, name) for name in wanted.sessions}
    start = {number for name in wanted.ids for number in _named(db, name)}
    for session in whole:
        start.update(ledger.numbers(db, session=session, without=(EventKind.FORGET,)))
    if wanted.since is not None or wanted.until is not None:
        start.update(_between(db, wanted))
    elif not (wanted.sessions or wanted.ids):
        raise InvalidInput("what", "nothing is named", "sessions, ids, or a time")
    known: dict[int, _Named] = {}
    gone = _follow(db, start, known)
    copied = {number for session in whole for number in ledger.copies(db, session)}
    return Reach(
        events=gone,
        rewritten=_rewritten(db, gone, known),
        ended=frozenset(_ended(db, gone)),
        shared=len(copied - gone.keys()),
        delegated=tuple(sorted(_delegated(db, whole))),
    )


def _session(db: Connection, name: str) -> int:
    row = sessions.find(db, Viewer(everywhere=True), name)
    if row is None:
        near = sessions.nearest(db, Viewer(everywhere=True), name)
        raise NotFoundError(name[:200], call("ls", f"{sessions.PREFIX}{near}" if near else None))
    return row.number


def _delegated(db: Connection, whole: Collection[int]) -> set[str]:
    found: set[str] = set()
    for row in sessions.by_numbers(db, whole).values():
        children = View(db).children(row.session_id)
        numbers = [one.session for one in children if one.relation == "delegation" and one.session not in whole]
        found |= {one.session_id for one in sessions.by_numbers(db, numbers).values()}
    return found


def _named(db: Connection, name: str) -> list[int]:
    """Return the events that an id stands for: those of all versions of an asset, else the one that made it."""
    typed = _ID.fullmatch(name.strip()[:MAX_NAME])
    if typed is None:
        raise InvalidInput("ids", f"{name[:200]!r} is none", "ids such as event-40, decision-41 or asset-12")
    kind, number = NodeType(typed[1] or NodeType.EVENT), int(typed[2])
    event = events.get(db, number)
    record = records.get(db, number)
    asset = ledger.asset_of(db, number) if kind is NodeType.ASSET else None
    if event is None or (kind is NodeType.ASSET and asset is None):
        raise NotFoundError(name[:200], call("ls", None))
    if kind not in {NodeType.EVENT, NodeType.ASSET} and (record is None or record.type is not kind):
        raise NotFoundError(name[:200], call("cd", f"event-{number}"))
    if event.kind in _STAY:
        about = (
            "tells what was forgotten" if event.kind is EventKind.FORGET else "switches the isolation of its session"
        )
        raise InvalidInput("ids", f"event-{number} {about}, and stays", "other events, or the whole session")
    return ledger.of_asset(db, asset) if asset is not None else [number]


def _between(db: Connection, wanted: Wanted) -> list[int]:
    since = clock.bound("since", wanted.since, end=False) if wanted.since is not None else None
    until = clock.bound("until", wanted.until, end=True) if wanted.until is not None else None
    if wanted.project is None:
        raise InvalidInput("project", "is not given, and the folder is none that is known", "a key, or all")
    project: int | None = None
    if wanted.project != ALL:
        project = events.find_project(db, wanted.project) or events.find_project(db, paths.project_of(wanted.project))
        if project is None:
            raise InvalidInput("project", f"{wanted.project[:200]!r} is unknown", "a key that is known, or all")
    return ledger.numbers(db, project=project, since=since, until=until, without=_STAY)


@dataclass(slots=True)
class _Named:
    """Which events of a project name others."""

    events: list[Stored]
    needed: dict[str, list[int]] = field(default_factory=dict)  # by origin: what is nothing without it
    ends: dict[str, list[int]] = field(default_factory=dict)  # by the host's id of a session: edges by hand
    published: dict[int, list[str]] = field(default_factory=dict)
    committed: dict[int, list[str]] = field(default_factory=dict)  # paths that a commit covers, by rule

    def lost(self, gone: Collection[int]) -> set[str]:
        """Return the paths of which no write is left."""
        writes = [one for one in self.events if one.kind is EventKind.ASSET and action_of(one) in {*WRITES, DECLARE}]
        return {one.body for one in writes if one.id in gone} - {one.body for one in writes if one.id not in gone}


def _follow(db: Connection, start: Collection[int], known: dict[int, _Named]) -> dict[int, EventRow]:
    gone: dict[int, EventRow] = {}
    new = set(start)
    while new:
        heads = ledger.heads(db, new)
        gone |= heads
        new = set(_answers(db, heads))
        for head in heads.values():
            new.update(_naming(db, head.project, known).needed.get(head.origin, ()))
        new -= gone.keys()
        if not new:
            new = _left_over(db, gone, known) - gone.keys()
    return gone


def _answers(db: Connection, heads: Mapping[int, EventRow]) -> list[int]:
    """List the results of the tool calls among events."""
    calls = [number for number, head in heads.items() if head.kind is EventKind.TOOL_CALL]
    found = ledger.answers(db, calls)
    for number in ledger.unnamed(db, calls):
        following = ledger.next_of_tools(db, number)
        result = events.get(db, following) if following is not None else None
        answered = View(db).call_of(result) if result is not None else None
        if result is not None and answered is not None and answered.id == number:
            found.append(result.id)
    return found


def _left_over(db: Connection, gone: Mapping[int, EventRow], known: dict[int, _Named]) -> set[int]:
    """List edges to sessions of which nothing is left, and what published or covers nothing but what goes."""
    ended = _ended(db, gone)
    found: set[int] = set()
    for project, named in known.items():
        origins = {head.origin for head in gone.values() if head.project == project}
        found |= {number for number, of in named.published.items() if of and origins.issuperset(of)}
        lost = named.lost(gone.keys())
        found |= {number for number, listed in named.committed.items() if lost.issuperset(listed)}
    for head in gone.values():
        if head.session in ended:
            found.update(_naming(db, head.project, known).ends.get(head.session_id, ()))
    return found


def _ended(db: Connection, gone: Mapping[int, EventRow]) -> set[int]:
    touched = {head.session for head in gone.values()}
    return {session for session in touched if gone.keys() >= set(ledger.numbers(db, session=session))}


def _naming(db: Connection, project: int, known: dict[int, _Named]) -> _Named:
    if project not in known:
        found = [event for kind in _NAMING for event in events.of_kind(db, project, kind, after=0, before=_END)]
        known[project] = named = _Named(found)
        for event in found:
            for origin in _needs(event):
                named.needed.setdefault(origin, []).append(event.id)
            for session in _session_ends(event):
                named.ends.setdefault(session, []).append(event.id)
            if event.kind is EventKind.PUBLISH:
                named.published[event.id] = _texts(event.meta.get("of"))
            if event.kind is EventKind.ASSET and event.meta.get("paths"):
                named.committed[event.id] = _texts(event.meta.get("paths"))
        for before, after in _reopened(found):
            named.needed.setdefault(before, []).append(after)
    return known[project]


def _reopened(found: Collection[Stored]) -> Iterator[tuple[str, int]]:
    """Yield the origins of tasks and the events that opened them again by rule, with the same text."""
    last: dict[tuple[int, object], Stored] = {}
    for event in found:
        key = event.meta.get("key")
        if event.kind is not EventKind.TODO or action_of(event) != "record" or not isinstance(key, str):
            continue
        before = last.get((event.session, key))
        if before is not None and before.body == event.body and key.startswith("task:"):
            yield before.origin, event.id
        last[event.session, key] = event


def _needs(event: Stored) -> list[str]:
    """Return the origins without any of which an event is nothing."""
    meta, action = event.meta, action_of(event)
    found: list[object] = []
    if event.origin.startswith("rule:"):
        found.append(meta.get("cause"))
    if event.kind is EventKind.EDGE:
        found += (
            [meta.get("of")] if action == "member" else [end.get("of") for end in _ends(event) if not _is_session(end)]
        )
    elif event.kind in RECORD_KINDS and action not in {*CREATES, "snapshot"}:
        found.append(meta.get("of"))
    return _texts(found)


def _session_ends(event: Stored) -> list[str]:
    return _texts([end.get("of") for end in _ends(event) if _is_session(end)])


def _ends(event: Stored) -> list[dict[str, object]]:
    if event.kind is not EventKind.EDGE:
        return []
    return [end for name in ("source", "target") if isinstance(end := event.meta.get(name), dict)]


def _is_session(end: Mapping[str, object]) -> bool:
    return end.get("type") == NodeType.SESSION


def _rewritten(
    db: Connection, gone: Mapping[int, EventRow], known: Mapping[int, _Named]
) -> dict[int, tuple[str, Mapping[str, object]]]:
    """Return body and meta of what stays and names something that goes, without those names."""
    found: dict[int, tuple[str, Mapping[str, object]]] = {}
    for project, named in known.items():
        origins = {head.origin for head in gone.values() if head.project == project}
        lost = named.lost(gone.keys())
        checkpoints = events.of_kind(db, project, EventKind.COMPACT_CHECKPOINT, after=0, before=_END)
        for event in (*named.events, *checkpoints):
            meta = _without(event, origins)
            if event.id in named.committed:
                meta["paths"] = [path for path in named.committed[event.id] if path not in lost]
            if meta != event.meta and event.id not in gone:
                found[event.id] = event.body, meta
    return found


def _without(event: Stored, origins: Collection[str]) -> dict[str, object]:
    meta = dict(event.meta)
    for name in _NAMES:
        if isinstance(meta.get(name), str) and meta[name] in origins:
            del meta[name]
    for name in _LISTS:
        value = meta.get(name)
        if isinstance(value, list):
            meta[name] = [one for one in value if one not in origins]
    return meta


def _texts(value: object) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
