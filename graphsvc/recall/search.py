"""Search and grep: what was asked, where it is found, in which order, and how much of it fits.

A hit holds any word of the query. Hits are ordered by a BM25 score that is computed from the hits alone, then by time.
A cursor fixes what the first page searched: the ledger position, and the gap between the index and the part of its tail
that was read. So pages repeat nothing and leave nothing out while others write and the index grows.
"""

from __future__ import annotations

import difflib
import heapq
import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from strawberry import ID

from graphsvc.envelope import Long, NavItem, NavKind, NavResult, NavType, SearchHit, SearchResult
from graphsvc.model import SCOPED, NodeId, NodeType
from graphsvc.recall import analyser, budget, fit, index, snippet
from graphsvc.recall.request import Request, arguments, call
from graphsvc.store import events, records, sessions, visibility
from graphsvc.store.database import Connection, snapshot
from graphsvc.store.index import units, words
from graphsvc.store.index.units import Place, Scope, Unit
from graphsvc.store.visibility import Viewer

SCAN_UNITS: Final = 5_000  # texts that are read for a query without any word
SCAN_CHARS: Final = 20_000_000
SCAN_MS: Final = 1_000
_PAGE: Final = 200  # of which the places are read at once
_SATURATION: Final = 1.2  # BM25: k1 and b
_LENGTH: Final = 0.75
_WEIGHTS: Final = {"w": 1.0, "p": 1.0, "i": 2.0}
_CURRENT: Final = {None, "active", "pending"}
_FILTERS: Final = ("since", "until", "kind", "session_id")
_TITLE: Final = 10
_SPELLED: Final = 3  # words whose spelling is looked up
_LIKELY: Final = 50  # spellings of each that are looked at
_GLANCE: Final = 2_000  # characters of a text in which the word is looked for
NOT_FOUND: Final = "not-found"
_LAST_RESORT: Final = json.dumps({"nav": "ls"})
_LATE: Final = "texts not searched: {}, not indexed yet when this search began; search again for them"
_NAV_TYPES: Final = {"asset": NavType.ASSET, "decision": NavType.DECISION, "todo": NavType.TODO}


@dataclass(frozen=True, slots=True)
class Hit:
    place: Place
    score: float
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The hits from the cursor on, at most one page of them; `more` says that others follow."""

    hits: list[Hit] = field(default_factory=list)
    more: bool = False
    total: int = 0  # of the whole search; counted only when it was asked for, or known anyway
    needles: snippet.Needles = field(default_factory=lambda: snippet.needles("", (), ()))
    notes: tuple[str, ...] = ()  # what was bounded; then the answer is degraded
    cursor: Callable[[int], str] = str  # the cursor behind the first n of these hits


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where an answer goes on. By time: behind the unit `after`. By score: behind `after` hits, `session` first."""

    position: int
    after: int = 0
    session: int = 0
    gap: tuple[int, int] | None = None  # what the first page did not search; None on the first page


def search(db: Connection, viewer: Viewer, request: Request, *, notes: Sequence[str] = ()) -> SearchResult:
    """Answer a search; `notes` are the caller's, and count in the budget."""
    with snapshot(db):
        notes = _notes(db, viewer, notes)
        found = _find(db, viewer, request)
        if found is None or not (found.total or found.notes or request.cursor):
            count = Long(0) if request.count_only else None
            return _advised(
                db, viewer, request, found, notes,
                lambda call, kept: SearchResult(
                    status=NOT_FOUND, results=[], count=count, suggestion=call, notes=[*kept] or None
                ),
            )  # fmt: skip
        status, notes = ("degraded" if found.notes else "found"), (*notes, *found.notes)
        if request.count_only:
            return fit.trimmed(
                SearchResult(status=status, results=[], count=Long(found.total), notes=[*notes] or None), request
            )
        read = units.many(db, [hit.place.event for hit in found.hits])
    # The session of what holds here and was said elsewhere is open to the local owner only.
    closed = frozenset() if viewer.everywhere else records.beyond(db, viewer)
    drafts = [
        _result(read[hit.place.event], hit, found.needles, closed=hit.place.event in closed) for hit in found.hits
    ]

    def frame(items: list[SearchHit], cursor: str | None, suggestion: str | None, notes: Sequence[str]) -> SearchResult:
        return SearchResult(status=status, results=items, cursor=cursor, suggestion=suggestion, notes=[*notes] or None)

    return fit.fill(fit.Page(drafts, found.more, found.cursor), request, notes, frame)


