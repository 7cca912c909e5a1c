"""What somebody states outright, over whatever channel: one event each, stored whole or refused with a typed error.

A rule never comes here: what follows from a conversation is `derive`'s. Who may change what, and whether the step is
allowed, is decided inside the transaction that stores the event, so of two that want the same step one is told no.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from graphsvc import clock
from graphsvc.errors import Conflict, InvalidInput, InvalidTransition, Isolated, NotFoundError, StoreError
from graphsvc.memory import capture, named, paths
from graphsvc.memory.apply import DECLARE
from graphsvc.memory.named import Named
from graphsvc.memory.redact import redact, strip_private
from graphsvc.model import (
    ASSET_KINDS,
    CAUSE_FIRST,
    EDGES,
    FEEDBACK_KINDS,
    MAX_NAME,
    MAX_PATH,
    OWN_HOST,
    SCOPES,
    Edge,
    EdgeType,
    Event,
    EventKind,
    NodeType,
    Record,
    Stored,
)
from graphsvc.store import assets, events, records, sessions
from graphsvc.store.database import Connection, transaction
from graphsvc.store.edges import hop
from graphsvc.store.erase import traces
from graphsvc.store.view import View
from graphsvc.store.visibility import Viewer, visible

MAX_TEXT: Final = 20_000  # characters of a record or a reason
MAX_EVIDENCE: Final = 50
MAX_TITLE: Final = 200
MAX_PUBLISHED: Final = 100  # ids at once
WALK: Final = 10_000  # nodes that are looked at for a cycle
_ADDS: Final = frozenset({"record", "propose"})
# The texts an action cannot do without: what is new, and what takes the place of something.
_TEXTS: Final = frozenset({*_ADDS, "supersede"})
_BASES: Final = frozenset({NodeType.GOAL, NodeType.DECISION, NodeType.ASSET})


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """Who states something: the viewer, and without one the session, project or folder to file it under."""

    viewer: Viewer
    session_id: str | None = None
    project: str | None = None  # the key that was asked for
    folder: str | None = None  # the key of the folder it is said in, when nothing else says where
    mutation_id: str | None = None  # the same one again is the same statement


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One step of one record. `target` is the record it changes, left out for a new one."""

    type: NodeType
    action: str
    text: str = ""
    target: str | None = None
    evidence: Sequence[str] = ()
    basis: str | None = None  # of a todo
    kind: str | None = None  # of feedback
    scope: str | None = None  # of what is new: one of SCOPES, the project when left out
    reason: str | None = None
    if_version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What became of it. `other`: what was superseded, or the decision that a promoted candidate became."""

    node: Named
    position: int
    duplicate: bool
    other: Named | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """An edge as it is asked for: its type, and its ends by the ids people know."""

    type: str
    source: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Linked:
    """An edge as it stands now. `closes_cycle`: its result leads back to its cause; None when that walk was cut."""

    edge: Edge
    source: Named
    target: Named
    position: int
    duplicate: bool
    closes_cycle: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a session published: events that others see from now on; and what was named that they saw before."""

    events: tuple[int, ...]
    shared: tuple[str, ...]
    position: int
    duplicate: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Switched:
    """A session whose isolation is as it was asked for; `position` is that of the switch."""

    session: Named
    position: int
    duplicate: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """The session an event is filed under."""

    session_id: str
    project: str
    session: int | None = None  # None before its first event
    isolated: bool = False


def change(db: Connection, author: Author, step: Change, *, now: clock.Clock = clock.system) -> Done:
    """Take one step with one record."""
    text, meta = _said(step)
    with transaction(db):
        target: Named | None = None
        subject: Record | None = None
        if step.target is not None:
            target, subject = named.record(db, author.viewer, step.type, step.target)
        seat = sit(db, author, target.project if target else None)
        meta |= _support(db, author.viewer, step, seat.project)
        meta |= _scope(author, step, seat)
        if target is not None:
            meta["of"] = target.origin
        # The text of a promotion is the corrected one; a reason is none.
        said = text or ("" if step.action == "promote" else step.reason or "")
        event = draft(seat, author, EventKind(step.type), said, meta)
        stored, duplicate = repeated(db, seat, author, event), True
        if stored is None:
            if subject is not None and target is not None:
                _check(db, author, seat, target, subject, step.if_version)
            # A host's clock may be ahead of ours: what is said now is still the later word.
            known = subject.changed_ts if subject is not None else None
            event = replace(event, ts=max(clock.utc_text(now()), known or ""))
            stored, duplicate = store(db, event, now), False
        return _done(db, author.viewer, step, stored, target, duplicate=duplicate)


