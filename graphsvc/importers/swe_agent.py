"""SWE-agent trajectories: one JSON document a run, without ids and times.

The session is named after the task and the run's facts, so the same run under another path is the same session.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from graphsvc.importers import calls
from graphsvc.importers.calls import Call
from graphsvc.importers.source import Head, Item, Noise, Record
from graphsvc.importers.values import (
    as_json,
    digest,
    identifier,
    items,
    mapping,
    named,
    objects,
    present,
    split,
    text,
    type_name,
)
from graphsvc.model import Event, EventKind

HOST: Final = "swe-agent"

_STEP: Final = (
    ("response", EventKind.ASSISTANT_MESSAGE),
    ("thought", EventKind.RAW),
    ("action", EventKind.TOOL_CALL),
    ("observation", EventKind.TOOL_RESULT),
)


@dataclass(slots=True)
class _Run:
    """A run and what its turns said so far."""

    key: str
    calls: dict[str, Call] = field(default_factory=dict)
    acted: bool = False  # an action stands unanswered: the next user turn is what the environment said

    def event(self, kind: EventKind, origin: str, body: str, **meta: object) -> Event:
        """Build an event of this run."""
        return Event(
            session_id=f"swe-{self.key}",
            kind=kind,
            origin=f"swe:{self.key}:{origin}",
            body=body,
            meta=present(host=HOST, inferred=True, **meta),
        )


def parse(records: Iterable[Record], head: Head) -> Iterator[Item]:
    """Yield the turns of a run, then the steps that no turn tells."""
    del head  # a run names itself
    for record in records:
        run = _Run(key=_key(record.value))
        history = objects(record.value, "history")
        for index, turn in enumerate(history):
            for event in _turn(run, index, turn):
                yield record.line, event
        told = "\n".join(found for turn in history for found in _strings(turn))
        for found in _steps(run, record.value, told, alone=not history):
            yield record.line, found


def _key(value: Mapping[str, object]) -> str:
    history = objects(value, "history")
    first = [next((turn for turn in history if turn.get("role") == role), None) for role in ("system", "user")]
    facts = [value.get("info"), *(split(turn.get("content"))[0] if turn else None for turn in first)]
    return digest(as_json(facts if history else [*facts, value.get("trajectory")]))


def _turn(run: _Run, index: int, turn: Mapping[str, object]) -> Iterator[Event]:
    role = text(turn, "role")
    body, others = split(turn.get("content"))
    if turn.get("is_demo") is True or role not in {"user", "assistant", "tool"}:
        yield run.event(EventKind.RAW, f"{index}", body, record=type_name("demo" if turn.get("is_demo") else role))
    elif role == "assistant":
        yield from _assistant(run, index, turn, body)
    elif role == "tool" or run.acted:
        yield _result(run, index, turn, body)
    else:
        yield run.event(EventKind.USER_MESSAGE, f"{index}", body)
    for number, other in others:
        yield run.event(EventKind.RAW, f"{index}:block:{number}", as_json(other), record=role)
    if turn.get("is_demo") is True:
        for number, call in enumerate(objects(turn, "tool_calls")):
            yield run.event(EventKind.RAW, f"{index}:call:{number}", as_json(call), record="demo")


def _assistant(run: _Run, index: int, turn: Mapping[str, object], body: str) -> Iterator[Event]:
    asked = objects(turn, "tool_calls")
    run.acted = bool(text(turn, "action"))
    if body or not asked:
        yield run.event(EventKind.ASSISTANT_MESSAGE, f"{index}", body)
    for name in ("thought", "action"):
        if (done := text(turn, name)) and done not in body:
            yield run.event(EventKind.RAW, f"{index}:{name}", done, record=name)
    for number, said in enumerate(asked):
        yield _call(run, f"{index}:call:{number}", said)


def _call(run: _Run, origin: str, said: Mapping[str, object]) -> Event:
    function = mapping(said, "function")
    call_id = identifier(said, "id")
    body, call = calls.read(text(function, "name"), function.get("arguments"))
    if call_id:
        run.calls[call_id] = call
    return run.event(EventKind.TOOL_CALL, origin, body, **calls.about(call_id, call))


def _result(run: _Run, index: int, turn: Mapping[str, object], body: str) -> Event:
    run.acted = False
    call_id = named(next((found for found in items(turn, "tool_call_ids") if isinstance(found, str)), ""))
    return run.event(EventKind.TOOL_RESULT, f"{index}", body, **calls.about(call_id, run.calls.get(call_id)))


def _steps(run: _Run, value: Mapping[str, object], told: str, *, alone: bool) -> Iterator[Event | Noise]:
    """Without a history the steps are the conversation; with one they repeat it, and only what is new is kept."""
    for index, step in enumerate(objects(value, "trajectory")):
        new = [(name, kind, body) for name, kind in _STEP if (body := text(step, name)) and (alone or body not in told)]
        for name, kind, body in new:
            yield run.event(kind if alone else EventKind.RAW, f"step:{index}:{name}", body, record=f"step/{name}")
        if not new:
            yield Noise("trajectory")


def _strings(turn: Mapping[str, object]) -> Iterator[str]:
    yield split(turn.get("content"))[0]
    yield text(turn, "thought")
    yield text(turn, "action")
    for call in objects(turn, "tool_calls"):
        yield text(mapping(call, "function"), "arguments")
