"""Events in: redact, find their place, append once per origin, and project, all in one transaction.

The order of one event: what must never be stored is taken out, an isolation phrase takes effect, the event is appended,
`apply` gives its rows, `derive` gives the events behind it, and those go the same way.

An entry of another ledger (`Event.ledger`) is stored as it stood there: what followed from it are entries too, so
nothing is derived, refused or isolated anew. It is redacted again, and keeps its origin to one content as all do.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from graphsvc import clock, states
from graphsvc.errors import GraphsvcError, InvalidInput, InvalidTransition, Isolated, NotFoundError
from graphsvc.memory import paths
from graphsvc.memory.apply import action_of, apply, late
from graphsvc.memory.derive import derive, toggle
from graphsvc.memory.redact import open_spans, redact, redact_value, strip_private
from graphsvc.memory.settings import file
from graphsvc.memory.settings.policy import Policies, Policy
from graphsvc.model import (
    FEEDBACK_KINDS,
    MAX_NAME,
    MAX_OURS,
    MAX_PATH,
    OWN_HOST,
    RECORD_KINDS,
    SCOPED,
    SCOPES,
    Entry,
    Event,
    EventKind,
    NodeType,
    Record,
    Stored,
)
from graphsvc.store import events, imports, rows
from graphsvc.store.database import Connection, transaction
from graphsvc.store.erase import traces
from graphsvc.store.view import View

_ID: Final = re.compile(r"(?:event|asset|goal|decision|feedback|candidate|todo)-([0-9]{1,17})")
OURS: Final = ("rule:", "member:")  # origins of events that graphsvc makes
# What a person may state while recording is paused; of a host's history none of it is a person's own word.
_OWN_WORD: Final = frozenset({*RECORD_KINDS, EventKind.ASSET, EventKind.EDGE, EventKind.PUBLISH, EventKind.FORGET})
_SWITCHES: Final = ("on", "off")
_TOOLS: Final = frozenset({EventKind.TOOL_CALL, EventKind.TOOL_RESULT})
_USUAL: Final = frozenset({"cwd", "file_path", "host", "is_error", "message_id", "record", "tool_name", "tool_use_id"})


@dataclass(frozen=True, slots=True)
class Rejected:
    """An event that was not stored: its place in the batch, and why."""

    index: int
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Captured:
    """What became of a batch. `kinds` counts the ledger rows added, events by rule included.

    `numbers`: for each event of the batch the one that stands for it, None when it was rejected; `new` those it added.
    """

    accepted: int
    duplicates: int
    rejected: tuple[Rejected, ...]
    kinds: dict[str, int]
    position: int
    numbers: tuple[int | None, ...] = ()
    new: frozenset[int] = frozenset()  # places in the batch


class Refused(GraphsvcError):
    """An event that is not stored as the store stands. `added` was stored in its place."""

    exit_code = 2

    def __init__(self, code: str, message: str, added: Sequence[Stored] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.added = added


_CODES: Final[dict[type[GraphsvcError], str]] = {
    InvalidInput: "invalid-input",
    InvalidTransition: "invalid-transition",
    NotFoundError: "not-found",
    Isolated: "isolated-session",
}
# What `Rejected.code` says, wherever an event is captured.
CODES: Final = {
    "forbidden": "it is of another session than the one that captures",
    "forgotten": "it was forgotten, and is not to come back",
    "invalid-input": "the event, or a value of it, is none that can be stored",
    "invalid-transition": "the record does not move that way from where it stands",
    "isolated-session": "an isolated session may not change what others see",
    "not-found": "the record that it changes is not there",
    "paused": "recording is paused for its project, or for all",
    "settings": "a .graphsvc.toml of its project cannot be read, so that nobody knows whether to record",
    "project-conflict": "its session belongs to another project",
}
_REFUSALS: Final[tuple[type[GraphsvcError], ...]] = (*_CODES, Refused)


def capture(
    db: Connection,
    batch: Sequence[Event],
    *,
    now: clock.Clock = clock.system,
    history: bool = False,
    again: bool = False,
    owner: bool = True,
) -> Captured:
    """Store a batch of events in one transaction; an event that cannot be stored is reported and changes nothing.

    `owner`: the local owner hands it over, who alone says what holds in every project. A host's history does not.
    `history`: the batch is what a host recorded. A state change that does not fit what is known is then kept as a raw
    event that says why, because it happened and nothing may be lost. `again`: what was forgotten is stored once more.
    """
    received_at = clock.utc_text(now())
    kinds: Counter[str] = Counter()
    rejected: list[Rejected] = []
    numbers: list[int | None] = []
    new: set[int] = set()
    policies = Policies(db, received_at)
    with transaction(db):
        for index, event in enumerate(_joined_spans(batch)):
            try:
                asked = owner and not history
                number, added = _one(db, event, policies, history=history, again=again, owner=asked)
            except _REFUSALS as error:
                rejected.append(Rejected(index, code(error), str(error)))
                kinds.update(str(one.kind) for one in getattr(error, "added", ()))
                numbers.append(None)
                continue
            numbers.append(number)
            new |= {index} if added else set()
            kinds.update(str(one.kind) for one in added)
        position = events.position(db)
    duplicates = len(batch) - len(new) - len(rejected)
    return Captured(len(new), duplicates, tuple(rejected), dict(kinds), position, tuple(numbers), frozenset(new))


def _joined_spans(batch: Sequence[Event]) -> Iterator[Event]:
    """Yield the events; a private span that one block of a user's message begins goes on in the next block of it."""
    message: tuple[object, ...] | None = None
    depth = 0
    for event in batch:
        block = (event.session_id, event.actor, event.ts, event.meta.get("message_id"))
        said = event.kind is EventKind.USER_MESSAGE and event.ledger is None and block[2:] != (None, None)
        if said and depth and block == message:
            event = replace(event, body="<private>" * depth + event.body)  # the same one, as it was meant
        message, depth = (block, open_spans(event.body)) if said else (None, 0)
        yield event


