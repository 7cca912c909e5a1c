"""Neutral events: one JSON a line, checked by hand against schema/event.json."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from graphsvc import clock
from graphsvc.errors import InvalidInput
from graphsvc.importers.source import MAX_DEPTH, Gap, Head, Item, Record
from graphsvc.importers.values import UNUSABLE, levels
from graphsvc.model import MAX_NAME, MAX_PATH, Event, EventKind

# What a host may state. Assets, edges, injections and forgetting follow from these or from commands of our own.
KINDS: Final = tuple(
    kind for kind in EventKind if kind not in {EventKind.ASSET, EventKind.EDGE, EventKind.INJECTION, EventKind.FORGET}
)
_REQUIRED: Final = ("session_id", "kind", "origin", "body")
_LIMITS: Final = {"session_id": MAX_NAME, "origin": MAX_NAME, "project": MAX_PATH, "cwd": MAX_PATH, "actor": MAX_NAME}
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
    ts, about_ts = _time(value.get("ts"))
    return Event(
        session_id=_required(value, "session_id"),
        kind=_kind(value["kind"]),
        origin=_required(value, "origin"),
        body=_body(value["body"]),
        ts=ts,
        project=_name(value, "project"),
        cwd=_name(value, "cwd"),
        actor=_name(value, "actor"),
        meta={**meta, **about_ts},
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
    if UNUSABLE.search(found):
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


def _time(found: object) -> tuple[str | None, dict[str, object]]:
    """Return the time in UTC, and what meta says about it."""
    if found is None:
        return None, {}
    try:
        moment = clock.parse(found if isinstance(found, str) else "")
    except OverflowError:  # a time, and in UTC the year is 0 or 10000
        return None, {"ts_raw": found}
    except ValueError:
        raise InvalidInput("ts", f"{ascii(found)[:80]} is no time", clock.ISO) from None
    return clock.utc_text(moment), {"ts_naive": True} if moment.tzinfo is None else {}


def _meta(found: object) -> dict[str, object]:
    if not isinstance(found, dict):
        raise InvalidInput("meta", f"{type(found).__name__} given", "a JSON object")
    for name, kind, allowed in _META:
        if name in found and not isinstance(found[name], kind):
            raise InvalidInput(f"meta.{name}", f"{type(found[name]).__name__} given", allowed)
    # What arrives as lines of JSON was checked when it was read; GraphQL reads 1e999 as infinity.
    for depth, level in enumerate(levels(found), 1):
        if depth > MAX_DEPTH:
            raise InvalidInput("meta", "nested too deep", f"at most {MAX_DEPTH} levels")
        if any(isinstance(part, float) and not math.isfinite(part) for part in level):
            raise InvalidInput("meta", "holds a number that is not finite", "JSON values")
    return found
