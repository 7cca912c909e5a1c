"""Keeps a graph file at the end of the ledger: batches for a few changes, a new file for many, and for any doubt.

A file is in doubt while it is opened and not proved yet, and when a process that had it open ended by a fault: the next
one does not open it.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from graphsvc.graph import build
from graphsvc.graph.driver import LARGEST, At, Failed, Graph, Locked, Meta, nowhere
from graphsvc.graph.place import ASKED, Place, beside, remove
from graphsvc.store import database, events, rows
from graphsvc.store.database import Connection
from graphsvc.store.edges import shared

FEW: Final = 500  # changed rows that are always written into the file at hand
MOST: Final = 5_000  # that ever are
SHARE: Final = 50  # more than one row of so many is written faster by making the file anew
# Kuzu leaves pages behind that it rewrote: a file is made anew when it is so many times as large as it was, and bytes.
GROWN: Final = 4
SPARE: Final = 256 << 20
# While the ledger goes on, a file is made anew for many changes only after so many times as long as that takes.
REST: Final = 4
Tell = Callable[..., None]


class Absent(Exception):  # a state, not an error of anyone
    """There is no mirror now; says why."""


class Follower:
    """One place, one store. `tell` gets what is known of the state, as keyword arguments."""

    def __init__(self, store: Path, place: Place, rules: str, tell: Tell, at: At = nowhere) -> None:
        self._store, self._place, self._rules, self._tell, self._at = store, place, rules, tell, at
        self._lock: IO[bytes] | None = None
        self._db: Connection | None = None
        self._graph: Graph | None = None
        self._meta: Meta | None = None
        self._doubt: int | None = None  # which doubt file was there when this step began, or was made in it
        self._size = 0  # rows of the graph
        self._begun = 0  # bytes of the file when it was opened or made
        self._newest = 0  # of the ledger, when it was looked at last
        self._rested = 0.0  # when the file may be made anew again

    @property
    def position(self) -> int:
        """Where the mirror stands; 0 when there is none."""
        return self._meta.position if self._meta is not None and self._graph is not None else 0

    def step(self) -> None:
        """Bring the mirror to the end of the ledger, or as near as it is worth now; raise Absent."""
        self._hold()
        db = self._open_store()
        if rows.version(db) != self._rules:
            raise Absent("the tables were written by other rules")
        self._doubt = self._doubted()
        if self._doubt is not None:
            asked = self._place.doubt.read_bytes() == ASKED
            self._anew(db, "this was asked for" if asked else "it broke when it was used last", damaged=not asked)
        elif self._graph is None:
            self._open(db)
        else:
            self._follow(db)
        self._tell(state="ok", position=self.position)

    def ask(self, text: str, parameters: dict[str, object], *, most: int, timeout_ms: int) -> tuple[list[object], bool]:
        """Ask the graph; raise Absent, Failed (the graph is made anew at the next step), Refused or ValueError."""
        if self._graph is None:
            raise Absent("it is not open")
        found, more = self._graph.ask(text, parameters, most=most, timeout_ms=timeout_ms)
        return list(found), more

    def broken(self) -> None:
        """Take note that Kuzu failed at the file: it is not used again."""
        self._mark()
        self._close()

    def close(self) -> None:
        """Let go of everything."""
        self._close()
        self._at("closed")
        if self._db is not None:
            self._db.close()
        if self._lock is not None:
            self._lock.close()
        self._db = self._lock = None

    def _hold(self) -> None:
        """Be the only process that keeps this folder."""
        if self._lock is not None:
            return
        self._place.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = self._place.lock.open("ab")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise Absent("another process keeps it") from None
        self._lock = lock

    def _open_store(self) -> Connection:
        if self._db is None:
            if not self._store.exists():
                raise Absent("there is no store")
            self._db = database.reader(self._store)
        return self._db

    def _open(self, db: Connection) -> None:
        """Open the file and prove it; make it anew when it does not hold what the store does."""
        if not self._place.graph.exists():
            self._anew(db, "there is none yet")
            return
        self._mark()
        self._at("opening")
        try:
            self._graph = Graph(self._place.graph, self._at)
            self._at("opened")
            with database.snapshot(db):
                wrong = self._proved(db, self._graph)
        except Locked:
            self._trust()
            raise Absent("another process has its file open") from None
        except Failed as error:
            self._anew(db, f"it cannot be read: {error.kind}", damaged=True)
            return
        if wrong is not None:
            self._anew(db, wrong, damaged=wrong == _DIFFERS)
            return
        self._at("proved")
        self._begun = self._place.graph.stat().st_size
        self._trust()

    def _proved(self, db: Connection, graph: Graph) -> str | None:
        """Bring an opened graph to the end of the ledger and compare it with the store; say why it cannot be used."""
        self._meta, now = graph.meta(), build.described(db, self._rules)
        if self._meta is None or self._meta.versions != now.versions:
            return "another version made it"
        if self._meta.ledger != shared.ledger(db, self._meta.position) or self._meta.position > now.position:
            return "it tells of another ledger"
        tallies = shared.Everything(db).tallies()
        self._size = sum(one.rows for one in tallies.values())
        if not self._catch_up(db, graph, now):
            return "much happened meanwhile"
        return None if graph.tallies() == tallies else _DIFFERS

    def _follow(self, db: Connection) -> None:
        """Write what was stored since the last step."""
        newest = events.position(db)
        if newest == self.position:
            return
        graph, calm = self._graph, newest == self._newest
        self._newest = newest
        assert graph is not None  # noqa: S101 # `step` looked
        try:
            with database.snapshot(db):
                now = build.described(db, self._rules)
                moved = self._meta is not None and self._meta.ledger != shared.ledger(db, self.position)
                written = not moved and self._catch_up(db, graph, now)
        except Failed as error:
            self._anew(db, f"it cannot be written: {error.kind}", damaged=True)
            return
        if not written and (moved or calm or time.monotonic() >= self._rested):
            self._anew(db, "another ledger took the place of its own" if moved else "much happened")
        elif self._place.graph.stat().st_size > max(self._begun + SPARE, min(GROWN * self._begun, LARGEST // 2)):
            self._anew(db, "its file has grown")

    def _catch_up(self, db: Connection, graph: Graph, now: Meta) -> bool:
        """Write what changed behind the mirror's position, in one transaction; False when it is too much for that."""
        if self.position == now.position:
            return True
        few = min(MOST, max(FEW, self._size // SHARE))
        changes = shared.changes(db, self.position, few)
        if changes is None:
            return False
        graph.write(changes, now)
        self._meta = now
        return True

    def _anew(self, db: Connection, why: str, *, damaged: bool = False) -> None:
        """Make the file anew. What is damaged is kept aside, what is only old is not."""
        begun = time.monotonic()
        self._tell(state="building", why=why)
        self._close()
        try:
            meta = build.build(db, self._place.new, self._rules, self._progress, self._at)
        except Failed as error:
            remove(self._place.new)
            raise Absent(f"it cannot be made: {error.kind}") from error
        self._at("file filled")
        self._set_aside(damaged=damaged)
        self._at("old file removed")
        self._place.new.replace(self._place.graph)
        self._at("file renamed")
        try:
            self._graph = Graph(self._place.graph, self._at)
        except Failed as error:
            raise Absent(f"it cannot be opened: {error.kind}") from error
        self._meta, self._size, self._begun = meta, shared.size(db), self._place.graph.stat().st_size
        self._trust()
        self._at("new file opened")
        self._rested = time.monotonic() + REST * (time.monotonic() - begun)

    def _progress(self, done: int, expected: int) -> None:
        self._tell(state="building", done=done, expected=expected)

    def _set_aside(self, *, damaged: bool) -> None:
        remove(self._place.damaged)
        if damaged and self._place.graph.exists():
            for one in beside(self._place.graph):
                one.replace(one.with_name(one.name.replace(self._place.graph.name, self._place.damaged.name, 1)))
        remove(self._place.graph)

    def _mark(self) -> None:
        with suppress(FileExistsError):
            os.close(os.open(self._place.doubt, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
            self._doubt = self._doubted()

    def _trust(self) -> None:
        """Remove the doubt file, unless somebody has asked for a new graph meanwhile."""
        if self._doubted() == self._doubt:
            self._place.doubt.unlink(missing_ok=True)

    def _doubted(self) -> int | None:
        try:
            return self._place.doubt.stat().st_ino
        except FileNotFoundError:
            return None

    def _close(self) -> None:
        if self._graph is not None:
            self._graph.close()
        self._graph = self._meta = None


_DIFFERS: Final = "it does not hold what the store does"
