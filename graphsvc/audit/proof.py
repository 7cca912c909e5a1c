"""The proof of isolation: every read, as everybody else, answers a store and its twin with blanks the same.

What may differ is the constant mark that a neighbour is isolated, beside what was published: it is counted, not shown
as a leak. Who holds isolated events gets a twin in which the others' are blank.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from graphsvc.audit import asking, reads, twin
from graphsvc.audit.asking import Carry, Way
from graphsvc.audit.reads import Call
from graphsvc.audit.twin import Pair, Sample
from graphsvc.config import Settings
from graphsvc.errors import StoreError
from graphsvc.memory import export
from graphsvc.recall.scope import Asker
from graphsvc.recall.targets import HIDDEN
from graphsvc.store.visibility import Viewer

_OFTEN: Final = 3  # calls of a field, at most
EXPORT: Final = "export"  # what `graphsvc export` writes, which is no field
# Constant, where neighbours are isolated, never how many: this field, and a row that is labelled with the marker.
_MARKS: Final = frozenset({"hidden"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Leak:
    """An answer that differs because of what is isolated: of which field, to whom, over what, and where in it."""

    field: str
    viewer: str
    way: str
    where: str
    secret: bool = False  # an isolated text stands in it

    def __str__(self) -> str:
        what = "holds an isolated text" if self.secret else f"differs at {self.where}"
        return f"{self.field} to {self.viewer}, over {self.way}: {what}"


@dataclass(slots=True)
class Tally:
    """What was compared: by field the viewers and the comparisons; what leaked; the marks that differed."""

    compared: Counter[tuple[str, str]] = field(default_factory=Counter)  # by field and viewer
    leaks: list[Leak] = field(default_factory=list)
    marks: int = 0
    unanswered: Counter[str] = field(default_factory=Counter)  # by field

    def __iadd__(self, other: Tally) -> Tally:
        self.compared += other.compared
        self.leaks += other.leaks
        self.marks += other.marks
        self.unanswered += other.unanswered
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What an audit found. `sampled`: the store holds more than was asked for."""

    tally: Tally
    viewers: tuple[str, ...]
    ids: int
    asked: int
    blanks: int
    kept: int
    secrets: int
    sampled: bool
    skipped: tuple[tuple[str, str], ...]  # what was not compared, and why

    def rows(self) -> list[tuple[str, int, int, int]]:
        """List the reads: name, viewers that asked, comparisons, differences."""
        found = []
        for name in sorted({read for read, _ in self.tally.compared}):
            counts = [count for (read, _), count in self.tally.compared.items() if read == name]
            found.append((name, len(counts), sum(counts), sum(leak.field == name for leak in self.tally.leaks)))
        return found


def compare(
    calls: Iterable[Call],
    way: Way,
    viewer: str,
    told: Carry,
    blank: Carry,
    secrets: Sequence[str] = (),
) -> Iterator[tuple[Call, Leak | None, bool]]:
    """Ask both each call that a way takes, and yield it with the leak, if any, and whether a mark differs."""
    for call in calls:
        if call.sort in way.sorts:
            here, there = asking.answers(call, told), asking.answers(call, blank)
            yield call, *judge(call, way.name, viewer, here, there, secrets)


def judge(
    call: Call, way: str, viewer: str, here: object, there: object, secrets: Sequence[str] = ()
) -> tuple[Leak | None, bool]:
    """Compare two answers byte by byte, aside from marks, and look for isolated texts in the first."""
    one, other = (json.dumps(answer, ensure_ascii=False) for answer in (here, there))
    asked = json.dumps(dict(call.variables), ensure_ascii=False)
    where, marked = None, False
    if one != other:
        where = asking.difference(_unmarked(here), _unmarked(there))
        marked = where is None and asking.difference(here, there) is not None
        if where is None and not marked:
            where = "the order of its fields"
    held = any(_written(secret) in one and _written(secret) not in asked for secret in secrets)
    if where is None and not held:
        return None, marked
    return Leak(field=call.field, viewer=viewer, way=way, where=where or "a text", secret=held), marked


def applies(call: Call, asker: Asker, *, mirrored: bool) -> bool:
    """Say whether a call makes sense: a session may not choose a project, and only a mirror knows the whole graph."""
    bound = asker.session_id is not None or not asker.owner
    return not (bound and "project" in call.variables) and (mirrored or call.field != "insight")


