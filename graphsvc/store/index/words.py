"""The word index: a read model that follows the ledger by position and holds the words of units.

The index is two FTS5 tables, one for isolated events. They are read as posting lists by exact term (fts5vocab), never
by a MATCH expression, and scores are computed from what passes the filters: so no rank and no count depends on rows the
asker may not see, and none changes while an answer is read page by page. What is not indexed yet is analysed in memory
by the same code. The analyser itself is handed in: it is a rule of `recall`.
"""

from __future__ import annotations

import json
import math
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Final

from graphsvc.model import EventKind
from graphsvc.store import events
from graphsvc.store.database import BUSY_MS, BusyError, Connection, transaction
from graphsvc.store.index import units
from graphsvc.store.index.units import Place, Scope, Unit, conditions
from graphsvc.store.visibility import Viewer

NAME: Final = "words"
TABLES: Final = ("words", "words_isolated")
BATCH: Final = 200  # events a write transaction, and
BATCH_CHARS: Final = 8_000_000  # of texts after which it ends
PATIENCE_MS: Final = 100  # how long catching up waits for another writer: searching must not
TAIL_UNITS: Final = 2_000
TAIL_BYTES: Final = 4_000_000
TAIL_MS: Final = 500
_BUSY: Final = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_FULL}


@dataclass(frozen=True, slots=True)
class Asked:
    """Terms by column. `prefixes` are beginnings of terms in column w."""

    words: tuple[str, ...]
    joined: tuple[str, ...]
    prefixes: tuple[str, ...]


Columns = tuple[str, str, str]
Analyse = Callable[[Unit], Columns]
Term = tuple[str, str]  # column and term as the tokenizer leaves it; column p: a prefix in column w
Postings = dict[Term, dict[int, int]]  # term → event → how often it stands there


def catch_up(db: Connection, analyse: Analyse, version: str, limit_ms: float) -> int:
    """Index what the ledger holds behind the index's position, for at most that time; return how many events passed.

    One text at least is indexed, however long it takes. Texts are analysed before the write lock is taken. Another
    writer, or a file that cannot be written, ends it early.
    """
    if db.in_transaction:
        return 0
    deadline = time.monotonic() + limit_ms / 1000
    done = 0
    try:
        with _patience(db):
            _prepare(db, version)
            while passed := _batch(db, analyse, version, deadline):
                done += passed
                if time.monotonic() > deadline:
                    break
    except BusyError:
        return done
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF not in _BUSY:
            raise
    return done


def reset(db: Connection) -> None:
    """Empty the index; the next `catch_up` begins at the first event."""
    with transaction(db):
        for table in TABLES:
            db.execute(f"INSERT INTO {table} ({table}) VALUES ('delete-all')")
        db.execute("DELETE FROM read_models WHERE name = ?", (NAME,))


def indexed(db: Connection, version: str) -> int:
    """Return the position of the index; 0 when another version of the analyser wrote it."""
    row = db.execute("SELECT position, version FROM read_models WHERE name = ?", (NAME,)).fetchone()
    return int(row["position"]) if row and row["version"] == version else 0


def differences(db: Connection, table: str) -> list[tuple[str, str]]:
    """Compare the ids of a table of the index with the units up to its position; return (id, problem) pairs."""
    try:
        return _differences(db, table)
    except sqlite3.OperationalError as error:
        return [("*", f"cannot be read: {error}")]


def contents(db: Connection, table: str, analyse: Analyse, version: str) -> list[tuple[str, str]]:
    """Index the attached store's units again and compare what the postings hold; return (id, problem) pairs.

    An index of another version of the analyser is not in use, and the next search makes it anew.
    """
    if not indexed(db, version):
        stale = db.execute("SELECT 1 FROM read_models WHERE name = ? AND position > 0", (NAME,)).fetchone()
        return [("read_models", "of another version: the next search indexes anew")] if stale and table == NAME else []
    try:
        return [(str(event), "indexed otherwise") for event in _otherwise(db, table, analyse)]
    except sqlite3.DatabaseError as error:
        return [("*", f"cannot be read: {error}")]


