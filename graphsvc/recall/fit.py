"""Fit an answer to its budget: as many rows as it takes, their texts cut, the rest behind a cursor.

The same for a search, a grep and a listing: rows come as drafts, which know what they are without their text, and a
frame makes the answer around them. Ids are never cut.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar

import strawberry

from graphsvc.envelope import NavItem, NavResult, NavType, SearchResult
from graphsvc.errors import InvalidInput
from graphsvc.recall import budget, snippet
from graphsvc.recall.budget import Size
from graphsvc.recall.request import Request, arguments, call

# How much a row says beside its text; more gives way only when not even one row fits.
FULL: Final = 0
SHORT: Final = 1
BARE: Final = 2

MAX_LABEL: Final = 400  # characters of a row in a list
_FAIR: Final = 100  # tokens a row may have at first, whatever its number
_WORTH: Final = 4  # tokens of text for which another row is begun
_FLOOR: Final = 0.7  # an answer that has more behind its cursor fills at least this part of its budget
# What fills the rest of a small budget when the next row does not fit, the longest first.
_FILLERS: Final = (
    "more stands behind cursor: pass it back with the same other parameters, or give a larger token_budget, or narrow"
    " the search by kind, session_id, since or until",
    "more stands behind cursor: pass it back with the same other parameters, or give a larger token_budget",
    "more stands behind cursor: pass it back, the rest unchanged",
    "more stands behind cursor",
)
_CURSOR: Final = 36  # characters that are kept free for the cursor of a content page
_BAD_CURSOR: Final = "the cursor of the previous answer, with the same other parameters"
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"

Item = TypeVar("Item")
Answer = TypeVar("Answer", SearchResult, NavResult)

# The answer around its rows: rows, cursor, suggestion, notes.
Frame = Callable[[list[Item], str | None, str | None, Sequence[str]], Answer]


@dataclass(frozen=True, slots=True)
class Draft(Generic[Item]):
    """One row before it is known how much of its text fits. `at` is where the text matters most."""

    text: str
    at: int
    make: Callable[[str, int], Item]  # from the text that fits, and how much to say beside it


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    """The rows from the cursor on, at most a page of them; `cursor` writes the one behind the first n."""

    drafts: Sequence[Draft[Item]]
    more: bool
    cursor: Callable[[int], str]


def fill(page: Page[Item], request: Request, notes: Sequence[str], frame: Frame[Item, Answer]) -> Answer:
    """Put as many rows as fit into the answer; what does not fit stands behind its cursor.

    When not even one row fits, notes and then details give way; when its ids alone are too long, the answer names a
    call that shows it.
    """
    for level, kept in ((FULL, notes), (SHORT, notes), (SHORT, ()), (BARE, ())):
        answer = _packed(page, request, kept, level, frame)
        if answer is not None:
            return answer
    needed = budget.cost(frame([page.drafts[0].make("", FULL)], page.cursor(1), None, notes)) + 40
    wider = call({**arguments(request), "token_budget": needed})
    told = (f"token_budget {request.token_budget} holds no result; the next one needs {needed}",)
    cursor = page.cursor(0)
    answers = [frame([], cursor, suggestion, kept) for suggestion in (wider, None) for kept in (told, ())]
    return next((one for one in answers if budget.cost(one) <= request.token_budget), answers[-1])


def trimmed(answer: Answer, request: Request) -> Answer:
    """Drop notes, the last first, from an answer that is too long with them."""
    while budget.cost(answer) > request.token_budget and (notes := answer.notes):
        answer = replace(answer, notes=notes[:-1] or None)
    return answer


def rows(
    result: NavResult,
    items: Sequence[NavItem],
    request: Request,
    behind: Callable[[int], tuple[int, ...]] | None = None,
) -> NavResult:
    """Fill a navigation answer with the rows from the request's cursor on.

    With `behind` the rows begin there already, and it tells what the cursor behind the first n of them holds.
    """
    own = mark(request)
    (start,) = (0,) if behind else places(request, own, 1) or (0,)
    if start > len(items):
        raise InvalidInput("cursor", "is beyond the end", _BAD_CURSOR)
    shown = items[start : start + request.limit]
    page = Page(
        [_draft(item) for item in shown],
        more=len(items) > start + len(shown),
        cursor=lambda count: write(own, *(behind(count) if behind else (start + count,))),
    )
    base = _slim(result, request.token_budget)

    def frame(items: list[NavItem], cursor: str | None, suggestion: str | None, notes: Sequence[str]) -> NavResult:
        return replace(
            base, items=items, cursor=cursor, suggestion=suggestion or base.suggestion, notes=[*notes] or None
        )

    return fill(page, request, base.notes or (), frame)


def content(result: NavResult, item: NavItem, text: str, start: int, request: Request) -> tuple[NavResult, int]:
    """Put as much of `text` as fits into the row's label; return the envelope and how many characters it took."""
    base = _slim(replace(result, items=[replace(item, label="")]), request.token_budget)
    fixed = budget.size(base) + Size(narrow=len(',"cursor":""') + _CURSOR)
    # Four characters cost at least a token: what is behind them is not even printed.
    rest = text[start : start + 4 * request.token_budget]
    taken = max(1, budget.cut(rest, request.token_budget, fixed)) if rest else 0
    return replace(base, items=[replace(item, label=text[start : start + taken])]), taken


