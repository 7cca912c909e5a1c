"""Neutral events: one JSON a line, checked by hand against schema/event.json.

An event with `ledger` is an entry of a ledger, as `graphsvc export` writes it: it may be of any kind and of an origin
that rules make, since what followed from other events stands in lines of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from graphsvc import clock
from graphsvc.errors import InvalidInput
from graphsvc.importers.source import MAX_DEPTH, Gap, Head, Item, Record
from graphsvc.importers.values import UNUSABLE, levels
from graphsvc.model import MAX_NAME, MAX_OURS, MAX_PATH, Entry, Event, EventKind

# What a host may state. Assets, edges, injections and forgetting follow from these or from commands of our own.
KINDS: Final = tuple(
    kind for kind in EventKind if kind not in {EventKind.ASSET, EventKind.EDGE, EventKind.INJECTION, EventKind.FORGET}
)
_REQUIRED: Final = ("session_id", "kind", "origin", "body")
_FIELDS: Final = (*_REQUIRED, "ts", "project", "cwd", "actor", "meta", "ledger")
_ENTRY: Final = ("received_at", "isolated", "at")
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
    entry = _entry(value.get("ledger"))
    meta = _meta(value.get("meta", {}), () if entry else _META)  # a ledger holds what was checked
    ts, about_ts = _time(value.get("ts"))
    return Event(
        session_id=_required(value, "session_id"),
        kind=_kind(value["kind"], tuple(EventKind) if entry else KINDS),
        origin=_required(value, "origin", MAX_OURS if entry else MAX_NAME),
        body=_body(value["body"]),
        ts=ts,
        project=_name(value, "project", MAX_PATH),
        cwd=_name(value, "cwd", MAX_PATH),
        actor=_name(value, "actor"),
        meta={**meta, **about_ts},
        ledger=entry,
    )


def _entry(found: object) -> Entry | None:
    if found is None:
        return None
    if not isinstance(found, dict):
        raise InvalidInput("ledger", f"{type(found).__name__} given", "a JSON object")
    for name in found:
        if name not in _ENTRY:
            raise InvalidInput(f"ledger.{ascii(name)[1:-1][:80]}", "unknown field", ", ".join(_ENTRY))
    if not isinstance(found.get("isolated"), bool):
        raise InvalidInput("ledger.isolated", "missing, or no truth value", "true or false")
    times = {name: _moment(f"ledger.{name}", found.get(name)) for name in ("received_at", "at")}
    if times["received_at"] is None:
        raise InvalidInput("ledger.received_at", "missing", clock.ISO)
    return Entry(received_at=times["received_at"], isolated=found["isolated"], at=times["at"])


def _moment(name: str, found: object) -> str | None:
    if found is None:
        return None
    try:
        return clock.utc_text(clock.parse(found if isinstance(found, str) else ""))
    except (ValueError, OverflowError):
        raise InvalidInput(name, f"{ascii(found)[:80]} is no time", clock.ISO) from None


def _required(value: Mapping[str, object], name: str, limit: int = MAX_NAME) -> str:
    found = _name(value, name, limit)
    if found is None:
        raise InvalidInput(name, "empty", f"a text of 1 to {limit} characters")
    return found


def _name(value: Mapping[str, object], name: str, limit: int = MAX_NAME) -> str | None:
    """Names are keys: they must be printable everywhere. Empty counts as left out."""
    found = value.get(name)
    if found is None:
        return None
    if not isinstance(found, str):
        raise InvalidInput(name, f"{type(found).__name__} given", "a text")
    if len(found) > limit:
        raise InvalidInput(name, f"{len(found)} characters", f"at most {limit}")
    if UNUSABLE.search(found):
        raise InvalidInput(name, "holds a NUL or a lone surrogate", "valid Unicode text")
    return found or None


def _kind(found: object, allowed: Sequence[EventKind]) -> EventKind:
    if not isinstance(found, str) or found not in allowed:
        raise InvalidInput("kind", f"{ascii(found)[:80]} is unknown", ", ".join(allowed))
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


def _meta(found: object, checks: Sequence[tuple[str, type, str]]) -> dict[str, object]:
    if not isinstance(found, dict):
        raise InvalidInput("meta", f"{type(found).__name__} given", "a JSON object")
    for name, kind, allowed in checks:
        if name in found and not isinstance(found[name], kind):
            raise InvalidInput(f"meta.{name}", f"{type(found[name]).__name__} given", allowed)
    # What arrives as lines of JSON was checked when it was read; GraphQL reads 1e999 as infinity.
    for depth, level in enumerate(levels(found), 1):
        if depth >= MAX_DEPTH:  # the event around it is a level, too
            raise InvalidInput("meta", "nested too deep", f"at most {MAX_DEPTH - 1} levels")
        if any(isinstance(part, float) and not math.isfinite(part) for part in level):
            raise InvalidInput("meta", "holds a number that is not finite", "JSON values")
    return found
