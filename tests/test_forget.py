"""What is forgotten is gone: from every answer, from everything that came of it, and from every byte of the home."""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import threading
from contextlib import closing
from dataclasses import replace

import histories
import pytest
from conftest import NOW, PROJECT, Talk
from forks import MAIN
from serving import HTTP, serving, wait_for
from traces import holders

from graphsvc.client.token import create
from graphsvc.errors import InvalidInput, NotFoundError
from graphsvc.graph import mirror
from graphsvc.graph.follow import Follower
from graphsvc.graph.place import ask_anew, place
from graphsvc.memory import capture, rebuild, record
from graphsvc.memory.apply import VERSION
from graphsvc.memory.erase import forget as erase
from graphsvc.memory.erase.clean import clean
from graphsvc.memory.erase.reach import Wanted
from graphsvc.memory.record import Author, Change, Link
from graphsvc.model import Entry, Event, EventKind, NodeType, TokenKind
from graphsvc.recall import index
from graphsvc.store import database, events, rows
from graphsvc.store.access import tokens
from graphsvc.store.access.tokens import Token
from graphsvc.store.database import BusyError
from graphsvc.store.erase import ledger, traces
from graphsvc.store.visibility import Viewer

CANARIES = ("zqxwvkj", "鸑鷟")
SECRET = "The word is zqxwvkj, 暗号是鸑鷟。"  # noqa: S105 # to be found
OWNER = Author(viewer=Viewer(everywhere=True), project=PROJECT)


def silent(done, of):
    del done, of


@pytest.fixture
def forget(db):
    """Forget in this process: `forget(sessions=["s1"])`, `forget(ids=["event-4"])`."""

    def forget(**wanted):
        asked = {name: tuple(value) if isinstance(value, list) else value for name, value in wanted.items()}
        return erase.forget(db, Wanted(**asked), silent, now=lambda: NOW, patience_s=0.3)

    return forget


def kept(db):
    """The ledger as one sees it, without what tells of forgetting."""
    return [one for one in events.after(db, 0) if one.kind is not EventKind.FORGET]


def numbered(db, origin):
    [number] = events.ids_of_origins(db, 1, [origin])
    return number


def indexed(db):
    while index.catch_up(db, 60_000):
        pass


def assert_holds(settings):
    """The tables and the index hold what the ledger gives, and the ledger is append-only."""
    with closing(rebuild.connect(settings)) as db:
        indexed(db)
        assert database.lost_triggers(db) == []
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            db.execute("DELETE FROM events")
    assert rebuild.check(settings, silent, index.proof()) == []


def everywhere(talk: Talk) -> None:
    """Tell the secret in every kind of place, in the session `secret`."""
    talk.session("secret")
    talk.event("session_start", "", host="claude-code", title=f"About {SECRET}")
    talk.user(f"Fix the gate: {SECRET}")
    talk.user(f"We decided: {SECRET}")
    talk.assistant(f"{SECRET} " + "".join(f"line {number} of a long answer\n" for number in range(900)))
    talk.ran(f"grep {SECRET}", f"found {SECRET}")
    talk.wrote("docs/zqxwvkj.md", f"# {SECRET}\n\nSee docs/plan.md.\n")
    talk.wrote("docs/plan.md", f"# Plan\n\n{SECRET}\n" + "a line of the plan\n" * 900)
    talk.read("docs/plan.md", f"1\t{SECRET}")
    talk.tool("TodoWrite", {"todos": [{"content": f"todo {SECRET}", "status": "pending"}]})
    talk.event("goal", f"goal {SECRET}", action="record")
    talk.event("feedback", f"feedback {SECRET}", action="record")
    talk.decided(f"decision {SECRET}")
    talk.compacted(f"summary {SECRET}")
    talk.event("raw", json.dumps({"thinking": SECRET}), record="thinking")
    talk.isolated()
    talk.user(f"isolated {SECRET}")
    talk.wrote("docs/own.md", f"isolated {SECRET}")
    talk.isolated(on=False)