def row(number: str, kind: str, label: str, ref: str | None = None) -> NavItem:
    """Make a row; line breaks of a label are shown as spaces, so that a row is a line."""
    return NavItem(id=strawberry.ID(number), type=NavType(kind), label=" ".join(label.split()), ref=ref)


def mark(request: Request, *more: object) -> str:
    """Return a short hash of what decides which rows there are, and in which order; how it was said does not."""
    said = {name: value for name, value in arguments(request).items() if name != "project"}
    text = json.dumps([said, request.asker, *more], sort_keys=True)
    return _base36(int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big"))


def write(own: str, *numbers: int) -> str:
    """Write a cursor: the mark of the call it belongs to, and where to go on."""
    return ".".join((own, *map(_base36, numbers)))


def places(request: Request, own: str, count: int) -> tuple[int, ...] | None:
    """Read the request's cursor; None without one; InvalidInput when it is of another call."""
    if request.cursor is None:
        return None
    given, *rest = request.cursor.split(".")
    if len(rest) != count or not all(part.isascii() and part.isalnum() and len(part) < 13 for part in rest):
        raise InvalidInput("cursor", "is none of ours", _BAD_CURSOR)
    if given != own:
        raise InvalidInput("cursor", "belongs to other parameters", _BAD_CURSOR)
    return tuple(int(part, 36) for part in rest)


def _packed(
    page: Page[Item], request: Request, notes: Sequence[str], level: int, frame: Frame[Item, Answer]
) -> Answer | None:
    """Return the answer with the rows that fit at this level; None when there are rows and none fits."""
    most, drafts = request.token_budget, page.drafts
    if not page.more:
        items = _texts(drafts, level, most - budget.cost(frame([], None, None, notes)))
        if len(items) == len(drafts):
            answer = frame(items, None, None, notes)
            return answer if budget.cost(answer) <= most else None
    # Cursors of fewer rows may be a digit longer.
    items = _texts(drafts, level, most - budget.cost(frame([], page.cursor(len(drafts)) + "####", None, notes)))
    if drafts and not items:
        return None
    cursor = page.cursor(len(items))
    answer = frame(items, cursor, None, notes)
    cost = budget.cost(answer)
    if cost > most:
        return None
    fillers = (frame(items, cursor, None, (*notes, text)) for text in _FILLERS) if cost < _FLOOR * most else ()
    return next((one for one in fillers if _FLOOR * most <= budget.cost(one) <= most), answer)


def _texts(drafts: Sequence[Draft[Item]], level: int, room: int) -> list[Item]:
    """Take rows in order while they fit: long texts get a fair part first, then what is left over."""
    taken: list[tuple[Draft[Item], str]] = []
    fair = max(room // max(len(drafts), 1), _FAIR)
    for draft in drafts:
        bare = budget.cost(draft.make("", level)) + 1
        left = room - bare
        if left < (_WORTH if taken else 0):
            break
        text = snippet.cut(draft.text, draft.at, min(left, max(fair - bare, _FAIR // 4)))
        room = left - snippet.printed(text)
        taken.append((draft, text))
    for index, (draft, text) in enumerate(taken):
        if room > 0 and text != draft.text:
            longer = snippet.cut(draft.text, draft.at, room + snippet.printed(text))
            room -= snippet.printed(longer) - snippet.printed(text)
            taken[index] = (draft, longer)
    return [draft.make(text, level) for draft, text in taken]


def _draft(item: NavItem) -> Draft[NavItem]:
    label = item.label if len(item.label) <= MAX_LABEL else item.label[: MAX_LABEL - 1] + "…"
    return Draft(label, 0, lambda text, level: replace(item, label=text, ref=item.ref if level < BARE else None))


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


def _base36(number: int) -> str:
    digits = ""
    while True:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
        if not number:
            return digits