def store(db: Connection, event: Event, *, now: clock.Clock = clock.system) -> int:
    """Store one event and what follows from it, and return its number; raise what `capture` would report.

    What is refused changes nothing.
    """
    with transaction(db):
        number, _ = _one(db, event, Policies(db, clock.utc_text(now())), history=False, owner=True)
    return number


def code(error: GraphsvcError) -> str:
    """Return the one of CODES that an error which keeps an event from being stored goes by."""
    return error.code if isinstance(error, Refused) else _CODES[type(error)]


def _one(
    db: Connection, event: Event, policies: Policies, *, history: bool, owner: bool, again: bool = False
) -> tuple[int, list[Stored]]:
    """Store one event and what follows from it; return its number and what was added, nothing for a duplicate."""
    clean, received_at = cleaned(event), policies.at
    project, session = _place(db, clean)
    view, old = View(db), None
    if project is not None:
        clean, old = _settled(db, project, clean)
        if old is not None and old.session == session:
            return old.id, []
    if not again and traces.kept(db):
        _check_forgotten(db, clean, old, project)
    key = events.project_key(db, project) if project is not None else clean.project or _default_project(clean)
    cwd = clean.meta.get("cwd")
    policy = policies.of(key, cwd if isinstance(cwd, str) else None)
    if not _own_word(clean, history=history):
        moment = clean.ts or (clean.ledger.received_at if clean.ledger else received_at)
        pause = imports.paused(db, key, moment, policy.folder)
        if pause is not None or policy.problem is not None:
            # The switch is heeded all the same: what is said when recording goes on must not be seen.
            switched = _switched(db, view, clean, project, session, received_at)
            code, why = ("paused", _paused(pause)) if pause is not None else ("settings", str(policy.problem))
            raise Refused(code, why, switched)
    if old is not None:
        begun = _begun(db, view, clean, policy, project, session, received_at)
        return old.id, begun + _copy(db, view, clean, old, begun[0].session if begun else session, received_at)
    if clean.ledger is not None:
        entered = _append(db, view, clean, *_interned(db, clean, project, session), received_at)
        return entered.id, [entered]
    try:
        begins = _begins(clean, policy, session)
        clean = _checked(view, clean, project, session, owner=owner, begins=begins)
    except _REFUSALS as error:
        if not history:
            raise
        meta = {**clean.meta, "record": clean.kind, "refused": str(error)}
        clean = replace(clean, kind=EventKind.RAW, meta=meta)
    begun = _begun(db, view, clean, policy, project, session, received_at)
    project, session = _interned(db, clean, project, begun[0].session if begun else session)
    switched = _switched(db, view, clean, project, session, received_at)
    shares = policy.shares_tools
    written = _write(db, view, clean, project, session, received_at, again=again, shares=shares)
    return written[0].id, begun + switched + written