def _otherwise(db: Connection, table: str, analyse: Analyse) -> list[int]:
    (statement,) = db.execute("SELECT sql FROM store.sqlite_master WHERE name = ?", (table,)).fetchone()
    db.execute(statement)
    for unit in units.scan(db, f"e.id IN (SELECT id FROM store.{table}_docsize)", ()):
        _insert(db, f"main.{table}", unit.event, analyse(unit))
    for schema in ("main", "store"):
        db.execute(f"CREATE VIRTUAL TABLE temp.{schema}_{table} USING fts5vocab({schema}, {table}, instance)")
    one, other = (f"SELECT term, doc, col, offset FROM temp.{schema}_{table}" for schema in ("main", "store"))
    rows = db.execute(
        "SELECT DISTINCT doc FROM"
        f" (SELECT * FROM ({one} EXCEPT {other}) UNION ALL SELECT * FROM ({other} EXCEPT {one})) ORDER BY doc"
    )
    return [row["doc"] for row in rows]


@contextmanager
def reading(db: Connection, analyse: Analyse, version: str, scope: Scope) -> Iterator[Reader]:
    """Open the index together with the tail that it does not hold yet, which is bounded: see `Reader.gap`."""
    with closing(sqlite3.connect(":memory:", isolation_level=None, factory=Connection)) as memory:
        for (statement,) in db.execute("SELECT sql FROM sqlite_master WHERE name = 'words'"):
            memory.execute(statement)
            memory.execute(statement.replace("words", "asked", 1))
        _vocabulary(memory, "words", "instance")
        _vocabulary(memory, "asked", "instance")
        position = indexed(db, version)
        gap = scope.gap
        if position < scope.position:
            gap = _tail(db, memory, analyse, position, scope)
        yield Reader(db, memory, position, gap)


@dataclass(frozen=True, slots=True)
class Reader:
    """The index and its tail at one moment. What lies between the two events of `gap` could not be looked at."""

    db: Connection
    memory: Connection
    position: int
    gap: tuple[int, int] | None

    def postings(self, asked: Asked, viewer: Viewer) -> Postings:
        """Return every event that holds one of the terms, whoever may see it."""
        wanted: dict[str, set[str]] = {}
        for column, stem in self.stems(asked):
            wanted.setdefault(stem, set()).add(column)
        found: Postings = {}
        for db, table in self._tables(viewer):
            _vocabulary(db, table, "instance")
            _collect(db, table, wanted, asked.prefixes, found)
        if self.gap is None:
            return found
        low, high = self.gap
        return {
            term: {event: times for event, times in held.items() if not low < event < high}
            for term, held in found.items()
        }

    def stems(self, asked: Asked) -> list[Term]:
        """Return the terms as the tokenizer leaves them."""
        self.memory.execute("INSERT INTO asked (asked) VALUES ('delete-all')")
        every = [*(("w", term) for term in asked.words), *(("i", term) for term in asked.joined)]
        self.memory.executemany(
            "INSERT INTO asked (rowid, w) VALUES (?, ?)", [(number, term) for number, (_, term) in enumerate(every)]
        )
        rows = self.memory.execute("SELECT doc, term FROM temp.asked_instance")
        return sorted({(every[number][0], stem) for number, stem in rows})

    def holders(self, terms: Iterable[str], viewer: Viewer) -> dict[str, set[int]]:
        """Return by term of the index, as the tokenizer left it, the events that hold it as a word."""
        found: Postings = {}
        for db, table in self._tables(viewer):
            _vocabulary(db, table, "instance")
            _collect(db, table, {term: {"w"} for term in terms}, (), found)
        return {term: set(events) for (_, term), events in found.items()}

    def places(self, scope: Scope, found: Iterable[int]) -> list[Place]:
        """Return those of the events that are units in the scope."""
        condition, values = conditions(scope)
        late = dict(self.memory.execute("SELECT id, sz FROM words_docsize").fetchall())
        rows = _plain(self.db).execute(
            "SELECT e.id, e.at, e.session, COALESCE(d.sz, h.sz)"
            f" FROM json_each(?) j CROSS JOIN events e ON e.id = j.value {units.JOINS}"
            " LEFT JOIN words_docsize d ON d.id = e.id LEFT JOIN words_isolated_docsize h ON h.id = e.id"
            f" WHERE {condition}",
            (json.dumps(list(found)), *values),
        )
        return [Place(event, at, session, sizes or late.get(event, b"")) for event, at, session, sizes in rows]

    def _tables(self, viewer: Viewer) -> Iterator[tuple[Connection, str]]:
        yield self.memory, "words"
        published = self.db.execute(
            "SELECT 1 FROM events WHERE id > ? AND kind = ? LIMIT 1", (self.position, EventKind.PUBLISH)
        )
        if viewer.session is not None or published.fetchone():
            yield self.db, "words_isolated"
        yield self.db, "words"