def test_no_byte_of_what_was_forgotten_is_left_in_any_file(run, home, settings, talk, db, tmp_path):
    talk.user("an open word")
    talk.wrote("docs/plan.md", "# Plan\n\nOpen.\n")
    everywhere(talk)
    copied = talk.user(f"copied {SECRET}", title="zqxwvkj title")
    talk.session("resumed").event("user_message", f"copied {SECRET}", origin=copied)
    talk.user("what comes after")
    edge = Link(type="references", source="docs/zqxwvkj.md", target="docs/plan.md")
    said = replace(OWNER, session_id="secret")
    record.unlink(db, said, edge, reason=f"because {SECRET}", now=lambda: NOW)
    indexed(db)
    with mirror.kept(settings, VERSION) as graph:
        wait_for(lambda: graph.status().state == "ok" and graph.status().position == events.position(db))
    (home / "graphsvc.db.schema-3").write_bytes(SECRET.encode())
    where = place(settings)
    where.damaged.write_bytes(SECRET.encode())
    where.damaged.with_name("damaged.kuzu.wal").write_bytes(SECRET.encode())
    db.execute("INSERT INTO imports VALUES ('/x/zqxwvkj.jsonl', 1, 1, 'neutral', 1, 1, '[\"secret\"]', 'now', 0)")
    db.execute("INSERT INTO gaps VALUES ('/x/zqxwvkj.jsonl', 1, 'zqxwvkj')")
    assert holders(home, CANARIES[:1]) >= {"graphsvc.db-wal", "graphsvc.db.schema-3", "graph/graph.kuzu"}
    assert holders(home, CANARIES[1:])

    done = run("forget", "session", "secret", "--yes", "--json")

    assert (done.code, done.json["remains"], done.json["sessions"]) == (0, [], 1)
    assert done.json["count"] > 30
    assert holders(home, CANARIES) == set()
    with closing(sqlite3.connect(tmp_path / "copy.db")) as copy:
        db.backup(copy)
    assert holders(tmp_path, CANARIES) == set()
    assert_holds(settings)
    assert run("grep", "zqxwvkj", "--json").json["items"] == []
    assert run("search", "鸑鷟", "--json").code == 1
    assert [one.body for one in kept(db) if one.session_id == "resumed"] == ["what comes after"]
    [told] = [one for one in events.after(db, 0) if one.kind is EventKind.FORGET]
    assert (told.body, told.meta["count"]) == (f"forgot {done.json['count']} events", done.json["count"])
    assert "secret" not in json.dumps(told.meta) + told.origin + told.session_id


@pytest.mark.parametrize("place", ["user", "result", "file", "candidate", "decision", "large", "todo", "edge"])
def test_a_single_event_goes_with_what_came_of_it(forget, home, talk, db, settings, place):
    talk.wrote("docs/plan.md", "# Plan\n")
    talk.wrote("docs/other.md", "# Other\n")
    origin = {
        "user": lambda: talk.user(f"Fix the gate {SECRET}"),
        "result": lambda: talk.ran("ls", SECRET),
        "file": lambda: talk.wrote("docs/a.md", SECRET),
        "candidate": lambda: talk.user(f"We decided: {SECRET}"),
        "decision": lambda: talk.decided(SECRET),
        "large": lambda: talk.assistant(SECRET + "".join(f"line {number}\n" for number in range(2_000))),
        "todo": lambda: talk.tool("TodoWrite", {"todos": [{"content": SECRET, "status": "pending"}]}),
        "edge": lambda: talk.event(
            "edge", SECRET, action="add", type="references", reason=SECRET,
            source={"type": "asset", "of": "rule:s1:2:0"}, target={"type": "asset", "of": "rule:s1:4:0"},
        ),
    }[place]()  # fmt: skip
    talk.user("what comes after")
    indexed(db)
    assert holders(home, CANARIES)
    before = {one.id: one for one in kept(db)}

    done = forget(ids=[f"event-{numbered(db, origin)}"])

    assert done.remains == ()
    assert holders(home, CANARIES) == set()
    assert {one.id: one for one in kept(db)}.items() <= before.items()
    assert len(before) - len(kept(db)) == done.count
    assert_holds(settings)


