"""A long history for measurements: the same for the same seed, through the same capture as every other one.

Sessions come in pairs that work on an area of files of their own, and now and then on one of the area before: the
history grows and what lies around a node stays as it is. Documents name each other, circles among them; all over the
README is named; each session decides, changes its mind and plans; some of what it says is isolated.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import count, islice
from typing import Final

from graphsvc import clock
from graphsvc.memory.capture import capture
from graphsvc.model import Event, EventKind
from graphsvc.store import counts
from graphsvc.store.database import Connection
from graphsvc.store.visibility import Viewer

PROJECT: Final = "/srv/bench"
README: Final = "README.md"
FIRST: Final = "bench-0"  # the first session
TURNS: Final = 40  # of a session
FILES: Final = 120  # of an area
_WRITES, _NAMED = 3, 12  # files that a turn writes, files that each of them names
_COMMON, _RARE = 10, 20  # of so many writes one names the README, of so many files one is of the area before
_PRIVATE: Final = 20  # of so many turns one is isolated
_BATCH: Final = 500
_MOST: Final = 5  # edges that an event draws
_ALL: Final = Viewer(everywhere=True)
_BEGIN: Final = datetime(2026, 1, 1, tzinfo=UTC)


def fill(db: Connection, story: Iterator[Event], edges: int, progress: Callable[[int, int], None]) -> int:
    """Capture a story until so many edges stand that all may see; return how many do."""
    while (drawn := sum(counts.edges(db, _ALL).values())) < edges:
        # To count takes long: it is done again when there may be enough.
        for _ in range(1 + (edges - drawn) // (_MOST * _BATCH)):
            capture(db, list(islice(story, _BATCH)), history=True)
            progress(min(drawn, edges), edges)
    progress(edges, edges)
    return drawn


def tell(seed: int) -> Iterator[Event]:
    """Tell a history without end."""
    chance = random.Random(seed)  # noqa: S311 # no secret
    moments = (clock.utc_text(_BEGIN + timedelta(seconds=second)) for second in count())
    for number in count():
        yield from _Session(chance, number, moments).tell()


def _area(number: int) -> list[str]:
    return [f"docs/area{number}/part{part}.md" for part in range(FILES)]


class _Session:
    """One session of the story."""

    def __init__(self, chance: random.Random, number: int, moments: Iterator[str]) -> None:
        self._chance, self._name, self._moments = chance, f"bench-{number}", moments
        self._area, self._before = _area(number // 2), _area(max(0, number // 2 - 1))
        self._numbers = count()
        self._said: list[str] = []
        self._decided: list[str] = []

    def tell(self) -> Iterator[Event]:
        yield from self._write(README)
        for turn in range(TURNS):
            private = self._chance.randrange(_PRIVATE) == 0
            if private:
                yield self._event("isolation", "", action="on")
            yield from self._turn(turn)
            if private:
                yield self._event("isolation", "", action="off")

    def _turn(self, turn: int) -> Iterator[Event]:
        asked = self._event("user_message", f"Look at {self._file()} and {self._file()}, 第 {turn} 步.")
        self._said.append(asked.origin)
        yield asked
        for _ in range(_WRITES):
            yield from self._write(self._file())
        basis = self._chance.sample(self._said, min(3, len(self._said)))
        decided = self._event(
            "decision", f"{self._file()} holds what {self._file()} says of step {turn}", action="record", evidence=basis
        )
        self._decided.append(decided.origin)
        yield decided
        if turn % 5 == 4:
            yield self._event("decision", f"better than before: step {turn}", action="supersede", of=self._decided[-3])
        yield self._event("todo", f"check {self._file()}", action="record", basis=decided.origin)
        yield self._event("assistant_message", f"Done with {self._file()}.")

    def _write(self, name: str) -> Iterator[Event]:
        path = f"{PROJECT}/{name}"
        named = [
            *self._chance.sample(self._area, _NAMED),
            *(["README.md"] if self._chance.random() < 0.1 else []),
        ]  # one of ten
        content = "\n".join(["# Part", "", *(f"See {one}." for one in named), f"Written as {next(self._numbers)}.", ""])
        call = f"{self._name}-{next(self._numbers)}"
        about = {"tool_name": "Write", "tool_use_id": call, "file_path": path}
        yield self._event("tool_call", json.dumps({"file_path": path, "content": content}), **about)
        yield self._event("tool_result", f"File created at {path}", **about)

    def _file(self) -> str:
        return self._chance.choice(self._before if self._chance.randrange(_RARE) == 0 else self._area)

    def _event(self, kind: str, body: str, **meta: object) -> Event:
        return Event(
            session_id=self._name,
            kind=EventKind(kind),
            origin=f"{self._name}:{next(self._numbers)}",
            body=body,
            ts=next(self._moments),
            project=PROJECT,
            cwd=PROJECT,
            meta=meta,
        )
