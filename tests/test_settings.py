"""Settings of privacy: the owner's, and those of a project's file, which only make things more private."""

from __future__ import annotations

import json
import os
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from graphsvc.errors import InvalidInput
from graphsvc.memory import capture, rebuild
from graphsvc.memory.settings import file
from graphsvc.model import Event, EventKind
from graphsvc.store import database, events

NOW = datetime.now(UTC)


@pytest.fixture
def shop(tmp_path) -> Path:
    """A repository."""
    shop = tmp_path / "shop"
    (shop / ".git").mkdir(parents=True)
    (shop / "src" / "deep").mkdir(parents=True)
    return shop


@pytest.fixture
def says(shop):
    """Write the settings of a folder of the shop."""

    def says(text: str, *folders: str, age: float = 3600) -> Path:
        path = shop.joinpath(*folders) / file.NAME
        path.write_text(text, "utf-8")
        moment = NOW.timestamp() - age
        os.utime(path, (moment, moment))
        return path

    return says


@pytest.fixture
def tell(run, shop):
    """Capture events in the shop: `tell("hello", kind=…, cwd=…)`; return what the command said."""

    def tell(*bodies: str, kind: str = "user_message", session: str = "s1", cwd: Path | None = None, **fields):
        place = {"session_id": session, "kind": kind, "cwd": str(cwd or shop)}
        made = [{**place, "origin": f"{session}:{body}", "body": body, **fields} for body in bodies]
        return run("capture", "--json", stdin="".join(f"{json.dumps(one)}\n" for one in made).encode()).json

    return tell


@pytest.fixture
def stored(settings):
    """Return what is stored as (body, whether only its session sees it)."""

    def stored() -> list[tuple[str, bool]]:
        with closing(database.connect(settings)) as db:
            hidden = {row["event"] for row in db.execute("SELECT event FROM hidden")}
            return [(one.body, one.id in hidden) for one in events.after(db, 0)]

    return stored


def tool_use(tell, number: int = 1) -> None:
    about = {"meta": {"tool_name": "Bash", "tool_use_id": f"c{number}"}}
    tell(f"call {number}", kind="tool_call", **about)
    tell(f"result {number}", kind="tool_result", **about)


def hidden_of(stored) -> set[str]:
    return {body for body, hidden in stored() if hidden}


def test_tool_bodies_of_an_isolated_session_are_isolated(tell, stored):
    tell("/thread-iso")
    tool_use(tell)

    assert {"call 1", "result 1"} <= hidden_of(stored)


@pytest.mark.parametrize("scope", [("--project", "all"), ()])
def test_the_owner_shares_tool_bodies_from_then_on_and_nothing_else(run, shop, tell, stored, scope, settings):
    tell("/thread-iso")
    tool_use(tell, 1)
    assert run("settings", "set", "isolation.tools", "share", *scope, cwd=shop).code == 0
    tool_use(tell, 2)
    tell("mine")
    todos = json.dumps({"todos": [{"content": "我的任务", "status": "pending"}]})
    about = {"meta": {"tool_name": "TodoWrite", "tool_use_id": "c9"}}
    for again in ("a", "b"):
        tell(todos + " " * (again == "b"), kind="tool_call", **about)
        tell(f"ok {again}", kind="tool_result", **about)
    run("settings", "unset", "isolation.tools", *scope, cwd=shop)
    tool_use(tell, 3)

    hidden = hidden_of(stored)
    assert {"call 1", "result 1", "mine", "我的任务", "call 3", "result 3"} <= hidden
    assert not {"call 2", "result 2", "ok a"} & hidden
    assert [body for body, _ in stored()].count("我的任务") == 1, "the rules know the session's own todos"
    assert rebuild.check(settings, lambda *_: None) == []


def test_a_file_shares_nothing_that_the_owner_did_not(run, shop, says, tell, stored):
    path = says('[isolation]\ntools = "share"\ndefault = "shared"\n')
    run("settings", "set", "isolation.default", "isolated", cwd=shop)
    tell("hello")
    tool_use(tell)
    listed = run("settings", "list", cwd=shop)
    told = run("settings", "list", "--json", cwd=shop / "src").json

    assert {"on", "hello", "call 1", "result 1"} == hidden_of(stored)
    assert "graphsvc settings set isolation.tools share" in listed.err
    by = {one["name"]: one for one in told["settings"]}
    assert by["isolation.tools"] == {
        "name": "isolation.tools",
        "value": "isolate",
        "by": "built in",
        "ignored": [{"file": str(path), "value": "share"}],
    }
    assert (by["isolation.default"]["value"], by["isolation.default"]["by"]) == ("isolated", "the owner")


def test_a_file_makes_more_private_what_the_owner_shares(run, shop, says, tell, stored):
    run("settings", "set", "isolation.tools", "share", "--project", "all")
    path = says('[isolation]\ntools = "isolate"\n', "src")
    tell("/thread-iso")
    tool_use(tell, 1)
    about = {"meta": {"tool_name": "Bash", "tool_use_id": "c2"}, "cwd": shop / "src" / "deep"}
    tell("call 2", kind="tool_call", **about)

    assert "call 1" not in hidden_of(stored)
    assert "call 2" in hidden_of(stored)
    told = run("settings", "list", "--json", cwd=shop / "src").json["settings"][0]
    assert (told["value"], told["by"]) == ("isolate", str(path))