def matching(db: Connection, viewer: Viewer, query: str) -> tuple[frozenset[int], tuple[str, ...]]:
    """Return the events of units that hold every word of a query, whoever may see them, and what bounded the search."""
    asked = analyser.terms(query)
    if asked.empty:
        return frozenset(), (
            "a list is filtered by words, and there is none in the query: search looks for other signs",
        )
    with snapshot(db):
        scope = Scope(viewer=viewer, position=events.position(db))
        wanted = words.Asked(asked.words, (*asked.joined, *asked.dates), asked.prefixes)
        with words.reading(db, index.analyse, analyser.VERSION, scope) as reader:
            postings = reader.postings(wanted, viewer)
            late = units.left_out(db, scope, reader.gap) if reader.gap else 0
    every = [set(held) for (column, _), held in postings.items() if column != "i"]
    found = set.intersection(*every) if every else set().union(*postings.values())
    return frozenset(found), (_LATE.format(late),) if late else ()


def grep(db: Connection, viewer: Viewer, request: Request, *, notes: Sequence[str] = ()) -> NavResult:
    """Answer `nav grep`: the same hits as matching lines, and assets whose path or title holds the query."""
    with snapshot(db):
        notes = _notes(db, viewer, notes)
        found = _find(db, viewer, request)
        title = f"grep: {snippet.cut(request.query or '', 0, _TITLE)}"
        if found is None or not (found.total or found.notes or request.cursor):
            return _advised(
                db, viewer, request, found, notes,
                lambda call, kept: NavResult(
                    kind=NavKind.HITS, title=title, items=[], status=NOT_FOUND, suggestion=call, notes=[*kept] or None
                ),
            )  # fmt: skip
        read = units.many(db, [hit.place.event for hit in found.hits])
    drafts = [_item(read[hit.place.event], found.needles) for hit in found.hits]
    status = "degraded" if found.notes else None

    def frame(items: list[NavItem], cursor: str | None, suggestion: str | None, notes: Sequence[str]) -> NavResult:
        return NavResult(
            kind=NavKind.HITS, title=title, items=items,
            status=status, cursor=cursor, suggestion=suggestion, notes=[*notes] or None,
        )  # fmt: skip

    return fit.fill(fit.Page(drafts, found.more, found.cursor), request, (*notes, *found.notes), frame)


def _find(db: Connection, viewer: Viewer, request: Request) -> Found | None:
    """Return a page of hits; None when the session that was named does not exist for this viewer."""
    scope = _scope(db, viewer, request)
    if scope is None:
        return None
    # What was resolved counts, not how it was said.
    resolved = replace(request, session_id=None, asker=(scope.viewer.session, scope.viewer.project))
    mark = fit.mark(resolved, scope.session, analyser.VERSION)
    cursor = _cursor(request, mark, scope.position)
    scope = replace(scope, position=cursor.position, gap=cursor.gap)
    if request.query is None:
        return _scanned(db, scope, request, cursor, mark, "")
    asked = analyser.terms(request.query)
    if asked.empty:
        return _scanned(db, scope, request, cursor, mark, asked.literal)
    return _matched(db, scope, request, cursor, mark, asked)


def _scope(db: Connection, viewer: Viewer, request: Request) -> Scope | None:
    """Return the filters of a request as of now; None when the session that was named does not exist for the viewer."""
    session = None
    if request.session_id is not None:
        session = sessions.find(db, viewer, request.session_id)
        if session is None:
            return None
        viewer = replace(viewer, project=session.project)
    holds = session is None and (request.kind is None or request.kind.value in SCOPED)
    return Scope(
        viewer=viewer,
        position=events.position(db),
        kind=request.kind,
        session=session.number if session else None,
        since=request.since,
        until=request.until,
        beyond=records.beyond(db, viewer) if holds else frozenset(),
    )


