"""One connection policy for everything that opens the database, and the migrations.

WAL, a busy timeout, `BEGIN IMMEDIATE` for every write (a deferred transaction that has read cannot wait for the write
lock: it fails at once), foreign keys on. The file is created 0600 below a home of 0700.
"""

from __future__ import annotations

import math
import os
import re
import sqlite3
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Final

from graphsvc import resources
from graphsvc.config import DURABILITIES, Settings, make_home
from graphsvc.errors import StoreError

BUSY_MS: Final = 30_000  # indexing one very large text holds the write lock for seconds
Error = sqlite3.Error  # for callers outside of the store
_STEPS: Final = 20_000  # virtual machine steps between two looks at the clock
MINIMUM_SQLITE: Final = (3, 37, 0)  # STRICT tables
_TRIGGERS: Final = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
_PROJECTIONS: Final = "schema/sqlite/0002_projections.sql"


class Connection(sqlite3.Connection):
    """A connection that takes any text: what cannot be UTF-8 is bound as `storable` writes it, for lookups too."""

    until = math.inf  # when its time is over, by the monotonic clock

    def execute(self, sql: str, parameters: Sequence[object] = (), /) -> sqlite3.Cursor:  # type: ignore[override]  # no mappings here
        """Run one statement, if there is time left."""
        if time.monotonic() > self.until:
            error = sqlite3.OperationalError("no time left")
            error.sqlite_errorcode = sqlite3.SQLITE_INTERRUPT
            raise error
        try:
            return super().execute(sql, parameters)
        except UnicodeEncodeError:
            return super().execute(sql, [storable(one) if isinstance(one, str) else one for one in parameters])


class BusyError(StoreError):
    """Another process holds the write lock longer than this one waits."""


def storable(text: str) -> str:
    """Write lone surrogates, which a host may put into a path or an id, as their escapes."""
    return text.encode("utf-8", "backslashreplace").decode()


def connect(settings: Settings) -> Connection:
    """Open the store of this home, creating or migrating it first; raise StoreError when it cannot be used."""
    if sqlite3.sqlite_version_info < MINIMUM_SQLITE:
        raise StoreError(f"SQLite {sqlite3.sqlite_version} is too old; 3.37 or newer is needed")
    path = settings.database
    try:
        make_home(settings)
        _own(path)
    except OSError as error:
        raise StoreError(f"{settings.home} cannot be the home: {error.strerror}; set GRAPHSVC_HOME") from error
    with ExitStack() as stack:
        try:
            db = stack.enter_context(closing(open_file(path, settings.durability)))
            migrate(db, path)
        except sqlite3.DatabaseError as error:
            raise StoreError(f"{path} cannot be used: {error}") from error
        stack.pop_all()  # the connection is the caller's
    return db


def _own(path: Path) -> None:
    """Make the file, or see to it, that only its owner may read it: what SQLite keeps beside it gets the same mode."""
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        if path.stat().st_mode & 0o077:  # a copy that was put back
            path.chmod(0o600)
        return
    with closing(open(handle, "rb")):  # noqa: PTH123 # a handle
        os.fchmod(handle, 0o600)  # whatever the umask took away


def open_file(path: Path, durability: str = "normal") -> Connection:
    """Open a database file under the policy, without looking at its schema."""
    db = sqlite3.connect(
        path, timeout=BUSY_MS / 1000, isolation_level=None, check_same_thread=False, factory=Connection
    )
    with ExitStack() as stack:
        stack.callback(db.close)
        db.row_factory = sqlite3.Row
        db.create_function("inflated", 1, _inflated, deterministic=True)
        db.create_function("folded", 1, _folded, deterministic=True)
        db.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
        _write_ahead(db)
        db.execute(f"PRAGMA synchronous = {DURABILITIES[durability]}")
        db.execute("PRAGMA foreign_keys = ON")
        stack.pop_all()
    return db


def _folded(text: str | None) -> str | None:
    """Return a text without its case, in every script: SQLite's own lower() knows ASCII only."""
    return None if text is None else text.casefold()


def _inflated(packed: bytes | None) -> bytes | None:
    """Return what `bodies` holds compressed, for statements that look into it."""
    return None if packed is None else zlib.decompress(packed)


def _write_ahead(db: Connection) -> None:
    """Switch to the write-ahead log. Two first openers meet here, and this statement alone does not wait for a lock."""
    deadline = time.monotonic() + BUSY_MS / 1000
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return


@contextmanager
def transaction(db: Connection) -> Iterator[None]:
    """Run the block in one write transaction; inside another one it simply joins it."""
    if db.in_transaction:
        yield
        return
    try:
        db.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
            raise BusyError("another graphsvc has been writing for too long; try again in a moment") from error
        raise
    try:
        yield
        db.commit()
    except BaseException:
        db.rollback()
        raise


@contextmanager
def within(db: Connection, until: float) -> Iterator[Connection]:
    """Run the block with statements that end at that time of the monotonic clock, and wait for locks no longer."""
    # SQLite does not look at the clock while it waits for a lock, so that wait ends a little earlier.
    left = int(900 * max(0.0, until - time.monotonic()))
    db.execute(f"PRAGMA busy_timeout = {min(BUSY_MS, left)}")
    db.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
    db.until = until
    try:
        yield db
    finally:
        db.until = math.inf
        db.set_progress_handler(None, 0)