def contents(db, own):
    """Every row of the ledger, the tables and the index, but those of our own session."""
    found = {
        "events": [
            (one.id, one.seq, one.session_id, one.kind, one.origin, one.body, json.dumps(one.meta, sort_keys=True))
            for one in kept(db)
        ]
    }
    for table in rows.tables():
        found[table] = [
            tuple(row)
            for row in db.execute(f"SELECT * FROM {table}")
            if not (table == "session_state" and row["session"] in own)
        ]
    for table in ("words", "words_isolated"):
        db.execute(f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.look_{table} USING fts5vocab(main, {table}, instance)")
        found[table] = sorted(tuple(row) for row in db.execute(f"SELECT * FROM temp.look_{table}"))
    found["sessions"] = [tuple(row) for row in db.execute("SELECT * FROM sessions") if row["id"] not in own]
    found["projects"] = [tuple(row) for row in db.execute("SELECT * FROM projects")]
    return found


def open_story(talk: Talk) -> None:
    talk.user("Write the plan")
    talk.wrote("docs/plan.md", "# Plan\n\nSee docs/zqxwvkj.md and src/gate.py.\n")
    talk.wrote("src/gate.py", "open = True\n")
    talk.decided("Guests pay by card.", evidence=["s1:1"])
    talk.user("We decided: use SQLite")
    talk.tool("TodoWrite", {"todos": [{"content": "Write a test", "status": "pending"}]})
    talk.compacted("So far", replaces=["s1:1"])
    talk.session("s2").event("user_message", "Write the plan", origin="s1:1")
    talk.user("go on")
    talk.isolated()
    talk.user("a private word")
    talk.isolated(on=False)


def test_everything_is_as_if_it_had_never_been(forget, talk, db, tmp_path, clock):
    open_story(talk)
    with closing(rebuild.connect(replace_home(tmp_path / "other"))) as other:
        open_story(Talk(db=other, clock=clock))
        indexed(other)
        expected = contents(other, own=set())
    decided = next(one.origin for one in kept(db) if one.kind is EventKind.DECISION)
    candidate = next(one.origin for one in kept(db) if one.kind is EventKind.CANDIDATE)
    todo = next(one.origin for one in kept(db) if one.kind is EventKind.TODO)
    everywhere(talk)
    talk.superseded(decided, f"Instead: {SECRET}")
    talk.event("candidate", "", action="promote", of=candidate)
    talk.event("todo", "", action="finish", of=todo)
    talk.edited("src/gate.py", "open = True", f"open = '{SECRET}'")
    talk.ran("git commit -am gate", "[main 1a2b3c4] gate\n 1 file changed")
    talk.event("user_message", "Write the plan", origin="s1:1")
    talk.event("edge", "", action="member", of="s1:1", parent="s1")
    indexed(db)
    assert contents(db, own=set()) != expected

    done = forget(sessions=["secret"])
    indexed(db)

    own = {row["id"] for row in db.execute("SELECT id FROM sessions WHERE host_id LIKE 'graphsvc-%'")}
    assert done.shared == 2  # a message and the goal that it is, copied from s1; they stay there
    got = contents(db, own)
    assert {name for name in got if got[name] != expected[name]} == set()


def replace_home(path):
    return database.Settings(home=path)


def test_what_is_nothing_without_a_record_goes_with_it(forget, talk, db):
    talk.user("We decided: use SQLite")
    candidate = f"rule:{talk.user('We decided: use Kuzu')}:0"
    talk.event("candidate", "", action="promote", of=candidate)
    old = talk.decided("Pay by card.")
    new = talk.superseded(old, "Pay at the counter.")
    goal = talk.event("goal", "Reach it", action="record")
    talk.event("goal", "why", action="complete", of=goal)
    backed = talk.decided("On two legs.", evidence=[old, "s1:1"])
    mentioned = {one.origin: one for one in kept(db)}

    forget(ids=[f"event-{numbered(db, name)}" for name in ("s1:2", old, goal)])

    left = {one.origin: one for one in kept(db)}
    assert [name for name in mentioned if name not in left] == [
        "s1:2", candidate, "s1:3", "rule:s1:3:0", old, goal, "s1:7"
    ]  # fmt: skip
    assert left[new].meta == {name: value for name, value in mentioned[new].meta.items() if name != "of"}
    assert left[backed].meta["evidence"] == ["s1:1"]
    assert {name: one for name, one in left.items() if name not in {new, backed}} == {
        name: one for name, one in mentioned.items() if name in left and name not in {new, backed}
    }
    standing = dict(db.execute("SELECT text, status FROM records WHERE type = 'decision'").fetchall())
    assert standing == {"Pay at the counter.": "active", "On two legs.": "active"}


def test_a_call_takes_its_result_along_whether_or_not_they_have_an_id(forget, talk, db):
    named = talk.ran("ls", "a.md")
    unnamed = talk.event("tool_call", "{}", tool_name="Bash")
    talk.event("tool_result", "b.md")
    alone = talk.event("tool_call", "{}", tool_name="Bash")
    talk.user("stop")

    forget(ids=[f"event-{numbered(db, origin)}" for origin in (named, unnamed, alone)])

    assert [one.body for one in kept(db)] == ["stop"]


def test_an_asset_goes_with_the_calls_that_wrote_and_read_it(forget, talk, db):
    talk.wrote("docs/plan.md", "# Plan\n")
    talk.edited("docs/plan.md", "Plan", "The plan")
    talk.session("s2").read("docs/plan.md", "# The plan")
    talk.user("the rest")
    [asset] = [one.id for one in kept(db) if one.kind is EventKind.ASSET and one.meta["action"] == "register"]

    done = forget(ids=[f"asset-{asset}"])

    assert done.kinds == {"asset": 2, "tool_call": 3, "tool_result": 3}
    assert [one.body for one in kept(db)] == ["the rest"]


def test_edges_and_publications_go_with_what_they_name(forget, talk, db):
    talk.wrote("docs/a.md")
    talk.wrote("docs/b.md")
    ends = {name: {"type": "asset", "of": f"rule:s1:{at}:0"} for name, at in (("source", 2), ("target", 4))}
    edge = talk.event("edge", "why", action="add", type="references", **ends)
    talk.isolated()
    first, second = talk.user("one"), talk.user("two")
    talk.isolated(on=False)
    both = talk.event("publish", "", of=[first, second])
    one = talk.event("publish", "", of=[first])

    forget(ids=[f"event-{numbered(db, 'rule:s1:4:0')}", f"event-{numbered(db, first)}"])

    left = {event.origin: event for event in kept(db)}
    assert {edge, one} & left.keys() == set()
    assert left[both].meta["of"] == [second]


def test_what_rules_repeated_of_it_goes_too(forget, talk, db, home):
    made = talk.tool("TaskCreate", {"subject": SECRET}, "Task #7 created")
    for status in ("completed", "pending"):
        talk.tool("TaskUpdate", {"taskId": "7", "status": status}, "ok")
    talk.wrote("docs/zqxwvkj.md", "# Plan\n")
    talk.ran("git commit -am one", "[main 1a2b3c4] one\n 1 file changed")
    talk.wrote("docs/zqxwvkj.md", "# The plan\n")
    talk.wrote("docs/other.md", "# Other\n")
    talk.ran("git commit -am two", "[main 2b3c4d5] two\n 2 files changed")
    assert [one.body for one in kept(db) if one.kind is EventKind.TODO] == [SECRET] * 3
    [asset] = db.execute("SELECT id FROM knowledge_assets WHERE path LIKE '%zqx%'").fetchone()

    forget(ids=[f"event-{numbered(db, made)}", f"asset-{asset}"])

    assert holders(home, CANARIES) == set()
    covers = [one.meta for one in kept(db) if one.kind is EventKind.ASSET and one.meta["action"] == "commit"]
    assert [(one["ref"], one["paths"]) for one in covers] == [("2b3c4d5", ["docs/other.md"])]


@pytest.mark.parametrize(
    ("since", "until", "project", "left"),
    [
        ("2026-11-30T09:00:15Z", "2026-11-30T09:00:25Z", PROJECT, ["1", "3", "4"]),
        ("2026-11-30", "2026-11-30", PROJECT, ["4"]),
        ("2026-11-30", None, "all", []),
        (None, "2026-11-30T09:00:10Z", "all", ["2", "3", "4"]),
    ],
)
def test_a_time_is_forgotten_of_a_project_or_of_all(forget, talk, db, since, until, project, left):
    for text in "123":
        talk.user(text)
    talk.project = "/srv/other"
    talk.session("far").user("4")

    forget(since=since, until=until, project=project)

    assert [one.body for one in kept(db)] == left


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        ({}, InvalidInput),
        ({"ids": ("event-99",)}, NotFoundError),
        ({"ids": ("decision-1",)}, NotFoundError),
        ({"ids": ("asset-1",)}, NotFoundError),
        ({"ids": ("everything",)}, InvalidInput),
        ({"ids": ("event-2",)}, InvalidInput),  # a switch of isolation
        ({"sessions": ("s9",)}, NotFoundError),
        ({"since": "soon", "project": "all"}, InvalidInput),
        ({"since": "2026-11-30"}, InvalidInput),
        ({"since": "2026-11-30", "project": "/srv/nowhere"}, InvalidInput),
    ],
)
def test_what_cannot_be_forgotten_is_told_and_nothing_changes(talk, db, wanted, error):
    talk.user("hello")
    talk.isolated()
    before = kept(db)

    with pytest.raises(error):
        erase.forget(db, Wanted(**wanted), silent)

    assert kept(db) == before
    assert not db.in_transaction


