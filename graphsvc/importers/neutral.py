"""Neutral events: one JSON a line, checked by hand against schema/event.json."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from graphsvc import clock
from graphsvc.errors import InvalidInput
from graphsvc.importers.source import Gap, Head, Item, Record
from graphsvc.model import Event, EventKind

# What a host may state. Assets, edges, injections and forgetting follow from these or from commands of our own.
KINDS: Final = tuple(
    kind for kind in EventKind if kind not in {EventKind.ASSET, EventKind.EDGE, EventKind.INJECTION, EventKind.FORGET}
)
_REQUIRED: Final = ("session_id", "kind", "origin", "body")
_LIMITS: Final = {"session_id": 1024, "origin": 1024, "project": 4096, "cwd": 4096, "actor": 1024}
_FIELDS: Final = (*_REQUIRED, "ts", "project", "cwd", "actor", "meta")
_META: Final[tuple[tuple[str, type, str], ...]] = (
    ("tool_name", str, "a text"),
    ("tool_use_id", str, "a text"),
    ("file_path", str, "a text"),
    ("is_error", bool, "true or false"),
)


def parse(records: Iterable[Record], head: Head) -> Iterator[Item]:
    """Yield the event of every record, or the gap that says what is wrong with it."""
    del head  # every neutral event says all there is to say
    for record in records:
        try:
            yield record.line, parse_event(record.value)
        except InvalidInput as error:
            yield record.line, Gap(record.line, str(error))


def parse_event(value: object) -> Event:
    """Return the event a JSON value states; raise InvalidInput naming the field otherwise."""
    if not isinstance(value, dict):
        raise InvalidInput("event", f"{type(value).__name__} given", "a JSON object")
    for name in value:
        if name not in _FIELDS:
            raise InvalidInput(ascii(name)[1:-1][:80], "unknown field", ", ".join(_FIELDS))
    for name in _REQUIRED:
        if name not in value:
            raise InvalidInput(name, "missing", "a text")
    meta = _meta(value.get("meta", {}))
    ts, naive = _time(value.get("ts"))
    return Event(
        session_id=_required(value, "session_id"),
        kind=_kind(value["kind"]),
        origin=_required(value, "origin"),
        body=_body(value["body"]),
        ts=ts,
        project=_name(value, "project"),
        cwd=_name(value, "cwd"),
        actor=_name(value, "actor"),
        meta={**meta, "ts_naive": True} if naive else meta,
    )


def _required(value: Mapping[str, object], name: str) -> str:
    found = _name(value, name)
    if found is None:
        raise InvalidInput(name, "empty", f"a text of 1 to {_LIMITS[name]} characters")
    return found


def _name(value: Mapping[str, object], name: str) -> str | None:
    """Names are keys: they must be printable everywhere. Empty counts as left out."""
    found = value.get(name)
    if found is None:
        return None
    if not isinstance(found, str):
        raise InvalidInput(name, f"{type(found).__name__} given", "a text")
    if len(found) > _LIMITS[name]:
        raise InvalidInput(name, f"{len(found)} characters", f"at most {_LIMITS[name]}")
    if "\0" in found or any("\ud800" <= char <= "\udfff" for char in found):
        raise InvalidInput(name, "holds a NUL or a lone surrogate", "valid Unicode text")
    return found or None


def _kind(found: object) -> EventKind:
    if not isinstance(found, str) or found not in KINDS:
        raise InvalidInput("kind", f"{ascii(found)[:80]} is unknown", ", ".join(KINDS))
    return EventKind(found)


def _body(found: object) -> str:
    if not isinstance(found, str):
        raise InvalidInput("body", f"{type(found).__name__} given", "a text")
    return found


def _time(found: object) -> tuple[str | None, bool]:
    if found is None:
        return None, False
    ts, naive = clock.from_host(found)
    if ts is None:
        raise InvalidInput("ts", f"{ascii(found)[:80]} is no time", clock.ISO)
    return ts, naive


def _meta(found: object) -> dict[str, object]:
    if not isinstance(found, dict):
        raise InvalidInput("meta", f"{type(found).__name__} given", "a JSON object")
    for name, kind, allowed in _META:
        if name in found and not isinstance(found[name], kind):
            raise InvalidInput(f"meta.{name}", f"{type(found[name]).__name__} given", allowed)
    return found
