"""Fit an envelope to its budget: whole rows first, the last one's label cut, the rest behind a cursor."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import strawberry

from graphsvc.envelope import NavItem, NavResult, NavType
from graphsvc.errors import InvalidInput
from graphsvc.recall import budget
from graphsvc.recall.budget import Size
from graphsvc.recall.request import Request

MAX_LABEL: Final = 400  # characters of a row in a list
MIN_LABEL: Final = 12  # a shorter rest of a row is not worth a place
_CURSOR: Final = 24  # a cursor never prints longer than this


def rows(result: NavResult, items: Sequence[NavItem], request: Request) -> NavResult:
    """Fill the envelope with the rows from the request's cursor on, as many as limit and budget take."""
    start = cursor_read(request)
    if start > len(items):
        raise InvalidInput("cursor", "is beyond the end", "the cursor of the previous answer, unchanged")
    base = _slim(result, request.token_budget)
    fixed = budget.size(base) + Size(narrow=len(',"cursor":""') + _CURSOR)
    taken: list[NavItem] = []
    for item in items[start : start + request.limit]:
        row = replace(item, label=_short(item.label))
        cost = budget.size(row) + Size(narrow=1)
        if (fixed + cost).tokens > request.token_budget:
            cut = _cut(row, request.token_budget, fixed)
            if cut is not None and (cut.label != row.label):
                taken.append(cut)
            elif not taken:
                taken.append(replace(row, label="…", ref=None))  # an id is never cut, and a page never empty
            break
        fixed += cost
        taken.append(row)
    end = start + len(taken)
    more = cursor_write(request, end) if end < len(items) else None
    return replace(base, items=taken, cursor=more)


def content(result: NavResult, item: NavItem, text: str, start: int, request: Request) -> tuple[NavResult, int]:
    """Put as much of `text` as fits into the row's label; return the envelope and how many characters it took."""
    base = _slim(replace(result, items=[replace(item, label="")]), request.token_budget)
    fixed = budget.size(base) + Size(narrow=len(',"cursor":""') + _CURSOR)
    taken = max(1, budget.cut(text[start:], request.token_budget, fixed)) if text[start:] else 0
    return replace(base, items=[replace(item, label=text[start : start + taken])]), taken


def cursor_write(request: Request, *place: int) -> str:
    """Write where the next page begins, bound to the parameters of this call."""
    raw = bytes.fromhex(_digest(request)) + b".".join(str(part).encode() for part in place)
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def cursor_places(request: Request, count: int) -> tuple[int, ...] | None:
    """Read the request's cursor; None without one; InvalidInput when it belongs to other parameters."""
    if request.cursor is None:
        return None
    allowed = "the cursor of the previous answer, with the same other parameters"
    try:
        raw = base64.urlsafe_b64decode(request.cursor.encode("ascii") + b"=" * (-len(request.cursor) % 4))
        places = tuple(int(part) for part in raw[3:].decode("ascii").split("."))
    except ValueError:
        raise InvalidInput("cursor", "is not one of ours", allowed) from None
    if raw[:3].hex() != _digest(request) or len(places) != count or min(places) < 0 or max(places) > 2**62:
        raise InvalidInput("cursor", "belongs to another call", allowed)
    return places


def cursor_read(request: Request) -> int:
    """Read a cursor that is one offset; 0 without one."""
    places = cursor_places(request, 1)
    return places[0] if places else 0


def _digest(request: Request) -> str:
    same = (request.nav, request.target, request.query, request.session_id, request.kind, request.since, request.until,
            request.order, request.project)  # fmt: skip
    return hashlib.sha256(json.dumps(same).encode()).hexdigest()[:6]


def _short(label: str) -> str:
    return label if len(label) <= MAX_LABEL else label[: MAX_LABEL - 1] + "…"


def _cut(row: NavItem, limit: int, fixed: Size) -> NavItem | None:
    """Cut a row's label to what is left of the budget; None when too little is left."""
    bare = fixed + budget.size(replace(row, label="…")) + Size(narrow=1)
    room = budget.cut(row.label, limit, bare)
    return replace(row, label=row.label[:room] + "…") if room >= MIN_LABEL else None


def _slim(result: NavResult, limit: int) -> NavResult:
    """Leave out what an answer can do without, and cut its title, until at most half of the budget is spoken for."""
    half = limit // 2
    if budget.cost(result) <= half:
        return result
    context = result.context
    if context is not None and context.evidence:
        kept = list(context.evidence)
        while kept and budget.cost(replace(result, context=replace(context, evidence=kept))) > half:
            kept = kept[: len(kept) // 2]
        result = replace(result, context=replace(context, evidence=kept or None))
    if budget.cost(result) > half and len(result.title) > 24:
        room = budget.cut(result.title, half, budget.size(replace(result, title="…")))
        result = replace(result, title=result.title[: max(room, 16)] + "…")
    if budget.cost(result) > half:
        result = replace(result, notes=None)
    if budget.cost(result) > half:
        result = replace(result, context=None)
    if budget.cost(result) > limit - 8 and result.suggestion:
        result = replace(result, suggestion=None)
    return result


def row(number: str, kind: str, label: str, ref: str | None = None) -> NavItem:
    """Make a row; line breaks of a label are shown as spaces, so that a row is a line."""
    return NavItem(id=strawberry.ID(number), type=NavType(kind), label=" ".join(label.split()), ref=ref)
