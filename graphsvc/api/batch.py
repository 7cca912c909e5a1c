"""A batch of events over GraphQL: what is handed over, and what became of each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from enum import Enum

import strawberry
from strawberry import UNSET
from strawberry.scalars import JSON

from graphsvc import errors
from graphsvc.api.context import Context
from graphsvc.api.values import Count, count_list
from graphsvc.envelope import Long
from graphsvc.importers import neutral
from graphsvc.memory import capture
from graphsvc.model import Event, EventKind, TokenKind
from graphsvc.recall.scope import Asker
from graphsvc.store import sessions
from graphsvc.store.visibility import Viewer


@strawberry.input(description="One conversation event (schema/event.json). The same origin and content is stored once.")
class EventInput:
    session_id: str = strawberry.field(description="The host's id of the session.")
    kind: str = strawberry.field(description="Kind of the event, as in schema/event.json.")
    origin: str = strawberry.field(description="Stable across replays: the host's own id of this message.")
    body: str = strawberry.field(description="The whole text. tool_call: its input as JSON.")
    ts: str | None = strawberry.field(default=UNSET, description="ISO 8601; no zone means UTC.")
    project: str | None = strawberry.field(default=UNSET, description="Key of the project; left out, found from cwd.")
    cwd: str | None = strawberry.field(default=UNSET, description="Working folder.")
    actor: str | None = strawberry.field(default=UNSET, description="Agent or sub-agent.")
    meta: JSON | None = strawberry.field(default=UNSET, description="Object of what the host says beside the text.")


@strawberry.enum(graphql_name_from="value", description="What became of one event.")
class CaptureStatus(Enum):
    STORED = "stored"
    DUPLICATE = "duplicate"
    REJECTED = "rejected"


@strawberry.type(description="What became of one event of a batch.")
class CapturedEvent:
    index: Long = strawberry.field(description="Its place in the list, from 0.")
    status: CaptureStatus = strawberry.field(description="Stored, there already, or rejected.")
    id: strawberry.ID | None = strawberry.field(description="The event that stands for it; null when it was rejected.")


@strawberry.type(description="An event that was not stored.")
class RejectedEvent:
    index: Long = strawberry.field(description="Its place in the list, from 0.")
    code: str = strawberry.field(
        description="\n".join(
            [
                "What kind of problem, as `graphsvc capture` says it:",
                "",
                "| code | meaning |",
                "| --- | --- |",
                *(f"| {code} | {meaning} |" for code, meaning in capture.CODES.items()),
            ]
        )
    )
    message: str = strawberry.field(description="What is wrong and what is allowed.")


@strawberry.type(description="What became of a batch of events. What was not rejected is stored.")
class CaptureOutcome:
    accepted: Long = strawberry.field(description="Events that are new.")
    duplicates: Long = strawberry.field(description="Events that were there already.")
    rejected: list[RejectedEvent] = strawberry.field(description="Events that could not be stored; the others are.")
    events: list[CapturedEvent] = strawberry.field(description="What became of each event, in the order they came in.")
    kinds: list[Count] = strawberry.field(description="Rows added by kind, with those that follow by rule.")
    position: Long = strawberry.field(description="Ledger position after the batch.")


def store(context: Context, given: Sequence[EventInput]) -> CaptureOutcome:
    """Capture what can be read; the places of what cannot be read or stored are those in the given list.

    A session hands over its own events: with those of another one it could publish what that one hides. To whom a token
    only lets capture, what is stored is not told: of what keeps an event from being stored they get the code.
    """
    token = context.asker.token
    own = _own_session(context)
    read: list[Event] = []
    places: list[int] = []
    rejected: list[RejectedEvent] = []
    for index, item in enumerate(given):
        stated = {name: value for name, value in asdict(item).items() if value is not None and value is not UNSET}
        try:
            event = neutral.parse_event(stated)
        except errors.InvalidInput as error:
            rejected.append(RejectedEvent(index=Long(index), code=capture.code(error), message=str(error)))
            continue
        refused = _not_own(own, event) or _not_for(context.asker, event)
        if refused is not None:
            rejected.append(RejectedEvent(index=Long(index), code="forbidden", message=str(refused)))
            continue
        read.append(replace(event, project=event.project or _project(context.asker)))
        places.append(index)
    done = capture.capture(context.db, read, now=context.clock)
    told = token.kind is TokenKind.OWNER
    rejected += [
        RejectedEvent(
            index=Long(places[one.index]), code=one.code, message=one.message if told else capture.CODES[one.code]
        )
        for one in done.rejected
    ]
    numbers = dict(zip(places, done.numbers, strict=True))
    new = {places[place] for place in done.new}
    return CaptureOutcome(
        accepted=Long(done.accepted),
        duplicates=Long(done.duplicates),
        rejected=sorted(rejected, key=lambda one: one.index),
        events=[_captured(index, numbers.get(index), new) for index in range(len(given))],
        kinds=count_list(done.kinds),
        position=Long(done.position),
    )


def _own_session(context: Context) -> str | None:
    """Return the host's id of the viewer's session, None when there is no viewer. One that is new has no row yet."""
    name = context.asker.session_id
    known = sessions.find(context.db, Viewer(), name) if name is not None else None
    return known.session_id if known is not None else name


def _not_own(own: str | None, event: Event) -> errors.InvalidInput | None:
    """Say why a viewer's batch may not hold an event, and what to do."""
    if own is None or event.session_id == own:
        return None
    problem = f"{event.session_id[:80]!r} is another session than the viewer's"
    return errors.InvalidInput("session_id", problem, f"{own[:80]!r}; without a viewer the owner captures for all")


def _not_for(asker: Asker, event: Event) -> errors.InvalidInput | None:
    """Say why a token may not hand over an event."""
    token, project = asker.token, _project(asker)
    if token.kind is TokenKind.OWNER:
        return None
    if project is not None and event.project not in {None, project}:
        return errors.InvalidInput("project", f"{str(event.project)[:80]!r} is not what the token is for", project)
    if token.agent is not None and event.actor != token.agent:
        return errors.InvalidInput("actor", f"{str(event.actor)[:80]!r} is not whom the token is for", token.agent)
    if event.kind is EventKind.PUBLISH and asker.session_id is None:
        return errors.InvalidInput("kind", "publishing is for the session itself", "a token of that session")
    return None


def _project(asker: Asker) -> str | None:
    """Return the project that what is captured belongs to, where a token says so."""
    return asker.project if not asker.owner and asker.project != "all" else None


def _captured(index: int, number: int | None, new: set[int]) -> CapturedEvent:
    if number is None:
        return CapturedEvent(index=Long(index), status=CaptureStatus.REJECTED, id=None)
    status = CaptureStatus.STORED if index in new else CaptureStatus.DUPLICATE
    return CapturedEvent(index=Long(index), status=status, id=strawberry.ID(f"event-{number}"))