def _switched(
    db: Connection, view: View, event: Event, project: int | None, session: int | None, received_at: str
) -> list[Stored]:
    """Turn isolation on or off where a user's whole message says so; it takes effect before the message is stored."""
    if event.ledger is not None:
        return []
    switch = toggle(event)
    if switch is None and traces.was_isolated(db, event.session_id) and view.session(session or 0) is None:
        switch = "on"  # a session that was isolated goes on, and the switch was forgotten with what was before
    if switch is None:
        return []
    project, session = _interned(db, event, project, session)
    meta = {"action": switch, "cause": event.origin}
    origin = f"rule:{event.origin}:switch"
    phrase = replace(event, kind=EventKind.ISOLATION, origin=origin, body=switch, meta=meta)
    phrase, known = _settled(db, project, phrase)
    return [] if known else [_append(db, view, phrase, project, session, received_at)]


def _begun(
    db: Connection, view: View, event: Event, policy: Policy, project: int | None, session: int | None, received_at: str
) -> list[Stored]:
    """Isolate a session from its first event on, where sessions begin so."""
    if not _begins(event, policy, session):
        return []
    project, session = _interned(db, event, project, session)
    meta = {"action": "on", "cause": event.origin, "default": True}
    switch = replace(event, kind=EventKind.ISOLATION, origin=f"rule:{event.origin}:default", body="on", meta=meta)
    switch, known = _settled(db, project, switch)
    return [] if known else [_append(db, view, switch, project, session, received_at)]


def _begins(event: Event, policy: Policy, session: int | None) -> bool:
    """Say whether an event begins a session that is isolated from then on, because it does not say otherwise itself."""
    switches = event.kind is EventKind.ISOLATION or toggle(event) is not None
    # What was recorded by command was said in no conversation.
    ours = event.meta.get("host") == OWN_HOST and event.session_id.startswith(f"{OWN_HOST}-")
    return policy.begins_isolated and session is None and event.ledger is None and not (switches or ours)


def _own_word(event: Event, *, history: bool) -> bool:
    """Say whether an event is stored while recording is paused: the switch of isolation, and what a person states.

    A host's history and another ledger do not tell what a person recorded on purpose.
    """
    return event.kind is EventKind.ISOLATION or (event.kind in _OWN_WORD and not history and event.ledger is None)


def _paused(pause: imports.Pause) -> str:
    """Say why an event is not stored, and what to do. What was said meanwhile stays out however late it arrives."""
    if pause.until is None and pause.folder is not None:
        return f"{pause.folder}/{file.NAME} says paused = true since {pause.since}; to record what comes, change it"
    if pause.until is None:
        on = pause.project or "all"
        return f"{on} is paused since {pause.since}; to record what comes: graphsvc resume --project {shlex.quote(on)}"
    return f"{pause.project or 'all'} was paused from {pause.since} until {pause.until}: what was said then stays out"


def _check_forgotten(db: Connection, event: Event, old: Stored | None, project: int | None) -> None:
    """Refuse an event, or a copy of one, that was forgotten: its host still has it."""
    key = events.project_key(db, project) if project is not None else event.project or _default_project(event)
    origin = event.origin if old is None else _member(event, old).origin
    if traces.forgotten(db, key, event.session_id, origin):
        raise Refused("forgotten", "it was forgotten; to store it once more: graphsvc import --again")


def _settled(db: Connection, project: int, event: Event) -> tuple[Event, Stored | None]:
    """Return the event under the origin it has in this project, and the one that stands there with its content.

    An origin that stands for something else leaves the event a name made of its content, whoever came first.
    """
    first = event.meta.get("conflicts_with")
    if event.ledger is not None and isinstance(first, str) and event.origin.startswith(f"{first}#"):
        # There it met another content; here its own may have come first.
        plain = events.by_origin(db, project, first)
        if plain is not None and _same(plain, event):
            return replace(event, origin=first), plain
    old = events.by_origin(db, project, event.origin)
    while old is not None and not _same(old, event):
        event = _conflicting(event)
        old = events.by_origin(db, project, event.origin)
    return event, old


def _interned(db: Connection, event: Event, project: int | None, session: int | None) -> tuple[int, int]:
    """Give a number to the project and the session that have none yet."""
    if project is None:
        project = events.intern_project(db, event.project or _default_project(event))
    if session is None:
        session = events.intern_session(db, event.session_id, project)
    return project, session


