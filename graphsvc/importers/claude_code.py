"""Claude Code transcripts: one record a line, one content block a record or several.

Sub-agents carry the session of their parent and their own agent id. A compaction is a boundary record followed by the
user record that holds the summary.
"""

from __future__ import annotations

import re
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
    mapping,
    named,
    present,
    session_fault,
    split,
    stated_cwd,
    text,
    type_name,
    unusable_cwd,
)
from graphsvc.model import Event, EventKind

HOST: Final = "claude-code"

_NOISE: Final = frozenset(
    {
        "api-request", "api-request-blob", "api-request-shape", "atis-latch", "cost-state", "file-history-snapshot",
        "last-prompt", "mode", "permission-mode", "progress", "queue-operation", "tools-used",
        "attachment/hook_success", "system/stop_hook_summary", "system/turn_duration",
    }
)  # fmt: skip
# Strings of user records that nobody typed: commands and their output, notices of the host.
_NOT_WORDS: Final = re.compile(
    r"\s{0,64}(?:<(?:command-(?:name|message|args)|local-command-(?:stdout|stderr|caveat)|bash-(?:input|stdout|stderr)"
    r"|task-notification|system-reminder|user-memory-input)>"
    r"|\[Request interrupted|Caveat: The messages below were generated)"
)


@dataclass(slots=True)
class _File:
    """What the records read so far say about the next ones."""

    head: Head
    cwd: str | None
    session_id: str
    numbering: Numbering = field(default_factory=Numbering)
    calls: dict[str, Call] = field(default_factory=dict)
    prompts: set[str] = field(default_factory=set)
    boundary: tuple[int, _Source] | None = None  # line and record of a compaction whose summary has not come yet


@dataclass(frozen=True, slots=True)
class _Source:
    """A record with what all its events share."""

    record: Mapping[str, object]
    base: str  # origin without the block
    session_id: str
    cwd: str | None
    inferred: bool

    def event(self, kind: EventKind, origin: str | int, body: str, **meta: object) -> Event:
        """Build an event; a number as origin is the index of a block."""
        ts, about_ts = host_time(self.record.get("timestamp"))
        actor = identifier(self.record, "agentId") or ("sidechain" if self.record.get("isSidechain") is True else None)
        shared = {
            "host": HOST,
            "message_id": identifier(mapping(self.record, "message"), "id"),
            "inferred": self.inferred,
            "cwd_unusable": unusable_cwd(self.record),
        }
        return Event(
            session_id=self.session_id,
            kind=kind,
            origin=named(f"{self.base}:{origin}" if isinstance(origin, int) else origin),
            body=body,
            ts=ts,
            cwd=self.cwd,
            actor=actor,
            meta=present(**shared, **about_ts, **meta),
        )

    def raw(self, origin: str | int, body: str, record: str, **meta: object) -> Event:
        """Build an event that is kept and not searched."""
        return self.event(EventKind.RAW, origin, body, record=record, **meta)


_Found = Event | Noise | Unknown | Gap


def parse(records: Iterable[Record], head: Head) -> Iterator[Item]:
    """Yield what the records of a transcript say, in file order."""
    file = _File(head=head, cwd=head.cwd, session_id=head.session_id)
    for record in records:
        for line, found in _interrupted(file, record):
            yield line, found
        for found in _record(file, record):
            yield record.line, found


def _record(file: _File, record: Record) -> Iterator[_Found]:
    value = record.value
    kind = text(value, "type")
    if kind in _NOISE and kind not in _READERS:
        yield Noise(kind)
    elif fault := session_fault(value.get("sessionId")):
        yield Gap(record.line, fault)
    elif kind in _READERS:
        yield from _READERS[kind](file, record)
    else:
        yield Unknown(type_name(value.get("type")))
        yield _source(file, value).raw(0, as_json(value), type_name(value.get("type")))


def _source(file: _File, value: Mapping[str, object]) -> _Source:
    file.session_id = text(value, "sessionId") or file.session_id
    file.cwd = stated_cwd(value) or file.cwd
    uuid = text(value, "uuid")
    if uuid:
        base, inferred = f"claude:{uuid}", file.head.inferred
    else:
        key = f"claude:{file.session_id}:{type_name(value.get('type'))}:{digest(as_json(value))}"
        base, inferred = f"{key}:{file.numbering.number(key)}", True
    return _Source(value, base, file.session_id, file.cwd, inferred)