def test_no_number_is_given_twice(forget, talk, db):
    talk.user("hello")
    talk.project = "/srv/other"
    talk.session("gone").user("bye")
    before = events.position(db), *events.find_session(db, "gone")

    done = forget(sessions=["gone"])
    talk.session("new").user("hi")

    assert events.find_project(db, "/srv/other") > before[2]
    assert events.find_session(db, "new") > before[1:]
    assert before[0] < done.position < events.position(db)
    assert forget(sessions=["new"]).position > done.position + 1


def test_a_project_of_which_nothing_is_left_is_named_nowhere(forget, talk, db, home):
    talk.user("hello")
    talk.project = "/srv/zqxwvkj"
    talk.session("gone").wrote("docs/a.md")

    forget(since="2026-11-30", project="/srv/zqxwvkj")

    assert holders(home, CANARIES) == set()
    told = [one for one in events.after(db, 0) if one.kind is EventKind.FORGET]
    assert [events.project_key(db, one.project) for one in told] == ["(no project)"]


TRANSCRIPT = [
    {"session_id": "t1", "kind": "user_message", "origin": "t1:1", "body": f"Fix it. {SECRET}", "project": PROJECT},
    {"session_id": "t1", "kind": "assistant_message", "origin": "t1:2", "body": SECRET, "project": PROJECT},
    {"session_id": "t2", "kind": "user_message", "origin": "t1:1", "body": f"Fix it. {SECRET}", "project": PROJECT},
    {"session_id": "t2", "kind": "user_message", "origin": "t2:2", "body": "go on", "project": PROJECT},
]