def register(
    db: Connection,
    author: Author,
    path: str,
    *,
    cwd: str | None = None,
    title: str | None = None,
    kind: str | None = None,
    now: clock.Clock = clock.system,
) -> Done:
    """Say that a file is an asset; a known one keeps its versions, and the author's session is one more producer."""
    meta: dict[str, object] = {"action": DECLARE}
    if kind is not None and kind not in ASSET_KINDS:
        raise InvalidInput("kind", f"{kind[:80]!r} is unknown", ", ".join(ASSET_KINDS))
    about = {"kind": kind, "title": clean("title", title, MAX_TITLE) if title is not None else None}
    meta |= {name: value for name, value in about.items() if value is not None}
    name = _path(path)
    with transaction(db):
        seat = sit(db, author, None)
        # Said in a folder of another project, the path is one of the project that was asked for.
        here = author.folder == seat.project or (cwd or "").startswith(f"{seat.project.rstrip('/')}/")
        key = paths.key(seat.project, cwd if here else None, name)
        named.check_text("path", key, MAX_PATH)
        event = draft(seat, author, EventKind.ASSET, key, meta)
        stored, duplicate = repeated(db, seat, author, event), True
        if stored is None:
            known = _declared(db, author, seat, event.body)
            if known is not None:
                return known
            stored, duplicate = store(db, replace(event, ts=clock.utc_text(now())), now), False
        node = _asset(db, author.viewer, stored.project, stored.body)
        return Done(node=node, position=stored.id, duplicate=duplicate)


def link(db: Connection, author: Author, wanted: Link, *, now: clock.Clock = clock.system) -> Linked:
    """Draw an edge between two nodes of one project; one that stands is left as it is."""
    with transaction(db):
        kind, source, target = _ends(db, author, wanted)
        seat = sit(db, author, source.project)
        event = draft(seat, author, EventKind.EDGE, "", _ends_meta("add", kind, source, target))
        cycle = hop.leads(db, author.viewer, *_causal(kind, source, target), WALK)
        stored = repeated(db, seat, author, event)
        begin = standing(db, author, seat, kind, (source.type, source.key), (target.type, target.key))
        position, duplicate = stored.id if stored is not None else begin, True
        if position is None:
            old = _edge(db, kind, source, target)
            ended = old.end_at if old is not None else None
            ts = max(clock.utc_text(now()), ended or "")
            position, duplicate = store(db, replace(event, ts=ts), now).id, False
        return _linked(db, author, kind, source, target, position, duplicate=duplicate, cycle=cycle)


def unlink(
    db: Connection, author: Author, wanted: Link, *, reason: str | None = None, now: clock.Clock = clock.system
) -> Linked:
    """End an edge, with the reason; a walk as of an earlier position still finds it."""
    with transaction(db):
        kind, source, target = _ends(db, author, wanted)
        seat = sit(db, author, source.project)
        said = {"reason": clean("reason", reason, MAX_TEXT)} if reason is not None else {}
        meta = {**_ends_meta("retract", kind, source, target), **said}
        event = draft(seat, author, EventKind.EDGE, said.get("reason", ""), meta)
        stored, duplicate = repeated(db, seat, author, event), True
        if stored is None:
            old = _edge(db, kind, source, target)
            _check_end(db, author, seat, wanted, old)
            begin = old.begin_at if old is not None else ""
            stored = store(db, replace(event, ts=max(clock.utc_text(now()), begin)), now)
            duplicate = False
        return _linked(db, author, kind, source, target, stored.id, duplicate=duplicate, cycle=None)