def audit(settings: Settings, most: int, seed: int, progress: Callable[[str], Any]) -> Report:
    """Prove isolation on a copy of a store. `progress` opens what is told how far a step has come, by its name."""
    if not settings.database.exists():
        raise StoreError(f"nothing is stored in {settings.home} yet; graphsvc import, or graphsvc demo")
    chance = random.Random(seed)  # noqa: S311 # what is asked, nothing to guess
    tally, names = Tally(), list[str]()
    blanks = kept = 0
    with twin.aside(settings) as folder:
        found: Sample | None = None
        rounds: list[tuple[Viewer, list[tuple[str, Asker]]]] = [(Viewer(everywhere=True), [])]
        while rounds:
            viewer, who = rounds.pop(0)
            with progress("making the twin") as told, twin.twins(folder, viewer, told) as pair:
                if found is None:
                    with progress("choosing what to ask") as chosen:
                        found = twin.sample(pair.told.db, most, chance, chosen)
                    who, holders = twin.askers(pair.told.db, 2, chance)
                    rounds += [(twin.viewer_of(pair.told.db, asker), [(name, asker)]) for name, asker in holders]
                    blanks, kept = pair.blanks, pair.kept
                who = [(f"{name} ({len(names) + number})", asker) for number, (name, asker) in enumerate(who, 1)]
                names += [name for name, _ in who]
                # Who holds isolated events may be told their texts.
                secrets = () if viewer.session is not None else found.secrets
                tally += _round(pair, who, found, secrets, chance, progress)
    if found is None:
        raise StoreError("nothing was compared")
    return Report(
        tally=tally,
        viewers=tuple(names),
        ids=found.ids,
        asked=len(found.pool.ids),
        blanks=blanks,
        kept=kept,
        secrets=len(found.secrets),
        sampled=found.ids > len(found.pool.ids),
        skipped=_skipped(kept, tally),
    )


def _round(
    pair: Pair,
    who: Sequence[tuple[str, Asker]],
    found: Sample,
    secrets: Sequence[str],
    chance: random.Random,
    progress: Callable[[str], Any],
) -> Tally:
    tally = Tally()
    often = max(1, min(_OFTEN, len(found.pool.ids) // 10))
    with progress("comparing") as told:
        for number, (name, asker) in enumerate(who):
            calls = [one for one in reads.calls(found.pool, chance, often=often) if applies(one, asker, mirrored=False)]
            for done, call in enumerate(calls):
                told(number * len(calls) + done, len(who) * len(calls))
                _ask(tally, pair, call, name, asker, secrets)
            _exports(tally, pair, name, asker, secrets)
        told(1, 1)
    return tally


def _ask(tally: Tally, pair: Pair, call: Call, name: str, asker: Asker, secrets: Sequence[str]) -> None:
    for way in asking.WAYS:
        with way.open(pair.told, asker) as here, way.open(pair.blank, asker) as there:
            try:
                for _, leak, marked in compare([call], way, name, here, there, secrets):
                    tally.compared[call.field, name] += 1
                    tally.marks += marked
                    tally.leaks += [leak] if leak else []
            except asking.Unanswered:
                tally.unanswered[call.field] += 1


def _exports(tally: Tally, pair: Pair, name: str, asker: Asker, secrets: Sequence[str]) -> None:
    """Compare the ledgers that somebody may write, line by line."""
    call = Call(reads.Sort.QUERY, EXPORT, "", {})
    for here, there in exported(pair, asker):
        leak, _ = judge(call, "the command line", name, here, there, secrets)
        if leak is not None:
            tally.leaks.append(leak)
            break
    tally.compared[EXPORT, name] += 1


def exported(pair: Pair, asker: Asker) -> Iterator[tuple[object, object]]:
    """Yield the lines of both exports, beside each other; None where one of them has ended."""
    lines = []
    for place in (pair.told, pair.blank):
        viewer = twin.viewer_of(place.db, asker)
        lines.append(export.export(place.db, viewer, 0, 2**62))
    while True:
        here, there = next(lines[0], None), next(lines[1], None)
        if here is None and there is None:
            return
        yield _text(here), _text(there)


def _text(line: tuple[int, bytes] | None) -> object:
    return None if line is None else [line[0], line[1].decode()]


def _skipped(kept: int, tally: Tally) -> tuple[tuple[str, str], ...]:
    found = [
        ("insight", "asks the mirror of the graph, which the service keeps; it holds what all may see"),
        ("HTTP, WebSocket, event stream", "carry the same answers; the tests compare them"),
        ("what was captured", "the ledger is replayed as it is: what a rule once concluded stays what it was"),
    ]
    if tally.unanswered:
        fields = ", ".join(sorted(tally.unanswered))
        found.append((f"{sum(tally.unanswered.values())} questions", f"not answered in time, or by a bug: {fields}"))
    if kept:
        found.append((f"{kept} isolated events", "went along with a later version or record that was published"))
    return tuple(found)


def _unmarked(value: object) -> object:
    if isinstance(value, Mapping):
        return {name: _unmarked(one) for name, one in value.items() if name not in _MARKS}
    if isinstance(value, list):
        return [_unmarked(one) for one in value if not (isinstance(one, Mapping) and one.get("label") == HIDDEN)]
    return value


def _written(text: str) -> str:
    """Write a text as it stands inside of JSON."""
    return json.dumps(text, ensure_ascii=False)[1:-1]