def _write(
    db: Connection,
    view: View,
    event: Event,
    project: int,
    session: int,
    received_at: str,
    *,
    again: bool,
    shares: bool,
) -> list[Stored]:
    """Append an event, apply it, and then what it causes; `shares`: of an isolated session others see the tools."""
    added: list[Stored] = []
    key = events.project_key(db, project) if traces.kept(db) and not again else None
    queue = deque([event])
    while queue:
        stored = _append(db, view, queue.popleft(), project, session, received_at, shares=shares)
        added.append(stored)
        cause = stored
        if shares and stored.kind in _TOOLS:
            # What follows from a tool's result is as isolated as the session, whoever sees that result.
            cause = replace(stored, isolated=_isolated(view, stored, session))
        for made in derive(cause, view):
            # What follows may be here before its cause: a part of a ledger was captured, then the transcript.
            one, old = _settled(db, project, _clean_made(made))
            if old is None and (key is None or not traces.forgotten(db, key, one.session_id, one.origin)):
                queue.append(one)
    return added


def _append(
    db: Connection, view: View, event: Event, project: int, session: int, received_at: str, *, shares: bool = False
) -> Stored:
    """Append one event and apply it."""
    hides = _isolated(view, event, session) and not (shares and event.kind in _TOOLS)
    entry = event.ledger or Entry(received_at=received_at, isolated=hides)
    if traces.kept(db):
        traces.take_back(db, events.project_key(db, project), event.session_id, event.origin)
    stored = events.append(
        db,
        event,
        project=project,
        session=session,
        at=event.ts or entry.at or events.last_at(db, session) or entry.received_at,
        received_at=entry.received_at,
        isolated=entry.isolated,
    )
    for row in apply(stored, view):
        rows.put(db, row)
    return stored


def _isolated(view: View, event: Event | Stored, session: int) -> bool:
    """Say whether what a session says here is its own."""
    if event.kind is EventKind.ISOLATION:
        return event.meta.get("action") == "on"
    known = view.session(session)
    # A transcript is read later than the switch: what was said meanwhile is as isolated as it was then.
    return (known is not None and known.isolated) or (event.ts is not None and view.isolated_at(session, event.ts))


def _copy(db: Connection, view: View, event: Event, old: Stored, session: int | None, received_at: str) -> list[Stored]:
    """Note that a session contains an event of another one; what is noted already is a duplicate."""
    if event.ledger is None and session is not None and view.member(session, old.id):
        return []
    project, session = _interned(db, event, old.project, session)
    members = [(_member(event, old), session)]
    if event.ledger is not None:
        # Two ledgers that met it in two sessions give the same, whichever comes first: it is noted of both sessions.
        members.append((_member(old, old), old.session))
    added = []
    for member, number in members:
        one, known = _settled(db, project, member)
        if known is None:
            added.append(_append(db, view, one, project, number, received_at))
    return added


def _member(event: Event | Stored, old: Stored) -> Event:
    """Return the event that says that the session of `event` contains `old`."""
    return Event(
        session_id=event.session_id,
        kind=EventKind.EDGE,
        origin=f"member:{event.session_id}:{old.origin}",
        body="",
        ts=event.ts,
        actor=event.actor,
        meta={"action": "member", "of": old.origin, **{k: v for k, v in event.meta.items() if k in {"host", "cwd"}}},
        ledger=event.ledger
        if isinstance(event, Event)
        else Entry(received_at=event.received_at, isolated=event.isolated, at=event.at),
    )


def cleaned(event: Event) -> Event:
    """Check the names, take out what must not be stored, and put the cwd where it stays."""
    if event.origin.startswith(OURS) and event.ledger is None:
        raise InvalidInput("origin", f"{event.origin[:80]!r} begins as graphsvc's own do", f"no {' or '.join(OURS)}")
    for field, limit in (
        ("session_id", MAX_NAME),
        ("origin", MAX_NAME if event.ledger is None else MAX_OURS),
        ("actor", MAX_NAME),
        ("cwd", MAX_PATH),
        ("project", MAX_PATH),
    ):
        _name(field, getattr(event, field), limit)
    event = _clean_names(event)
    meta = dict(event.meta)
    if event.cwd:
        meta["cwd"] = event.cwd
    event = _clean_made(replace(event, meta=meta))
    return _worded(event) if event.kind is EventKind.ISOLATION and event.ledger is None else event


def _worded(event: Event) -> Event:
    """Write a switch in the one way it is stored, before it is compared with what is there."""
    action = _action(event)
    return replace(event, body=action, meta={**event.meta, "action": action}) if action in _SWITCHES else event


