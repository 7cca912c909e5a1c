"""Secrets that were stored before there was a rule for them: found with the rules of today, and taken out.

What is told of a secret is where it stands and which rule knows it, never the secret.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from graphsvc import clock
from graphsvc.memory import paths
from graphsvc.memory.erase.clean import PATIENCE_S, clean
from graphsvc.memory.erase.forget import settle
from graphsvc.memory.rebuild import Progress
from graphsvc.memory.redact import redact, redact_value
from graphsvc.model import Stored
from graphsvc.store import database, events
from graphsvc.store.database import Connection
from graphsvc.store.erase import ledger, traces

MARK: Final = re.compile(r"\[redacted:([a-z0-9-]{1,40})\]")
# Names beside the texts: (table, column, what an id of it begins with).
_NAMES: Final = (
    ("projects", "key", "project"),
    ("sessions", "host_id", "session"),
    ("events", "origin", "event"),
    ("events", "actor", "event"),
    ("pauses", "project", "pause"),
)
_IDS: Final = frozenset({"host_id", "origin"})  # what the marker makes of them is told apart by a hash


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Secrets of one kind in one place. `id`: the event, or what else holds them, with its number in the store."""

    id: str
    rule: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanned:
    """What a scan found. `changed` counts events; `position` is that of the event which says what was taken out."""

    events: int
    changed: int
    findings: list[Finding]
    position: int | None = None
    remains: tuple[str, ...] = ()


def scan(db: Connection, progress: Progress) -> Scanned:
    """Look for secrets in everything that is stored; nothing is changed."""
    found = _Found()
    found.look(db, progress)
    return found.told()


def apply(
    db: Connection, progress: Progress, *, now: clock.Clock = clock.system, patience_s: float = PATIENCE_S
) -> Scanned:
    """Take the secrets out of everything that is stored, and clean the files; without any, nothing is changed."""
    found = _Found()
    found.look(db, progress)  # without keeping others from writing
    with database.transaction(db):
        found.look(db, progress)  # what came meanwhile, and the names as they are now
        if not found.findings:
            return found.told()
        touched = {*found.texts, *found.events}
        heads = ledger.heads(db, touched)
        traces.begin(db)
        with ledger.unlocked(db):
            for (table, column, number), name in found.names.items():
                ledger.rename(db, table, column, number, name)
            for number, (body, meta) in found.texts.items():
                if number in heads:  # it may have been forgotten meanwhile
                    events.rewrite(db, number, body, meta)
        traces.forget_paths(db, found.files)
        projects = ledger.names(db, "projects", "key")
        counts = Counter(projects[one.project] for one in heads.values())
        if not counts:  # it stood in the name of a project or of a file
            counts[next(iter(projects.values()), paths.NO_PROJECT)] = 0
        position = settle(db, "redact", counts, progress, now)
    done = found.told()
    return Scanned(
        events=done.events,
        changed=len(heads),
        findings=done.findings,
        position=position,
        remains=clean(db, patience_s=patience_s),
    )


@dataclass(slots=True)
class _Found:
    position: int = 0  # up to which texts were looked at
    looked: int = 0
    by_text: dict[int, Counter[str]] = field(default_factory=dict)
    by_name: Counter[tuple[str, str]] = field(default_factory=Counter)  # by id and rule
    texts: dict[int, tuple[str, Mapping[str, object]]] = field(default_factory=dict)
    names: dict[tuple[str, str, int], str] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)

    @property
    def findings(self) -> list[Finding]:
        every = self.by_name + Counter(
            {
                (f"event-{number}", rule): count
                for number, rules in self.by_text.items()
                for rule, count in rules.items()
            }
        )
        return [
            Finding(id=name, rule=rule, count=count)
            for (name, rule), count in sorted(every.items(), key=lambda one: (_number(one[0][0]), one[0]))
        ]

    @property
    def events(self) -> set[int]:
        """Return the events of which a name changes."""
        return {number for table, _, number in self.names if table == "events"}

    def told(self) -> Scanned:
        return Scanned(events=self.looked, changed=len({*self.texts, *self.events}), findings=self.findings)

    def look(self, db: Connection, progress: Progress) -> None:
        """Look at the texts behind the position, and at all names."""
        self._look_at_names(db)
        self._look_at_files(db)
        renamed = dict(_pairs(db, self.names))
        if renamed:
            self.position = self.looked = 0  # any text may name them
        newest = events.position(db)
        for event in events.after(db, self.position):
            self._look_at(event, renamed)
            self.position = event.id
            self.looked += 1
            if self.looked % 200 == 0:
                progress(event.id, newest)
        progress(newest, newest)

    def _look_at(self, event: Stored, renamed: Mapping[str, str]) -> None:
        body = redact(event.body)
        meta = redact_value(_named(dict(event.meta), renamed))
        kept = meta if isinstance(meta, dict) else {}
        if body == event.body and kept == event.meta:
            return
        self.texts[event.id] = body, kept
        found = _marks(body) - _marks(event.body) + (_marks(json.dumps(kept)) - _marks(json.dumps(event.meta)))
        if found:
            self.by_text[event.id] = found

    def _look_at_names(self, db: Connection) -> None:
        self.names.clear()
        self.by_name.clear()
        for table, column, kind in _NAMES:
            held = ledger.names(db, table, column)
            for number, name in held.items():
                clean = _clean(name) if column in _IDS else redact(name)
                if clean == name:
                    continue
                if column == "key" and clean in held.values():
                    clean = _apart(name, clean)
                self.names[table, column, number] = clean
                if not name.startswith(_OURS):  # it repeats what another name holds
                    self.by_name.update(
                        {(f"{kind}-{number}", rule): count for rule, count in _new(name, clean).items()}
                    )

    def _look_at_files(self, db: Connection) -> None:
        self.files.clear()
        for path, text in traces.file_texts(db):
            if found := _new(text, redact(text)):
                self.files.append(path)
                self.by_name.update({("imported file", rule): count for rule, count in found.items()})


_OURS: Final = ("rule:", "member:")


def _clean(name: str) -> str:
    """Return a name of a session or an event as capture would write it. An origin of ours holds that of its cause."""
    if name.startswith("rule:"):
        cause, _, number = name.removeprefix("rule:").rpartition(":")
        return f"rule:{_clean(cause)}:{number}"
    clean = redact(name)
    return clean if clean == name else _apart(name, clean)


def _apart(name: str, clean: str) -> str:
    return f"{clean}~{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _pairs(db: Connection, names: Mapping[tuple[str, str, int], str]) -> Iterator[tuple[str, str]]:
    """Yield what each name of a session or an event was, and what it becomes."""
    for table, column in (("sessions", "host_id"), ("events", "origin")):
        for number, old in ledger.names(db, table, column).items():
            if (new := names.get((table, column, number))) is not None:
                yield old, new


def _named(value: object, renamed: Mapping[str, str]) -> object:
    """Return the meta of an event with other names in the place of those that change."""
    if not renamed:
        return value
    if isinstance(value, str):
        return renamed.get(value, value)
    if isinstance(value, list):
        return [_named(one, renamed) for one in value]
    if isinstance(value, dict):
        return {name: _named(one, renamed) for name, one in value.items()}
    return value


def _marks(text: str) -> Counter[str]:
    return Counter(match[1] for match in MARK.finditer(text))


def _new(text: str, clean: str) -> Counter[str]:
    return _marks(clean) - _marks(text)


def _number(name: str) -> int:
    digits = name.rpartition("-")[2]
    return int(digits) if digits.isdecimal() else 0