def _scanned(db: Connection, scope: Scope, request: Request, cursor: Cursor, mark: str, literal: str) -> Found:
    """Without the index, by time: what passes the filters, and holds `literal` if that is anything.

    A query without any word (emoji, punctuation) is looked for in the texts themselves, bounded.
    """
    if not literal and request.count_only:
        return Found(total=units.count(db, scope))
    hits: list[Hit] = []
    deadline = time.monotonic() + SCAN_MS / 1000
    enough = math.inf if request.count_only else request.limit + 1
    seen = chars = 0
    last = cursor.after
    for place in _walk(db, scope, request, cursor):
        if seen == SCAN_UNITS or chars > SCAN_CHARS or time.monotonic() > deadline:
            break
        text = units.many(db, [place.event])[place.event].text if literal else ""
        if literal in text:
            hits.append(Hit(place, 0.0, ("substring" if literal else "filter",)))
            if len(hits) >= enough:
                deadline = math.inf
                break
        seen, chars, last = seen + 1, chars + len(text), place.event
    else:
        deadline = math.inf
    found = _by_time(hits, request, cursor, mark, total=len(hits), needles=snippet.needles(literal, (), ()))
    if deadline == math.inf:
        return found
    if request.count_only:
        return replace(found, notes=(f"counted in {seen} texts; the others were not looked at",))
    note = f"a query without words is looked for in {seen} texts at a time; the rest stands behind cursor"
    resume = _written(mark, replace(cursor, after=last))
    return replace(
        found, more=True, notes=(note,), cursor=lambda shown: resume if shown == len(hits) else found.cursor(shown)
    )


def _walk(db: Connection, scope: Scope, request: Request, cursor: Cursor) -> Iterator[Place]:
    """Yield the units of a scope by time, from behind the cursor on."""
    after, size = cursor.after or None, _PAGE if request.query else request.limit + 1
    while places := units.listing(db, scope, after=after, ascending=request.order == "asc", size=size):
        yield from places
        after = places[-1].event


def _matched(db: Connection, scope: Scope, request: Request, cursor: Cursor, mark: str, asked: analyser.Query) -> Found:
    """Everything that holds one of the terms, ordered by score or by time."""
    wanted = words.Asked(asked.words, (*asked.joined, *asked.dates), asked.prefixes)
    with words.reading(db, index.analyse, analyser.VERSION, scope) as reader:
        postings = reader.postings(wanted, scope.viewer)
        places = reader.places(scope, set().union(*postings.values()))
        stems = [stem for _, stem in reader.stems(wanted)]
        cursor = replace(cursor, gap=reader.gap or (0, 0))
        late = units.left_out(db, scope, reader.gap) if reader.gap else 0
    notes = (_LATE.format(late),) if late else ()
    named = _named(db, scope, asked.literal) if request.nav == "grep" else {}
    places += [place for event, place in named.items() if not any(event in held for held in postings.values())]
    if request.count_only:
        return Found(total=len(places), notes=notes)
    needles = snippet.needles(asked.literal, [*asked.words, *asked.prefixes, *stems], asked.joined)
    scores = _scores(postings, places, scope.position)
    best = max(scores.values(), default=0.0) + 1
    scores.update({event: round(best + scores[event], 3) for event in named})

    def hit(place: Place) -> Hit:
        why = _why(postings, place.event, asked)
        return Hit(place, scores[place.event], (*why, "substring") if place.event in named else why)

    if request.order is not None:
        hits = [hit(place) for place in _next(db, places, request, cursor)]
        return _by_time(hits, request, cursor, mark, total=len(places), needles=needles, notes=notes)
    latest = None if request.cursor else sessions.latest(db, scope.viewer)
    start = replace(cursor, session=latest.number) if latest else cursor

    def rank(place: Place) -> tuple[float, bool, tuple[str, int]]:
        return scores[place.event], place.session == start.session, place.when

    page = heapq.nlargest(start.after + request.limit, places, key=rank)[start.after :]
    return Found(
        hits=[hit(place) for place in page],
        more=len(places) > start.after + len(page),
        total=len(places),
        needles=needles,
        notes=notes,
        cursor=lambda shown: _written(mark, replace(start, after=start.after + shown)),
    )