def publish(db: Connection, author: Author, ids: Sequence[str], *, now: clock.Clock = clock.system) -> Shown:
    """Show others what the author's session holds in isolation, row by row; of an asset all its own versions."""
    if not 0 < len(ids) <= MAX_PUBLISHED:
        raise InvalidInput("ids", f"{len(ids)} are given", f"1 to {MAX_PUBLISHED}")
    with transaction(db):
        view, shared = View(db), []
        hidden: dict[int, str] = {}
        for one in dict.fromkeys(ids):
            found = named.node(db, author.viewer, "ids", one)
            if found.type is NodeType.SESSION:
                raise InvalidInput("ids", f"{found.id} is a session", "its events, assets and records, one by one")
            own = author.viewer.session or 0
            rows = view.rows_of(own, found.type, int(found.id.rpartition("-")[2]))
            mine = [row for row in rows if view.hidden(row)]
            foreign = next((row for row in mine if (event := view.event(row)) and event.session != own), None)
            if foreign is not None:
                raise Isolated(found.id, "was isolated by another session", "the session that said it, as viewer")
            shared += [] if mine else [found.id]
            hidden |= {row: event.origin for row in mine if (event := view.event(row))}
        if not hidden:
            return Shown(events=(), shared=tuple(shared), position=events.position(db), duplicate=True)
        seat = sit(db, author, None)
        meta: dict[str, object] = {"action": "publish", "of": [hidden[row] for row in sorted(hidden)]}
        stated = draft(seat, author, EventKind.PUBLISH, "", meta)
        repeated(db, seat, author, stated)  # which raises: the same rows would not be hidden any more
        position = store(db, replace(stated, ts=clock.utc_text(now())), now).id
        return Shown(events=tuple(sorted(hidden)), shared=tuple(shared), position=position, duplicate=False)


def isolate(db: Connection, author: Author, session: str, *, on: bool, now: clock.Clock = clock.system) -> Switched:
    """Turn the isolation of a session on or off. What it said before stays as it was."""
    with transaction(db):
        found = named.session(db, author.viewer, session)
        row = named.session_row(db, author.viewer, session)
        if author.viewer.session not in {None, found.key}:
            raise InvalidInput("session_id", "a session switches itself only", "the viewer's own, or no viewer")
        if author.viewer.session is None and not author.viewer.everywhere:
            raise InvalidInput("viewer", "nobody switches a session", "the owner's token, or the session as viewer")
        action = "on" if on else "off"
        event = draft(_seat(row), author, EventKind.ISOLATION, action, {"action": action})
        stored = repeated(db, _seat(row), author, event)
        before = events.in_session(db, found.key, EventKind.ISOLATION, events.position(db))
        if stored is not None or row.isolated is on:
            position = stored.id if stored else before[-1].id if before else events.position(db)
            return Switched(session=found, position=position, duplicate=True)
        # A host's clock may be ahead of ours: what is switched now is still the later word.
        ts = max([clock.utc_text(now()), *(one.at for one in before)])
        return Switched(session=found, position=store(db, replace(event, ts=ts), now).id, duplicate=False)


def sit(db: Connection, author: Author, project: int | None) -> Seat:
    """Find the session to file an event under: the viewer's, a named one, else our own of the project.

    `project` is that of the record which is changed; what is new belongs to the session's, or to the author's choice.
    """
    if author.viewer.session is not None:
        own = sessions.by_number(db, author.viewer.session)
        if own is not None:
            named_own = author.session_id in {None, own.session_id, f"{sessions.PREFIX}{own.session_id}"}
            if not named_own:
                raise InvalidInput("session_id", "a session records as itself", own.session_id)
            return _seat(own)
    if not author.viewer.everywhere:
        raise InvalidInput("viewer", "nobody records", "the owner's token, or a session as viewer")
    chosen = events.project_key(db, project) if project is not None else author.project
    if author.session_id is not None:
        row = named.session_row(db, author.viewer, author.session_id)
        if chosen not in {None, row.project_key}:
            raise InvalidInput("session_id", f"belongs to project {row.project_key}", f"a session of project {chosen}")
        return _shared(row)
    key = chosen or author.folder
    if key in {None, "all"}:
        known = events.project_keys(db)
        shown = ", ".join(known[:10]) or "the path of a folder"
        raise InvalidInput("project", "is not given, and nothing else says where this belongs", shown)
    return _own(db, redact(key))


def own_session(db: Connection, project: str) -> str:
    """Return the id of our own session of a project: it holds what was recorded outside of any agent's."""
    return _own(db, project).session_id


