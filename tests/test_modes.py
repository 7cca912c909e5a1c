"""Only its owner may look into a home, whatever the umask was when something was made in it."""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from serving import HTTP, serving, wait_for
from test_store import _undo_migrations

from graphsvc.config import Settings
from graphsvc.errors import StoreError
from graphsvc.graph import mirror
from graphsvc.memory import rebuild
from graphsvc.memory.apply import VERSION
from graphsvc.store import database

UMASK = "import os\nos.umask({})\n"


@contextmanager
def umask(mask):
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def open_to_others(home: Path) -> dict[str, str]:
    """What in a home, itself included, is not for its owner alone."""
    modes = {str(path.relative_to(home)): stat.S_IMODE(path.lstat().st_mode) for path in (home, *home.rglob("*"))}
    return {name: oct(mode) for name, mode in modes.items() if mode & 0o077 or not mode & 0o400}


@pytest.mark.parametrize("mask", [0o000, 0o077])
def test_what_commands_and_the_service_make_is_for_the_owner_alone(run, forks, home, mask):
    demo = Path(__file__).resolve().parent.parent / "examples" / "demo"
    with umask(mask):
        run("import", str(demo))
        run("forget", "event", "event-1", "--yes")
        with serving(forks, home, before=UMASK.format(mask)) as served:
            wait_for(lambda: HTTP.get(f"{served.url}/health").json()["graph"]["status"] == "ok")
            run("graph", "rebuild")
            run("search", "receipt")
            assert {"graph/graph.kuzu", "graphsvc.db-wal", "token", "service.sock", "service.lock"} <= {
                str(path.relative_to(home)) for path in home.rglob("*")
            }
            assert open_to_others(home) == {}
            assert stat.S_IMODE((home.parent / "ready.json").stat().st_mode) == 0o600
        run("graph", "rebuild")
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert open_to_others(home) == {}


@pytest.mark.parametrize("mask", [0o000, 0o077])
def test_a_copy_that_a_migration_makes_is_for_the_owner_alone(settings, mask):
    with umask(mask):
        with closing(database.connect(settings)) as db:
            _undo_migrations(db)
            db.execute("PRAGMA user_version = 3")
        database.connect(settings).close()
    assert (settings.home / "graphsvc.db.schema-3").exists()
    assert open_to_others(settings.home) == {}


@pytest.mark.parametrize(
    ("mode", "problem"),
    [(0o755, "look into"), (0o750, "look into"), (0o711, "look into"), (0o777, "write to"), (0o1777, "write to")],
)
@pytest.mark.parametrize("command", [("stats",), ("serve", "--port", "0"), ("search", "x"), ("forget", "event", "1")])
def test_a_home_that_others_may_look_into_is_refused(run, home, blank, mode, problem, command):
    shutil.copytree(blank, home)
    home.chmod(mode)

    ran = run(*command)

    assert ran.code == 3
    assert problem in ran.err
    assert f"chmod -R go= {home}" in ran.err
    assert stat.S_IMODE(home.stat().st_mode) == mode
    [found] = [one for one in run("doctor", "--json").json["checks"] if one["check"] == "home"]
    assert (found["status"], found["todo"]) == ("fail", f"chmod -R go= {home}")
    assert problem in found["found"]


def test_an_empty_folder_of_ones_own_is_closed_to_others(run, home):
    home.mkdir(mode=0o755)
    home.chmod(0o777)

    assert run("stats").code == 0
    assert open_to_others(home) == {}


def test_folders_above_a_new_home_are_for_the_owner_too(tmp_path):
    with umask(0o000):
        database.connect(Settings(home=tmp_path / "share" / "more" / "home")).close()

    assert open_to_others(tmp_path / "share") == {}


def test_a_home_of_another_user_is_refused(run, home, blank):
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    shutil.copytree(blank, home)
    os.chown(home, 12345, -1)

    ran = run("stats")

    assert ran.code == 3
    assert "belongs to another user (uid 12345): set GRAPHSVC_HOME" in ran.err
    [found] = [one for one in run("doctor", "--json").json["checks"] if one["check"] == "home"]
    assert found["status"] == "fail"


def test_a_database_that_was_put_back_is_closed_to_others(settings):
    database.connect(settings).close()
    settings.database.chmod(0o644)

    with closing(database.connect(settings)) as db:
        db.execute("CREATE TABLE more (x)")
        assert open_to_others(settings.home) == {}


def test_a_replay_leaves_nothing_in_the_temporary_folder(settings, talk, db, tmp_path, monkeypatch):
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("SQLITE_TMPDIR", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    talk.user("hello")
    seen = []
    rebuild.check(settings, lambda *_: seen.extend(folder.iterdir()))

    assert seen == []


def test_a_mirror_of_one_command_is_for_the_owner_alone(settings, talk, db):
    talk.user("hello")
    with umask(0o000), mirror.kept(settings, VERSION) as graph:
        wait_for(lambda: graph.status().state == "ok")
    assert open_to_others(settings.home) == {}


def test_settings_name_the_home_in_the_error(tmp_path):
    home = tmp_path / "a home"
    home.mkdir()
    (home / "file").touch()
    home.chmod(0o755)

    with pytest.raises(StoreError, match=rf"chmod -R go= '{home}'"):
        database.connect(Settings(home=home))
