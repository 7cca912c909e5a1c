"""The word index: a read model that follows the ledger by position, and the units it holds.

A unit is an event of the conversation, the event that created a record, or a version of an asset. The index is two FTS5
tables, one for isolated events. They are read as posting lists by exact term (fts5vocab), never by a MATCH expression,
and scores are computed from what passes the filters: so no rank and no count depends on rows the asker may not see, and
none changes while an answer is read page by page. What is not indexed yet is analysed in memory by the same code.
The analyser itself is handed in: it is a rule of `recall`.
"""

from __future__ import annotations

import json
import math
import sqlite3
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple

from graphsvc.model import TALK_KINDS, EventKind, NodeId, NodeType
from graphsvc.store import events, visibility
from graphsvc.store.database import BUSY_MS, BusyError, Connection, transaction
from graphsvc.store.visibility import Viewer

NAME: Final = "words"
TABLES: Final = ("words", "words_isolated")
BATCH: Final = 200  # events a write transaction, and
BATCH_CHARS: Final = 8_000_000  # of texts after which it ends
PATIENCE_MS: Final = 100  # how long catching up waits for another writer: searching must not
MAX_BYTES: Final = 2**31 - 1  # of a text: SQLite holds no larger one
TAIL_UNITS: Final = 2_000
TAIL_BYTES: Final = 4_000_000
TAIL_MS: Final = 500
_BUSY: Final = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_FULL}

_TALK: Final = ", ".join(f"'{kind}'" for kind in TALK_KINDS)
_UNIT: Final = f"(e.kind IN ({_TALK}) OR r.id IS NOT NULL OR v.event IS NOT NULL)"
_JOINS: Final = "LEFT JOIN records r ON r.id = e.id LEFT JOIN asset_versions v ON v.event = e.id"

