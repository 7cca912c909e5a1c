"""Lineage as it is asked for: over GraphQL and as commands, by every way to name a root, for every kind of viewer."""

from __future__ import annotations

import json

import pytest

from graphsvc.api import schema
from graphsvc.api.context import Context
from graphsvc.recall.scope import Asker
from graphsvc.recall.targets import HIDDEN

WALK = "{ nodes { id depth hidden } truncation { truncated reasons resume } }"
REFUSED = "... on NotFound { suggestion } ... on Isolated { id marker } ... on InvalidInput { field problem }"


@pytest.fixture
def ask(db, clock):
    def ask(field: str, selection: str, viewer: str | None = None) -> dict:
        context = Context(db=db, asker=Asker(session_id=viewer), clock=clock)
        answer = schema.respond(f"{{ asked: {field} {{ __typename {selection} {REFUSED} }} }}", {}, None, context)
        assert "errors" not in answer, answer
        return answer["data"]["asked"]

    return ask


@pytest.fixture
def story(talk):
    asked = talk.user("Write docs/plan.md")
    talk.wrote("docs/plan.md", "see docs/hours.md")
    talk.wrote("docs/hours.md")
    talk.decided("docs/plan.md holds", evidence=[asked], origin="decided")
    talk.event("todo", "open at nine", action="record", basis="decided")
    return talk


def plan(db):
    return db.execute("SELECT id FROM knowledge_assets WHERE path = 'docs/plan.md'").fetchone()[0]


def number_of(db, kind):
    return db.execute("SELECT id FROM records WHERE type = ?", (kind,)).fetchone()[0]


@pytest.mark.parametrize("root", ["docs/plan.md", "plan.md", "asset-PLAN", "PLAN", "session-s1", "s1", "event-1"])
def test_a_root_is_whatever_nav_takes(ask, db, story, root):
    root = root.replace("PLAN", str(plan(db)))
    answer = ask(f"lineage(root: {json.dumps(root)})", f"... on Lineage {WALK}")

    assert answer["__typename"] == "Lineage"
    assert len(answer["nodes"]) > 1


@pytest.mark.parametrize(
    "field",
    [
        'lineage(root: "decision-999")',
        'why(root: "nowhere.md")',
        'impact(root: "session-nobody")',
        'path(from: "s1", to: "goal-4")',
        'lineage_diff(root: "todo-1", from: "1")',
    ],
)
def test_what_is_not_there_is_answered_with_a_call_that_works(ask, story, field):
    answer = ask(field, "")

    assert answer["__typename"] == "NotFound"
    assert json.loads(answer["suggestion"])["nav"]


@pytest.mark.parametrize(
    ("field", "about"),
    [
        ('lineage(root: "s1", depth: -1)', "depth"),
        ('lineage(root: "s1", max_nodes: 5000)', "max_nodes"),
        ('lineage(root: "s1", resume: "x")', "resume"),
        ('lineage(root: "s1", as_of: "soon")', "as_of"),
        ('why(root: "s1", as_of: "event-9999")', "as_of"),
        ('impact(root: "s1", first: 101)', "first"),
        ('impact(root: "s1", after: "x")', "after"),
        ('path(from: "s1", to: "docs/plan.md", max_length: 0)', "max_length"),
        ('lineage_diff(root: "s1", from: "soon")', "from"),
    ],
)
def test_a_wrong_argument_is_answered_as_data(ask, story, field, about):
    assert ask(field, "")["field"] == about


def test_several_documents_of_a_name_are_told_apart(ask, talk):
    talk.wrote("docs/plan.md")
    talk.wrote("old/plan.md")

    answer = ask('lineage(root: "plan.md")', "")

    assert answer["field"] == "root"


def test_what_is_isolated_is_a_marker_and_its_neighbours_a_flag(ask, db, story):
    story.isolated()
    private = story.user("docs/plan.md is wrong")
    story.isolated(False)
    story.decided("nobody reads docs/plan.md", evidence=[private])
    hidden = db.execute("SELECT id FROM events WHERE origin = ?", (private,)).fetchone()[0]
    shared = f"decision-{db.execute('SELECT MAX(id) FROM records').fetchone()[0]}"

    for field in (f'lineage(root: "event-{hidden}")', f'impact(root: "event-{hidden}")'):
        assert ask(field, "") == {"__typename": "Isolated", "id": f"event-{hidden}", "marker": HIDDEN}
    nodes = ask('lineage(root: "docs/plan.md", depth: 3)', f"... on Lineage {WALK}")["nodes"]
    assert {one["id"] for one in nodes if one["hidden"]} == {shared}
    assert f"event-{hidden}" not in str(nodes)
    own = ask('lineage(root: "docs/plan.md", depth: 3)', f"... on Lineage {WALK}", viewer="s1")["nodes"]
    assert f"event-{hidden}" in str(own)
    assert not any(one["hidden"] for one in own)


def test_the_walk_goes_on_by_its_token(ask, story):
    walk = "... on Lineage { nodes { id } truncation { reasons resume } }"
    first = ask('lineage(root: "s1", depth: 5, max_nodes: 2)', walk)
    assert first["truncation"]["reasons"] == ["max_nodes"]

    names = [one["id"] for one in first["nodes"]]
    while token := first["truncation"]["resume"]:
        first = ask(f'lineage(root: "s1", depth: 5, max_nodes: 2, resume: "{token}")', walk)
        names += [one["id"] for one in first["nodes"]]

    assert names == [one["id"] for one in ask('lineage(root: "s1", depth: 5)', walk)["nodes"]]


def test_commands_draw_and_count(run, db, story):
    todo, decision = (f"{kind}-{number_of(db, kind)}" for kind in ("todo", "decision"))

    walked = run("lineage", decision, "--direction", "downstream", "--depth", "1")
    assert [line.split("\t")[:2] for line in walked.out.splitlines()] == [["0", decision], ["1", todo]]
    assert run("impact", "docs/plan.md", "--json").json["total"] == 2
    listed = run("impact", "docs/plan.md", "--list", "todo").out.splitlines()
    assert [line.split("\t")[1] for line in listed[1:]] == [todo]
    assert "shortest: 2 edges" in run("path", todo, "docs/plan.md").out
    why = [line.split("\t")[:2] for line in run("why", todo, "--depth", "1").out.splitlines()]
    assert why == [["0", todo], ["1", decision]]
    assert (
        run("why", "docs/plan.md").out == run("lineage", "docs/plan.md", "--direction", "upstream", "--depth", "6").out
    )
    changed = run("diff", decision, "--from", "1", "--json").json
    assert {one["id"]: one["to"] for one in changed["statuses"]} == {decision: "active", todo: "pending"}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("lineage", "nowhere"), 1),
        (("impact", "nowhere", "--json"), 1),
        (("path", "session-s1", "goal-7"), 1),
        (("lineage", "s1", "--depth", "-1"), 2),
        (("lineage", "s1", "--depth", "-1", "--json"), 2),
        (("why", "decision-999"), 1),
        (("why", "session-nobody:12"), 1),
        (("diff", "s1"), 2),
        (("lineage", "s1", "--resume", "x"), 2),
    ],
)
def test_a_command_says_what_went_wrong_by_its_exit_code(run, story, arguments, code):
    assert run(*arguments).code == code


def test_no_way_is_said(run, talk):
    talk.decided("one")
    talk.decided("two")

    ran = run("path", "decision-1", "decision-2")

    assert (ran.code, ran.err.strip()) == (1, "no way was found")