def _action(event: Event) -> str:
    return str(event.meta.get("action") or event.body.strip().lower())


def _clean_made(event: Event) -> Event:
    """Take out of the content what must not be stored."""
    return replace(event, body=redact(strip_private(_joined(event.body))), meta=_clean_meta(dict(event.meta)))


def _joined(text: str) -> str:
    """Join the halves of a character that arrived as two: JSON, which moves a ledger, knows them as one only."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return text


def _clean_names(event: Event) -> Event:
    """Redact what names an event, too; an id keeps apart by a hash what the marker would make one."""
    # An origin of ours is made of names that are clean one by one: together they might read like a secret.
    ours = next((one for one in (f"member:{event.session_id}:", *OURS) if event.origin.startswith(one)), "")
    given = event.origin.removeprefix(ours)
    names = (event.session_id, given, event.actor, event.cwd, event.project)
    text = "\n".join(filter(None, names))
    if redact(text) == text:
        return event
    session_id, origin = (
        clean if clean == name else f"{clean}~{hashlib.sha256(name.encode()).hexdigest()[:8]}"
        for name, clean in ((name, redact(name)) for name in (event.session_id, given))
    )
    origin = ours + origin
    actor, cwd, project = (redact(name) if name else name for name in (event.actor, event.cwd, event.project))
    return replace(event, session_id=session_id, origin=origin, actor=actor, cwd=cwd, project=project)


def _clean_meta(meta: dict[str, object]) -> dict[str, object]:
    """Redact what the host says beside the body. The usual few names are looked at together: most hold nothing."""
    if meta.keys() <= _USUAL:
        text = "\n".join(value for value in meta.values() if isinstance(value, str))
        if redact(strip_private(text)) == text:
            return meta
    try:
        json.dumps(meta, allow_nan=False)
    except ValueError:
        raise InvalidInput("meta", "holds an infinite number or none", "JSON values") from None
    redacted = redact_value(meta)
    return redacted if isinstance(redacted, dict) else {}


def _name(field: str, value: str | None, limit: int) -> None:
    if value is None and field not in {"session_id", "origin"}:
        return
    if not value:
        raise InvalidInput(field, "is empty", "a text")
    if len(value) > limit:
        raise InvalidInput(field, f"has {len(value)} characters", f"at most {limit}")
    if "\0" in value or any("\ud800" <= char <= "\udfff" for char in value):
        raise InvalidInput(field, "holds a NUL or a lone surrogate", "valid Unicode text")


def _place(db: Connection, event: Event) -> tuple[int | None, int | None]:
    """Return (project, session) as far as they exist. A session belongs to the project of its first event."""
    found = events.find_session(db, event.session_id)
    if found is None:
        return events.find_project(db, event.project or _default_project(event)), None
    session, project = found
    if event.project is not None and events.find_project(db, event.project) != project:
        old = events.by_origin(db, project, event.origin)
        if old is None or not _same(old, event):
            key = events.project_key(db, project)
            raise Refused(
                "project-conflict",
                f"session {event.session_id} belongs to project {key}: leave `project` out, or use another session_id",
            )
    return project, session


def _default_project(event: Event) -> str:
    return paths.project_of(event.cwd) if event.cwd else paths.NO_PROJECT


def _same(old: Stored, event: Event) -> bool:
    # An entry of a ledger was taken there: that it did not fit here is another content.
    refused = old.kind is EventKind.RAW and "refused" in old.meta and old.meta.get("record") == event.kind
    refused = refused and event.ledger is None
    return (old.kind is event.kind or refused) and old.body == event.body


def _conflicting(event: Event) -> Event:
    """Name an event whose origin stands for something else; it is kept, and says so."""
    digest = hashlib.sha256(f"{event.kind}\n".encode() + events.encode(event.body)).hexdigest()[:8]
    meta = {**event.meta, "conflicts_with": event.origin}
    return replace(event, origin=f"{event.origin}#{digest}", meta=meta)


def _checked(view: View, event: Event, project: int | None, session: int | None, *, owner: bool, begins: bool) -> Event:
    """Refuse a state change that its machine, or the isolation of the session, does not allow."""
    if event.kind is EventKind.ISOLATION:
        if event.body not in _SWITCHES:
            raise InvalidInput("meta.action", f"{_action(event)[:80]!r} is unknown", ", ".join(_SWITCHES))
        return event
    if event.kind is EventKind.PUBLISH:
        return _published(view, event)
    if event.kind not in RECORD_KINDS:
        return event
    action = action_of(event)
    machine = states.MACHINES[NodeType(event.kind)]
    moves = {name for allowed in machine.values() for name in allowed}
    known = {*moves, "record"} | ({"propose"} if event.kind is EventKind.DECISION else set())
    if event.kind is EventKind.TODO:
        known.add("snapshot")
    if action not in known:
        raise InvalidInput("meta.action", f"{action[:80]!r} is unknown for a {event.kind}", ", ".join(sorted(known)))
    event = _named(view, event, project)
    kind = event.meta.get("kind")
    if event.kind is EventKind.FEEDBACK and kind is not None and kind not in FEEDBACK_KINDS:
        raise InvalidInput("meta.kind", f"{str(kind)[:80]!r} is unknown", ", ".join(FEEDBACK_KINDS))
    _check_scope(event, owner=owner)
    if action not in moves:
        return event
    record = _subject(view, event, project, session)
    if record.scope == "global" and not owner:
        name = f"{record.type}-{record.id}"
        raise InvalidInput("meta.of", f"{name} holds in every project, and only the owner changes it", "no viewer")
    source = view.event(record.id)
    if source is None or not late(event, record):
        states.move(NodeType(event.kind), record.status, action)
    state = view.session(session) if session is not None else None
    isolated = begins or (state is not None and state.isolated)
    if isolated and not view.hidden(record.id):
        name = f"{record.type}-{record.id}"
        raise Isolated(name, "an isolated session cannot change what others see", "another session, or this one later")
    meta = {name: value for name, value in event.meta.items() if name not in {"id", "key"}}
    return replace(event, meta={**meta, "of": source.origin if source else None})


def _check_scope(event: Event, *, owner: bool) -> None:
    said = event.meta.get("scope")
    if said is None:
        return
    allowed = SCOPES if NodeType(event.kind) in SCOPED else ("project",)
    if said not in allowed:
        raise InvalidInput("meta.scope", f"{str(said)[:80]!r} is unknown for a {event.kind}", ", ".join(allowed))
    if said == "global" and not owner:
        raise InvalidInput("meta.scope", "only the owner says what holds in every project", "session, project")


def _named(view: View, event: Event, project: int | None) -> Event:
    """Write what an event stands on by origin, where it was named by the id that people see."""

    def origin(name: object) -> object:
        if not isinstance(name, str) or (project is not None and events.by_origin(view.db, project, name)):
            return name
        typed = _ID.fullmatch(name)
        source = view.event(int(typed[1])) if typed else None
        return source.origin if source is not None and source.project == project else name

    meta = dict(event.meta)
    if isinstance(meta.get("evidence"), list):
        meta["evidence"] = [origin(name) for name in event.meta["evidence"]]  # type: ignore[attr-defined]  # a list
    if "basis" in meta:
        meta["basis"] = origin(meta["basis"])
    return replace(event, meta=meta)


def _subject(view: View, event: Event, project: int | None, session: int | None) -> Record:
    """Find the record a state change names: by the id people see, by origin, or by the host's own id."""
    number, of, key = event.meta.get("id"), event.meta.get("of"), event.meta.get("key")
    found: Record | None = None
    if number is not None:
        found = view.record_by_id(str(number))
    elif isinstance(of, str) and project is not None:
        origin = events.by_origin(view.db, project, of)
        found = view.record(origin.id) if origin else view.record_by_id(of)
    elif isinstance(key, str) and session is not None:
        found = view.record_by_key(session, NodeType(event.kind), key)
    if (
        found is None
        or found.type != NodeType(event.kind)
        or found.project != project
        or (view.hidden(found.id) and found.session != session)
    ):
        raise NotFoundError(str(number or of or key)[:200], f"meta.of is the id or the origin of the {event.kind}")
    return found


def _published(view: View, event: Event) -> Event:
    """Name what is published by origin, so that the ledger means the same elsewhere."""
    given = event.meta.get("ids")
    if given is None and isinstance(event.meta.get("of"), list):
        return event
    typed = [_ID.fullmatch(str(name)) for name in given] if isinstance(given, list) else []
    found = [view.event(int(name[1])) if name else None for name in typed]
    if not found or any(one is None or one.session_id != event.session_id for one in found):
        raise InvalidInput(
            "meta.ids", f"{json.dumps(given)[:200]} names what this session has not", "ids of its events"
        )
    meta = {name: value for name, value in event.meta.items() if name != "ids"}
    return replace(event, meta={"of": [source.origin for source in found if source], **meta})
