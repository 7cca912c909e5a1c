"""The doctor finds what is wrong, says what to do about it, and changes nothing."""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import sys
from contextlib import closing

import pytest

from graphsvc.client.token import make_token
from graphsvc.recall import index
from graphsvc.store import database


@pytest.fixture
def store(run, db, talk, settings):
    """A home with a small store, all of it indexed."""
    talk.user("We decided: tea is free.")
    talk.wrote("docs/a.md")
    index.catch_up(db)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return settings


@pytest.fixture
def examined(run):
    """Return the findings by check."""

    def examined(*options: str, code: int = 0) -> dict[str, dict]:
        ran = run("doctor", "--json", *options)
        assert ran.code == code, ran.out + ran.err
        assert ran.json["status"] == "fail" if code else ran.json["status"] != "fail"
        return {found["check"]: found for found in ran.json["checks"]}

    return examined


def test_a_sound_home_is_sound(store, examined):
    found = examined("--deep")

    assert {one["status"] for one in found.values()} == {"ok"}
    assert {"sqlite", "home", "disk", "token", "service", "page", "database", "schema", "ledger", "tables", "index",
            "gaps", "pause", "replay"} <= set(found)  # fmt: skip


def test_people_get_a_row_for_each_check(store, run):
    ran = run("doctor")

    assert ran.code == 0
    assert "ledger\tok\tappend-only" in ran.out


def test_looking_at_an_empty_home_makes_none(run, examined, home):
    assert examined()["database"]["todo"].startswith("graphsvc import")
    assert not home.exists()


def test_nothing_is_changed(store, examined):
    def state():
        return {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in store.home.glob("*.db")}

    before = state()
    examined("--deep")

    assert state() == before


@pytest.mark.parametrize("name", ["", "graphsvc.db", "notes"])
def test_what_others_may_read_is_named_with_the_command_that_ends_it(store, examined, name):
    path = store.home / name
    if name == "notes":
        path.write_text("mine")
    path.chmod(0o755)

    found = examined(code=1)["home"]

    assert (found["status"], str(path) in found["found"]) == ("fail", True)
    subprocess.run(shlex.split(found["todo"]), check=True)
    assert examined()["home"]["status"] == "ok"


def test_a_home_that_is_a_file_is_no_home(run, examined, home):
    home.write_text("")
    home.chmod(0o600)

    assert "GRAPHSVC_HOME" in examined(code=1)["home"]["todo"]


@pytest.mark.parametrize(
    ("statement", "check", "status", "todo"),
    [
        ("PRAGMA user_version = 99", "schema", "fail", "install a newer graphsvc"),
        ("PRAGMA user_version = 2", "schema", "warn", "migrates"),
        ("DROP TRIGGER events_keep", "ledger", "fail", "graphsvc export"),
        ("UPDATE read_models SET version = 'old' WHERE name = 'projections'", "tables", "warn", "replays"),
        ("UPDATE read_models SET version = 'old' WHERE name = 'words'", "index", "warn", "anew"),
        ("UPDATE read_models SET position = 99 WHERE name = 'words'", "index", "fail", "graphsvc rebuild"),
        ("UPDATE read_models SET position = 1 WHERE name = 'words'", "index", "warn", "catch up"),
        ("INSERT INTO gaps VALUES ('/srv/my talk.jsonl', 3, 'x')", "gaps", "warn", "import '/srv/my talk.jsonl'"),
        ("INSERT INTO pauses (since) VALUES ('2026')", "pause", "warn", "graphsvc resume --project all"),
    ],
)
def test_what_is_wrong_in_the_database_is_found(store, examined, statement, check, status, todo):
    with closing(database.open_file(store.database)) as db:
        db.execute(statement)

    found = examined(code=1 if status == "fail" else 0)[check]

    assert found["status"] == status
    assert todo in found["todo"]


def test_an_altered_trigger_is_found(store, examined):
    with closing(database.open_file(store.database)) as db:
        db.execute("DROP TRIGGER events_stay")
        db.execute("CREATE TRIGGER events_stay BEFORE DELETE ON events BEGIN SELECT 1; END")

    assert "events_stay" in examined(code=1)["ledger"]["found"]


def test_a_damaged_file_is_found(store, examined):
    data = bytearray(store.database.read_bytes())
    data[4096 * 3 : 4096 * 6] = b"\xff" * (4096 * 3)
    store.database.write_bytes(bytes(data))

    found = examined(code=1)["database"]

    assert found["status"] == "fail"
    assert "restore a copy" in found["todo"]


def test_what_is_no_database_is_found(store, examined):
    store.database.write_bytes(b"this is not SQLite" * 100)

    assert "cannot be read" in examined(code=1)["database"]["found"]


def test_tables_that_differ_from_the_ledger_are_found_deep_down(store, examined):
    with closing(database.open_file(store.database)) as db:
        db.execute("UPDATE records SET text = 'coffee is free'")

    assert "replay" not in examined()
    assert examined("--deep", code=1)["replay"]["todo"] == "graphsvc rebuild"


def test_a_token_that_others_may_read_is_found(store, examined):
    make_token(store)
    assert examined()["token"]["status"] == "ok"
    store.token_file.chmod(0o644)

    assert "chmod 600" in examined(code=1)["token"]["todo"]


def test_a_socket_that_nobody_listens_at_is_found(store, examined):
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(store.socket))
    store.socket.chmod(0o600)

    found = examined()["service"]

    assert (found["status"], found["todo"]) == ("warn", "graphsvc serve replaces it")


def test_a_service_that_answers_is_named(store, examined):
    command = [sys.executable, "-m", "graphsvc", "serve", "--port", "0", "--json"]
    with subprocess.Popen(command, env={**os.environ, "GRAPHSVC_HOME": str(store.home)}, stdout=subprocess.PIPE) as one:
        try:
            ready = json.loads(one.stdout.readline())
            found = examined()["service"]
        finally:
            one.terminate()

    assert found["found"] == f"answers at {ready['url']}/graphql"


def test_the_answer_for_programs_is_one_line(store, run):
    out = run("doctor", "--json").out

    assert out.count("\n") == 1
    assert json.loads(out)["status"] == "ok"
