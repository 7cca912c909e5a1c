"""What somebody states outright: every step of every machine, edges and assets; over GraphQL, the service, commands."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import threading
import time
from contextlib import closing
from datetime import UTC, datetime

import pytest
import stores
from graphql import GraphQLNonNull, build_schema
from hypothesis import HealthCheck, given
from hypothesis import settings as profile
from hypothesis import strategies as st

from graphsvc import resources, states
from graphsvc.api import schema
from graphsvc.api.context import Context
from graphsvc.client import executor
from graphsvc.config import Settings
from graphsvc.importers import run as importing
from graphsvc.memory import capture, rebuild, record
from graphsvc.memory.apply import DECLARE
from graphsvc.model import EDGES, OWN_HOST, EdgeType, Event, EventKind, NodeType
from graphsvc.recall.scope import Asker
from graphsvc.store import rows, sessions
from graphsvc.store.visibility import Viewer

PROJECT = "/srv/talk/harbor"
CAFE = "/home/demo/harbor-cafe"
# What is stated; to forget is no statement.
DOCUMENTS = [name for name in resources.names("queries/record", ".graphql") if not name.endswith("/forget.graphql")]
# Machine and step → its mutation. A candidate expires by rule only.
MUTATIONS = {
    ("decision", "activate"): "decision_activate",
    ("decision", "supersede"): "decision_supersede",
    ("decision", "revoke"): "decision_revoke",
    ("candidate", "promote"): "candidate_promote",
    ("candidate", "reject"): "candidate_reject",
    ("goal", "complete"): "goal_complete",
    ("goal", "drop"): "goal_drop",
    ("todo", "finish"): "todo_done",
    ("todo", "drop"): "todo_drop",
    ("feedback", "revoke"): "feedback_revoke",
}
ADDS = {"decision": "decision_record", **{kind: f"{kind}_add" for kind in ("candidate", "goal", "todo", "feedback")}}
NEEDS_TEXT = frozenset({"decision_supersede"})


def variables_of(name: str) -> dict:
    """What the comment of a document gives as its variables."""
    return json.loads(re.search(r"^# variables: (.*)$", resources.text(name), re.MULTILINE)[1])


def quiet(done, total):
    pass


@pytest.fixture
def state(db, clock):
    """State something: `state("goal_add", text="…", viewer="s1")` returns the outcome, whatever it is."""

    def state(mutation, *, viewer=None, project=None, cwd=PROJECT, **variables):
        asker = Asker(session_id=viewer, project=project, cwd=cwd)
        document = resources.text(f"queries/record/{mutation}.graphql")
        response = schema.respond(document, variables, None, Context(db=db, asker=asker, clock=clock))
        assert "errors" not in response, response["errors"]
        return response["data"][mutation]

    return state


@pytest.fixture
def made(state):
    """State something that must be done, and return its node: `made("goal_add", text="…")`."""

    def made(mutation, **variables):
        outcome = state(mutation, **variables)
        assert outcome["__typename"].endswith(("Changed", "Registered")), outcome
        return outcome[node_of(mutation)]

    return made


def node_of(mutation: str) -> str:
    return mutation.partition("_")[0]


def counted(db) -> int:
    return db.execute("SELECT COUNT(*) FROM events").fetchone()[0]


def numbered(node: dict) -> int:
    return int(node["id"].rpartition("-")[2])


@pytest.fixture(scope="module")
def imported(tmp_path_factory, clock):
    """A store of the two sessions of the café."""
    there = Settings(home=tmp_path_factory.mktemp("imported") / "home")
    with closing(rebuild.connect(there)) as db:
        importing.import_files(
            [resources.ROOT / "examples" / "demo"],
            capture=lambda batch: capture.capture(db, batch, now=clock, history=True),
            known=lambda _: None,
            record=lambda *_: None,
        )
    return there.database


@pytest.fixture
def demo(db, imported):
    """The two sessions of the café, with the ids that the documents name."""
    stores.fill(db, imported)


# Machines


def in_status(talk, made, kind: str, status: str) -> str:
    """Bring a record into a status; return its id."""
    if (kind, status) == ("decision", "proposed"):
        return made("decision_propose", text="提议")["id"]
    node = made(ADDS[kind], text=f"a {kind}")
    steps = {end: action for action, end in states.MACHINES[kind][states.INITIAL[kind][0]].items()}
    if status in steps:
        talk.at("2026-11-30T12:00:01+00:00").event(kind, "x", action=steps[status], id=node["id"])
    return node["id"]


STEPS = [
    (kind, status, action)
    for kind, machine in states.MACHINES.items()
    for status in sorted({*machine, *itertools.chain(*(ends.values() for ends in machine.values()))})
    for (other, action) in MUTATIONS
    if other == kind
]


def test_every_step_of_every_machine_has_its_mutation():
    steps = {
        (kind, action) for kind, machine in states.MACHINES.items() for ends in machine.values() for action in ends
    }

    assert steps - set(MUTATIONS) == {("candidate", "expire")}
    assert {*MUTATIONS.values(), *ADDS.values()} <= {name.rpartition("/")[2].partition(".")[0] for name in DOCUMENTS}


@pytest.mark.parametrize(("kind", "status", "action"), STEPS)
def test_a_step_is_taken_or_refused_with_what_is_allowed(db, talk, state, made, kind, status, action):
    talk.user("hello")
    name = in_status(talk, made, kind, status)
    before = [tuple(row) for row in db.execute("SELECT * FROM records ORDER BY id")]
    mutation = MUTATIONS[kind, action]
    text = {"text": "另一个决定"} if mutation in NEEDS_TEXT else {}

    outcome = state(mutation, id=name, **text)

    allowed = states.MACHINES[kind].get(status, {})
    after = [tuple(row) for row in db.execute("SELECT * FROM records ORDER BY id")]
    if action in allowed:
        now = db.execute("SELECT status FROM records WHERE id = ?", (int(name.rpartition("-")[2]),)).fetchone()[0]
        assert now == allowed[action]
        assert outcome["position"] == counted(db)
        assert not outcome["duplicate"]
    else:
        assert outcome["__typename"] == "InvalidTransition"
        assert (outcome["machine"], outcome["status"], outcome["action"]) == (kind, status, action)
        assert outcome["allowed_actions"] == list(allowed)
        assert after == before


def test_superseding_keeps_the_old_decision_and_links_both(db, state, made):
    old = made("decision_record", text="Sessions use JWT.")
    outcome = state("decision_supersede", id=old["id"], text="会话放在服务器上。", reason="Tokens cannot be revoked.")

    assert (outcome["decision"]["status"], outcome["superseded"]["status"]) == ("active", "superseded")
    assert outcome["superseded"]["id"] == old["id"]
    edges = db.execute("SELECT src, dst FROM lineage_edges WHERE type = 'precedes'").fetchall()
    assert [tuple(edge) for edge in edges] == [(numbered(old), numbered(outcome["decision"]))]


def test_a_promoted_candidate_keeps_its_evidence_and_both_are_linked(db, talk, state, made):
    talk.user("we could use SQLite")
    candidate = made("candidate_add", text="use sqlite", evidence=["event-1"])
    outcome = state("candidate_promote", id=candidate["id"], text="Everything lives in SQLite.")

    assert outcome["candidate"]["status"] == "promoted"
    assert outcome["decision"]["text"] == "Everything lives in SQLite."
    assert [one["id"] for one in outcome["decision"]["evidence"]] == ["event-1", f"event-{numbered(candidate)}"]
    row = db.execute("SELECT promoted_to, text FROM records WHERE type = 'candidate'").fetchone()
    assert tuple(row) == (numbered(outcome["decision"]), "use sqlite")
    again = state("candidate_promote", id=candidate["id"])
    assert again["__typename"] == "InvalidTransition"


def test_a_candidate_is_promoted_as_it_stands_without_a_text(state, made):
    candidate = made("candidate_add", text="取餐码用四位数字。")

    assert state("candidate_promote", id=candidate["id"])["decision"]["text"] == "取餐码用四位数字。"


def test_what_a_host_said_from_the_future_is_changed_all_the_same(db, talk, state):
    talk.at("2031-01-01T00:00:00+00:00").decided("sessions use JWT")

    outcome = state("decision_revoke", id="decision-1", reason="早就不用了")

    assert outcome["decision"]["status"] == "revoked"


# Where it belongs


def test_a_decision_always_has_evidence(db, talk, state, made):
    talk.user("orders are slow")
    talk.wrote("docs/a.md")
    alone = made("decision_record", text="付款在柜台。")
    based = made("decision_record", text="Pay later.", evidence=["event-1", "docs/a.md", "event-1", alone["id"]])

    assert [one["id"] for one in alone["evidence"]] == [f"event-{numbered(alone)}"]
    ends = db.execute(
        "SELECT dst_type, dst FROM lineage_edges WHERE src = ? AND type = 'evidence' ORDER BY 1, 2", (numbered(based),)
    ).fetchall()
    asset = db.execute("SELECT id FROM knowledge_assets").fetchone()["id"]
    assert [tuple(end) for end in ends] == [("asset", asset), ("event", 1), ("event", numbered(alone))]


@pytest.mark.parametrize("basis", ["goal", "decision", "asset"])
def test_a_todo_follows_from_its_basis(db, state, made, basis):
    source = {
        "goal": lambda: made("goal_add", text="上线")["id"],
        "decision": lambda: made("decision_record", text="决定")["id"],
        "asset": lambda: made("asset_register", path="docs/a.md")["id"],
    }[basis]()
    todo = made("todo_add", text="写说明", basis=source)

    edge = db.execute("SELECT src_type, src, dst FROM lineage_edges WHERE type = 'next_step'").fetchone()
    assert tuple(edge) == (basis, int(source.rpartition("-")[2]), numbered(todo))


def test_a_todo_follows_from_nothing_else(talk, state, db):
    talk.user("hello")
    before = counted(db)

    outcome = state("todo_add", text="x", basis="event-1")

    assert (outcome["__typename"], outcome["field"]) == ("InvalidInput", "basis")
    assert counted(db) == before


@pytest.mark.parametrize("kind", ["preference", "correction", None])
def test_feedback_has_a_kind(db, state, kind):
    given = {"kind": kind} if kind else {}

    assert state("feedback_add", text="中英文都要写", **given)["feedback"]["kind"] == kind or "preference"
    assert db.execute("SELECT kind FROM feedback").fetchone()["kind"] == (kind or "preference")


def test_feedback_of_a_host_has_the_kind_it_says(db):
    said = [("be brief", {"kind": "correction"}), ("说中文", {}), ("be loud", {"kind": "order"})]
    done = capture.capture(
        db,
        [
            Event(session_id="s1", kind=EventKind.FEEDBACK, origin=text, body=text, project=PROJECT, meta=meta)
            for text, meta in said
        ],
    )

    assert [row["kind"] for row in db.execute("SELECT kind FROM feedback ORDER BY id")] == ["correction", None]
    assert "preference" in done.rejected[0].message


def test_without_a_session_it_is_filed_under_our_own(db, talk, state):
    talk.user("hello")
    state("goal_add", text="上线")
    state("goal_add", text="second")
    state("goal_add", text="third", cwd="/srv/talk")

    rows = db.execute(
        "SELECT s.host_id, t.host, COUNT(*) AS events FROM events e JOIN sessions s ON s.id = e.session"
        " JOIN session_state t ON t.session = s.id WHERE s.host_id <> 's1' GROUP BY 1"
    ).fetchall()
    assert [(row["host"], row["events"]) for row in rows] in (
        [(OWN_HOST, 2), (OWN_HOST, 1)],
        [(OWN_HOST, 1), (OWN_HOST, 2)],
    )
    latest = sessions.latest(db, Viewer())
    assert latest is not None
    assert latest.session_id == "s1"


def test_a_folder_nothing_was_recorded_in_is_a_project_of_its_own(db, state, tmp_path):
    folder = tmp_path / "新项目"
    folder.mkdir()

    assert state("goal_add", text="上线", project=str(folder))["goal"]["status"] == "active"
    assert state("goal_add", text="again", cwd=str(folder))["goal"]["status"] == "active"
    assert state("goal_add", text="nowhere", cwd=None)["field"] == "project"
    assert state("goal_add", text="misspelt", project=str(folder) + "x")["field"] == "project"
    keys = [row["key"] for row in db.execute("SELECT key FROM projects")]
    assert keys == [str(folder)]


def test_the_viewers_session_is_the_one_it_is_filed_under(db, talk, state):
    talk.user("hello")
    talk.session("s2").user("hello")

    assert state("goal_add", text="mine", viewer="s2")["goal"]
    assert state("goal_add", text="theirs", viewer="s2", session_id="s1")["field"] == "session_id"
    assert state("goal_add", text="named", session_id="session-s1")["goal"]
    filed = db.execute("SELECT s.host_id FROM records r JOIN sessions s ON s.id = r.session ORDER BY r.id").fetchall()
    assert [row["host_id"] for row in filed] == ["s2", "s1"]


def test_a_session_of_another_project_takes_nothing(talk, state, made):
    talk.user("hello")
    goal = made("goal_add", text="上线")
    talk.project = "/srv/talk/elsewhere"
    talk.session("s9").user("hello")

    assert state("goal_complete", id=goal["id"], session_id="s9")["field"] == "session_id"
    assert state("goal_add", text="x", session_id="s9", project=PROJECT)["field"] == "session_id"
    assert state("goal_complete", id=goal["id"], viewer="s9")["__typename"] == "NotFound"


def test_what_belongs_to_another_project_supports_nothing(db, talk, state, made):
    talk.user("hello")
    own = made("decision_record", text="here")
    talk.project = "/srv/talk/elsewhere"
    talk.session("s9").user("hello")
    other = made("goal_add", text="there", cwd="/srv/talk/elsewhere")
    before = counted(db)

    assert state("decision_record", text="x", evidence=[other["id"]])["field"] == "evidence"
    assert state("todo_add", text="x", basis=other["id"])["field"] == "basis"
    edge = state("edge_add", type="precedes", source="session-s1", target="session-s9")
    assert (edge["__typename"], edge["field"]) == ("InvalidInput", "target")
    for mutation, said in (
        ("decision_revoke", {"id": own["id"]}),
        ("decision_record", {"text": "x", "evidence": [own["id"]]}),
        ("edge_add", {"type": "evidence", "source": own["id"], "target": "event-1"}),
    ):
        outcome = state(mutation, **said, viewer="s9")
        assert (outcome["__typename"], outcome["target"]) == ("NotFound", own["id"])
        assert "goal-" in outcome["suggestion"] or "ls" in outcome["suggestion"]
    assert counted(db) == before


# What is not there, and what is no input


@pytest.mark.parametrize(
    ("mutation", "given"),
    [
        ("decision_revoke", {"id": "decision-404"}),
        ("goal_complete", {"id": "goal-1"}),
        ("todo_done", {"id": "404"}),
        ("decision_record", {"text": "x", "evidence": ["event-404"]}),
        ("todo_add", {"text": "x", "basis": "docs/nothing.md"}),
        ("edge_add", {"type": "references", "source": "asset-404", "target": "event-1"}),
        ("edge_retract", {"type": "precedes", "source": "session-s1", "target": "session-s2"}),
        ("goal_add", {"text": "x", "session_id": "s7"}),
    ],
)
def test_what_is_not_there_comes_with_a_call_that_runs(db, talk, tool, state, mutation, given):
    talk.decided("sessions use JWT")
    talk.session("s2").user("hello")
    before = counted(db)

    outcome = state(mutation, **given)

    assert outcome["__typename"] == "NotFound"
    assert "status" not in tool(**json.loads(outcome["suggestion"]))
    assert counted(db) == before


@pytest.mark.parametrize(
    ("mutation", "given", "field"),
    [
        ("goal_add", {"text": ""}, "text"),
        ("goal_add", {"text": " \n "}, "text"),
        ("goal_add", {"text": "<private>my key</private>"}, "text"),
        ("goal_add", {"text": "x" * 20_001}, "text"),
        ("goal_add", {"text": "a\0b"}, "text"),
        ("goal_add", {"text": "\ud800"}, "text"),
        ("goal_add", {"text": "x", "client_mutation_id": "x" * 1025}, "client_mutation_id"),
        ("decision_revoke", {"id": "goal-1"}, "id"),
        ("decision_revoke", {"id": "docs/a.md"}, "id"),
        ("decision_revoke", {"id": "decision-1", "reason": " "}, "reason"),
        ("decision_supersede", {"id": "decision-1", "text": ""}, "text"),
        ("decision_record", {"text": "x", "evidence": ["session-s1"]}, "evidence"),
        ("decision_record", {"text": "x", "evidence": ["event-1"] * 51}, "evidence"),
        ("decision_record", {"text": "x", "evidence": [""]}, "evidence"),
        ("todo_add", {"text": "x", "project": "/" + "长" * 100}, "project"),  # no file system has such a name
        ("todo_add", {"text": "x", "project": "/" + "a" * 5000}, "project"),
        ("todo_add", {"text": "x", "project": "/a\0b"}, "project"),
        ("asset_register", {"path": "docs/"}, "path"),
        ("asset_register", {"path": ".."}, "path"),
        ("asset_register", {"path": ""}, "path"),
        ("asset_register", {"path": "docs/a.md", "title": "x" * 201}, "title"),
        ("edge_add", {"type": "precedes", "source": "decision-1", "target": "decision-1"}, "target"),
        ("edge_add", {"type": "evidence", "source": "event-1", "target": "event-2"}, "source"),
    ],
)
def test_what_is_no_input_is_refused_by_name(db, talk, state, mutation, given, field):
    talk.decided("sessions use JWT")
    talk.user("hello")
    before = counted(db)

    outcome = state(mutation, **given)

    assert (outcome["__typename"], outcome["field"]) == ("InvalidInput", field)
    assert outcome["allowed"]
    assert counted(db) == before


def test_a_folder_that_may_not_be_looked_at_is_no_project(db, talk, state, monkeypatch):
    talk.user("hello")
    look = os.stat

    def refuse(path, *given, **named):
        if "locked" in str(path):
            raise PermissionError(13, "Permission denied", str(path))
        return look(path, *given, **named)

    monkeypatch.setattr(os, "stat", refuse)

    assert state("todo_add", text="x", project="/locked/harbor")["field"] == "project"


def test_what_fails_in_one_field_hides_nothing_that_others_have_done(db, talk, clock, monkeypatch):
    talk.user("hello")

    def fail(*_, **__):
        raise RuntimeError

    monkeypatch.setattr(record, "register", fail)
    document = """mutation {
        first: goal_add(text: "上线") { ... on GoalChanged { goal { id } } }
        asset_register(path: "docs/a.md") { __typename }
        last: capture(events: []) { position }
    }"""
    found = schema.respond(document, {}, None, Context(db=db, asker=Asker(cwd=PROJECT), clock=clock))

    assert found["data"] == {"first": {"goal": {"id": "goal-2"}}, "asset_register": None, "last": {"position": 2}}
    assert [(one["path"], one["extensions"]["code"]) for one in found["errors"]] == [(["asset_register"], "BUG")]


def test_every_mutation_may_answer_with_nothing():
    kind = build_schema(schema.print_sdl()).mutation_type

    assert [name for name, field in kind.fields.items() if isinstance(field.type, GraphQLNonNull)] == []


def test_a_secret_is_redacted_before_it_is_stored(db, state):
    token = "ghp_" + "a1B2c3D4e5F6" * 3
    outcome = state("decision_record", text=f"Deploy with {token}.", reason=f"because of {token}")

    assert token not in json.dumps(outcome)
    assert token not in str([tuple(row) for row in db.execute("SELECT body, meta FROM events")])


# Versions, and saying a thing twice


def test_only_the_version_that_was_read_is_changed(db, state, made):
    goal = made("goal_add", text="上线")
    other = state("goal_complete", id=goal["id"], if_version=goal["version"] + 1)

    assert other["__typename"] == "Conflict"
    assert (other["target"], other["expected"], other["actual"]) == (goal["id"], goal["version"] + 1, goal["version"])
    done = state("goal_complete", id=goal["id"], if_version=goal["version"])
    assert done["goal"]["version"] == counted(db) > goal["version"]
    assert state("goal_drop", id=goal["id"], if_version=goal["version"])["__typename"] == "Conflict"


@pytest.mark.parametrize("name", DOCUMENTS, ids=lambda name: name.rpartition("/")[2])
def test_a_document_does_on_the_demo_what_it_says_and_once(db, demo, settings, state, name):
    mutation = name.rpartition("/")[2].partition(".")[0]
    variables = {**variables_of(name), "client_mutation_id": "一次"}
    project = variables.pop("project", None)

    first = state(mutation, project=project, cwd=None, **variables)
    after = counted(db)
    again = state(mutation, project=project, cwd=None, **variables)

    if mutation == "decision_activate":
        assert first["__typename"] == again["__typename"] == "InvalidTransition"
        return
    assert first.pop("duplicate") is False
    assert again.pop("duplicate") is True
    assert first == again
    assert first["client_mutation_id"] == "一次"
    assert counted(db) == after
    assert rebuild.check(settings, quiet) == []


def test_an_id_that_was_used_for_something_else_is_refused(db, state, made):
    goal = made("goal_add", text="上线", client_mutation_id="1")
    other = made("goal_add", text="second")
    before = counted(db)

    for outcome in (
        state("goal_add", text="下线", client_mutation_id="1"),
        state("todo_add", text="上线", client_mutation_id="1"),
        state("goal_complete", id=goal["id"], client_mutation_id="1"),
    ):
        assert (outcome["__typename"], outcome["field"]) == ("InvalidInput", "client_mutation_id")
    state("goal_complete", id=goal["id"], client_mutation_id="2")
    assert state("goal_complete", id=other["id"], client_mutation_id="2")["field"] == "client_mutation_id"
    assert counted(db) == before + 1


def test_an_id_belongs_to_its_session(talk, state):
    talk.user("hello")
    talk.session("s2").user("hello")

    one, two = (state("goal_add", text="上线", viewer=viewer, client_mutation_id="1") for viewer in ("s1", "s2"))

    assert one["goal"]["id"] != two["goal"]["id"]
    assert not two["duplicate"]


def test_a_repeated_step_is_found_although_it_could_not_be_taken_again(state, made):
    goal = made("goal_add", text="上线")
    steps = [
        state("goal_complete", id=goal["id"], if_version=goal["version"], client_mutation_id="1") for _ in range(2)
    ]

    assert [step["duplicate"] for step in steps] == [False, True]
    assert steps[1]["goal"]["status"] == "completed"


# Isolation


@pytest.mark.parametrize(("kind", "action"), MUTATIONS)
def test_an_isolated_session_changes_nothing_that_others_see(db, talk, state, made, kind, action):
    status = next(status for status, ends in states.MACHINES[kind].items() if action in ends)
    name = in_status(talk, made, kind, status)
    talk.session("s2").isolated()
    before = counted(db)
    text = {"text": "x"} if (kind, action) == ("decision", "supersede") else {}

    outcome = state(MUTATIONS[kind, action], id=name, viewer="s2", **text)

    assert (outcome["__typename"], outcome["target"]) == ("AcrossIsolation", name)
    assert counted(db) == before


@pytest.mark.parametrize(("kind", "action"), MUTATIONS)
def test_what_is_isolated_is_changed_by_its_own_session_only(db, talk, state, kind, action):
    talk.session("s2").user("hello")
    talk.session("s1").isolated()
    own = state(ADDS[kind], text="秘密", viewer="s1")[kind]
    if action == "activate":
        own = state("decision_propose", text="秘密", viewer="s1")["decision"]
    before = counted(db)
    text = {"text": "另一个秘密"} if (kind, action) == ("decision", "supersede") else {}

    for viewer in (None, "s2"):
        outcome = state(MUTATIONS[kind, action], id=own["id"], viewer=viewer, **text)
        assert (outcome["__typename"], outcome["target"]) == ("AcrossIsolation", own["id"])
    # Whatever it is taken for: what it is, is a part of what is isolated.
    assert state("goal_drop", id=f"goal-{numbered(own)}", viewer="s2")["__typename"] == "AcrossIsolation"
    assert counted(db) == before

    assert state(MUTATIONS[kind, action], id=own["id"], viewer="s1", **text)[kind]["text"]
    rows = db.execute("SELECT isolated FROM events WHERE id > ?", (before,)).fetchall()
    assert rows
    assert all(row["isolated"] for row in rows)


def test_a_copy_of_what_is_isolated_changes_nothing(db, talk, state):
    talk.isolated()
    said = talk.decided("秘密", origin="d1")
    talk.session("s3").event("decision", "秘密", origin=said, action="record")
    secret = db.execute("SELECT id FROM records").fetchone()["id"]
    before = counted(db)

    outcome = state("decision_revoke", id=f"decision-{secret}", viewer="s3")

    assert (outcome["__typename"], outcome["problem"]) == ("AcrossIsolation", "is isolated in another session")
    assert counted(db) == before


def test_without_a_viewer_nothing_is_written_into_an_isolated_session(db, talk, state):
    talk.user("hello")
    talk.isolated()
    before = counted(db)

    outcome = state("goal_add", text="x", session_id="s1")

    assert (outcome["__typename"], outcome["target"]) == ("AcrossIsolation", "session-s1")
    assert counted(db) == before


def test_what_is_isolated_supports_nothing_and_ends_no_edge_of_others(db, talk, state):
    talk.session("s2").user("hello")
    talk.session("s1").isolated()
    talk.user("secret")
    hidden = f"event-{counted(db)}"

    assert state("decision_record", text="x", evidence=[hidden])["__typename"] == "AcrossIsolation"
    assert state("todo_add", text="x", basis=hidden, viewer="s2")["__typename"] == "AcrossIsolation"
    edge = state("edge_add", type="precedes", source=hidden, target="event-1")
    assert (edge["__typename"], edge["target"]) == ("AcrossIsolation", hidden)


def test_an_edge_drawn_in_isolation_is_its_sessions_own(db, talk, state):
    talk.session("s2").user("one")
    talk.user("two")
    talk.session("s1").isolated()
    ends = {"type": "precedes", "source": "event-1", "target": "event-2"}

    assert state("edge_add", **ends, viewer="s1")["edge"]["end_position"] is None
    assert state("edge_retract", **ends, viewer="s2")["__typename"] == "NotFound"
    shared = state("edge_add", **ends, viewer="s2")
    assert not shared["duplicate"]
    assert state("edge_retract", **ends, viewer="s1")["__typename"] == "AcrossIsolation"
    assert state("edge_retract", **ends, viewer="s2")["edge"]["end_position"] == counted(db)


def test_two_isolated_sessions_learn_nothing_of_each_others_edges(db, talk, state, settings):
    talk.session("s3").user("one")
    talk.user("two")
    talk.session("s1").isolated()
    talk.session("s2").isolated()
    ends = {"type": "precedes", "source": "event-1", "target": "event-2"}

    for viewer in ("s1", "s2"):
        outcome = state("edge_add", **ends, viewer=viewer)
        assert not outcome["duplicate"]
        assert outcome["edge"]["begin_position"] == outcome["position"] == counted(db)
    assert rebuild.check(settings, quiet) == []


def test_an_edge_event_of_an_isolated_session_ends_nothing_that_others_see(db, talk, settings, state):
    talk.session("s2").user("one")
    talk.user("two")
    ends = {"type": "precedes", "source": "event-1", "target": "event-2"}
    state("edge_add", **ends)
    origins = {row["id"]: row["origin"] for row in db.execute("SELECT id, origin FROM events")}
    talk.session("s1").isolated()

    # As another machine's ledger would hand it over.
    named = {name: {"type": "event", "of": origins[number]} for name, number in (("source", 1), ("target", 2))}
    talk.at("2026-11-30T12:00:00+00:00").event("edge", "", action="retract", type="precedes", **named)
    assert db.execute("SELECT end_event FROM lineage_edges WHERE src = 1 AND dst = 2").fetchone()[0] is None
    talk.at("2026-11-30T09:30:00+00:00").session("s2").event("edge", "", action="retract", type="precedes", **named)
    assert db.execute("SELECT end_event FROM lineage_edges WHERE src = 1 AND dst = 2").fetchone()[0] is None  # older
    talk.at("2026-11-30T12:00:01+00:00").event("edge", "", action="retract", type="precedes", **named)
    assert db.execute("SELECT end_event FROM lineage_edges WHERE src = 1 AND dst = 2").fetchone()[0] == counted(db)
    talk.at("2026-11-30T12:00:00+00:00").event("edge", "", action="add", type="precedes", **named)
    assert db.execute("SELECT end_event FROM lineage_edges WHERE src = 1 AND dst = 2").fetchone()[0]
    assert rebuild.check(settings, quiet) == []


def test_a_file_that_is_known_in_isolation_only_is_new_to_others(talk, state, settings):
    talk.session("s2").user("hello")
    talk.session("s1").isolated()
    talk.wrote("docs/秘密.md", "# My plan\n")

    asset = state("asset_register", path="docs/秘密.md", title="Ours", viewer="s2")

    assert asset["asset"]["title"] == "Ours"
    assert asset["asset"]["version_count"] == 1
    assert not asset["duplicate"]
    assert rebuild.check(settings, quiet) == []


def test_a_kind_that_was_stated_in_isolation_is_its_sessions_own(db, talk, state, tool, settings):
    talk.session("s2").user("hello")
    talk.session("s1").isolated()
    hidden = state("asset_register", path="docs/图.md", kind="report", viewer="s1")["asset"]

    ours = state("asset_register", path="docs/图.md", kind="code", viewer="s2")["asset"]

    def listed(kind, viewer):
        asker = Asker(session_id=viewer, cwd=PROJECT)
        document = f"{{ assets(kind: [{kind}]) {{ totalCount edges {{ node {{ id kind }} }} }} }}"
        found = schema.respond(document, {}, None, Context(db=db, asker=asker, clock=lambda: datetime.now(UTC)))
        return found["data"]["assets"]["totalCount"], [one["node"] for one in found["data"]["assets"]["edges"]]

    def views():
        return [tuple(row) for row in db.execute("SELECT id, kind FROM shared_assets")]

    assert (hidden["kind"], ours["kind"]) == ("report", "code")
    for viewer in ("s2", None):
        assert listed("report", viewer) == (0, [])
        assert listed("code", viewer) == (1, [{"id": ours["id"], "kind": "code"}])
        assert "code, 1 version" in json.dumps(tool(nav="cd", target="session-s2", viewer=viewer))
    assert listed("report", "s1") == (1, [{"id": hidden["id"], "kind": "report"}])
    assert listed("code", "s1") == (0, [])
    assert "report, 2 versions" in json.dumps(tool(nav="cd", target="session-s2", viewer="s1"))
    assert views() == [(ours["id"], "code")]

    # What is written later has the kind its readers know, and publishing the first one makes its kind known.
    talk.session("s1").wrote("docs/图.md", "# Mine\n")
    talk.session("s2").wrote("docs/图.md", "# Ours\n")
    assert [row["kind"] for row in db.execute("SELECT kind FROM asset_versions ORDER BY event")] == [
        "report", "code", "report", "code",
    ]  # fmt: skip
    talk.session("s1").event("publish", "", ids=[f"event-{numbered(hidden)}"])
    assert listed("report", "s2")[0] == 1
    assert views() == [(hidden["id"], "report")]
    assert rebuild.check(settings, quiet) == []


# Assets


def test_a_registered_file_keeps_what_it_holds(db, talk, state, tool):
    talk.wrote("docs/付款.md", "# 付款说明\n\n到店付款。\n")

    known = state("asset_register", path="docs/付款.md", title="Another", kind="code")
    again = state("asset_register", path=f"{PROJECT}/docs/付款.md")

    assert (known["asset"]["title"], known["asset"]["kind"]) == ("付款说明", "document")
    assert known["asset"]["version_count"] == 1
    assert (known["duplicate"], again["duplicate"]) == (False, True)
    producers = db.execute("SELECT COUNT(*) FROM lineage_edges WHERE type = 'produces'").fetchone()[0]
    assert producers == 2
    assert db.execute("SELECT COUNT(*) FROM events WHERE meta LIKE ?", (f'%"{DECLARE}"%',)).fetchone()[0] == 1


def test_a_file_is_registered_from_the_folder_it_is_named_in(state, talk):
    talk.user("hello")

    asset = state("asset_register", path="../报告.txt", kind="report", project=PROJECT, cwd=f"{PROJECT}/docs/sub")[
        "asset"
    ]

    assert (asset["path"], asset["title"], asset["kind"]) == ("docs/报告.txt", "报告.txt", "report")
    elsewhere = state("asset_register", path="docs/b.md", project=PROJECT, cwd="/srv/other")["asset"]
    assert elsewhere["path"] == "docs/b.md"


def test_what_is_written_after_a_registration_is_a_version_of_it(db, talk, state):
    talk.user("hello")
    asset = state("asset_register", path="docs/a.md", title="Plan")["asset"]
    talk.at("2026-11-30T13:00:00+00:00").wrote("docs/a.md", "# The plan\n")

    later = state("asset_register", path="docs/a.md", viewer="s1")

    assert later["asset"]["id"] == asset["id"]
    assert (later["asset"]["title"], later["asset"]["version_count"]) == ("The plan", 2)
    assert later["duplicate"]


# Edges


@pytest.fixture
def ends(talk, made):
    """Two nodes of each type."""
    talk.user("one")
    talk.session("s2").user("two")
    talk.compacted("so far")
    nodes = {
        NodeType.SESSION: ("session-s1", "session-s2"),
        NodeType.EVENT: ("event-3", "event-1"),
        NodeType.ASSET: tuple(made("asset_register", path=f"docs/{name}.md")["id"] for name in "ab"),
    }
    for kind, mutation in ADDS.items():
        nodes[NodeType(kind)] = tuple(made(mutation, text=f"{kind} {number}")["id"] for number in (1, 2))
    return nodes


@pytest.mark.parametrize("kind", EdgeType)
def test_an_edge_leads_where_the_table_lets_it(db, settings, state, ends, kind):
    for source, target in itertools.product(NodeType, NodeType):
        outcome = state("edge_add", type=kind, source=ends[source][0], target=ends[target][1])
        if (source, target) in EDGES[kind]:
            assert outcome["edge"]["end_position"] is None
            assert (outcome["edge"]["source"]["id"], outcome["edge"]["target"]["id"]) == (
                ends[source][0],
                ends[target][1],
            )
        else:
            assert (outcome["__typename"], outcome["field"]) == ("InvalidInput", "type")
            assert kind in outcome["allowed"]
    assert rebuild.check(settings, quiet) == []


def test_what_rules_draw_is_in_the_table_too(db, demo, talk):
    talk.wrote("docs/a.md", "see src/b.py\n")
    talk.wrote("src/b.py", "b = 1\n")
    talk.read("docs/a.md")

    drawn = db.execute("SELECT DISTINCT type, src_type, dst_type FROM lineage_edges").fetchall()

    assert len(drawn) >= 6
    assert [tuple(one) for one in drawn if (NodeType(one[1]), NodeType(one[2])) not in EDGES[EdgeType(one[0])]] == []


def test_an_edge_that_closes_a_cycle_says_so(state, made):
    first, second, third = (made("decision_record", text=text)["id"] for text in ("一", "二", "三"))
    goal = made("goal_add", text="上线")["id"]
    todo = made("todo_add", text="x", basis=goal)["id"]

    assert state("edge_add", type="precedes", source=first, target=second)["closes_cycle"] is False
    assert state("edge_add", type="precedes", source=second, target=third)["closes_cycle"] is False
    assert state("edge_add", type="precedes", source=third, target=first)["closes_cycle"] is True
    assert state("edge_add", type="next_step", source=first, target=todo)["closes_cycle"] is False
    state("edge_retract", type="precedes", source=first, target=second)
    assert state("edge_add", type="precedes", source=third, target=first)["closes_cycle"] is False


def test_arrows_that_run_from_result_to_cause_close_a_cycle_the_other_way_round(state, made):
    one, two = (made("asset_register", path=path)["id"] for path in ("docs/一.md", "docs/二.md"))

    assert state("edge_add", type="references", source=one, target=two)["closes_cycle"] is False
    assert state("edge_add", type="references", source=two, target=one)["closes_cycle"] is True


def test_a_retracted_edge_is_kept_and_can_be_drawn_again(db, state, made):
    first, second = (made("decision_record", text=text)["id"] for text in ("一", "二"))
    ends = {"type": "precedes", "source": first, "target": second}
    state("edge_add", **ends)

    ended = state("edge_retract", **ends, reason="画错了")
    over = state("edge_retract", **ends)
    drawn = state("edge_add", **ends)

    assert ended["edge"]["end_position"] == ended["position"]
    assert (over["__typename"], over["status"], over["allowed_actions"]) == ("InvalidTransition", "ended", ["add"])
    assert drawn["edge"]["end_position"] is None
    body = db.execute("SELECT body FROM events WHERE id = ?", (ended["position"],)).fetchone()["body"]
    assert body.decode() == "画错了"


def test_the_edge_of_a_rule_can_be_ended(db, talk, state):
    talk.wrote("docs/a.md", "see src/b.py\n")
    talk.wrote("src/b.py", "b = 1\n")

    ended = state("edge_retract", type="references", source="docs/a.md", target="src/b.py")

    assert ended["edge"]["rule"] == "names"
    assert ended["edge"]["end_position"] == counted(db)


def test_an_edge_from_the_future_can_be_ended(talk, state, settings):
    talk.at("2031-01-01T00:00:00+00:00").wrote("docs/a.md", "see src/b.py\n")
    talk.wrote("src/b.py", "b = 1\n")
    ends = {"type": "references", "source": "docs/a.md", "target": "src/b.py"}

    assert state("edge_retract", **ends)["edge"]["end_position"]
    assert state("edge_add", **ends)["edge"]["end_position"] is None
    assert rebuild.check(settings, quiet) == []


def test_an_edge_names_its_ends_by_what_they_are_called_in_the_ledger(db, talk, state, made):
    talk.user("one")
    made("asset_register", path="docs/a.md")
    state("edge_add", type="produces", source="session-s1", target="docs/a.md")

    meta = json.loads(db.execute("SELECT meta FROM events WHERE kind = 'edge'").fetchone()["meta"])
    origin = db.execute("SELECT origin FROM events WHERE kind = 'asset'").fetchone()["origin"]
    assert (meta["source"], meta["target"]) == ({"type": "session", "of": "s1"}, {"type": "asset", "of": origin})


# Two at once, and a replay


def test_what_was_stated_is_the_same_on_another_machine(db, demo, state, run, tmp_path):
    for name in DOCUMENTS:
        variables = variables_of(name)
        state(name.rpartition("/")[2].partition(".")[0], project=variables.pop("project", None), cwd=None, **variables)
    there = Settings(home=tmp_path / "there")

    log = run("export")
    taken = run("capture", stdin=log.out.encode(), env={"GRAPHSVC_HOME": str(there.home)})

    assert (log.code, taken.code) == (0, 0), log.err + taken.err
    with closing(rebuild.connect(there)) as other:
        for table in rows.tables():
            here, beyond = (sorted(map(repr, map(tuple, one.execute(f"SELECT * FROM {table}")))) for one in (db, other))
            assert here == beyond, table
    assert rebuild.check(there, quiet) == []


def test_of_two_that_replace_a_decision_one_is_told_no(settings, state, made, db):
    old = made("decision_record", text="Sessions use JWT.")
    document = resources.text("queries/record/decision_supersede.graphql")
    outcomes, together = [], threading.Barrier(4)

    def supersede(number):
        execute = executor.in_process(settings, Asker(cwd=PROJECT))
        together.wait()
        outcomes.append(execute(document, {"id": old["id"], "text": f"第{number}个"})["data"]["decision_supersede"])

    threads = [threading.Thread(target=supersede, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(one["__typename"] for one in outcomes) == ["DecisionChanged", *["InvalidTransition"] * 3]
    assert db.execute("SELECT COUNT(*) FROM decisions WHERE status = 'active'").fetchone()[0] == 1


def test_of_two_that_say_the_same_at_once_one_is_the_repetition(settings, db):
    document, together, outcomes = resources.text("queries/record/goal_add.graphql"), threading.Barrier(4), []

    def add():
        execute = executor.in_process(settings, Asker(cwd=PROJECT))
        together.wait()
        outcomes.append(execute(document, {"text": "上线", "client_mutation_id": "1"})["data"]["goal_add"])

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(one["duplicate"] for one in outcomes) == [False, True, True, True]
    assert len({one["goal"]["id"] for one in outcomes}) == counted(db) == 1


STATEMENTS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from([*ADDS.values(), "decision_propose"]), st.integers(0, 9), st.integers(0, 2)),
        st.tuples(st.sampled_from(sorted(MUTATIONS.values())), st.integers(0, 9), st.integers(0, 2)),
        st.tuples(st.sampled_from(["edge_add", "edge_retract"]), st.integers(0, 99), st.integers(0, 2)),
        st.tuples(
            st.sampled_from(["asset_register", "isolate", "share", "wrote"]), st.integers(0, 2), st.integers(0, 2)
        ),
    ),
    max_size=25,
)


@given(statements=STATEMENTS)
@profile(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_a_replay_of_whatever_was_stated_gives_the_same_tables(db, settings, talk, state, statements):
    talk.session("s1").user("hello")
    talk.session("s2").user("hello")
    for mutation, number, viewer in statements:
        apply(db, talk, state, mutation, number, (None, "s1", "s2")[viewer])

    assert rebuild.check(settings, quiet) == []
    wrong = db.execute(
        "SELECT 1 FROM records r JOIN events c ON c.id = r.changed_event JOIN hidden h ON h.event = c.id"
        " WHERE NOT EXISTS (SELECT 1 FROM hidden WHERE event = r.id)"
    ).fetchone()
    assert wrong is None, "an isolated session changed what others see"


def apply(db, talk, state, mutation, number, viewer):
    """Take one random step; what is refused is an outcome as well."""
    session = viewer or "s1"
    if mutation in {"isolate", "share"}:
        talk.session(session).isolated(mutation == "isolate")
        return
    if mutation == "wrote":
        talk.session(session).wrote(f"docs/{number}.md")
        return
    kind = node_of(mutation)
    if kind == "edge":
        type_ = list(EdgeType)[number % 5]
        source, target = sorted(EDGES[type_])[number % len(EDGES[type_])]
        ends = [pick(db, one, number // 7 + place) for place, one in enumerate((source, target))]
        if all(ends):
            state(mutation, type=type_, source=ends[0], target=ends[1], viewer=viewer)
        return
    if kind == "asset":
        state(mutation, path=f"docs/{number}.md", viewer=viewer)
        return
    if mutation in {*ADDS.values(), "decision_propose"}:
        state(mutation, text=f"第{number}个", viewer=viewer)
    elif name := pick(db, kind, number):
        text = {"text": "换成"} if mutation in NEEDS_TEXT else {}
        state(mutation, id=name, viewer=viewer, **text)


def pick(db, kind, number):
    if kind == "session":
        return ("session-s1", "session-s2")[number % 2]
    table = {"event": "SELECT id FROM events", "asset": "SELECT id FROM knowledge_assets"}
    rows = db.execute(table.get(kind, f"SELECT id FROM records WHERE type = '{kind}'")).fetchall()
    return f"{kind}-{rows[number % len(rows)]['id']}" if rows else None


# Batches


def test_a_batch_says_of_each_event_what_became_of_it(db, talk):
    talk.user("hello")
    given = [
        {"session_id": "s5", "kind": "user_message", "origin": "a", "body": "你好", "project": PROJECT},
        {"session_id": "s5", "kind": "poem", "origin": "b", "body": "x"},
        {"session_id": "s5", "kind": "user_message", "origin": "a", "body": "你好", "project": PROJECT},
        {"session_id": "s5", "kind": "goal", "origin": "c", "body": "x", "meta": {"action": "drop", "id": "goal-404"}},
        {"session_id": "s6", "kind": "user_message", "origin": "a", "body": "你好", "project": PROJECT},
        {"session_id": "s5", "kind": "user_message", "origin": "d", "body": "再见"},
    ]
    document = (
        "mutation ($events: [EventInput!]!) { capture(events: $events) { events { index status id } accepted duplicates"
        " rejected { index code } } }"
    )
    context = Context(db=db, asker=Asker(), clock=lambda: datetime(2026, 11, 30, tzinfo=UTC))

    outcome = schema.respond(document, {"events": given}, None, context)["data"]["capture"]

    status = [(one["index"], one["status"], one["id"]) for one in outcome["events"]]
    assert status == [
        (0, "stored", "event-2"),
        (1, "rejected", None),
        (2, "duplicate", "event-2"),
        (3, "rejected", None),
        (4, "stored", "event-2"),  # the copy of another session: the same event stands for it
        (5, "stored", "event-4"),
    ]
    assert [(one["index"], one["code"]) for one in outcome["rejected"]] == [(1, "invalid-input"), (3, "not-found")]
    assert (outcome["accepted"], outcome["duplicates"]) == (3, 1)


@pytest.fixture
def hand_over(db, clock):
    """Capture a batch: `hand_over([event, …], viewer="s2")` returns the outcome."""

    def hand_over(events, viewer=None):
        document = (
            "mutation ($events: [EventInput!]!) { capture(events: $events)"
            " { accepted rejected { index code message } events { status } } }"
        )
        context = Context(db=db, asker=Asker(session_id=viewer, cwd=PROJECT), clock=clock)
        return schema.respond(document, {"events": events}, None, context)["data"]["capture"]

    return hand_over


@pytest.mark.parametrize("viewer", ["s2", "session-s2", "new", "session-s1-"])
def test_no_viewer_publishes_what_another_session_hides(db, talk, state, hand_over, viewer):
    talk.session("s2").user("hello")
    talk.session("s1").isolated()
    secret = talk.decided("秘密计划")
    before = counted(db)
    publish = {"session_id": "s1", "kind": "publish", "origin": "x", "body": "", "meta": {"of": [secret]}}
    switch = {"session_id": "s1", "kind": "isolation", "origin": "y", "body": "off"}
    unread = {"session_id": "s1", "kind": "poem", "origin": "z", "body": "x"}

    outcome = hand_over([publish, switch, unread], viewer)

    assert [one["code"] for one in outcome["rejected"]] == ["forbidden", "forbidden", "invalid-input"]
    assert "'s1' is another session than the viewer's" in outcome["rejected"][0]["message"]
    assert counted(db) == before
    assert db.execute("SELECT COUNT(*) FROM hidden").fetchone()[0] == before - 1


@pytest.mark.parametrize(("viewer", "own"), [("s2", "s2"), ("session-s2", "s2"), ("new", "new")])
def test_a_viewer_hands_over_its_own_events_and_the_owner_those_of_all(db, talk, hand_over, viewer, own):
    talk.session("s2").user("hello")
    mine, other = (
        {"session_id": session, "kind": "user_message", "origin": f"{session}:x", "body": "hi", "project": PROJECT}
        for session in (own, "s1")
    )

    outcome = hand_over([other, mine], viewer)

    assert [one["status"] for one in outcome["events"]] == ["rejected", "stored"]
    assert [one["index"] for one in outcome["rejected"]] == [0]
    assert [one["status"] for one in hand_over([other, mine])["events"]] == ["stored", "duplicate"]


# Commands


@pytest.fixture
def café(run, demo):
    """Run a command about the café."""

    def café(*arguments, **more):
        return run(*arguments, "--project", CAFE, **more)

    return café


COMMANDS = [
    (("decide", "外带杯押金两元。", "--because", "docs/ordering.md", "--because", "event-36"), "active"),
    (("decide", "add", "maybe", "--propose"), "proposed"),
    (
        ("decide", "supersede", "decision-60", "刷卡或到店付款。", "--if-version", "60", "--reason", "客人要选"),
        "active",
    ),
    (("decide", "revoke", "decision-60", "--reason", "closed"), "revoked"),
    (("goal", "取餐不用等"), "active"),
    (("goal", "complete", "goal-37"), "completed"),
    (("goal", "drop", "goal-3"), "dropped"),
    (("todo", "把押金写进说明牌", "--basis", "decision-60"), "pending"),
    (("todo", "done", "todo-52"), "done"),
    (("todo", "drop", "todo-10"), "dropped"),
    (("feedback", "Prices are written in cents.", "--kind", "correction"), "active"),
    (("feedback", "revoke", "feedback-54"), "revoked"),
    (("candidate", "取餐码用四位数字。", "--because", "src/pickup.py"), "pending"),
    (("candidate", "promote", "candidate-36", "--text", "改用到店付款。"), "promoted"),
    (("candidate", "reject", "candidate-2", "--reason", "太慢"), "rejected"),
    (("asset", "docs/退款.md", "--title", "退款规则"), "document"),
]


@pytest.mark.parametrize(
    ("arguments", "status"), COMMANDS, ids=lambda value: " ".join(value[:2]) if isinstance(value, tuple) else value
)
def test_a_command_does_what_it_says_and_prints_it(café, arguments, status):
    ran = café(*arguments)

    assert (ran.code, ran.err) == (0, "")
    rows = [line.split("\t") for line in ran.out.splitlines()]
    assert status in [row[1] for row in rows]
    assert all(re.fullmatch(r"[a-z]+-[0-9]+", row[0]) for row in rows)


def test_a_command_prints_json_and_says_a_thing_once(café):
    first, again = (café("goal", "取餐不用等", "--client-mutation-id", "m1", "--json") for _ in range(2))

    assert first.json["goal"]["text"] == "取餐不用等"
    assert (first.json["duplicate"], again.json["duplicate"]) == (False, True)
    assert first.json["goal"] == again.json["goal"]
    assert "already" in café("goal", "取餐不用等", "--client-mutation-id", "m1").err


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("goal", "complete", "goal-404"), 1, "try: graphsvc cd goal-37"),
        (("goal", "complete", "decision-60"), 2, "goal-41"),
        (("todo", "done", "todo-9"), 2, "the status is final"),
        (("decide", "revoke", "decision-60", "--if-version", "1"), 2, "has version 60, not 1"),
        (("decide", ""), 2, "text: is empty"),
        (("goal", "complet", "goal-37"), 2, "Did you mean 'complete'"),
        (("goal", "ship"), 2, "graphsvc goal add ship"),
        (("goal", "goal-37"), 2, "graphsvc goal add goal-37"),
        (("asset", "docs/"), 2, "path"),
        (("goal", "取餐", "--viewer", "nobody"), 1, "try: graphsvc ls"),
        (("goal", "取餐", "--viewer", "harbor-cafe-2026-11-05", "--session-id", "5f0c6a1e"), 2, "session_id"),
    ],
)
def test_a_command_that_cannot_says_why_and_changes_nothing(café, db, arguments, code, says):
    before = counted(db)

    ran = café(*arguments)

    assert ran.code == code
    assert says in ran.err
    assert counted(db) == before
    assert "Traceback" not in ran.err


def test_a_refused_command_prints_json_too(café):
    ran = café("todo", "done", "todo-9", "--json")

    assert ran.code == 2
    assert ran.json["error"]["status"] == "done"
    assert ran.json["error"]["machine"] == "todo"


def test_a_viewer_records_as_itself(café, db):
    assert café("goal", "取餐不用等", "--viewer", "harbor-cafe-2026-11-05").code == 0

    row = db.execute(
        "SELECT s.host_id FROM records r JOIN sessions s ON s.id = r.session ORDER BY r.id DESC"
    ).fetchone()
    assert row["host_id"] == "harbor-cafe-2026-11-05"


LISTS = [
    ("decide", "decision-60", "decision-59"),
    ("goal", "goal-37", "goal-3"),
    ("todo", "todo-53", "todo-52"),
    ("feedback", "feedback-54", None),
    ("candidate", "candidate-36", "candidate-2"),
    ("asset", "asset-50", "asset-45"),
]


@pytest.mark.parametrize(("group", "first", "second"), LISTS)
def test_a_list_goes_on_where_the_page_ended(café, group, first, second):
    page = café(group, "list", "--limit", "1")
    assert (page.code, page.out.split("\t")[0]) == (0, first)
    if second is None:
        assert page.err == ""
        return

    cursor = page.err.rpartition("--cursor ")[2].strip()
    assert café(group, "list", "--limit", "1", "--cursor", cursor).out.split("\t")[0] == second


def test_a_list_is_filtered(café):
    assert [line.split("\t")[0] for line in café("decide", "list", "--status", "superseded").out.splitlines()] == [
        "decision-59"
    ]
    assert [edge["node"]["id"] for edge in café("todo", "list", "--query", "退款", "--json").json["edges"]] == [
        "todo-52"
    ]
    assert [edge["node"]["id"] for edge in café("asset", "list", "--kind", "code", "--json").json["edges"]] == [
        "asset-50",
        "asset-16",
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--limit", "0"),
        ("--limit", "101"),
        ("--cursor", "x"),
        ("--since", "soon"),
        ("--status", "done"),
        ("--order", "up"),
    ],
)
def test_a_list_refuses_what_it_cannot_filter_by(café, arguments):
    ran = café("decide", "list", *arguments)

    assert (ran.code, ran.out) == (2, "")
    assert ran.err


def test_the_timeline_tells_what_happened(café):
    café("decide", "revoke", "decision-60", "--reason", "不再收款")

    told = [line.split("\t") for line in café("timeline", "decision-60").out.splitlines()]
    assert [row[1:4] for row in told] == [
        ["revoke", "decision-60", "不再收款"],
        ["supersede", "decision-60", "改用到店付款：下单时不付款，取餐时在柜台付款。"],
    ]
    page = café("timeline", "--type", "asset", "--type", "goal", "--limit", "3", "--json").json
    assert {edge["node"]["node"]["id"].partition("-")[0] for edge in page["edges"]} <= {"asset", "goal"}
    assert page["pageInfo"]["hasNextPage"]


@pytest.fixture
def served(home, tmp_path):
    """A service of this home, in a process of its own."""
    ready = tmp_path / "ready.json"
    command = [sys.executable, "-m", "graphsvc", "serve", "--port", "0", "--ready-file", str(ready)]
    environment = {**os.environ, "GRAPHSVC_HOME": str(home)}
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, env=environment, cwd=tmp_path) as service:
        try:
            end = time.monotonic() + 30
            while not ready.exists():
                assert service.poll() is None
                assert time.monotonic() < end
                time.sleep(0.02)
            yield
        finally:
            service.terminate()


def test_a_service_does_and_refuses_the_same(demo, served, settings, café, db):
    execute = executor.http(settings, Asker(project=CAFE))
    assert execute is not None
    for name in DOCUMENTS:
        mutation = name.rpartition("/")[2].partition(".")[0]
        before = counted(db)

        outcome = execute(resources.text(name), variables_of(name))["data"][mutation]

        assert (outcome["__typename"] in {"InvalidTransition", "Conflict"}) is (counted(db) == before), outcome
    assert rebuild.check(settings, quiet) == []

    done = café("decide", "外带杯押金三元。", "--json")
    assert done.json["decision"]["status"] == "active"
    assert café("todo", "done", "todo-9").code == 2
    found = café("search", "押金三元", "--kind", "decision", "--json")
    assert done.json["decision"]["id"] in [hit["id"] for hit in found.json["results"]]


@pytest.mark.parametrize("reason", ["Guests asked for it.", "好"])
def test_the_reason_of_a_promotion_is_not_its_text(run, reason):
    assert run("demo", "--json").code == 0

    promoted = run("candidate", "promote", "candidate-36", "--reason", reason, "--json").json

    assert promoted["decision"]["text"] == "客人说下单时刷卡太慢，决定改用到店付款。"
    entries = run("timeline", "candidate-36", "--json").json["edges"]
    assert reason in [entry["node"].get("reason") for entry in entries]


def test_a_timeline_finds_its_root_from_any_folder_and_by_any_name(run, tmp_path):
    assert run("demo", "--json").code == 0
    assert run("goal", "somewhere else", "--project", str(tmp_path)).code == 0  # the folder is a project now

    by_id = run("timeline", "decision-60")

    assert by_id.code == 0
    assert "decision-60" in by_id.out
    for name in ("60", "docs/ordering.md", "harbor-cafe-2026-11-05"):
        assert run("timeline", name).out, name
    unknown = run("timeline", "decision-999")
    assert unknown.code == 1
    assert "try:" in unknown.err


def test_an_empty_list_says_that_it_is_one(run, tmp_path):
    assert run("goal", "one goal", "--project", str(tmp_path)).code == 0

    assert "nothing is listed" in run("decide", "list").err


def test_a_folder_that_is_gone_is_no_traceback(run, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    calls = ("search tea", "goal add tea")
    command = f"cd {gone} && rmdir {gone}; " + "; ".join(f"{sys.executable} -m graphsvc {call}" for call in calls)

    ran = subprocess.run(["bash", "-c", command], capture_output=True, check=False, env=dict(os.environ))  # noqa: S607 # found on PATH

    assert b"Traceback" not in ran.stderr
    assert b"project: is not given" in ran.stderr


@pytest.mark.parametrize("arguments", [("decide", "list", "--status", "bad"), ("search", "--limit", "abc"), ("cd",)])
def test_a_usage_error_is_json_for_programs(run, arguments):
    ran = run(*arguments, "--json")

    assert ran.code == 2
    assert ran.json["error"]["message"]