def draft(seat: Seat, author: Author, kind: EventKind, body: str, meta: dict[str, object]) -> Event:
    """Write the event of a statement, as it will be stored, without its time.

    Its origin is made from the author's id of the statement, so that saying it again finds it. The session is a part of
    it: nobody learns from a refusal which ids another session used.
    """
    name = author.mutation_id
    if name is None:
        digest = uuid.uuid4().hex
    else:
        named.check_text("client_mutation_id", name, MAX_NAME)
        text = f"{seat.session_id}\n{name}"
        digest = hashlib.sha256(text.encode()).hexdigest()[:32]
    host = {"host": OWN_HOST} if seat.session is None else {}  # the first event of our own says what it is
    event = Event(
        session_id=seat.session_id,
        kind=kind,
        origin=f"{OWN_HOST}:{digest}",
        body=body,
        project=seat.project,
        meta={**meta, **host},
    )
    return capture.cleaned(event)


def repeated(db: Connection, seat: Seat, author: Author, event: Event) -> Stored | None:
    """Return the event when it is stored already; raise InvalidInput when its id was used for something else."""
    project = events.find_project(db, seat.project) if author.mutation_id is not None else None
    old = events.by_origin(db, project, event.origin) if project is not None else None
    if old is None:
        if author.mutation_id is not None and traces.forgotten(db, seat.project, seat.session_id, event.origin):
            raise InvalidInput("client_mutation_id", "was used for what was forgotten", "an id of its own")
        return None
    said, saying = ({**meta, "host": None} for meta in (old.meta, event.meta))
    if (old.kind, old.body, said) != (event.kind, event.body, saying):
        raise InvalidInput("client_mutation_id", f"was used for another change, event-{old.id}", "an id of its own")
    return old


def store(db: Connection, event: Event, now: clock.Clock) -> Stored:
    """Store the event of a statement with what follows from it, and return it as it is stored."""
    number = capture.store(db, event, now=now)
    return events.many(db, [number])[number]


def standing(
    db: Connection,
    author: Author,
    seat: Seat,
    kind: EdgeType,
    source: tuple[NodeType, int],
    target: tuple[NodeType, int],
) -> int | None:
    """Return the event that began an edge which stands, as far as those who will see the new one see it."""
    view = View(db)
    edge = view.edge(kind, *source, *target)
    if edge is None or edge.end_event is not None or not visible(db, author.viewer, edge.begin_event):
        return None
    return None if view.hidden(edge.begin_event) and not seat.isolated else edge.begin_event


def clean(field: str, text: str, limit: int) -> str:
    """Return a text as it will be stored; raise InvalidInput when nothing of it would be left."""
    named.check_text(field, text, limit)
    kept = redact(strip_private(text)).strip()
    if not kept or kept == strip_private("<private>"):
        raise InvalidInput(field, "is private altogether" if kept else "is empty", "a text")
    return kept


def _said(step: Change) -> tuple[str, dict[str, object]]:
    """Check what a step says, apart from what it names."""
    meta: dict[str, object] = {"action": step.action}
    text = clean("text", step.text, MAX_TEXT) if step.text or step.action in _TEXTS else ""
    if step.if_version is not None and step.target is None:
        raise InvalidInput("if_version", "what is new has no version yet", "the version of a record that is changed")
    if step.reason is not None:
        meta["reason"] = clean("reason", step.reason, MAX_TEXT)
    if step.kind is not None:
        if step.kind not in FEEDBACK_KINDS:
            raise InvalidInput("kind", f"{step.kind[:80]!r} is unknown", ", ".join(FEEDBACK_KINDS))
        meta["kind"] = step.kind
    return text, meta


def _support(db: Connection, viewer: Viewer, step: Change, project: str) -> dict[str, object]:
    """Name by origin what a record stands on."""
    if len(step.evidence) > MAX_EVIDENCE:
        raise InvalidInput("evidence", f"{len(step.evidence)} are given", f"at most {MAX_EVIDENCE}")
    meta: dict[str, object] = {}
    if step.evidence:
        found = [_within(db, named.node(db, viewer, "evidence", one), "evidence", project) for one in step.evidence]
        for one in found:
            if one.type is NodeType.SESSION:
                raise InvalidInput("evidence", f"{one.id} is a session", "events, assets and records")
        meta["evidence"] = list(dict.fromkeys(one.origin for one in found))
    if step.basis is not None:
        basis = _within(db, named.node(db, viewer, "basis", step.basis), "basis", project)
        if basis.type not in _BASES:
            raise InvalidInput("basis", f"{basis.id} is neither", "a goal, a decision or an asset")
        meta["basis"] = basis.origin
    return meta