def test_a_session_begins_isolated_where_a_file_says_so(says, tell, stored, settings, shop, db):
    says('[isolation]\ndefault = "isolated"\n')
    later, before = (NOW + timedelta(hours=hours) for hours in (1, -2))
    tell("first", ts=NOW.isoformat())
    tell("go public", ts=later.isoformat())
    tell("shared", ts=(later + timedelta(hours=1)).isoformat())
    tell("earlier than the first", ts=before.isoformat())
    tell("/thread-uniso", "open from the start", session="s2")
    tell("decided", kind="decision", session="s3", ts=None)

    assert hidden_of(stored) == {"on", "first", "earlier than the first", "decided"}
    assert rebuild.check(settings, lambda *_: None) == []


def test_a_session_that_copies_another_one_begins_isolated_too(says, tell, stored):
    tell("hello")
    says('[isolation]\ndefault = "isolated"\n')
    tell("hello", session="s2")  # another origin: another event
    copied = tell("hello", session="s3", origin="s1:hello")
    tell("mine", session="s3")

    assert copied["accepted"] == 1
    assert {"mine"} <= hidden_of(stored)


def test_a_session_that_begins_isolated_changes_nothing_that_others_see(says, tell, stored):
    tell("tea", kind="decision")
    says('[isolation]\ndefault = "isolated"\n')

    refused = tell("coffee", kind="decision", session="s2", meta={"action": "supersede", "of": "s1:tea"})

    assert [one["code"] for one in refused["rejected"]] == ["isolated-session"]
    assert stored() == [("tea", False)]


def test_what_is_recorded_by_command_is_no_session_that_begins_isolated(run, says, shop, stored):
    says('[isolation]\ndefault = "isolated"\n')

    assert run("decide", "Tea is free.", cwd=shop).code == 0
    assert run("decide", "茶免费。", cwd=shop).code == 0
    assert hidden_of(stored) == set()


def test_nothing_is_recorded_while_a_file_says_so_and_what_was_said_then_stays_out(run, says, shop, tell, stored):
    tell("before", ts=(NOW - timedelta(hours=2)).isoformat())
    path = says("[capture]\npaused = true\n", age=3600)

    refused = tell("during", ts=(NOW - timedelta(minutes=1)).isoformat())
    old = tell("said before it was written", ts=(NOW - timedelta(hours=2)).isoformat())
    own = tell("tea", kind="decision")
    told = run("resume", cwd=shop)
    still = tell("during too")
    stats = run("stats", "--json").json["paused"]
    checked = {one["check"]: one for one in run("doctor", "--json").json["checks"]}
    path.unlink()
    after = tell("after", ts=(NOW + timedelta(hours=1)).isoformat())
    late = tell("during", ts=(NOW - timedelta(minutes=1)).isoformat())

    assert [one["code"] for one in refused["rejected"]] == ["paused"]
    assert str(path) in refused["rejected"][0]["message"]
    assert [old["accepted"], own["accepted"], after["accepted"]] == [1, 1, 1]
    assert [one["code"] for one in (*still["rejected"], *late["rejected"])] == ["paused", "paused"]
    assert str(path) in told.out
    assert str(shop) in stats
    assert str(path) in checked["pause"]["todo"]
    assert [body for body, _ in stored()] == ["before", "said before it was written", "tea", "after"]


def test_a_file_below_pauses_what_is_said_below(says, shop, tell, stored):
    says("[capture]\npaused = true\n", "src")

    (shop / "link").symlink_to(shop / "src")
    below = tell("below", cwd=shop / "src" / "deep")
    linked = tell("linked", cwd=shop / "link" / "deep")
    beside = tell("beside")

    assert (len(below["rejected"]), len(linked["rejected"]), beside["accepted"]) == (1, 1, 1)
    assert stored() == [("beside", False)]


def test_pause_and_file_are_two_and_each_ends_alone(run, says, shop, tell):
    path = says("[capture]\npaused = true\n")
    tell("x")
    run("pause", cwd=shop)
    path.unlink()
    still = tell("y")
    run("resume", cwd=shop)
    free = tell("z", ts=(NOW + timedelta(hours=1)).isoformat())

    assert still["rejected"][0]["code"] == "paused"
    assert free["accepted"] == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[isolation]\ntool = 'share'\n", "isolation.tools"),
        ("[capture]\npasued = true\n", "capture.paused"),
        ("[capture]\npaused = 'true'\n", "true"),
        ("[capture]\npaused = 1\n", "true"),
        ("paused = true\n", "capture.paused"),
        ("[isolation]\ntools = 'open'\n", "isolate"),
        ("[isolation\n", "TOML"),
        ("x = " + "[" * 30_000, "TOML"),
        ("#" * 70_000, "65536 bytes"),
        ("[capture]\nredact = ['(a+)+']\n", "capture.paused"),
    ],
)
def test_a_file_that_is_none_is_named_and_nothing_is_recorded_on_a_guess(run, says, shop, tell, stored, text, told):
    path = says(text)

    refused = tell("hello")
    own = tell("tea", kind="decision")
    listed = run("settings", "list", cwd=shop)
    path.unlink()

    assert refused["rejected"][0]["code"] == "settings"
    assert str(path) in refused["rejected"][0]["message"]
    assert told in refused["rejected"][0]["message"]
    assert own["accepted"] == 1
    assert listed.code == 2
    assert str(path) in listed.err
    assert tell("hello")["accepted"] == 1
    assert {body for body, _ in stored()} == {"tea", "hello"}