def _user(file: _File, record: Record) -> Iterator[_Found]:
    value = record.value
    source = _source(file, value)
    content = mapping(value, "message").get("content")
    if value.get("isCompactSummary") is True:
        yield from _summary(file, source, content)
    elif isinstance(content, str):
        yield _words(file, source, content)
    elif isinstance(content, list):
        for index, block in enumerate(content):
            yield from _user_block(file, source, index, block)
    else:
        yield source.raw(0, as_json(value), "user")


def _words(file: _File, source: _Source, content: str) -> Event:
    """The user's own words carry the id of their prompt, which hooks know too."""
    record = source.record
    if record.get("isMeta") is True or _NOT_WORDS.match(content):
        return source.raw(0, content, "user")
    prompt = text(record, "promptId")
    if not prompt or prompt in file.prompts or record.get("isSidechain") is True:
        return source.event(EventKind.USER_MESSAGE, 0, content)
    file.prompts.add(prompt)
    return source.event(EventKind.USER_MESSAGE, f"claude:prompt:{prompt}", content)


def _user_block(file: _File, source: _Source, index: int, block: object) -> Iterator[_Found]:
    content = block_text(block)
    if content is not None:
        typed = source.record.get("isMeta") is not True and not _NOT_WORDS.match(content)
        yield (source.event(EventKind.USER_MESSAGE, index, content) if typed else source.raw(index, content, "user"))
    elif isinstance(block, dict) and block.get("type") == "tool_result":
        yield from _tool_result(file, source, index, block)
    else:
        yield source.raw(index, as_json(block), _block_name("user", block))


def _tool_result(file: _File, source: _Source, index: int, block: Mapping[str, object]) -> Iterator[_Found]:
    tool_use_id = identifier(block, "tool_use_id")
    origin = f"claude:tool:{tool_use_id}:result" if tool_use_id else f"{source.base}:{index}"
    body, others = split(block.get("content"))
    yield source.event(
        EventKind.TOOL_RESULT,
        origin,
        body,
        **calls.about(tool_use_id, file.calls.get(tool_use_id)),
        is_error=block.get("is_error") is True,
        **_outcome(mapping(source.record, "toolUseResult")),
    )
    for number, other in others:
        yield source.raw(f"{origin}:{number}", as_json(other), _block_name("tool_result", other))


def _outcome(result: Mapping[str, object]) -> dict[str, object]:
    """Keep what the structured result says beyond its text: the file before, the file the user made of it, git."""
    original = result.get("originalFile")
    return {
        "original_file": original if isinstance(original, str) else None,
        "new_file": _modified(result, original) if result.get("userModified") is True else None,
        "git_operation": result.get("gitOperation"),
    }


def _modified(result: Mapping[str, object], original: object) -> str | None:
    """The user changed the edit before accepting it, so the call does not tell what was written."""
    if isinstance(result.get("content"), str):
        return text(result, "content")
    old, new = result.get("oldString"), result.get("newString")
    if not (isinstance(original, str) and isinstance(old, str) and isinstance(new, str) and old):
        return None
    return original.replace(old, new, -1 if result.get("replaceAll") is True else 1)


def _assistant(file: _File, record: Record) -> Iterator[_Found]:
    source = _source(file, record.value)
    content = mapping(record.value, "message").get("content")
    if not isinstance(content, str | list):
        yield source.raw(0, as_json(record.value), "assistant")
        return
    for index, block in enumerate(content if isinstance(content, list) else [content]):
        yield from _assistant_block(file, source, index, block)


def _assistant_block(file: _File, source: _Source, index: int, block: object) -> Iterator[_Found]:
    content = block_text(block)
    if content is not None:
        yield source.event(EventKind.ASSISTANT_MESSAGE, index, content)
        return
    kind = text(block, "type") if isinstance(block, dict) else ""
    if not isinstance(block, dict) or kind not in {"tool_use", "thinking"}:
        yield source.raw(index, as_json(block), _block_name("assistant", block))
    elif kind == "thinking":
        thought = text(block, "thinking")
        yield source.raw(index, thought, "thinking") if thought else Noise("assistant/thinking")
    else:
        yield _tool_call(file, source, index, block)


def _tool_call(file: _File, source: _Source, index: int, block: Mapping[str, object]) -> Event:
    tool_use_id = identifier(block, "id")
    body, call = calls.read(text(block, "name"), block.get("input"))
    if tool_use_id:
        file.calls[tool_use_id] = call
    origin = f"claude:tool:{tool_use_id}:call" if tool_use_id else index
    return source.event(EventKind.TOOL_CALL, origin, body, **calls.about(tool_use_id, call))