@pytest.fixture
def transcript(tmp_path):
    path = tmp_path / "history.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in TRANSCRIPT))
    return path


def test_importing_again_does_not_bring_it_back(run, home, transcript, tmp_path):
    assert run("import", str(transcript), "--json").json["events_added"] == 4
    run("forget", "session", "t1", "--yes")

    again = run("import", str(transcript), "--json").json

    assert (again["events_added"], again["duplicates"], again["forgotten"], again["gaps"]) == (0, 1, 3, [])
    elsewhere = run("import", str(transcript), "--project", "/srv/elsewhere", "--json").json
    assert (elsewhere["events_added"], elsewhere["duplicates"], elsewhere["forgotten"]) == (0, 1, 3)
    assert holders(home, CANARIES) == set()
    ran = run("import", str(transcript))
    assert "3 forgotten" in ran.err + ran.out
    lines = transcript.read_bytes()
    assert run("capture", "--json", stdin=lines).json["forgotten"] == 3

    assert run("import", str(transcript), "--again", "--json").json["events_added"] == 3
    assert holders(home, CANARIES) != set()
    assert run("import", str(transcript), "--json").json["forgotten"] == 0


def test_a_copy_that_was_forgotten_does_not_come_back_either(run, transcript):
    run("import", str(transcript))
    run("forget", "session", "t2", "--yes")

    again = run("import", str(transcript), "--json").json

    assert (again["events_added"], again["duplicates"], again["forgotten"]) == (0, 2, 2)
    assert run("import", str(transcript), "--again", "--json").json["events_added"] == 2


def test_what_came_by_rule_and_was_forgotten_stays_out(forget, talk, db):
    origin = talk.user("Fix the gate")
    goal = f"rule:{origin}:0"
    forget(ids=[f"event-{numbered(db, goal)}"])

    talk.told = 0
    talk.moment = talk.moment.replace(hour=9, minute=0, second=0)
    talk.user("Fix the gate")

    assert [one.origin for one in kept(db)] == [origin]


def test_what_was_stated_and_forgotten_is_not_stated_again_under_its_id(forget, db):
    said = replace(OWNER, mutation_id="once")
    step = Change(type=NodeType.DECISION, action="record", text="Guests pay by card.")
    made = record.change(db, said, step)
    forget(ids=[made.node.id])

    with pytest.raises(InvalidInput, match="client_mutation_id: was used for what was forgotten"):
        record.change(db, said, step)
    assert not record.change(db, replace(said, mutation_id="twice"), step).duplicate


def test_a_token_of_a_session_ends_when_nothing_of_the_session_is_left(forget, talk, db):
    talk.session("s1").user("hello")
    talk.user("more")
    talk.session("s2").user("hello, too")
    made = {
        name: create(db, Token(id=0, kind=TokenKind.READ, session_id=name, project=None))[0] for name in ("s1", "s2")
    }
    first = db.execute("SELECT MIN(id) FROM events").fetchone()[0]

    forget(ids=[f"event-{first}"])
    assert [one.id for one in tokens.every(db)] == [made["s1"].id, made["s2"].id]
    forget(sessions=["s1"])

    assert tokens.every(db) == [made["s2"]]
    assert not tokens.holds(db, made["s1"], "2026-01-01")


def test_a_session_does_not_become_shared_by_what_is_forgotten_of_it(forget, talk, db):
    talk.isolated()
    talk.user("private")
    forget(since="2026-11-30", project="all")
    talk.user("private too")
    assert [(one.kind, one.isolated) for one in kept(db)] == [("isolation", True), ("user_message", True)]

    forget(sessions=["s1"])
    assert kept(db) == []
    talk.user("private still")
    talk.user("and this")

    assert [(one.kind, one.isolated) for one in kept(db)] == [
        ("isolation", True), ("user_message", True), ("user_message", True)
    ]  # fmt: skip


def test_a_ledger_with_forgotten_events_goes_to_another_machine(run, forget, talk, db, home, tmp_path):
    open_story(talk)
    talk.session("gone").user("to be gone")
    forget(sessions=["gone"])
    lines = run("export", "--viewer", "s2").out.encode()

    there = {"GRAPHSVC_HOME": str(tmp_path / "there")}
    stored = run("capture", "--json", stdin=lines, env=there).json

    assert stored["rejected"] == []
    assert run("export", "--viewer", "s2", env=there).out.encode() == lines
    assert b'"kind":"forget"' in lines
    assert run("rebuild", "--check", env=there).code == 0


