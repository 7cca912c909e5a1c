"""How calls are asked, and how their answers are compared: one row for each way to a store.

A way (`Carry`) takes a document and its variables and yields responses: one of a query, all that a subscription has to
deliver. The ways of a service are added by who has one; a comparison takes any two.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Final

from graphsvc import clock
from graphsvc.api import schema
from graphsvc.api.context import Context
from graphsvc.api.live import Reader
from graphsvc.audit.reads import Call, Sort
from graphsvc.client import tool
from graphsvc.errors import GraphsvcError
from graphsvc.graph.mirror import Mirror
from graphsvc.recall.scope import Asker
from graphsvc.store.database import Connection

Carry = Callable[[str, Mapping[str, object], bool], Iterable[Mapping[str, object]]]  # document, variables, subscribes
DELIVERED: Final = 200  # things of one subscription that are compared
_UNSTEADY: Final = frozenset({"DEADLINE", "BUSY"})


class Unanswered(GraphsvcError):
    """A call was answered by a bug, or not in time, so that its answer says nothing."""


@dataclass(frozen=True, slots=True)
class Way:
    """A transport: its name, the sorts of calls that it takes, and what asks over it as somebody."""

    name: str
    sorts: frozenset[Sort]
    open: Callable[[Any, Asker], AbstractContextManager[Carry]]  # of a place that it knows


@dataclass(frozen=True, slots=True)
class Place:
    """A store that is open in this process, and its mirror of the graph if there is one."""

    db: Connection
    mirror: Mirror | None = None


def carry(place: Place, asker: Asker) -> Carry:
    """Return what executes documents in this process."""
    mirror = place.mirror
    begin = (lambda: nullcontext(mirror)) if mirror is not None else None

    def execute(
        document: str, variables: Mapping[str, object], subscribes: bool = False
    ) -> Iterator[Mapping[str, object]]:
        context = Context(db=place.db, asker=asker, clock=clock.system, catch_up=True, begin_mirror=begin)
        if not subscribes:
            yield schema.respond(document, variables, None, context)
            return
        reader = Reader()
        while True:
            reader.found = None
            response = schema.respond(document, variables, None, context, reader=reader)
            if reader.found or reader.found is None:
                yield response
            if reader.found is None or not reader.more:
                return

    return execute


def _here(place: Place, asker: Asker) -> AbstractContextManager[Carry]:
    return nullcontext(carry(place, asker))


WAYS: Final = (
    Way("tool", frozenset({Sort.TOOL}), _here),
    Way("in process", frozenset({Sort.QUERY, Sort.SUBSCRIPTION}), _here),
)


def answers(call: Call, ask: Carry) -> list[object]:
    """Return what a call answers, page by page; raise Unanswered when something else than an answer comes."""
    if call.sort is Sort.SUBSCRIPTION:
        found: list[object] = []
        for one in ask(call.document, call.variables, True):
            found.append(_checked(one))
            if len(found) == DELIVERED:
                break
        return found
    return list(_tool(call, ask) if call.sort is Sort.TOOL else _pages(call, ask))


def _tool(call: Call, ask: Carry) -> Iterator[object]:
    def execute(document: str, variables: Mapping[str, object]) -> Mapping[str, object]:
        [response] = ask(document, variables, False)
        return _checked(response)

    given = dict(call.variables)
    for _ in range(call.pages):
        line, code = tool.call(given, execute)
        answer = json.loads(line)
        yield answer
        yield code
        if (cursor := answer.get("cursor")) is None:
            return
        given["cursor"] = cursor


def _pages(call: Call, ask: Carry) -> Iterator[object]:
    given = dict(call.variables)
    for _ in range(call.pages):
        [response] = ask(call.document, given, False)
        yield _checked(response)
        following = _following(response.get("data"))
        if not following:
            return
        given |= following


def _checked(response: Mapping[str, object]) -> Mapping[str, object]:
    errors = response.get("errors")
    for one in errors if isinstance(errors, list) else ():
        code = one.get("extensions", {}).get("code")
        if code == "BUG" or code in _UNSTEADY:
            raise Unanswered(f"{code}: {one.get('message')}")
    return response


def _following(value: object, depth: int = 2) -> dict[str, object]:
    """Return the argument that asks for the next page, if there is one, of a field or of the one list inside of it."""
    if not isinstance(value, Mapping) or len(value) != 1 or not depth:
        return {}
    [field] = value.values()
    if not isinstance(field, Mapping):
        return {}
    page = field.get("pageInfo")
    if isinstance(page, Mapping):
        return {"after": page["endCursor"]} if page["hasNextPage"] else {}
    if field.get("end_cursor"):
        return {"after": field["end_cursor"]}
    truncation = field.get("truncation")
    resume = truncation.get("resume") if isinstance(truncation, Mapping) else None
    return {"resume": resume} if resume else _following(field, depth - 1)


def difference(one: object, other: object, path: str = "") -> str | None:
    """Return where two answers differ first, by the names of the fields that lead there; None when they are equal.

    No value is told: it may be isolated.
    """
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for name in dict.fromkeys((*one, *other)):
            if name not in one or name not in other:
                return f"{path}.{name}".lstrip(".")
            if found := difference(one[name], other[name], f"{path}.{name}"):
                return found
        return None
    if isinstance(one, list) and isinstance(other, list):
        for left, right in zip(one, other, strict=False):
            if found := difference(left, right, f"{path}[]"):
                return found
        return None if len(one) == len(other) else f"{path}[]: another number of them".lstrip(".")
    return None if one == other and type(one) is type(other) else path.lstrip(".") or "the answer"