# What all who see this version know its asset by: the first shared version, or the session's own while it is isolated.
_NUMBER: Final = (
    "(SELECT MIN(f.event) FROM asset_versions f WHERE f.asset = v.asset"
    " AND (NOT EXISTS (SELECT 1 FROM hidden WHERE hidden.event = f.event)"
    " OR f.session = v.session AND EXISTS (SELECT 1 FROM hidden WHERE hidden.event = v.event)))"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """What a search finds: an event of the conversation, a record, or an asset as its newest version stands."""

    event: int
    kind: str
    session_id: str
    seq: int
    ts: str | None
    text: str
    tool: str | None = None
    status: str | None = None
    asset: int | None = None
    path: str | None = None

    @property
    def id(self) -> str:
        if self.asset is not None:
            return str(NodeId(NodeType.ASSET, str(self.asset)))
        return str(NodeId(NodeType(self.kind) if self.status is not None else NodeType.EVENT, str(self.event)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The filters of a search: who asks, what about, and the ledger position the answer stands at.

    `gap`: what lies between these two events was not searched on the first page, so it is not on any other.
    """

    viewer: Viewer
    position: int
    kind: EventKind | None = None
    session: int | None = None
    since: str | None = None
    until: str | None = None
    gap: tuple[int, int] | None = None


class Place(NamedTuple):
    """Where a unit stands: its event, the time it is ordered by, its session, and the sizes FTS5 keeps of it.

    A tuple, because a common word has a hundred thousand of them.
    """

    event: int
    at: str
    session: int
    sizes: bytes = b""

    @property
    def when(self) -> tuple[str, int]:
        """Return what orders units by time."""
        return self.at, self.event

    @property
    def size(self) -> int:
        """Return how many terms the unit holds: a sum of variable-length integers."""
        total = value = 0
        for byte in self.sizes:
            value = value << 7 | byte & 0x7F
            if byte < 0x80:
                total, value = total + value, 0
        return total


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
    for unit in _units(db, f"e.id IN (SELECT id FROM store.{table}_docsize)", ()):
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
            f" FROM json_each(?) j CROSS JOIN events e ON e.id = j.value {_JOINS}"
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


def conditions(scope: Scope) -> tuple[str, list[object]]:
    """Return the WHERE condition of a scope on `events e` with the joins of a unit, and its parameters."""
    seen, viewer = visibility.clause(scope.viewer, "e.id")
    newer, newer_viewer = visibility.clause(scope.viewer, "n.event")
    parts: list[tuple[str, list[object]]] = [
        (_UNIT, []),
        ("e.id <= ?", [scope.position]),
        (seen, viewer),
        (
            "NOT EXISTS (SELECT 1 FROM asset_versions n WHERE n.asset = v.asset AND (n.at, n.event) > (v.at, v.event)"
            f" AND n.event <= ? AND {newer})",
            [scope.position, *newer_viewer],
        ),
    ]
    if scope.viewer.project is not None:
        parts.append(("e.project = ?", [scope.viewer.project]))
    if scope.kind is not None:
        parts.append(("e.kind = ?", [scope.kind]))
    if scope.session is not None:
        parts.append(
            (
                "e.id IN (SELECT id FROM events WHERE session = ?"
                " UNION ALL SELECT event FROM membership WHERE session = ?)",
                [scope.session, scope.session],
            )
        )
    if scope.since is not None:
        parts.append(("e.ts >= ?", [scope.since]))
    if scope.until is not None:
        parts.append(("e.ts <= ?", [scope.until]))
    return " AND ".join(text for text, _ in parts), [value for _, values in parts for value in values]


def listing(db: Connection, scope: Scope, *, after: int | None, ascending: bool, size: int) -> list[Place]:
    """Return the units of a scope by time, from behind the unit `after` on."""
    condition, values = conditions(scope)
    order, sign = ("ASC", ">") if ascending else ("DESC", "<")
    if after is not None:
        condition += f" AND (e.at, e.id) {sign} ((SELECT at FROM events WHERE id = ?), ?)"
        values += [after, after]
    rows = db.execute(
        f"SELECT e.id, e.at, e.session FROM events e {_JOINS} WHERE {condition}"
        f" ORDER BY e.at {order}, e.id {order} LIMIT ?",
        (*values, size),
    )
    return [Place(*row) for row in rows]


def when(db: Connection, event: int) -> tuple[str, int]:
    """Return what orders an event by time."""
    row = db.execute("SELECT at FROM events WHERE id = ?", (event,)).fetchone()
    return (row["at"] if row else ""), event


def count(db: Connection, scope: Scope) -> int:
    """Count the units of a scope."""
    condition, values = conditions(scope)
    return int(db.execute(f"SELECT COUNT(*) FROM events e {_JOINS} WHERE {condition}", values).fetchone()[0])


def left_out(db: Connection, scope: Scope, gap: tuple[int, int]) -> int:
    """Count the units of a scope between the two events of a gap."""
    condition, values = conditions(scope)
    query = f"SELECT COUNT(*) FROM events e {_JOINS} WHERE e.id > ? AND e.id < ? AND {condition}"
    return int(db.execute(query, (*gap, *values)).fetchone()[0])


def units(db: Connection, numbers: Sequence[int]) -> dict[int, Unit]:
    """Read units by the ids of their events, in one statement."""
    chosen = "e.id IN (SELECT value FROM json_each(?))"
    return {unit.event: unit for unit in _units(db, chosen, (json.dumps(list(numbers)),))}


def names(db: Connection, scope: Scope) -> Iterator[tuple[Place, str, str]]:
    """Yield every asset of a scope with its path and title."""
    condition, values = conditions(scope)
    rows = db.execute(
        "SELECT e.id, e.at, e.session, a.path, v.title FROM asset_versions v JOIN knowledge_assets a ON a.id = v.asset"
        f" JOIN events e ON e.id = v.event LEFT JOIN records r ON r.id = e.id WHERE {condition}",
        values,
    )
    for row in rows:
        yield Place(row[0], row[1], row[2]), row[3], row[4]


def spellings(db: Connection, first: str, shortest: int, longest: int, size: int = 20_000) -> list[str]:
    """List terms of the index that begin with a character and have these lengths; they may stand in any project."""
    _vocabulary(db, "words", "row")
    rows = db.execute(
        "SELECT term FROM temp.words_row WHERE term >= ? AND term < ? AND length(term) BETWEEN ? AND ? LIMIT ?",
        (first, first + "\U0010ffff", shortest, longest, size),
    )
    return [row[0] for row in rows]


def _units(db: Connection, condition: str, values: Sequence[object], *, most: int = MAX_BYTES) -> Iterator[Unit]:
    """Read units one by one, so that no more than one large text is held; leave out those of more than `most` bytes."""
    rows = db.execute(
        "SELECT e.id, e.kind, s.host_id, e.seq, e.ts, e.body, e.meta, b.body AS packed, b.meta AS packed_meta,"
        f" r.status, {_NUMBER} AS asset, v.title, v.content, a.path"
        f" FROM events e JOIN sessions s ON s.id = e.session LEFT JOIN bodies b ON b.event = e.id {_JOINS}"
        f" LEFT JOIN knowledge_assets a ON a.id = v.asset WHERE {condition} ORDER BY e.id",
        values,
    )
    for row in rows:
        text = _text(row, most)
        if text is None:
            continue
        tool = None
        if row["kind"] == EventKind.TOOL_CALL:
            meta = row["meta"] if row["packed"] is None else zlib.decompress(row["packed_meta"])
            named = json.loads(meta).get("tool_name")
            tool = named if isinstance(named, str) else None
        yield Unit(
            event=row["id"],
            kind=row["kind"],
            session_id=row["host_id"],
            seq=row["seq"],
            ts=row["ts"],
            text=text,
            tool=tool,
            status=row["status"],
            asset=row["asset"],
            path=row["path"],
        )


def _text(row: sqlite3.Row, most: int) -> str | None:
    """Return the text of a unit; None when it is larger than `most` bytes."""
    if row["asset"] is not None:
        content = b"" if row["content"] is None else _unpacked(row["content"], most)
        title = row["title"] if row["content"] is None else ""
        return None if content is None else f"{row['path']}\n{title}{_decoded(content)}"
    body = row["body"] if row["packed"] is None else _unpacked(row["packed"], most)
    return None if body is None or len(body) > most else _decoded(body)


def _unpacked(packed: bytes, most: int) -> bytes | None:
    unpacker = zlib.decompressobj()
    data = unpacker.decompress(packed, most)
    return data if unpacker.eof else None


def _decoded(body: bytes) -> str:
    return body.decode("utf-8", "surrogatepass")


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
    for unit in _units(db, f"e.id > ? AND e.id <= ? AND {_UNIT}", (start, upto)):
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
        _insert(db, "words", event, analyse(units(db, [event])[event]))


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
        for row in db.execute(f"SELECT e.id, {hidden} FROM events e {_JOINS} WHERE e.id <= ? AND {_UNIT}", (position,))
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
        f"SELECT e.id FROM events e {_JOINS} WHERE e.id > ? AND {condition} ORDER BY e.id DESC LIMIT ?",
        (position, *values, TAIL_UNITS + 1),
    )
    for done, (event,) in enumerate(tail.fetchall()):
        late = done == TAIL_UNITS or left <= 0 or time.monotonic() > deadline
        unit = None if late else next(_units(db, "e.id = ?", (event,), most=left), None)
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