def _system(file: _File, record: Record) -> Iterator[_Found]:
    subtype = text(record.value, "subtype")
    name = type_name("system", subtype)
    if name in _NOISE:
        yield Noise(name)
        return
    source = _source(file, record.value)
    if subtype == "compact_boundary":
        file.boundary = record.line, source
        yield source.raw(0, text(record.value, "content"), name, **_boundary_meta(record.value))
    elif subtype in {"informational", "local_command"} and text(record.value, "content"):
        yield source.raw(0, text(record.value, "content"), name)
    else:
        if subtype != "api_error":
            yield Unknown(name)
        yield source.raw(0, as_json(record.value), name)


def _summary(file: _File, source: _Source, content: object) -> Iterator[_Found]:
    boundary = file.boundary[1].record if file.boundary else {}
    file.boundary = None
    mark = text(boundary, "uuid") or text(source.record, "parentUuid") or text(source.record, "uuid")
    body, others = split(content)
    meta = _boundary_meta(boundary)
    yield source.event(EventKind.COMPACT_CHECKPOINT, f"claude:compact:{mark}" if mark else 0, body, **meta)
    for index, other in others:
        yield source.raw(index, as_json(other), _block_name("user", other))


def _interrupted(file: _File, record: Record) -> Iterator[Item]:
    """A boundary whose summary does not follow is a checkpoint all the same."""
    value = record.value
    talk = text(value, "type") in {"user", "assistant"} and value.get("isSidechain") is not True
    if file.boundary is None or not talk or value.get("isCompactSummary") is True:
        return
    line, source = file.boundary
    file.boundary = None
    mark = text(source.record, "uuid")
    origin = f"claude:compact:{mark}" if mark else f"{source.base}:checkpoint"
    body = text(source.record, "content")
    yield line, source.event(EventKind.COMPACT_CHECKPOINT, origin, body, **_boundary_meta(source.record))


def _boundary_meta(boundary: Mapping[str, object]) -> dict[str, object]:
    meta = mapping(boundary, "compactMetadata")
    return {"trigger": meta.get("trigger"), "pre_tokens": meta.get("preTokens"), "post_tokens": meta.get("postTokens")}


def _attachment(file: _File, record: Record) -> Iterator[_Found]:
    attachment = mapping(record.value, "attachment")
    kind = text(attachment, "type")
    name = type_name("attachment", kind)
    if name in _NOISE:
        yield Noise(name)
        return
    source = _source(file, record.value)
    if kind == "hook_additional_context":
        body, others = split(attachment.get("content"))
        yield source.raw(0, body, name)
        for index, other in others:
            yield source.raw(index + 1, as_json(other), name)
    elif kind == "queued_command":  # typed while the agent worked, delivered with the next request
        prompt = attachment.get("prompt")
        for index, block in enumerate(prompt if isinstance(prompt, list) else [prompt]):
            yield from _user_block(file, source, index, block)
    else:
        yield Unknown(name)
        yield source.raw(0, as_json(record.value), name)


def _progress(file: _File, record: Record) -> Iterator[_Found]:
    """A sub-agent's messages may stand here only; all other progress repeats what results say."""
    kind = text(mapping(record.value, "data"), "type")
    if kind == "agent_progress":
        yield _source(file, record.value).raw(0, as_json(record.value), "progress/agent_progress")
    else:
        yield Noise("progress")


def _queue(file: _File, record: Record) -> Iterator[_Found]:
    content = text(record.value, "content")
    if content:
        yield _source(file, record.value).raw(0, content, "queue-operation")
    else:
        yield Noise("queue-operation")


def _title(file: _File, record: Record) -> Iterator[_Found]:
    """A summary without a session may name another session of the folder: kept, but no title."""
    value = record.value
    title = next((found for key in ("summary", "customTitle", "aiTitle") if (found := text(value, key))), "")
    named = title if text(value, "sessionId") else None
    yield _source(file, value).raw(0, title or as_json(value), text(value, "type"), title=named)


def _pull_request(file: _File, record: Record) -> Iterator[_Found]:
    url = text(record.value, "prUrl") or text(record.value, "url")
    yield _source(file, record.value).raw(0, as_json(record.value), "pr-link", pull_request=url)


def _block_name(where: str, block: object) -> str:
    return type_name(where, block.get("type") if isinstance(block, dict) else None)


_READERS: Final[dict[str, Callable[[_File, Record], Iterator[_Found]]]] = {
    "user": _user,
    "assistant": _assistant,
    "system": _system,
    "attachment": _attachment,
    "progress": _progress,
    "queue-operation": _queue,
    "summary": _title,
    "custom-title": _title,
    "ai-title": _title,
    "pr-link": _pull_request,
}