def test_the_nearest_spelling_is_named_first(says, shop):
    says("[isolation]\ntolls = 'share'\n")

    with pytest.raises(InvalidInput, match=r"allowed: isolation\.tools,"):
        file.read(shop)


def test_a_link_a_pipe_and_a_folder_are_no_file(shop, tell):
    path = shop / file.NAME
    for make in (lambda: path.symlink_to("/dev/zero"), lambda: os.mkfifo(path), path.mkdir):
        make()
        assert tell("x")["rejected"][0]["code"] == "settings"
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    assert file.read(shop) is None
    assert file.read(shop / "nowhere") is None


def test_an_import_reads_a_file_again_that_settings_kept_out(run, says, shop, tmp_path, stored):
    said = {"session_id": "s1", "kind": "user_message", "origin": "a", "body": "hello", "cwd": str(shop)}
    (tmp_path / "log.jsonl").write_text(json.dumps(said) + "\n")
    path = says("[capture]\npasued = true\n")

    first = run("import", "log.jsonl", "--json").json
    path.unlink()
    again = run("import", "log.jsonl", "--json").json

    assert "pasued" in json.dumps(first["skipped"])
    assert again["events_added"] == 1
    assert stored() == [("hello", False)]


def test_nothing_above_the_repository_is_looked_at(shop, tell, stored, tmp_path):
    (tmp_path / file.NAME).write_text("[capture]\npaused = true\n")
    (shop / "src" / "lib" / ".git").mkdir(parents=True)

    assert tell("in the repository")["accepted"] == 1
    assert tell("in one below", session="s2", cwd=shop / "src" / "lib")["accepted"] == 1
    assert tell("no repository", session="s3", cwd=tmp_path)["rejected"][0]["code"] == "paused"


def test_a_worktree_goes_by_its_own_file_and_by_that_of_its_project(says, shop, tell, tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    (shop / ".git" / "worktrees" / "tree").mkdir(parents=True)
    (tree / ".git").write_text(f"gitdir: {shop}/.git/worktrees/tree\n")
    (tree / file.NAME).write_text("[capture]\npaused = true\n")

    assert tell("here")["accepted"] == 1
    assert tell("there", cwd=tree)["rejected"][0]["code"] == "paused"
    (tree / file.NAME).unlink()
    says("[capture]\npaused = true\n")
    assert tell("there too", cwd=tree)["rejected"][0]["code"] == "paused"


@pytest.mark.parametrize(
    "arguments",
    [
        ("set", "isolation.tool", "share"),
        ("set", "isolation.tools", "maybe"),
        ("set", "capture.paused", "true"),
        ("unset", "isolation"),
        ("set", "isolation.tools", "share", "--project", " "),
    ],
)
def test_a_setting_that_is_none_is_refused(run, arguments):
    ran = run("settings", *arguments, "--json")

    assert ran.code == 2
    assert ran.json["error"]["message"]


def test_settings_of_all_and_of_a_project(run, shop):
    run("settings", "set", "isolation.tools", "share", "--project", "all")
    run("settings", "set", "isolation.tools", "isolate", cwd=shop)

    def by(*project: str) -> list[str]:
        found = run("settings", "list", *project, "--json", cwd=shop).json["settings"][0]
        return [found["value"], found["by"]]

    assert by() == ["isolate", "the owner"]
    assert by("--project", "all") == ["share", "the owner, for all projects"]
    assert run("settings", "unset", "isolation.tools", "--json", cwd=shop).json["was_set"] is True
    assert by() == ["share", "the owner, for all projects"]
    assert run("settings", "unset", "isolation.tools", "--json", cwd=shop).json["was_set"] is False


def test_settings_outlive_a_rebuild(run, db, settings):
    run("settings", "set", "isolation.tools", "share", "--project", "all")
    rebuild.rebuild(db, lambda *_: None)

    assert run("settings", "list", "--project", "all", "--json").json["settings"][0]["value"] == "share"


def test_each_folder_is_looked_at_once_a_batch(db, shop, clock, monkeypatch):
    looked = []
    real = file.read
    monkeypatch.setattr(file, "read", lambda folder: looked.append(folder) or real(folder))
    batch = [
        Event(session_id="s1", kind=EventKind.USER_MESSAGE, origin=str(number), body="x", cwd=str(shop / "src"))
        for number in range(50)
    ]

    capture.capture(db, batch, now=clock)

    assert sorted(looked) == [shop, shop / "src"]