# Where the process that forgets is killed: at the first statement that begins like this, or the n-th.
KILLED = [
    ("INSERT INTO forgetting", 1),
    ("DROP TRIGGER", 5),
    ("DELETE FROM bodies", 1),
    ("DELETE FROM events", 1),
    ("UPDATE events", 1),
    ("CREATE TRIGGER events_stay", 1),
    ("DELETE FROM imports", 1),
    ("DROP table", 4),
    ("INSERT INTO records", 1),
    ("INSERT INTO events", 1),
    ("VACUUM", 1),
    ("PRAGMA wal_checkpoint", 1),
    ("UPDATE forgetting SET remains = ?", 3),
]
KILLER = """
import os, signal
from graphsvc.store.database import Connection
real, left = Connection.execute, [{count}]
def execute(self, sql, *given):
    if sql.startswith({prefix!r}):
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
    return real(self, sql, *given)
Connection.execute = execute
"""


@pytest.mark.parametrize(("prefix", "count"), KILLED, ids=[f"{prefix} {count}" for prefix, count in KILLED])
def test_a_kill_leaves_all_or_nothing_and_the_next_one_finishes(run, forks, home, settings, talk, db, prefix, count):
    talk.session("secret").user(f"Fix it {SECRET}")
    talk.session("s1").user("open")
    talk.decided("On it.", evidence=["secret:1"])
    indexed(db)
    before = kept(db)
    program = KILLER.format(prefix=prefix, count=count) + MAIN
    env = {"GRAPHSVC_HOME": str(home), "PATH": "/usr/bin:/bin"}
    process = forks.start("forget", "session", "secret", "--yes", env=env, cwd=home.parent, program=program)
    assert process.wait(60) == -signal.SIGKILL
    process.close()

    with closing(database.reader(settings.database)) as look:
        assert database.lost_triggers(look) == []
        left = kept(look)
    gone = [one for one in before if one.session_id == "secret"]
    assert len(left) in {len(before), len(before) - len(gone)}
    assert run("stats").code == 0
    assert (holders(home, CANARIES) == set()) is (len(left) < len(before))
    assert_holds(settings)
    if len(left) == len(before):
        assert run("forget", "session", "secret", "--yes").code == 0
    assert run("doctor", "--json").code == 0
    assert holders(home, CANARIES) == set()


def test_a_graph_that_is_asked_for_while_one_is_made_is_made_after_it(settings, talk, db):
    talk.user("hello")
    where, asked = place(settings), []

    def at(step):
        if step == "file filled" and not asked:
            asked.append(step)
            ask_anew(where)

    follower = Follower(settings.database, where, VERSION, lambda **_: None, at)
    follower.step()
    assert where.doubt.exists()
    follower.step()
    assert not where.doubt.exists()
    follower.close()


def test_a_graph_is_asked_for_once_however_long_it_takes(forget, settings, talk, db):
    talk.user("hello")
    talk.session("secret").user(SECRET)
    where = place(settings)
    follower = Follower(settings.database, where, VERSION, lambda **_: None)
    follower.step()

    done = forget(sessions=["secret"])
    assert done.remains == ("the graph: who keeps it has not made it anew yet",)
    asked = where.doubt.stat().st_ino
    assert clean(db, patience_s=0) == done.remains
    assert where.doubt.stat().st_ino == asked
    follower.step()
    assert holders(settings.home, CANARIES) == set()
    assert clean(db, patience_s=0) == ()
    assert not where.doubt.exists()
    follower.close()


def test_bytes_that_cannot_go_yet_are_told_and_go_at_the_next_chance(run, home, settings, talk, db, forget):
    talk.session("secret").user(SECRET)
    talk.session("s1").user("open")
    with closing(database.reader(settings.database)) as reading:
        reading.execute("BEGIN")
        reading.execute("SELECT * FROM events").fetchall()
        done = forget(sessions=["secret"])

        assert done.remains == ("the log of the database: somebody still reads what was stored before",)
        assert holders(home, CANARIES) != set()
        checks = {one["check"]: one for one in run("doctor", "--json").json["checks"]}
        assert checks["forgotten"]["status"] == "warn"
        assert "log of the database" in checks["forgotten"]["found"]

    assert run("stats").code == 0
    assert holders(home, CANARIES) == set()
    assert run("doctor", "--json").code == 0
    assert traces.remains(db) == ()