def spellings(db: Connection, first: str, shortest: int, longest: int, size: int = 20_000) -> list[str]:
    """List terms of the index that begin with a character and have these lengths; they may stand in any project."""
    _vocabulary(db, "words", "row")
    rows = db.execute(
        "SELECT term FROM temp.words_row WHERE term >= ? AND term < ? AND length(term) BETWEEN ? AND ? LIMIT ?",
        (first, first + "\U0010ffff", shortest, longest, size),
    )
    return [row[0] for row in rows]


@contextmanager
def _patience(db: Connection) -> Iterator[None]:
    db.execute(f"PRAGMA busy_timeout = {PATIENCE_MS}")
    try:
        yield
    finally:
        db.execute(f"PRAGMA busy_timeout = {BUSY_MS}")


def _prepare(db: Connection, version: str) -> None:
    """Empty an index that another version of the analyser wrote, and note the version of this one."""
    row = db.execute("SELECT version FROM read_models WHERE name = ?", (NAME,)).fetchone()
    if row and row["version"] == version:
        return
    with transaction(db):
        reset(db)
        db.execute("INSERT INTO read_models (name, position, version) VALUES (?, 0, ?)", (NAME, version))


def _batch(db: Connection, analyse: Analyse, version: str, deadline: float) -> int:
    """Index the next events; return how many positions that were, 0 at the end of the ledger."""
    start = indexed(db, version)
    upto = min(start + BATCH, events.position(db))
    if upto <= start:
        return 0
    rows: list[tuple[int, Columns]] = []
    left = BATCH_CHARS
    for unit in units.scan(db, f"e.id > ? AND e.id <= ? AND {units.UNIT}", (start, upto)):
        rows.append((unit.event, analyse(unit)))
        left -= len(unit.text)
        if left <= 0 or time.monotonic() > deadline:
            upto = unit.event
            break
    with transaction(db):
        if indexed(db, version) != start:  # another process indexed meanwhile; go on from there
            return 1
        hidden = {
            row[0] for row in db.execute("SELECT event FROM hidden WHERE event > ? AND event <= ?", (start, upto))
        }
        for event, texts in rows:
            _insert(db, "words_isolated" if event in hidden else "words", event, texts)
        _publish(db, analyse, start, upto)
        db.execute("UPDATE read_models SET position = ? WHERE name = ?", (upto, NAME))
    return upto - start


def _publish(db: Connection, analyse: Analyse, start: int, upto: int) -> None:
    """Index for all what a publish event among these has shown to all."""
    passes = db.execute(
        "SELECT 1 FROM events WHERE id > ? AND id <= ? AND kind = ? LIMIT 1", (start, upto, EventKind.PUBLISH)
    )
    if not passes.fetchone():
        return
    shown = db.execute(
        "SELECT d.id FROM words_isolated_docsize d WHERE NOT EXISTS (SELECT 1 FROM hidden WHERE event = d.id)"
        " AND NOT EXISTS (SELECT 1 FROM words_docsize o WHERE o.id = d.id)"
    ).fetchall()
    for (event,) in shown:
        _insert(db, "words", event, analyse(units.many(db, [event])[event]))


def _insert(db: Connection, table: str, event: int, texts: Columns) -> None:
    db.execute(f"INSERT INTO {table} (rowid, w, i, p) VALUES (?, ?, ?, ?)", (event, *texts))