def interrupted(error: BaseException | None) -> bool:
    """Say whether a statement ended because its connection's time was over."""
    code = getattr(error, "sqlite_errorcode", None)  # not every error of the library has one
    return isinstance(error, sqlite3.OperationalError) and code == sqlite3.SQLITE_INTERRUPT


@contextmanager
def snapshot(db: Connection) -> Iterator[None]:
    """Run the block on one state of the database, so that an answer of many reads agrees with itself."""
    if db.in_transaction:
        yield
        return
    db.execute("BEGIN")
    try:
        yield
    finally:
        db.rollback()


def reader(path: Path) -> Connection:
    """Open a database file to look at it: nothing is created, migrated or changed."""
    db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None, factory=Connection)
    db.row_factory = sqlite3.Row
    return db


def faults(db: Connection, most: int = 5) -> list[str]:
    """Return what SQLite finds damaged in the file, as its sentences."""
    found = [row[0] for row in db.execute(f"PRAGMA quick_check({most})")]
    return [] if found == ["ok"] else found


def numbers(db: Connection) -> tuple[int, int]:
    """Return the number of the file's schema, and of the newest one that is known."""
    return int(db.execute("PRAGMA user_version").fetchone()[0]), migrations()[-1][0]


def lost_triggers(db: Connection) -> list[str]:
    """List the triggers that keep the ledger append-only and are missing, or are not as they were made."""
    found = {row["name"]: row["sql"] for row in db.execute(_TRIGGERS)}
    return sorted(name for name, text in ledger_triggers().items() if found.get(name) != text)


def ledger_triggers() -> dict[str, str]:
    """Return the statements of the triggers that keep the ledger append-only, by name, as the schema has them."""
    with closing(sqlite3.connect(":memory:")) as fresh:
        fresh.executescript(resources.text(migrations()[0][1]))
        return dict(fresh.execute(_TRIGGERS).fetchall())


def engine() -> tuple[str, bool]:
    """Return the version of SQLite, and whether it does what is needed: STRICT tables and full-text search."""
    with closing(sqlite3.connect(":memory:")) as db:
        options = {row[0] for row in db.execute("PRAGMA compile_options")}
    return sqlite3.sqlite_version, sqlite3.sqlite_version_info >= MINIMUM_SQLITE and "ENABLE_FTS5" in options


def migrations() -> list[tuple[int, str]]:
    """List the shipped migrations as (number, resource name), in order."""
    found = [(int(Path(name).name[:4]), name) for name in resources.names("schema/sqlite", ".sql")]
    return sorted(found)


def projection_ddl() -> str:
    """Return the file that holds all projection tables. It changes with the rules: a replay creates them anew."""
    return resources.text(_PROJECTIONS)


def migrate(db: Connection, path: Path) -> None:
    """Bring the file to the newest schema. An older one is copied beside it first; a newer one is refused."""
    steps = migrations()
    newest = steps[-1][0]
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    if version == newest:
        return
    if version > newest:
        raise StoreError(
            f"{path} has schema {version}, this graphsvc knows {newest}: install a newer graphsvc, or set GRAPHSVC_HOME"
        )
    with transaction(db):
        # Another process may have been first: the copy must be of what is migrated here.
        version = int(db.execute("PRAGMA user_version").fetchone()[0])
        if version and version != newest:
            _copy(path, path.with_name(f"{path.name}.schema-{version}"))
        for number, name in steps:
            if number > version:
                run_script(db, resources.text(name))
        db.execute(f"PRAGMA user_version = {newest}")
        _check_columns(db, path)


def run_script(db: Connection, script: str) -> None:
    """Run the statements of a script inside the open transaction (`executescript` would commit it)."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            db.execute(statement)
            statement = ""


def copy(path: Path, target: Path) -> None:
    """Copy a database file as it is committed into a new one, while others may go on writing; nothing else changes."""
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
    with closing(reader(path)) as source, closing(sqlite3.connect(target)) as there:
        source.backup(there)


def _copy(path: Path, target: Path) -> None:
    """Copy the file as it is committed, while this process holds the write lock."""
    partial = target.with_name(f"{target.name}.{os.getpid()}")
    os.close(os.open(partial, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(partial)) as copy:
        source.backup(copy)
    partial.replace(target)


def _check_columns(db: Connection, path: Path) -> None:
    """Compare the migrated file with a fresh one, so that a half-migrated schema is refused instead of used."""
    with closing(sqlite3.connect(":memory:", factory=Connection)) as fresh:
        fresh.executescript(projection_ddl())
        replayed = _columns(fresh)
        for _, name in migrations():
            if name != _PROJECTIONS:
                fresh.executescript(resources.text(name))
        expected, actual = _columns(fresh), _columns(db)
    wrong = [name for name in expected if name not in replayed and actual.get(name) != expected[name]]
    if wrong:
        raise StoreError(
            f"{path}: columns of {', '.join(wrong)} differ from the schema; restore a copy or use a new home"
        )


def _columns(db: Connection) -> dict[str, list[str]]:
    tables = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return {
        name: [row[1] for row in db.execute(f"PRAGMA table_info({name})")]
        for name in tables
        if re.fullmatch(r"[a-z_]+", name) and not name.startswith(("sqlite_", "words"))
    }