def _next(db: Connection, places: list[Place], request: Request, cursor: Cursor) -> list[Place]:
    """Return the places behind the cursor by time, one more than the page holds."""
    ascending = request.order == "asc"
    if cursor.after:
        edge = units.when(db, cursor.after)
        places = [place for place in places if (place.when > edge if ascending else place.when < edge)]
    choose = heapq.nsmallest if ascending else heapq.nlargest
    return choose(request.limit + 1, places, key=lambda place: place.when)


def _by_time(
    hits: list[Hit],
    request: Request,
    cursor: Cursor,
    mark: str,
    *,
    total: int,
    needles: snippet.Needles,
    notes: tuple[str, ...] = (),
) -> Found:
    page = hits[: request.limit]

    def behind(shown: int) -> str:
        return _written(mark, replace(cursor, after=page[shown - 1].place.event if shown else cursor.after))

    return Found(hits=page, more=len(hits) > len(page), total=total, needles=needles, notes=notes, cursor=behind)


def _scores(postings: words.Postings, places: Sequence[Place], position: int) -> dict[int, float]:
    """Score units by BM25. How rare a term is and how long a text is are both measured among these units only."""
    sizes = {place.event: place.size for place in places}
    mean = sum(sizes.values()) / len(sizes) if sizes else 1
    slack = {event: _SATURATION * (1 - _LENGTH + _LENGTH * size / (mean or 1)) for event, size in sizes.items()}
    scores = dict.fromkeys(sizes, 0.0)
    for (column, _), held in postings.items():
        here = [(event, times * _WEIGHTS[column]) for event, times in held.items() if event in sizes]
        worth = math.log(1 + (max(position, len(here)) - len(here) + 0.5) / (len(here) + 0.5)) * (_SATURATION + 1)
        for event, weight in here:
            scores[event] += worth * weight / (weight + slack[event])
    return {event: round(score, 3) for event, score in scores.items()}


def _why(postings: words.Postings, event: int, asked: analyser.Query) -> tuple[str, ...]:
    kinds = {
        "word" if column != "i" else "date" if term in asked.dates else "identifier"
        for (column, term), held in postings.items()
        if event in held
    }
    return tuple(kind for kind in ("word", "identifier", "date") if kind in kinds)


def _named(db: Connection, scope: Scope, literal: str) -> dict[int, Place]:
    """Return the assets whose path or title holds the query; they go before all other hits."""
    query = analyser.normalise(literal).casefold()
    return {
        place.event: place
        for place, path, title in units.names(db, scope)
        if query in analyser.normalise(path).casefold() or query in analyser.normalise(title).casefold()
    }


def _written(mark: str, cursor: Cursor) -> str:
    return fit.write(mark, cursor.position, cursor.after, cursor.session, *(cursor.gap or (0, 0)))


def _cursor(request: Request, mark: str, newest: int) -> Cursor:
    places = fit.places(request, mark, 5)
    if places is None:
        return Cursor(newest)
    position, after, session, low, high = places
    return Cursor(min(position, newest), after, session, (low, high))


def _result(unit: Unit, hit: Hit, needles: snippet.Needles, *, closed: bool) -> fit.Draft[SearchHit]:
    why = [*hit.why] if unit.status in _CURRENT else [*hit.why, f"status:{unit.status}"]
    why += [f"scope:{unit.scope}"] if unit.scope not in {None, "project"} else []

    def make(text: str, level: int) -> SearchHit:
        return SearchHit(
            id=ID(unit.id),
            kind=unit.kind,
            ts=unit.ts if level < fit.BARE else None,
            seq=Long(unit.seq),
            session_id="" if closed else unit.session_id,
            body=text,
            score=hit.score,
            why=why if level < fit.SHORT else [],
        )

    return fit.Draft(unit.text, snippet.place(unit.text, needles), make)


