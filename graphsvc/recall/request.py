"""The arguments of `query_session_memory`, checked once against the contract (schema/tool.json)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from graphsvc import clock
from graphsvc.errors import InvalidInput
from graphsvc.model import ASKED_KINDS, EventKind

MAX_LIMIT: Final = 50
MIN_BUDGET: Final = 60
VERBS: Final = ("ls", "cd", "cat", "grep")
_TEXTS: Final = ("query", "kind", "session_id", "since", "until", "order", "nav", "target", "cursor", "project")
_NUMBERS: Final = ("limit", "token_budget")
FIELDS: Final = (*_TEXTS, *_NUMBERS, "count_only")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One call of the tool. Texts that were empty are None; times are UTC text."""

    query: str | None = None
    kind: EventKind | None = None
    session_id: str | None = None
    limit: int = 20
    since: str | None = None
    until: str | None = None
    order: str | None = None
    count_only: bool = False
    token_budget: int = 4000
    nav: str | None = None
    target: str | None = None
    cursor: str | None = None
    project: str | None = None
    asker: tuple[int | None, int | None] = (None, None)  # session and project that were found for who asks


def check(arguments: Mapping[str, object]) -> Request:
    """Return the request, or raise InvalidInput naming the field and what is allowed.

    Empty texts and nulls count as left out: models often fill every parameter.
    """
    for name in arguments:
        if name not in FIELDS:
            raise InvalidInput(str(name)[:80], "unknown parameter", ", ".join(FIELDS))
    texts = {name: _text(name, arguments.get(name)) for name in _TEXTS}
    numbers = {name: _number(name, arguments.get(name)) for name in _NUMBERS}
    limit, budget = numbers["limit"], numbers["token_budget"]
    if limit is not None and not 1 <= limit <= MAX_LIMIT:
        raise InvalidInput("limit", f"{limit} is out of range", f"1 to {MAX_LIMIT}")
    if budget is not None and budget < MIN_BUDGET:
        raise InvalidInput("token_budget", f"{budget} is too small for an answer", f"{MIN_BUDGET} or more")
    count_only = arguments.get("count_only")
    if count_only is not None and not isinstance(count_only, bool):
        raise InvalidInput("count_only", f"{count_only!r} is no boolean", "true or false")
    nav, since, until = texts["nav"], texts["since"], texts["until"]
    request = Request(
        query=texts["query"],
        kind=_kind(texts["kind"]),
        session_id=texts["session_id"],
        limit=limit if limit is not None else 20,
        since=clock.bound("since", since, end=False) if since else None,
        until=clock.bound("until", until, end=True) if until else None,
        order=_choice("order", texts["order"], ("asc", "desc")),
        count_only=bool(count_only),
        token_budget=budget if budget is not None else 4000,
        nav=_choice("nav", nav, VERBS),
        target=texts["target"],
        cursor=texts["cursor"],
        project=texts["project"],
    )
    if request.nav is not None and request.count_only:
        raise InvalidInput("count_only", "given with nav", "a search: leave nav out to count")
    if request.nav == "grep" and request.query is None:
        raise InvalidInput("query", "grep needs a keyword", "words, an identifier or a phrase")
    if request.nav in {"cd", "cat"} and request.target is None:
        raise InvalidInput(
            "target", f"{request.nav} needs one", "an id from an answer, a session id or a document path"
        )
    return request


def arguments(request: Request) -> dict[str, object]:
    """Return what was asked, without how much of it and from where."""
    names = ("nav", "target", "query", "kind", "session_id", "since", "until", "order", "project")
    return {name: value for name in names if (value := getattr(request, name)) is not None}


def call(arguments: Mapping[str, object]) -> str:
    """Write a call as the tool takes it; one without arguments lists what is newest."""
    return json.dumps(arguments or {"order": "desc"}, ensure_ascii=False)


def _text(name: str, value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidInput(name, f"{type(value).__name__} given", "a text")
    if "\0" in value or any("\ud800" <= char <= "\udfff" for char in value):
        raise InvalidInput(name, "holds a NUL or a lone surrogate", "valid Unicode text")
    return value if value.strip() else None


def _number(name: str, value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput(name, f"{value!r} is no whole number", "a whole number")
    return value


def _choice(name: str, value: str | None, allowed: tuple[str, ...]) -> str | None:
    if value is not None and value not in allowed:
        raise InvalidInput(name, f"{value[:80]!r} is unknown", ", ".join(allowed))
    return value


def _kind(value: str | None) -> EventKind | None:
    chosen = _choice("kind", value, tuple(ASKED_KINDS))
    return EventKind(chosen) if chosen else None
