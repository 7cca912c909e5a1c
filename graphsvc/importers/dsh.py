"""dsh session logs: a header line, then records numbered by `seq`, which is their origin.

Both shapes of results are read: nested in a user message (0.1) and flat in a tool message (0.2). A fork begins with the
records of its parent, and they keep the parent's origins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from graphsvc.importers import calls
from graphsvc.importers.calls import Call
from graphsvc.importers.source import Gap, Head, Item, Noise, Record, Unknown
from graphsvc.importers.values import (
    Numbering,
    as_json,
    block_text,
    digest,
    epoch_time,
    identifier,
    items,
    mapping,
    named,
    objects,
    present,
    session_fault,
    split,
    stated_cwd,
    text,
    type_name,
    unusable_cwd,
)
from graphsvc.model import Event, EventKind

HOST: Final = "dsh"

_NOISE: Final = frozenset(
    {
        "approval/policy", "assistant/chunk", "compaction/start", "permission/preset", "reasoning-chunks",
        "request/context", "request/header", "sandbox/mode", "session/end-seed", "session/title-llm-request",
        "session-log-deepseek/delivery-accepted", "step/end", "step/start", "text-chunks", "tool-call-chunks",
        "turn/end", "turn/start",
    }
)  # fmt: skip
_KEPT: Final = frozenset({"approval/asked", "approval/decided", "compaction/prune", "subagent/descriptor"})
_GOAL_ACTIONS: Final = {
    "create": "record",
    "complete": "complete",
    "drop": "drop",
    "abandon": "drop",
    "cancel": "drop",
    "clear": "drop",
    "delete": "drop",
    "discard": "drop",
    "fail": "drop",
    "remove": "drop",
}


@dataclass(slots=True)
class _File:
    """What the records read so far say about the next ones."""

    head: Head
    session_id: str
    cwd: str | None
    parent: str = ""
    seed: int = 0  # records below this seq are the parent's
    numbering: Numbering = field(default_factory=Numbering)
    calls: dict[str, Call] = field(default_factory=dict)
    origins: dict[int, list[str]] = field(default_factory=dict)  # what each seq became: a compaction names seqs
    summary: Record | None = None  # of a compaction that has not ended


@dataclass(frozen=True, slots=True)
class _Source:
    """A record with what all its events share."""

    file: _File
    record: Mapping[str, object]
    owner: str  # the session whose name stands in the origins
    base: str

    @property
    def data(self) -> Mapping[str, object]:
        return mapping(self.record, "data")

    def event(self, kind: EventKind, origin: str | int, body: str, **meta: object) -> Event:
        """Build an event; a number as origin is the index of a block, the first one has the bare seq."""
        name = named(origin if isinstance(origin, str) else f"{self.base}:{origin}" if origin else self.base)
        self.became(name)
        ts, about_ts = epoch_time(self.record.get("time"))
        shared = {
            "host": HOST,
            "inferred": self.file.head.inferred or not isinstance(self.record.get("seq"), int),
            "cwd_unusable": unusable_cwd(self.record),
        }
        return Event(
            session_id=self.file.session_id,
            kind=kind,
            origin=name,
            body=body,
            ts=ts,
            cwd=self.file.cwd,
            meta=present(**shared, **about_ts, **meta),
        )

    def became(self, origin: str) -> None:
        """Note an event that this record tells."""
        seq = self.record.get("seq")
        if isinstance(seq, int):
            self.file.origins.setdefault(seq, []).append(origin)

    def raw(self, origin: str | int, body: str, record: str = "", **meta: object) -> Event:
        """Build an event that is kept and not searched."""
        return self.event(EventKind.RAW, origin, body, record=record or text(self.record, "type"), **meta)


_Found = Event | Noise | Unknown | Gap


def parse(records: Iterable[Record], head: Head) -> Iterator[Item]:
    """Yield what the records of a log say, in file order."""
    file = _File(head=head, session_id=head.session_id, cwd=head.cwd)
    for record in records:
        for found in _record(file, record):
            yield record.line, found
    if file.summary is not None:
        yield file.summary.line, _unended(file, file.summary, "pending")


def _record(file: _File, record: Record) -> Iterator[_Found]:
    kind = text(record.value, "type")
    if kind == "session" and "data" not in record.value:
        yield _header(file, record)
    elif kind == "compaction/summary":
        yield from _held(file, record)
    elif kind == "compaction/end":
        yield from _compaction_end(file, record)
    elif kind in _NOISE:
        yield Noise(kind)
    elif kind in _READERS:
        yield from _READERS[kind](_source(file, record.value))
    else:
        if kind not in _KEPT:
            yield Unknown(type_name(record.value.get("type")))
        yield _source(file, record.value).raw(0, as_json(record.value), type_name(record.value.get("type")))


def _source(file: _File, value: Mapping[str, object]) -> _Source:
    seq = value.get("seq")
    owner = file.parent if isinstance(seq, int) and file.parent and seq < file.seed else file.session_id
    if isinstance(seq, int):
        return _Source(file, value, owner, f"dsh:{owner}:{seq}")
    key = f"dsh:{owner}:{type_name(value.get('type'))}:{digest(as_json(value))}"
    return _Source(file, value, owner, f"{key}:{file.numbering.number(key)}")


def _header(file: _File, record: Record) -> _Found:
    """Learn what the header says of all records, also from one whose own session cannot be named."""
    value = record.value
    file.parent = identifier(value, "parentSession")
    seed = value.get("seedLength")
    file.seed = seed if isinstance(seed, int) else 0
    file.cwd = stated_cwd(value) or file.cwd
    if fault := session_fault(value.get("id")):
        return Gap(record.line, fault)
    start = {**value, "time": value.get("createdAt"), "seq": -1}
    source = _Source(file, start, file.session_id, f"dsh:{file.session_id}:start")
    return source.event(
        EventKind.SESSION_START,
        0,
        as_json(value),
        parent=file.parent,
        relation=_relation(value) if file.parent else None,
    )


def _relation(header: Mapping[str, object]) -> str:
    depth = header.get("delegationDepth")
    if "seedLength" in header:
        return "fork"
    if (isinstance(depth, int) and depth > 0) or text(header, "origin") in {"subagent", "delegation"}:
        return "delegation"
    return "resume"


def _user(source: _Source) -> Iterator[_Found]:
    """Words of the user come from the user; plugins, catalogs and goal rounds speak in the same records."""
    yield from _blocks(source, source.data, 0)


def _blocks(source: _Source, message: Mapping[str, object], first: int) -> Iterator[Event]:
    speaker = text(mapping(message, "source"), "kind")
    mine = speaker in {"", "user"}
    content = message.get("content")
    if not isinstance(content, str | list):
        yield source.raw(first, as_json(source.record))
        return
    for index, block in enumerate(content if isinstance(content, list) else [content], first):
        body = block_text(block)
        if body is not None and mine:
            yield source.event(EventKind.USER_MESSAGE, index, body, message_id=identifier(message, "id"))
        else:
            kept = as_json(block) if body is None else body
            yield source.raw(index, kept, type_name("user/message", speaker), message_id=identifier(message, "id"))


def _assistant(source: _Source) -> Iterator[_Found]:
    message = mapping(source.data, "message")
    content = message.get("content")
    if not isinstance(content, str | list):
        yield source.raw(0, as_json(source.record))
        return
    for index, block in enumerate(content if isinstance(content, list) else [content]):
        kind = text(block, "type") if isinstance(block, dict) else ""
        body = block_text(block)
        if isinstance(block, dict) and kind in {"reasoning", "thinking"}:
            thought = text(block, "text") or text(block, "thinking")
            yield source.raw(index, thought, "thinking") if thought else Noise("assistant/reasoning")
        elif isinstance(block, dict) and kind == "tool-call":
            yield from _call(source, block, identifier(block, "id"), index, identifier(message, "id"))
        elif body is not None:
            yield source.event(EventKind.ASSISTANT_MESSAGE, index, body, message_id=identifier(message, "id"))
        else:
            yield source.raw(index, as_json(block), type_name("assistant/message", kind))


def _tool_call(source: _Source) -> Iterator[_Found]:
    yield from _call(source, source.data, identifier(source.data, "callId"), 0, "")


def _call(source: _Source, said: Mapping[str, object], call_id: str, index: int, message: str) -> Iterator[_Found]:
    """The call stands in the answer and again as a record of its own: the first one is stored."""
    body, call = calls.read(text(said, "name"), said.get("arguments"))
    origin = f"dsh:{source.owner}:call:{call_id}" if call_id else index
    if source.file.calls.get(call_id) == call:
        source.became(named(f"{origin}"))
        yield Noise("tool/call")
        return
    if call_id:
        source.file.calls[call_id] = call
    yield source.event(EventKind.TOOL_CALL, origin, body, message_id=message, **calls.about(call_id, call))


def _tool_result(source: _Source) -> Iterator[_Found]:
    message = mapping(source.data, "message")
    if not isinstance(message.get("content"), str | list):
        yield source.raw(0, as_json(source.record))
        return
    nested = [block for block in objects(message, "content") if block.get("type") == "tool-result"]
    for index, block in enumerate(nested or [message]):
        yield from _result(source, index, block, identifier(message, "id"))
    error = source.data.get("error")
    if error:
        yield source.raw(f"{source.base}:error", error if isinstance(error, str) else as_json(error), "tool/error")


def _result(source: _Source, index: int, block: Mapping[str, object], message: str) -> Iterator[Event]:
    spoken = mapping(mapping(source.data, "message"), "source")
    places = ((block, "toolCallId"), (spoken, "callId"), (source.data, "callId"))
    call_id = next((found for place, key in places if (found := identifier(place, key))), "")
    origin = f"dsh:{source.owner}:result:{call_id}" if call_id else f"{source.base}:{index}"
    body, others = split(block.get("content"))
    yield source.event(
        EventKind.TOOL_RESULT,
        origin,
        body,
        is_error=block.get("isError") is True or bool(source.data.get("error")),
        message_id=message,
        **calls.about(call_id, source.file.calls.get(call_id)),
    )
    for number, other in others:
        yield source.raw(f"{origin}:{number}", as_json(other), "tool/result")


def _held(file: _File, record: Record) -> Iterator[_Found]:
    """A summary counts when its compaction ends well, so it waits for the end."""
    if file.summary is not None:
        yield _unended(file, file.summary, "pending")
    file.summary = record
    data = mapping(record.value, "data")
    output, _ = split(data.get("rawOutput"))
    summary, others = split(data.get("summary"))
    source = _source(file, record.value)
    if output and output != summary:
        yield source.raw(f"{source.base}:output", output, "compaction/output")
    for index, other in others:
        yield source.raw(f"{source.base}:{index}", as_json(other))


def _compaction_end(file: _File, record: Record) -> Iterator[_Found]:
    held, end = file.summary, mapping(record.value, "data")
    file.summary = None
    if held is None:
        yield Noise("compaction/end")
        return
    data = mapping(held.value, "data")
    if end.get("error") or text(data, "compactionId") != text(end, "compactionId"):
        yield _unended(file, held, "failed")
        return
    source = _source(file, held.value)
    seqs = [seq for seq in items(data, "shadowedSeqs") if isinstance(seq, int)]
    replaced = list(dict.fromkeys(name for seq in seqs for name in file.origins.get(seq, [])))
    yield source.event(
        EventKind.COMPACT_CHECKPOINT,
        0,
        split(data.get("summary"))[0],
        trigger="manual" if end.get("turn") is None else "auto",
        replaces=replaced,
    )


def _unended(file: _File, held: Record, why: str) -> Event:
    # Its own origin: when the end is written later, the checkpoint must not meet this event.
    source = _source(file, held.value)
    return source.raw(f"{source.base}:{why}", split(source.data.get("summary"))[0])


def _goal(source: _Source) -> Iterator[_Found]:
    goal = mapping(source.data, "goal")
    action = _GOAL_ACTIONS.get(text(source.data, "operation"))
    key = identifier(goal, "id")
    if action is None or not key:
        yield source.raw(0, as_json(source.record))
    else:
        yield source.event(EventKind.GOAL, 0, text(goal, "objective"), action=action, key=key)


def _todos(source: _Source) -> Iterator[_Found]:
    written = next((found for key in ("todos", "items") if (found := source.data.get(key)) is not None), None)
    todos = [todo for item in written if (todo := _todo(item))] if isinstance(written, list) else []
    if not isinstance(written, list) or len(todos) != len(written):
        yield source.raw(0, as_json(source.record))
    else:
        yield source.event(EventKind.TODO, 0, as_json(written), action="snapshot", todos=todos)


def _todo(item: object) -> dict[str, str] | None:
    if not isinstance(item, dict):
        return None
    words = next((found for key in ("text", "content", "title") if (found := text(item, key))), "")
    return {"text": words, "status": text(item, "status") or "pending"} if words else None


def _title(source: _Source) -> Iterator[_Found]:
    yield source.raw(0, text(source.data, "title"), title=text(source.data, "title"))


def _command(source: _Source) -> Iterator[_Found]:
    yield source.raw(0, f"/{text(source.data, 'name')}{text(source.data, 'args')}")


def _command_done(source: _Source) -> Iterator[_Found]:
    yield source.raw(0, text(source.data, "text") or as_json(source.record))


def _spliced(source: _Source) -> Iterator[_Found]:
    """Messages on their way to the model: they come again when they are delivered, which may never be."""
    count = 0
    for message in objects(source.data, "inserted"):
        for event in _blocks(source, message, count):
            count += 1
            yield replace(event, kind=EventKind.RAW, meta={**event.meta, "record": "agent/inbox/spliced"})
    if not count:
        yield Noise("agent/inbox/spliced")


def _system(source: _Source) -> Iterator[_Found]:
    message = mapping(source.data, "message") or source.data
    body, others = split(message.get("content"))
    yield source.raw(0, body) if body else source.raw(0, as_json(source.record))
    for index, other in others:
        yield source.raw(f"{source.base}:{index}", as_json(other))


_READERS: Final[dict[str, Callable[[_Source], Iterator[_Found]]]] = {
    "user/message": _user,
    "assistant/message": _assistant,
    "tool/call": _tool_call,
    "tool/result": _tool_result,
    "goal/change": _goal,
    "todo/write": _todos,
    "session/title": _title,
    "command/run": _command,
    "command/done": _command_done,
    "agent/inbox/spliced": _spliced,
    "system/message": _system,
}