def _item(unit: Unit, needles: snippet.Needles) -> fit.Draft[NavItem]:
    kind = _NAV_TYPES.get(unit.kind, NavType.EVENT)
    ref: str | None
    if kind is NavType.EVENT:
        number = str(NodeId(NodeType.EVENT, str(unit.event)))
        ref = unit.kind if unit.status is None else unit.id
    else:
        number = unit.id
        ref = unit.path if unit.asset is not None else unit.status

    def make(text: str, level: int) -> NavItem:
        return NavItem(id=ID(number), type=kind, label=text, ref=ref if level < fit.BARE else None)

    label = snippet.lines(unit.text, needles)
    return fit.Draft(label, snippet.place(label, needles), make)


def _advised(
    db: Connection,
    viewer: Viewer,
    request: Request,
    found: Found | None,
    notes: Sequence[str],
    make: Callable[[str, Sequence[str]], fit.Answer],
) -> fit.Answer:
    """Say that nothing was found, with the first suggestion that fits."""
    for suggestion in _suggestions(db, viewer, request, found):
        answer = make(suggestion, notes)
        if budget.cost(answer) <= request.token_budget:
            return answer
    return fit.trimmed(make(_LAST_RESORT, notes), request)


def _suggestions(db: Connection, viewer: Viewer, request: Request, found: Found | None) -> Iterator[str]:
    """Yield calls that find something, the nearest to what was asked first."""
    if found is None:
        latest = sessions.latest(db, viewer)
        near = sessions.nearest(db, viewer, request.session_id or "") or (latest.session_id if latest else None)
        if near is not None:
            yield call({"nav": "ls", "target": near} if request.nav else {"session_id": near})
        return
    bare = replace(request, cursor=None, count_only=False, limit=1)
    yield from _wider(db, viewer, bare)
    if viewer.everywhere and viewer.project is not None:
        found = _find(db, replace(viewer, project=None), bare)
        if found is not None and found.hits:
            yield call({**arguments(bare), "project": "all"})
    yield from _spelled(db, viewer, bare)


def _wider(db: Connection, viewer: Viewer, request: Request) -> Iterator[str]:
    """Leave filters out: the times, the kind, the session, then all of them."""
    for names in (("since", "until"), ("kind",), ("session_id",), _FILTERS):
        if not any(getattr(request, name) for name in names):
            continue
        wider = replace(request, **dict.fromkeys(names))  # type: ignore[arg-type]  # these fields may all be None
        found = _find(db, viewer, wider)
        if found is not None and found.hits:
            yield call(arguments(wider))


def _spelled(db: Connection, viewer: Viewer, request: Request) -> Iterator[str]:
    """Look for the words spelled most alike that this viewer can find, whatever else the index knows."""
    scope, terms = _scope(db, viewer, request), analyser.terms(request.query or "").words[:_SPELLED]
    if scope is None or not terms:
        return
    with words.reading(db, index.analyse, analyser.VERSION, scope) as reader:
        for term in terms:
            known = words.spellings(db, term[0], len(term) - 2 if len(term) > 4 else len(term), len(term) + 2)
            likely = [one for one in known if one != term and len(set(one) ^ set(term)) <= max(2, len(term) // 3)]
            close = difflib.get_close_matches(term, likely, _LIKELY, 0.5 if len(term) < 4 else 0.7)
            held = reader.holders(close, scope.viewer)
            found = {place.event for place in reader.places(scope, set().union(*held.values()))}
            for stem in close:
                if seen := held[stem] & found:
                    yield call(arguments(replace(request, query=_word(db, max(seen), stem))))


def _word(db: Connection, event: int, stem: str) -> str:
    """Return the word of a text whose stem the index holds."""
    text = units.many(db, [event])[event].text
    at = snippet.place(text, snippet.needles("", [stem], ()))
    near = difflib.get_close_matches(stem, set(analyser.words(text[at : at + _GLANCE])[0]), 1, 0.6)
    return near[0] if near else stem


def _notes(db: Connection, viewer: Viewer, notes: Sequence[str]) -> tuple[str, ...]:
    return (*((visibility.NOTE,) if visibility.any_hidden(db, viewer) else ()), *notes)
