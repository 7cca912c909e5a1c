"""Codex rollouts: the items of the conversation and the events of the terminal, which say much of it twice.

A text has the origin (session, speaker, hash, n-th time in its stream), so the same words as item and as event are one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from graphsvc.importers import calls
from graphsvc.importers.calls import Call
from graphsvc.importers.source import Gap, Head, Item, Noise, Record, Unknown
from graphsvc.importers.values import (
    Numbering,
    as_json,
    block_text,
    digest,
    host_time,
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

HOST: Final = "codex"

_NOISE: Final = frozenset(
    {
        "event_msg/agent_message_delta", "event_msg/agent_reasoning_delta", "event_msg/agent_reasoning_section_break",
        "event_msg/context_compacted", "event_msg/exec_command_begin", "event_msg/exec_command_output_delta",
        "event_msg/mcp_tool_call_begin", "event_msg/patch_apply_begin", "event_msg/task_started",
        "event_msg/thread_settings_applied", "event_msg/token_count", "event_msg/web_search_begin",
        "inter_agent_communication_metadata", "response_item/ghost_snapshot", "world_state",
    }
)  # fmt: skip
# Kept as they are: they tell what happened, and belong to no tool of the conversation.
_KEPT: Final = frozenset(
    {
        "event_msg/collab_agent_interaction_end", "event_msg/collab_agent_spawn_end", "event_msg/collab_close_end",
        "event_msg/collab_waiting_end", "event_msg/dynamic_tool_call_request", "event_msg/entered_review_mode",
        "event_msg/error", "event_msg/exited_review_mode", "event_msg/guardian_assessment",
        "event_msg/image_generation_end", "event_msg/patch_apply_end", "event_msg/sub_agent_activity",
        "event_msg/thread_goal_updated", "event_msg/turn_aborted", "event_msg/undo_completed",
        "event_msg/view_image_tool_call", "event_msg/web_search_end", "response_item/image_generation_call",
        "session_meta",
    }
)  # fmt: skip
_NOT_WORDS: Final = re.compile(
    r"\s{0,64}(?:<(?:environment_context|user_instructions|INSTRUCTIONS|turn_aborted|permissions|skill|subagent_)"
    r"|# AGENTS\.md instructions)"
)
_EXIT: Final = re.compile(r"(?:\A|\n)(?:Exit code: |Process exited with code )(-?\d{1,10})\b")
_EXIT_WINDOW: Final = 400
_MAX_HELD: Final = 64


@dataclass(slots=True)
class _File:
    """What the records read so far say about the next ones."""

    session_id: str
    cwd: str | None
    started: bool = False
    numbering: Numbering = field(default_factory=Numbering)
    streams: Numbering = field(default_factory=Numbering)  # how often a text came in one stream
    told: Counter[str] = field(default_factory=Counter)  # how often it was stored
    calls: dict[str, Call] = field(default_factory=dict)
    ends: dict[str, Record] = field(default_factory=dict)  # outcomes that the result will probably repeat


@dataclass(frozen=True, slots=True)
class _Source:
    """A record with what all its events share."""

    file: _File
    line: int
    record: Mapping[str, object]

    @property
    def payload(self) -> Mapping[str, object]:
        return mapping(self.record, "payload")

    @property
    def name(self) -> str:
        kind = text(self.record, "type")
        return type_name(kind, self.payload.get("type") if kind in {"event_msg", "response_item"} else None)

    def base(self) -> str:
        """Number the record by its content: rollouts have no ids that all records share."""
        key = f"codex:{self.file.session_id}:{self.name}:{digest(as_json(self.record.get('payload')))}"
        return f"{key}:{self.file.numbering.number(key)}"

    def event(self, kind: EventKind, origin: str, body: str, **meta: object) -> Event:
        """Build an event of this record."""
        ts, about_ts = host_time(self.record.get("timestamp"))
        shared = {
            "host": HOST,
            "message_id": identifier(self.payload, "id"),
            "cwd_unusable": unusable_cwd(self.payload),
        }
        return Event(
            session_id=self.file.session_id,
            kind=kind,
            origin=named(origin),
            body=body,
            ts=ts,
            cwd=self.file.cwd,
            meta=present(**shared, **about_ts, **meta),
        )

    def raw(self, origin: str, body: str, **meta: object) -> Event:
        """Build an event that is kept and not searched."""
        return self.event(EventKind.RAW, origin, body, **{"record": self.name, "inferred": True, **meta})

    def said(self, kind: EventKind, speaker: str, body: str, **meta: object) -> Event | Noise:
        """Build the event of a text, unless another stream told it already."""
        key = f"codex:{self.file.session_id}:{speaker}:{digest(body)}"
        number = self.file.streams.number(f"{self.name}:{key}")
        if number < self.file.told[key]:
            return Noise(self.name)
        self.file.told[key] = number + 1
        return self.event(kind, f"{key}:{number}", body, inferred=True, **meta)


_Found = Event | Noise | Unknown | Gap


def parse(records: Iterable[Record], head: Head) -> Iterator[Item]:
    """Yield what the records of a rollout say, in file order."""
    file = _File(session_id=head.session_id, cwd=head.cwd)
    for record in records:
        source = _Source(file, record.line, record.value)
        for found in _record(source):
            yield record.line, found
        while len(file.ends) > _MAX_HELD:
            yield _let_go(file, next(iter(file.ends)))
    for call_id in list(file.ends):
        yield _let_go(file, call_id)


def _record(source: _Source) -> Iterator[_Found]:
    name = source.name
    if name in _NOISE:
        yield Noise(name)
    elif name in _READERS:
        yield from _READERS[name](source)
    else:
        if name not in _KEPT:
            yield Unknown(name)
        yield source.raw(source.base(), as_json(source.record))


def _session_meta(source: _Source) -> Iterator[_Found]:
    """The first one names the session; later ones are copies of forks and sub-agents."""
    file, payload = source.file, source.payload
    ids = [payload.get(key) for key in ("id", "session_id")]
    if file.started or file.session_id not in ids:
        fault = None if file.started else next(filter(None, map(session_fault, ids)), None)
        yield Gap(source.line, fault) if fault else source.raw(source.base(), as_json(source.record))
        return
    file.started = True
    file.cwd = stated_cwd(payload) or file.cwd
    forked, spawned = identifier(payload, "forked_from_id"), _spawned_by(payload)
    relation = "fork" if forked else "delegation" if spawned else None
    yield source.event(
        EventKind.SESSION_START,
        f"codex:{file.session_id}:start",
        as_json(source.record),
        parent=forked or spawned,
        relation=relation,
    )


def _spawned_by(payload: Mapping[str, object]) -> str:
    spawn = mapping(mapping(mapping(payload, "source"), "subagent"), "thread_spawn")
    return identifier(payload, "parent_thread_id") or identifier(spawn, "parent_thread_id")


def _turn(source: _Source) -> Iterator[_Found]:
    """A turn says where it works, and nothing else that is not in the records after it."""
    source.file.cwd = stated_cwd(source.payload) or source.file.cwd
    yield source.raw(source.base(), as_json(source.record)) if unusable_cwd(source.payload) else Noise(source.name)


def _message(source: _Source) -> Iterator[_Found]:
    role = text(source.payload, "role")
    content = source.payload.get("content")
    base = source.base()
    for index, block in enumerate(content if isinstance(content, list) else [content]):
        body = block_text(block)
        if body is None:
            if not _empty(block):
                yield source.raw(f"{base}:{index}", as_json(block))
        elif role == "assistant":
            yield source.said(EventKind.ASSISTANT_MESSAGE, "assistant", body)
        elif role == "user" and not _NOT_WORDS.match(body):
            yield source.said(EventKind.USER_MESSAGE, "user", body)
        else:
            yield source.raw(f"{base}:{index}", body, record=type_name("message", role))


def _empty(block: object) -> bool:
    """An image without a picture says nothing."""
    return block is None or (isinstance(block, dict) and "image_url" in block and block["image_url"] is None)


def _user_event(source: _Source) -> Iterator[_Found]:
    body = text(source.payload, "message")
    if _NOT_WORDS.match(body):
        yield source.raw(source.base(), body)
    else:
        yield source.said(EventKind.USER_MESSAGE, "user", body)
    if images := [item for key in ("images", "local_images") for item in items(source.payload, key)]:
        yield source.raw(f"{source.base()}:images", as_json(images))


def _agent_event(source: _Source) -> Iterator[_Found]:
    yield source.said(EventKind.ASSISTANT_MESSAGE, "assistant", text(source.payload, "message"))


def _task_complete(source: _Source) -> Iterator[_Found]:
    last = text(source.payload, "last_agent_message")
    yield source.said(EventKind.ASSISTANT_MESSAGE, "assistant", last) if last else Noise(source.name)
    if source.payload.get("error"):
        yield source.raw(source.base(), as_json(source.payload["error"]))


def _item_completed(source: _Source) -> Iterator[_Found]:
    item = mapping(source.payload, "item")
    speakers = {
        "UserMessage": (EventKind.USER_MESSAGE, "user"),
        "AgentMessage": (EventKind.ASSISTANT_MESSAGE, "assistant"),
    }
    known = speakers.get(text(item, "type"))
    blocks = items(item, "content")
    if known is None or not blocks or any(block_text(block) is None for block in blocks):
        yield source.raw(source.base(), as_json(source.record))
        return
    for block in blocks:
        yield source.said(*known, block_text(block) or "")


def _thoughts(source: _Source) -> Iterator[_Found]:
    thoughts = [block_text(block) for key in ("summary", "content") for block in items(source.payload, key)]
    for body in filter(None, thoughts):
        yield source.said(EventKind.RAW, "thinking", body, record="thinking")
    if not any(thoughts):
        yield Noise(source.name)


def _thought_event(source: _Source) -> Iterator[_Found]:
    yield source.said(EventKind.RAW, "thinking", text(source.payload, "text"), record="thinking")


def _agent_item(source: _Source) -> Iterator[_Found]:
    """A message between agents."""
    base = source.base()
    body, others = split(source.payload.get("content"))
    author = text(source.payload, "author")
    if body:
        yield source.raw(f"{base}:text", body, author=author, recipient=text(source.payload, "recipient"))
    for index, other in others:
        yield source.raw(f"{base}:{index}", as_json(other))


def _call(source: _Source) -> Iterator[_Found]:
    payload = source.payload
    call_id = identifier(payload, "call_id")
    given = next((payload[key] for key in ("arguments", "input", "action") if payload.get(key) is not None), "")
    body, call = calls.read(text(payload, "name") or text(payload, "type").removesuffix("_call"), given)
    if call_id:
        source.file.calls[call_id] = call
    yield source.event(
        EventKind.TOOL_CALL,
        f"codex:{source.file.session_id}:call:{call_id}" if call_id else source.base(),
        body,
        namespace=text(payload, "namespace"),
        inferred=not call_id,
        **calls.about(call_id, call),
    )


def _output(source: _Source) -> Iterator[_Found]:
    payload = source.payload
    call_id = identifier(payload, "call_id")
    origin = f"codex:{source.file.session_id}:result:{call_id}" if call_id else source.base()
    output = payload.get("output")
    body, others = _output_text(output if output is not None else payload.get("tools"), listed=output is None)
    yield source.event(
        EventKind.TOOL_RESULT,
        origin,
        body,
        is_error=_failed(output, body),
        inferred=not call_id,
        **calls.about(call_id, source.file.calls.get(call_id)),
    )
    for index, other in others:
        if not _empty(other):
            yield source.raw(f"{origin}:{index}", as_json(other))
    end = source.file.ends.get(call_id)
    if end is not None:
        del source.file.ends[call_id]
        ended = _Source(source.file, end.line, end.value)
        repeated = all(said.strip() in body for said in _outcome(ended.payload))
        yield Noise(ended.name) if repeated else _kept_end(ended)


def _output_text(output: object, *, listed: bool) -> tuple[str, list[tuple[int, object]]]:
    """Return the text of an output; a list of found tools is data and kept as JSON."""
    if output is None:
        return "", []
    if isinstance(output, str | list) and not listed:
        return split(output)
    if isinstance(output, dict):
        said = block_text(output) if "type" in output else output.get("content")
        if isinstance(said, str | list):
            return split(said)
    return as_json(output), []


def _failed(output: object, body: str) -> bool:
    if isinstance(output, dict) and output.get("success") is False:
        return True
    code = mapping(calls.arguments(body), "metadata").get("exit_code") if body.startswith("{") else None
    if isinstance(code, int):
        return code != 0
    shown = _EXIT.search(body, 0, _EXIT_WINDOW)
    return shown is not None and int(shown[1]) != 0


def _end(source: _Source) -> Iterator[_Found]:
    """The terminal's view of a tool: kept back until the result shows whether it says anything new."""
    call_id = identifier(source.payload, "call_id")
    before = source.file.ends.pop(call_id, None)
    if before is not None:
        yield _kept_end(_Source(source.file, before.line, before.value))
    if call_id:
        source.file.ends[call_id] = Record(source.line, source.record)
    else:
        yield _kept_end(source)