def test_the_exit_code_says_that_bytes_are_left(run, home, talk):
    talk.session("secret").user(SECRET)
    (home / "graphsvc.db.schema-3").mkdir()

    done = run("forget", "session", "secret", "--yes", "--json")

    assert done.code == 3
    assert done.json["done"] is True
    assert [one.partition(":")[0] for one in done.json["remains"]] == ["copies that migrations made"]
    (home / "graphsvc.db.schema-3").rmdir()
    talk.user("hello")
    assert "1 event," in run("forget", "session", "secret", "--yes").out
    assert traces.remains(talk.db) == ()


def test_another_process_that_writes_is_waited_for(talk, db, settings, forget):
    talk.user("hello")
    with closing(database.connect(settings)) as other:
        other.execute("BEGIN IMMEDIATE")
        db.execute("PRAGMA busy_timeout = 50")
        with pytest.raises(BusyError, match="try again"):
            forget(sessions=["s1"])
        assert len(kept(db)) == 1

        db.execute("PRAGMA busy_timeout = 20000")
        timer = threading.Timer(0.3, other.rollback)
        timer.start()
        assert forget(sessions=["s1"]).count == 1
        timer.join()


def test_others_are_told_to_wait_while_something_is_forgotten(talk, db, settings):
    talk.user("hello")
    refused = []
    with closing(database.connect(settings)) as other:
        other.execute("PRAGMA busy_timeout = 50")

        def meanwhile(done, of):
            del done, of
            with pytest.raises(BusyError, match="try again in a moment"):
                Talk(db=other, clock=talk.clock, session_id="s2").user("me too")
            assert [one.body for one in kept(other)] == ["hello"]
            refused.append(True)

        erase.forget(db, Wanted(sessions=("s1",)), meanwhile)
        Talk(db=other, clock=talk.clock, session_id="s2").user("me too")

    assert refused
    assert [one.body for one in kept(db)] == ["me too"]


def test_the_ledger_is_changed_in_a_transaction_only(db):
    with pytest.raises(RuntimeError, match="transaction"), ledger.unlocked(db):
        pass


def test_while_the_service_runs_others_see_only_that_something_went(run, forks, home, settings, talk, db):
    talk.user("open")
    everywhere(talk)
    talk.session("s1").user("an answer")
    position = events.position(db)
    document = "subscription ($after: Long) { events_captured(after: $after) { position kind body { text } } }"
    log = home / "service.log"
    with serving(
        forks, home, GRAPHSVC_LOG="debug", before=f"import sys\nsys.argv += ['--log', {str(log)!r}]\n"
    ) as served:
        wait_for_graph(served, position)
        assert holders(home, CANARIES) >= {"graph/graph.kuzu"}
        with served.stream(document, {"after": position}) as stream:
            stream.begun()
            items = stream.items()
            done = run("forget", "session", "secret", "--yes", "--json")
            heard = next(items)

        assert (done.code, done.json["remains"]) == (0, [])
        assert heard == {
            "position": done.json["position"],
            "kind": "forget",
            "body": {"text": f"forgot {done.json['count']} events"},
        }
        assert holders(home, CANARIES) == set()
        wait_for_graph(served, done.json["position"])
        with served.stream(document, {"after": position - 1}) as stream:
            assert next(stream.items())["position"] == position
        assert run("search", "zqxwvkj").code == 1
        assert log.stat().st_size
    assert holders(home, CANARIES) == set()
    assert_holds(settings)


def wait_for_graph(served, position):
    def there():
        graph = HTTP.get(f"{served.url}/health").json()["graph"]
        return graph["status"] == "ok" and graph["position"] >= position

    wait_for(there)


FORGET = """mutation ($sessions: [String!], $ids: [ID!], $since: DateTime, $confirm: Boolean! = false) {
  forget(session_ids: $sessions, ids: $ids, since: $since, confirm: $confirm) {
    __typename ... on Forgotten { done count kinds { name count } sessions position remains }
    ... on InvalidInput { field } ... on NotFound { target }
  }
}"""


def test_the_service_forgets_when_its_owner_confirms(forks, home, talk, db):
    everywhere(talk)
    with serving(forks, home) as served:
        wait_for_graph(served, events.position(db))

        def ask(headers=None, **variables):
            body = {"query": FORGET, "variables": variables}
            headers = {**served.authorization, "Graphsvc-Capture": "1", **(headers or {})}
            return HTTP.post(f"{served.url}/graphql", json=body, headers=headers).json()["data"]["forget"]

        planned = ask(sessions=["secret"])
        assert (planned["done"], planned["position"], planned["remains"]) == (False, None, [])
        assert ask({"Graphsvc-Viewer": "secret"}, sessions=["secret"], confirm=True)["field"] == "viewer"
        assert ask(since="2026-11-30")["field"] == "project"
        assert ask(ids=["event-999"])["target"] == "event-999"
        assert kept(db)

        done = ask(sessions=["secret"], confirm=True)

        assert (done["done"], done["count"], done["kinds"]) == (True, planned["count"], planned["kinds"])
        wait_for(lambda: holders(home, CANARIES) == set())
        assert kept(db) == []


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("session",),
        ("everything",),
        ("session", "s1", "--since", "2026-11-30"),
        ("event", "event-1", "--project", "all"),
        ("session", "s1", "--json"),
        ("session", "s1"),
    ],
)
def test_the_command_refuses_what_it_does_not_understand_or_may_not_do(run, talk, db, arguments):
    talk.user("hello")

    assert run("forget", *arguments).code == 2
    assert len(kept(db)) == 1


