"""The database file: how it is opened, what it refuses, what can never happen to an event."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import threading
from contextlib import closing

import pytest

from graphsvc.config import Settings, from_environment
from graphsvc.errors import InvalidInput, StoreError
from graphsvc.store import database, events


def _mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_home_and_files_are_private_whatever_the_umask(tmp_path):
    settings = Settings(home=tmp_path / "deep" / "home")
    old = os.umask(0)
    try:
        database.connect(settings).close()
    finally:
        os.umask(old)

    assert _mode(settings.home) == 0o700
    assert {_mode(path) for path in settings.home.iterdir()} == {0o600}


def test_a_newer_schema_is_refused_with_one_clear_line(settings):
    with closing(database.connect(settings)) as db:
        db.execute("PRAGMA user_version = 99")

    with pytest.raises(StoreError, match=r"schema 99, this graphsvc knows \d+: install a newer graphsvc") as caught:
        database.connect(settings)
    assert "\n" not in str(caught.value)


def _undo_migrations(db):
    """Take back what came after schema 3."""
    for table in ("imports", "gaps", "pauses", "tokens", "forgotten", "forgetting"):
        db.execute(f"DROP TABLE {table}")
    for view in ("edges", "versions", "assets", "records", "events"):
        db.execute(f"DROP VIEW shared_{view}")
    db.execute("ALTER TABLE bodies DROP COLUMN size")


def test_an_older_schema_is_copied_before_it_is_migrated(settings, talk):
    talk.user("hello")
    with closing(database.connect(settings)) as db:
        _undo_migrations(db)
        db.execute("PRAGMA user_version = 3")

    with closing(database.connect(settings)) as db:
        assert db.execute("SELECT COUNT(*) FROM gaps").fetchone()[0] == 0
        assert events.position(db) == 1
    copy = settings.home / "graphsvc.db.schema-3"
    with closing(sqlite3.connect(copy)) as db:
        assert db.execute("SELECT COUNT(*) FROM events").fetchone()[0] == 1
        assert db.execute("PRAGMA user_version").fetchone()[0] == 3
    assert _mode(copy) == 0o600


def test_a_half_migrated_file_is_refused(settings):
    with closing(database.connect(settings)) as db:
        db.execute("ALTER TABLE read_models DROP COLUMN version")
        _undo_migrations(db)
        db.execute("PRAGMA user_version = 3")

    with pytest.raises(StoreError, match=r"columns of .*read_models"):
        database.connect(settings)


def test_what_is_no_database_is_refused(settings):
    settings.home.mkdir(mode=0o700)
    settings.database.write_bytes(b"this is not SQLite" * 100)

    with pytest.raises(StoreError, match="cannot be used"):
        database.connect(settings)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET body = x'00'",
        "DELETE FROM events",
        "INSERT OR REPLACE INTO events SELECT * FROM events",
        "INSERT OR REPLACE INTO events (project, session, seq, kind, origin, at, received_at, isolated)"
        " SELECT project, session, 99, kind, origin, at, received_at, isolated FROM events",
        "INSERT OR REPLACE INTO events (project, session, seq, kind, origin, at, received_at, isolated)"
        " SELECT project, session, seq, kind, 'other', at, received_at, isolated FROM events",
        "UPDATE bodies SET body = x'00'",
        "DELETE FROM bodies",
        "INSERT OR REPLACE INTO bodies SELECT * FROM bodies",
        "UPDATE sessions SET host_id = 'x'",
        "DELETE FROM sessions",
        "INSERT OR REPLACE INTO sessions SELECT * FROM sessions",
        "UPDATE projects SET key = 'x'",
        "DELETE FROM projects",
        "INSERT OR REPLACE INTO projects SELECT * FROM projects",
    ],
)
def test_the_ledger_is_append_only(db, talk, statement):
    talk.user("a long body " * 1000)
    before = db.execute("SELECT * FROM events, bodies, sessions, projects").fetchall()

    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        db.execute(statement)
    assert [tuple(row) for row in db.execute("SELECT * FROM events, bodies, sessions, projects")] == [
        tuple(row) for row in before
    ]


def test_positions_are_never_reused(db, talk):
    talk.user("one")
    with contextlib.suppress(TypeError), database.transaction(db):
        talk.user("two")
        talk.moment /= 0  # the batch is lost
    talk.user("three")

    assert events.position(db) == 2
    assert [event.body for event in events.after(db, 0)] == ["one", "three"]


def test_eight_writers_lose_nothing(settings, clock):
    from graphsvc.memory import capture
    from graphsvc.model import Event, EventKind

    database.connect(settings).close()
    problems = []

    def write(writer):
        with closing(database.connect(settings)) as db:
            for number in range(25):
                event = Event(
                    session_id=f"w{writer % 2}", kind=EventKind.USER_MESSAGE, origin=f"{writer}:{number}", body="text"
                )
                try:
                    capture.capture(db, [event], now=clock)
                except sqlite3.Error as error:
                    problems.append(error)

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    with closing(database.connect(settings)) as db:
        assert not problems
        assert db.execute("SELECT COUNT(*), COUNT(DISTINCT session * 1000 + seq) FROM events").fetchone()[:] == (
            200,
            200,
        )


def test_durability_is_a_setting(tmp_path):
    settings = from_environment({"GRAPHSVC_HOME": str(tmp_path / "h"), "GRAPHSVC_DURABILITY": "full"})
    with closing(database.connect(settings)) as db:
        assert db.execute("PRAGMA synchronous").fetchone()[0] == 2

    with pytest.raises(InvalidInput, match=r"GRAPHSVC_DURABILITY.*normal or full"):
        from_environment({"GRAPHSVC_DURABILITY": "maybe"})


def test_a_store_that_another_process_writes_to_is_busy_not_broken(settings, db, talk, monkeypatch):
    from graphsvc.memory import capture
    from graphsvc.model import Event, EventKind

    talk.user("one")
    with closing(database.open_file(settings.database)) as other:
        other.execute("BEGIN IMMEDIATE")
        db.execute("PRAGMA busy_timeout = 50")
        with pytest.raises(StoreError, match="try again in a moment"):
            capture.capture(db, [Event(session_id="s1", kind=EventKind.USER_MESSAGE, origin="x", body="two")])
        other.execute("ROLLBACK")

    assert events.position(db) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT body FROM (SELECT id, body FROM events WHERE session = 1 AND kind = 'isolation' AND at <= 'x')",
        "SELECT id FROM events WHERE session = 1 AND kind = 'compact_checkpoint' ORDER BY at, id LIMIT 1",
        "SELECT * FROM asset_versions WHERE call = 1 OR result = 1 OR ref_event = 1",
        "SELECT event FROM asset_versions WHERE project = 1 AND ref IS NULL AND at <= 'x'",
        "SELECT id FROM events WHERE project = 1 AND origin = 'x'",
        "SELECT id FROM events WHERE project = 1 AND kind = 'x' ORDER BY at DESC, id DESC LIMIT 20",
        "SELECT id FROM events ORDER BY at DESC, id DESC LIMIT 20",
    ],
)
def test_what_is_asked_for_every_event_walks_no_table(db, statement):
    plan = " ".join(row["detail"] for row in db.execute(f"EXPLAIN QUERY PLAN {statement}"))

    assert "USING" in plan
    assert "SCAN asset_versions" not in plan
    assert "TEMP B-TREE" not in plan