def _outcome(payload: Mapping[str, object]) -> list[str]:
    """List the texts that a tool gave back."""
    texts = [text(payload, key) for key in ("aggregated_output", "stdout", "stderr")]
    result = mapping(payload, "result")
    texts += [text(result, "Err"), split(mapping(result, "Ok").get("content"))[0]]
    texts += [block_text(item) or "" for item in objects(payload, "content_items")]
    return [found for found in texts if found]


def _kept_end(source: _Source) -> Event:
    return source.raw(source.base(), as_json(source.record))


def _let_go(file: _File, call_id: str) -> tuple[int, Event]:
    end = file.ends.pop(call_id)
    return end.line, _kept_end(_Source(file, end.line, end.value))


def _compacted(source: _Source) -> Iterator[_Found]:
    message = text(source.payload, "message")
    history = objects(source.payload, "replacement_history")
    texts = [found for item in history if (found := split(item.get("content"))[0])]
    base = source.base()
    body = message or "\n".join(texts)
    yield source.event(EventKind.COMPACT_CHECKPOINT, base, body, inferred=True)
    if history:
        yield source.raw(f"{base}:history", as_json(history))


def _title(source: _Source) -> Iterator[_Found]:
    name = text(source.payload, "thread_name")
    yield source.raw(source.base(), name, title=name)


_READERS: Final[dict[str, Callable[[_Source], Iterator[_Found]]]] = {
    "session_meta": _session_meta,
    "turn_context": _turn,
    "compacted": _compacted,
    "response_item/message": _message,
    "response_item/reasoning": _thoughts,
    "response_item/agent_message": _agent_item,
    "response_item/function_call": _call,
    "response_item/custom_tool_call": _call,
    "response_item/local_shell_call": _call,
    "response_item/tool_search_call": _call,
    "response_item/web_search_call": _call,
    "response_item/function_call_output": _output,
    "response_item/custom_tool_call_output": _output,
    "response_item/tool_search_output": _output,
    "event_msg/user_message": _user_event,
    "event_msg/agent_message": _agent_event,
    "event_msg/agent_reasoning": _thought_event,
    "event_msg/task_complete": _task_complete,
    "event_msg/item_completed": _item_completed,
    "event_msg/exec_command_end": _end,
    "event_msg/mcp_tool_call_end": _end,
    "event_msg/dynamic_tool_call_response": _end,
    "event_msg/thread_name_updated": _title,
}
