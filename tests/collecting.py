"""A capture that only collects: importers are tested through it, apart from any store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from graphsvc.importers.run import Report, import_files
from graphsvc.model import Event, EventKind
from graphsvc.store.imports import Done


@dataclass(frozen=True)
class Rejected:
    index: int
    code: str
    message: str


@dataclass(frozen=True)
class Captured:
    accepted: int
    duplicates: int
    rejected: tuple[Rejected, ...]
    kinds: dict[str, int]


@dataclass
class Collector:
    """Keeps each (session, origin, body) once, and what is known of files."""

    events: list[Event] = field(default_factory=list)
    seen: set[tuple[str, str, str]] = field(default_factory=set)
    done: dict[str, Done] = field(default_factory=dict)
    batches: list[int] = field(default_factory=list)

    def capture(self, events: Sequence[Event]) -> Captured:
        self.batches.append(len(events))
        rejected = [
            Rejected(n, "invalid-input", "refused") for n, event in enumerate(events) if "refuse me" in event.body
        ]
        new = []
        for event in events:
            key = (event.session_id, event.origin, event.body)
            if key not in self.seen and "refuse me" not in event.body:
                self.seen.add(key)
                new.append(event)
        self.events += new
        kinds = Counter(str(event.kind) for event in new)
        return Captured(len(new), len(events) - len(new) - len(rejected), tuple(rejected), dict(kinds))

    def load(self, *paths, **options) -> Report:
        return import_files(paths, capture=self.capture, known=self.done.get, record=self.done.__setitem__, **options)

    def of(self, kind: str) -> list[Event]:
        return [event for event in self.events if event.kind == EventKind(kind)]

    def bodies(self, kind: str) -> list[str]:
        return [event.body for event in self.of(kind)]

    def origins(self) -> set[tuple[str, str]]:
        return {(event.origin, event.body) for event in self.events}
