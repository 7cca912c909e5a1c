"""The word index: a read model that follows the ledger by position, and the units it holds.

A unit is an event of the conversation, the event that created a record, or a version of an asset. The index is two FTS5
tables, one for isolated events. They are read as posting lists by exact term (fts5vocab), never by a MATCH expression,
and scores are computed from what passes the filters: so no rank and no count depends on rows the asker may not see, and
none changes while an answer is read page by page. What is not indexed yet is analysed in memory by the same code.
The analyser itself is handed in: it is a rule of `memory`.
"""

from __future__ import annotations

import json
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
from graphsvc.store.database import BUSY_MS, Connection, transaction
from graphsvc.store.visibility import Viewer

NAME: Final = "words"
BATCH: Final = 200  # events a write transaction
PATIENCE_MS: Final = 100  # how long catching up waits for another writer: searching must not
TAIL_UNITS: Final = 2_000
TAIL_CHARS: Final = 8_000_000
TAIL_MS: Final = 500
_BUSY: Final = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_FULL}

_TALK: Final = ", ".join(f"'{kind}'" for kind in TALK_KINDS)
_UNIT: Final = f"(e.kind IN ({_TALK}) OR r.id IS NOT NULL OR v.event IS NOT NULL)"
_JOINS: Final = "LEFT JOIN records r ON r.id = e.id LEFT JOIN asset_versions v ON v.event = e.id"


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
    """The filters of a search: who asks, what about, and the ledger position the answer stands at."""

    viewer: Viewer
    position: int
    kind: EventKind | None = None
    session: int | None = None
    since: str | None = None
    until: str | None = None