def _differences(db: Connection, table: str) -> list[tuple[str, str]]:
    (position,) = db.execute("SELECT COALESCE(MAX(position), 0) FROM read_models WHERE name = ?", (NAME,)).fetchone()
    newest = events.position(db)
    found: list[tuple[str, str]] = []
    if position > newest and table == NAME:
        found.append(("read_models", f"at {position}, the ledger ends at {newest}"))
    held = {row[0] for row in db.execute(f"SELECT id FROM {table}_docsize")}
    hidden = "EXISTS (SELECT 1 FROM hidden h WHERE h.event = e.id)"
    every = {
        row[0]: bool(row[1])
        for row in db.execute(
            f"SELECT e.id, {hidden} FROM events e {units.JOINS} WHERE e.id <= ? AND {units.UNIT}", (position,)
        )
    }
    isolated = table == "words_isolated"
    missing = {event for event, own in every.items() if own is isolated} - held
    if isolated:
        # What was published stays here and is indexed for all beside it.
        extra = held - every.keys()
    else:
        extra = held - {event for event, own in every.items() if not own}
        # Published behind the position: the index comes to it.
        later = db.execute("SELECT 1 FROM events WHERE id > ? AND kind = ? LIMIT 1", (position, EventKind.PUBLISH))
        if later.fetchone():
            missing -= {row[0] for row in db.execute("SELECT id FROM words_isolated_docsize")}
    found += [(str(event), "missing") for event in sorted(missing)]
    return found + [(str(event), "not what the ledger gives") for event in sorted(extra)]


def _tail(db: Connection, memory: Connection, analyse: Analyse, position: int, scope: Scope) -> tuple[int, int] | None:
    """Analyse the units of a scope behind a position in memory, newest first; return between what it left some out.

    The first page of an answer stops at a text that is too large, and when its time is over; the others read again what
    the first one read.
    """
    condition, values = conditions(scope)
    gap = scope.gap
    if gap is not None:
        condition += " AND (e.id <= ? OR e.id >= ?)"
        values += gap
    deadline = time.monotonic() + TAIL_MS / 1000 if gap is None else math.inf
    left, oldest = TAIL_BYTES, scope.position + 1
    tail = db.execute(
        f"SELECT e.id FROM events e {units.JOINS} WHERE e.id > ? AND {condition} ORDER BY e.id DESC LIMIT ?",
        (position, *values, TAIL_UNITS + 1),
    )
    for done, (event,) in enumerate(tail.fetchall()):
        late = done == TAIL_UNITS or left <= 0 or time.monotonic() > deadline
        unit = None if late else next(units.scan(db, "e.id = ?", (event,), most=left), None)
        if unit is None:
            return min(position, gap[0]) if gap and gap[1] else position, oldest
        _insert(memory, "words", event, analyse(unit))
        left -= len(unit.text)
        oldest = event
    return gap


def _vocabulary(db: Connection, table: str, form: str) -> None:
    """Make the posting lists of a table readable; this lives in the connection, not in the file."""
    db.execute(f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.{table}_{form} USING fts5vocab(main, {table}, {form})")


def _plain(db: Connection) -> sqlite3.Cursor:
    """Return a cursor whose rows are plain tuples: posting lists are long."""
    cursor = db.cursor()
    cursor.row_factory = None
    return cursor


def _collect(
    db: Connection, table: str, wanted: Mapping[str, set[str]], prefixes: Sequence[str], found: Postings
) -> None:
    """Read the posting lists of a table. A published event stands in two of them; it counts once."""
    cursor = _plain(db)
    for stem, columns in wanted.items():
        cursor.execute(f"SELECT doc, col FROM temp.{table}_instance WHERE term = ?", (stem,))
        counts = Counter(cursor)
        for column in columns:
            held = {event: times for (event, name), times in counts.items() if name == column}
            found.setdefault((column, stem), {}).update(held)
    for prefix in prefixes:
        cursor.execute(
            f"SELECT doc FROM temp.{table}_instance WHERE term >= ? AND term < ? AND col = 'w'",
            (prefix, prefix + "\U0010ffff"),
        )
        found.setdefault(("p", prefix), {}).update(Counter(event for (event,) in cursor))