def _scope(author: Author, step: Change, seat: Seat) -> dict[str, object]:
    """Say how far a new record holds."""
    if step.scope is None:
        return {}
    allowed = ", ".join(SCOPES)
    if step.scope not in SCOPES:
        raise InvalidInput("scope", f"{step.scope[:80]!r} is unknown", allowed)
    if step.scope == "global" and author.viewer.session is not None:
        raise InvalidInput("scope", "only the owner says what holds in every project", "session, project; or no viewer")
    if step.scope == "session" and seat.session_id.startswith(f"{OWN_HOST}-"):
        raise InvalidInput("scope", "it is to hold in one session, and none is named", "a session_id, or a viewer")
    return {"scope": step.scope}


def _within(db: Connection, found: Named, field: str, project: str) -> Named:
    """Refuse what belongs to another project: an edge never leaves its own."""
    key = events.project_key(db, found.project)
    if key != project:
        raise InvalidInput(field, f"{found.id} belongs to project {key}", f"what belongs to project {project}")
    return found


def _check(db: Connection, author: Author, seat: Seat, target: Named, record: Record, version: int | None) -> None:
    """Refuse a change of what the author has not seen as it is now, or holds as the copy of another session only."""
    if version is not None and version != record.changed_event:
        raise Conflict(target.id, version, record.changed_event)
    if record.scope == "global" and author.viewer.session is not None:
        raise InvalidInput("id", f"{target.id} holds in every project, and only the owner changes it", "no viewer")
    if record.session != seat.session and View(db).hidden(record.id):
        raise Isolated(target.id, "is isolated in another session", "the session that recorded it, as viewer")


def _done(
    db: Connection, viewer: Viewer, step: Change, stored: Stored, target: Named | None, *, duplicate: bool
) -> Done:
    made = Named(
        type=step.type, key=stored.id, id=f"{step.type}-{stored.id}", project=stored.project, origin=stored.origin
    )
    if target is None:
        return Done(node=made, position=stored.id, duplicate=duplicate)
    if step.action == "supersede":
        return Done(node=made, position=stored.id, duplicate=duplicate, other=target)
    promoted = records.get(db, target.key)
    if step.action == "promote" and promoted is not None and promoted.promoted_to is not None:
        decision, _ = named.record(db, viewer, NodeType.DECISION, f"decision-{promoted.promoted_to}")
        return Done(node=target, position=decision.key, duplicate=duplicate, other=decision)
    return Done(node=target, position=stored.id, duplicate=duplicate)


def _path(path: str) -> str:
    name = path.strip()
    named.check_text("path", name, MAX_PATH)
    if name.endswith("/") or not name.strip("./"):
        raise InvalidInput("path", f"{name[:200]!r} names no file", "the path of a file")
    return name


def _declared(db: Connection, author: Author, seat: Seat, key: str) -> Done | None:
    """Return the asset when there is nothing to add: it is known, and the session stands as one of its producers."""
    project = events.find_project(db, seat.project)
    asset = View(db).asset(project, key) if project is not None else None
    if asset is None or seat.session is None or not assets.by_key(db, author.viewer, asset.id):
        return None
    begin = standing(db, author, seat, EdgeType.PRODUCES, (NodeType.SESSION, seat.session), (NodeType.ASSET, asset.id))
    if begin is None:
        return None
    return Done(node=_asset(db, author.viewer, asset.project, key), position=begin, duplicate=True)


def _asset(db: Connection, viewer: Viewer, project: int, path: str) -> Named:
    asset = View(db).asset(project, path)
    rows = assets.by_key(db, viewer, asset.id) if asset is not None else []
    return named.asset(db, rows[0])


def _seat(row: sessions.SessionRow) -> Seat:
    return Seat(session_id=row.session_id, project=row.project_key, session=row.number, isolated=row.isolated)


def _shared(row: sessions.SessionRow) -> Seat:
    """Without a viewer nothing is written into an isolated session: nobody could tell whose it is."""
    if row.isolated:
        name = f"{sessions.PREFIX}{row.session_id}"
        raise Isolated(name, "is isolated, and only it writes into itself", "that session as viewer, or another one")
    return _seat(row)