class Place(NamedTuple):
    """Where a unit stands: its event, the time it is ordered by, its session, and the sizes FTS5 keeps of it.

    A tuple, because a common word has a hundred thousand of them.
    """

    event: int
    at: str
    session: int
    sizes: bytes = b""

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

    Texts are analysed before the write lock is taken. Another writer, or a file that cannot be written, ends it early.
    """
    if db.in_transaction:
        return 0
    deadline = time.monotonic() + limit_ms / 1000
    done = 0
    try:
        with _patience(db):
            _prepare(db, version)
            while time.monotonic() < deadline:
                passed = _batch(db, analyse, version, deadline)
                done += passed
                if not passed:
                    break
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF not in _BUSY:
            raise
    return done


def reset(db: Connection) -> None:
    """Empty the index; the next `catch_up` begins at the first event."""
    with transaction(db):
        for table in ("words", "words_isolated"):
            db.execute(f"INSERT INTO {table} ({table}) VALUES ('delete-all')")
        db.execute("DELETE FROM read_models WHERE name = ?", (NAME,))


def indexed(db: Connection, version: str) -> int:
    """Return the position of the index; 0 when another version of the analyser wrote it."""
    row = db.execute("SELECT position, version FROM read_models WHERE name = ?", (NAME,)).fetchone()
    return int(row["position"]) if row and row["version"] == version else 0


@contextmanager
def reading(db: Connection, analyse: Analyse, version: str, scope: Scope) -> Iterator[Reader]:
    """Open the index together with the tail that it does not hold yet."""
    with closing(sqlite3.connect(":memory:", isolation_level=None, factory=Connection)) as memory:
        for (statement,) in db.execute("SELECT sql FROM sqlite_master WHERE name = 'words'"):
            memory.execute(statement)
            memory.execute(statement.replace("words", "asked", 1))
        _vocabulary(memory, "words", "instance")
        _vocabulary(memory, "asked", "instance")
        position = indexed(db, version)
        skipped = _tail(db, memory, analyse, position, scope) if position < scope.position else 0
        yield Reader(db, memory, position, skipped)


@dataclass(frozen=True, slots=True)
class Reader:
    """The index and its tail at one moment. `skipped` units of the tail were too many to be looked at."""

    db: Connection
    memory: Connection
    position: int
    skipped: int

    def postings(self, asked: Asked, viewer: Viewer) -> Postings:
        """Return every event that holds one of the terms, whoever may see it."""
        wanted: dict[str, set[str]] = {}
        for column, stem in self.stems(asked):
            wanted.setdefault(stem, set()).add(column)
        found: Postings = {}
        for db, table in self._tables(viewer):
            _vocabulary(db, table, "instance")
            _collect(db, table, wanted, asked.prefixes, found)
        return found

    def stems(self, asked: Asked) -> list[Term]:
        """Return the terms as the tokenizer leaves them."""
        self.memory.execute("INSERT INTO asked (asked) VALUES ('delete-all')")
        every = [*(("w", term) for term in asked.words), *(("i", term) for term in asked.joined)]
        self.memory.executemany(
            "INSERT INTO asked (rowid, w) VALUES (?, ?)", [(number, term) for number, (_, term) in enumerate(every)]
        )
        rows = self.memory.execute("SELECT doc, term FROM temp.asked_instance")
        return sorted({(every[number][0], stem) for number, stem in rows})

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


def count(db: Connection, scope: Scope) -> int:
    """Count the units of a scope."""
    condition, values = conditions(scope)
    return int(db.execute(f"SELECT COUNT(*) FROM events e {_JOINS} WHERE {condition}", values).fetchone()[0])


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
    """List terms of the index that begin with a character, by length; they may stand in any project."""
    _vocabulary(db, "words", "row")
    rows = db.execute(
        "SELECT term FROM temp.words_row WHERE term >= ? AND term < ? AND length(term) BETWEEN ? AND ? LIMIT ?",
        (first, first + "\U0010ffff", shortest, longest, size),
    )
    return [row[0] for row in rows]


def _units(db: Connection, condition: str, values: Sequence[object], order: str = "ASC") -> Iterator[Unit]:
    """Read units one by one, so that no more than one large text is held."""
    rows = db.execute(
        "SELECT e.id, e.kind, s.host_id, e.seq, e.ts, e.body, e.meta, b.body AS packed, b.meta AS packed_meta,"
        " r.status, v.asset, v.title, v.content, a.path"
        f" FROM events e JOIN sessions s ON s.id = e.session LEFT JOIN bodies b ON b.event = e.id {_JOINS}"
        f" LEFT JOIN knowledge_assets a ON a.id = v.asset WHERE {condition} ORDER BY e.id {order}",
        values,
    )
    for row in rows:
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
            text=_text(row),
            tool=tool,
            status=row["status"],
            asset=row["asset"],
            path=row["path"],
        )


def _text(row: sqlite3.Row) -> str:
    if row["asset"] is not None:
        content = row["content"]
        return f"{row['path']}\n{row['title'] if content is None else _decoded(zlib.decompress(content))}"
    return _decoded(row["body"] if row["packed"] is None else zlib.decompress(row["packed"]))


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
    for unit in _units(db, f"e.id > ? AND e.id <= ? AND {_UNIT}", (start, upto)):
        rows.append((unit.event, analyse(unit)))
        if time.monotonic() > deadline:
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
    shown = (
        "e.id IN (SELECT d.id FROM words_isolated_docsize d WHERE NOT EXISTS (SELECT 1 FROM hidden WHERE event = d.id)"
        " AND NOT EXISTS (SELECT 1 FROM words_docsize o WHERE o.id = d.id))"
    )
    for event, texts in [(unit.event, analyse(unit)) for unit in _units(db, shown, ())]:
        _insert(db, "words", event, texts)


def _insert(db: Connection, table: str, event: int, texts: Columns) -> None:
    db.execute(f"INSERT INTO {table} (rowid, w, i, p) VALUES (?, ?, ?, ?)", (event, *texts))


def _tail(db: Connection, memory: Connection, analyse: Analyse, position: int, scope: Scope) -> int:
    """Analyse the units of a scope behind a position in memory, newest first; return how many were left out."""
    condition, values = conditions(scope)
    deadline = time.monotonic() + TAIL_MS / 1000
    left = TAIL_CHARS
    for done, unit in enumerate(_units(db, f"e.id > ? AND {condition}", (position, *values), "DESC")):
        if done == TAIL_UNITS or left <= 0 or time.monotonic() > deadline:
            late = f"SELECT COUNT(*) FROM events e {_JOINS} WHERE e.id > ? AND {condition}"
            return int(db.execute(late, (position, *values)).fetchone()[0]) - done
        _insert(memory, "words", unit.event, analyse(unit))
        left -= len(unit.text)
    return 0


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