def test_a_dry_run_changes_nothing(run, talk, db):
    talk.user("Fix it")
    before = kept(db)

    done = run("forget", "session", "s1", "--dry-run", "--json").json

    assert (done["done"], done["count"], done["kinds"]) == (False, 2, {"goal": 1, "user_message": 1})
    assert kept(db) == before
    assert "2 events" in run("forget", "event", "event-1", "--dry-run").out


NAMING = ("of", "evidence", "replaces", "basis", "call")  # what of a meta names other events


@pytest.mark.parametrize("seed", range(8))
def test_whatever_is_forgotten_of_whatever_was_told_the_rest_holds(forget, talk, db, settings, tmp_path, seed):
    histories.tell(talk, seed, steps=70)
    chosen = random.Random(seed)  # noqa: S311 # no secret
    before = {one.id: one for one in kept(db)}
    numbers = [number for number, one in before.items() if one.kind is not EventKind.ISOLATION]

    for _ in range(3):
        gone = forget(ids=[f"event-{number}" for number in chosen.sample(numbers, 4)])
        numbers = [one.id for one in kept(db) if one.kind is not EventKind.ISOLATION]
        assert gone.position == events.position(db)
    if seed % 2:
        forget(sessions=[kept(db)[0].session_id])

    left = {one.id: one for one in kept(db)}
    names = {one.origin for number, one in before.items() if number not in left}
    for number, one in left.items():
        assert replace(one, meta={}) == replace(before[number], meta={})
        assert {**before[number].meta, **{name: one.meta.get(name) for name in NAMING}} == {
            **one.meta,
            **{name: one.meta.get(name) for name in NAMING},
        }
        stated = json.dumps({name: one.meta.get(name) for name in (*NAMING, "source", "target")})
        assert not [name for name in names if f'"{name}"' in stated]
    assert_holds(settings)
    # A store that is told what is left, and never heard of the rest, is the same.
    with closing(rebuild.connect(replace_home(tmp_path / "told"))) as other:
        for one in events.after(db, 0):
            entry = Entry(received_at=one.received_at, isolated=one.isolated, at=one.at)
            key = events.project_key(db, one.project)
            about = {
                name: getattr(one, name) for name in ("session_id", "kind", "origin", "body", "ts", "actor", "meta")
            }
            assert capture.capture(other, [Event(**about, project=key, ledger=entry)]).accepted == 1
        assert standing(other) == standing(db)


def standing(db):
    """What there is, by names that mean the same in every store."""
    origins = {row["id"]: row["origin"] for row in db.execute("SELECT id, origin FROM events")}
    sessions = {row["id"]: row["host_id"] for row in db.execute("SELECT id, host_id FROM sessions")}

    def name(kind, number):
        return sessions[number] if kind == "session" else origins[number]

    edges = {
        (row["type"], name(row["src_type"], row["src"]), name(row["dst_type"], row["dst"]), row["end_at"])
        for row in db.execute("SELECT * FROM lineage_edges")
    }
    records = {(origins[row["id"]], row["status"], row["text"]) for row in db.execute("SELECT * FROM records")}
    hidden = {origins[row["event"]] for row in db.execute("SELECT event FROM hidden")}
    versions = {
        (origins[row["event"]], row["title"], row["hash"]) for row in db.execute("SELECT * FROM asset_versions")
    }
    return edges, records, hidden, versions


def test_sessions_that_did_a_part_of_the_work_are_named_and_stay(run, talk, db):
    talk.user("Do it")
    talk.session("part").event("session_start", "", parent="s1", relation="delegation")
    talk.session("later").event("session_start", "", parent="s1", relation="resume")

    assert run("forget", "session", "s1", "--dry-run", "--json").json["delegated"] == ["part"]
    assert "stay: part" in run("forget", "session", "s1", "--yes").err
    assert run("forget", "session", "later", "--yes", "--json").json["delegated"] == []
    assert {one.session_id for one in kept(db)} == {"part"}
    assert "nothing is there" in run("forget", "--since", "2030-01-01", "--project", "all").out