def _own(db: Connection, project: str) -> Seat:
    """Find our own session of a project."""
    digest = hashlib.sha256(project.encode("utf-8", "surrogatepass")).hexdigest()
    for length in (8, 16, 32):
        session_id = f"{OWN_HOST}-{digest[:length]}"
        row = sessions.by_host_id(db, Viewer(), session_id)
        if row is None:
            return Seat(session_id=session_id, project=project)
        if row.project_key == project:
            return _shared(row)
    return Seat(session_id=f"{OWN_HOST}-{digest}", project=project)


def _ends(db: Connection, author: Author, wanted: Link) -> tuple[EdgeType, Named, Named]:
    """Check the type and both ends of an edge against the table of what may be connected."""
    kind = next((one for one in EdgeType if one == wanted.type), None)
    if kind is None:
        raise InvalidInput("type", f"{wanted.type[:80]!r} is unknown", ", ".join(EdgeType))
    source = named.node(db, author.viewer, "source", wanted.source)
    target = named.node(db, author.viewer, "target", wanted.target)
    if source.project != target.project:
        keys = [events.project_key(db, one.project) for one in (source, target)]
        raise InvalidInput("target", f"{target.id} belongs to project {keys[1]}", f"what belongs to project {keys[0]}")
    if (source.type, target.type) not in EDGES[kind]:
        pairs = ", ".join(sorted(f"{one} to {other}" for one, other in EDGES[kind]))
        raise InvalidInput("type", f"{kind} does not lead from {source.type} to {target.type}", f"{kind}: {pairs}")
    made = events.get(db, source.key) if (source.type, kind) == (NodeType.EVENT, EdgeType.EVIDENCE) else None
    if made is not None and made.kind is not EventKind.COMPACT_CHECKPOINT:
        raise InvalidInput("source", f"{source.id} is no checkpoint", "a compact_checkpoint, or a decision")
    if (source.type, source.key) == (target.type, target.key):
        raise InvalidInput("target", f"{target.id} is the source too", "another node")
    return kind, source, target


def _ends_meta(action: str, kind: EdgeType, source: Named, target: Named) -> dict[str, object]:
    """Name the ends as the ledger does, so that it means the same on another machine."""
    ends = {name: {"type": end.type, "of": end.origin} for name, end in (("source", source), ("target", target))}
    return {"action": action, "type": kind, **ends}


def _causal(kind: EdgeType, source: Named, target: Named) -> tuple[tuple[NodeType, int], tuple[NodeType, int]]:
    """Return the result and the cause that an edge connects: a way from the one to the other closes a cycle."""
    ends = (source.type, source.key), (target.type, target.key)
    return (ends[1], ends[0]) if kind in CAUSE_FIRST else ends


def _edge(db: Connection, kind: EdgeType, source: Named, target: Named) -> Edge | None:
    return View(db).edge(kind, source.type, source.key, target.type, target.key)


def _check_end(db: Connection, author: Author, seat: Seat, wanted: Link, old: Edge | None) -> None:
    """Refuse to end what is not there, has ended, or is on the other side of isolation."""
    name = f"{wanted.source} {wanted.type} {wanted.target}"
    if old is None or not visible(db, author.viewer, old.begin_event):
        raise NotFoundError(name, named.call("ls", wanted.source))
    if old.end_event is not None:
        raise InvalidTransition("edge", "ended", "retract", ("add",))
    if View(db).hidden(old.begin_event):
        begin = events.get(db, old.begin_event)
        if begin is None or begin.session != seat.session:
            raise Isolated(name, "is isolated in another session", "the session that drew it, as viewer")
    elif seat.isolated:
        raise Isolated(name, "an isolated session cannot change what others see", "another session, or this one later")


def _linked(
    db: Connection,
    author: Author,
    kind: EdgeType,
    source: Named,
    target: Named,
    position: int,
    *,
    duplicate: bool,
    cycle: bool | None,
) -> Linked:
    edge, stated = _edge(db, kind, source, target), events.get(db, position)
    if edge is None or stated is None:
        raise StoreError(f"event-{position} has left no edge: graphsvc rebuild")
    if not visible(db, author.viewer, edge.begin_event):
        # Another session drew it in isolation before: of that one nothing is told.
        edge = replace(edge, rule="stated", begin_event=position, begin_at=stated.at, end_event=None, end_at=None)
    return Linked(edge=edge, source=source, target=target, position=position, duplicate=duplicate, closes_cycle=cycle)
