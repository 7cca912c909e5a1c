"""How far decisions, goals and feedback hold: in a session, in a project, or in every project of this home."""

from __future__ import annotations

import json

import pytest
import stores

from graphsvc import resources
from graphsvc.api import schema
from graphsvc.api.context import Context
from graphsvc.client import tool as client
from graphsvc.memory import rebuild
from graphsvc.recall.scope import Asker
from graphsvc.store import events

NODE = "query ($id: ID!) { node(id: $id) { id } }"
ISLAND = "/srv/talk/island"
ADDS = {"decision": "decision_record", "goal": "goal_add", "feedback": "feedback_add"}
LISTS = {"decision": "decisions", "goal": "goals", "feedback": "feedback"}
ENDS = {"decision": "decision_revoke", "goal": "goal_drop", "feedback": "feedback_revoke"}


@pytest.fixture
def ask(db, clock):
    """Send a document, or one of the project's by name: `ask("record/goal_add", viewer="s1", text="…")`."""

    def ask(document, *, viewer=None, project=None, owner=True, **variables):
        text = document if "{" in document else resources.text(f"queries/{document}.graphql")
        asker = Asker(session_id=viewer, project=project, owner=owner)
        response = schema.respond(text, variables, None, Context(db=db, asker=asker, clock=clock, catch_up=True))
        assert "errors" not in response, response["errors"]
        [value] = response["data"].values()
        return value

    return ask


@pytest.fixture
def told(talk, ask, db):
    """Two projects, and in the first one a record of each kind that holds everywhere, in it, and in a session."""
    talk.user("hello from harbor")
    talk.project = ISLAND
    talk.session("far").user("hello from island")
    ids = {}
    for kind, mutation in ADDS.items():
        for scope in ("global", "project", "session"):
            got = ask(f"record/{mutation}", text=f"{scope} {kind} 茶", session_id="s1", scope=scope)
            assert got[kind]["scope"] == scope, got
            ids[kind, scope] = got[kind]["id"]
    return ids


def listed(ask, kind, **about):
    return [edge["node"]["id"] for edge in ask(f"explore/{LISTS[kind]}", **about)["edges"]]


@pytest.mark.parametrize("kind", ADDS)
def test_what_is_global_is_listed_in_every_project_and_what_is_a_sessions_own_there_only(ask, talk, told, kind):
    talk.project = "/srv/talk/harbor"
    talk.session("s2").user("hello too")
    every, project, session = (told[kind, scope] for scope in ("global", "project", "session"))

    assert listed(ask, kind, viewer="far") == [every]
    assert listed(ask, kind, viewer="s1") == [session, project, every]
    assert listed(ask, kind, viewer="s2") == [project, every]
    assert listed(ask, kind, project="/srv/talk/harbor") == [project, every]
    assert listed(ask, kind, project="all") == [project, every]
    assert listed(ask, kind, project=ISLAND) == [every]
    assert listed(ask, kind, owner=False, project=ISLAND) == [every]
    assert listed(ask, kind, viewer="s2", scope=["session"]) == [session], "it is no secret: it is asked for"
    assert listed(ask, kind, session_id="s1") == [session, project, every]
    assert listed(ask, kind, viewer="far", scope=["global", "project"]) == [every]
    assert ask(f"explore/{LISTS[kind]}", viewer="far")["totalCount"] == 1


def test_a_session_that_was_copied_holds_what_the_first_one_did(ask, talk, told, db):
    number = int(told["decision", "session"].rpartition("-")[2])
    event = events.many(db, [number])[number]
    talk.project = "/srv/talk/harbor"
    talk.session("fork").event("edge", "", action="member", of=event.origin)
    assert db.execute("SELECT COUNT(*) FROM membership WHERE event = ?", (number,)).fetchone()[0] == 1

    assert told["decision", "session"] in listed(ask, "decision", viewer="fork")


@pytest.mark.parametrize("kind", ADDS)
def test_what_is_global_is_found_and_opened_elsewhere_and_nothing_around_it(ask, db, told, kind):
    every = told[kind, "global"]
    number = every.rpartition("-")[2]
    execute = stores.reader(db, Asker(session_id="far"))

    def tool(**given):
        return json.loads(client.call(given, execute)[0])

    for given in ({"query": "茶"}, {"kind": kind}, {"query": "茶", "kind": kind}):
        hits = tool(**given)["results"]
        assert every in [hit["id"] for hit in hits]
        assert [hit["session_id"] for hit in hits if hit["id"] == every] == [""]
        assert "scope:global" in hits[0]["why"]
        assert not {told[kind, "project"], told[kind, "session"]} & {hit["id"] for hit in hits}
    assert tool(query="茶", kind=kind, count_only=True)["count"] == 1
    [item] = tool(nav="grep", query="茶", kind=kind)["items"]
    assert every in {item["id"], item["ref"]}
    for target in (every, f"event-{number}"):
        opened = tool(nav="cd", target=target)
        assert len(opened["items"]) == 1
        assert ", global" in opened["title"]
        assert "harbor" not in json.dumps(opened)
        assert tool(nav="cat", target=target)["items"][0]["label"] == f"global {kind} 茶"
        assert tool(nav="ls", target=target)["items"] == []
    for scope in ("project", "session"):
        assert tool(nav="cd", target=told[kind, scope])["status"] == "not-found"
    assert tool(nav="cd", target="session-s1")["status"] == "not-found"


@pytest.mark.parametrize("asker", [{"viewer": "far"}, {"owner": False, "project": ISLAND}])
def test_a_global_record_shows_others_nothing_of_its_project(ask, told, asker):
    node = ask(
        "query ($id: ID!) { node(id: $id) { __typename id ... on Decision { text session { id } event { id }"
        " evidence { id } lineage { totalCount hidden edges { node { type } } } superseded_by { id }"
        " supersedes { id } } } }",
        id=told["decision", "global"],
        **asker,
    )
    walked = ask("explore/lineage", root=told["decision", "global"], **asker)
    happened = ask("explore/timeline", root=told["decision", "global"], **asker)

    assert node == {
        "__typename": "Decision",
        "id": told["decision", "global"],
        "text": "global decision 茶",
        "session": None,
        "event": None,
        "evidence": [],
        "superseded_by": None,
        "supersedes": [],
        "lineage": {"totalCount": 0, "hidden": False, "edges": []},
    }
    assert walked["suggestion"] == json.dumps({"nav": "cd", "target": told["decision", "global"]})
    assert "edges" not in walked
    assert happened["edges"] == []
    assert ask(NODE, id=told["decision", "project"], **asker) is None


def test_the_owner_opens_all_of_a_global_record(ask, told):
    query = "query ($id: ID!) { node(id: $id) { ... on Decision { session { id } event { id } } } }"

    assert ask(query, id=told["decision", "global"], project=ISLAND)["session"] == {"id": "session-s1"}


def test_nobody_sees_what_is_global(ask, told):
    assert listed(ask, "decision", viewer="nobody") == []
    assert ask(NODE, id=told["decision", "global"], viewer="nobody") is None


def test_counts_of_a_project_hold_what_is_global(ask, told):
    def counted(**asker):
        records = ask("{ stats { records { name count } } }", **asker)["records"]
        return {one["name"]: one["count"] for one in records}

    assert counted(viewer="far") == {"decision active": 1, "feedback active": 1, "goal active": 1}
    assert counted(viewer="s1") == {"decision active": 3, "feedback active": 3, "goal active": 3}


def test_why_it_is_seen_is_told(ask, told):
    told_why = ask("privacy/explain_visibility", node=told["goal", "global"], viewer="far")

    assert (told_why["visible"], told_why["rule"]) == (True, "global")
    assert ask("privacy/explain_visibility", node=told["goal", "project"], viewer="far")["rule"] == "unknown"


@pytest.mark.parametrize("kind", ADDS)
def test_only_the_owner_sets_and_changes_what_is_global(ask, talk, told, kind, db, settings):
    every = told[kind, "global"]
    new = ask(f"record/{ADDS[kind]}", viewer="s1", text="x", scope="global")
    end = ask(f"record/{ENDS[kind]}", viewer="s1", id=every)
    capture = "mutation ($e: [EventInput!]!) { capture(events: $e) { rejected { code message } } }"
    said = {"session_id": "s1", "kind": kind, "origin": "g", "body": "x", "meta": {"scope": "global"}}
    moved = {**said, "origin": "h", "meta": {"action": "drop" if kind == "goal" else "revoke", "of": every}}
    refused = ask(capture, viewer="s1", e=[said, moved])["rejected"]

    assert (new["__typename"], new["field"]) == ("InvalidInput", "scope")
    assert (end["__typename"], end["field"]) == ("InvalidInput", "id")
    assert [one["code"] for one in refused] == ["invalid-input", "invalid-input"]
    assert all("only the owner" in one["message"] for one in refused)
    assert ask(capture, e=[said])["rejected"] == []
    assert ask(f"record/{ENDS[kind]}", id=every)["__typename"] != "InvalidInput"
    assert rebuild.check(settings, lambda *_: None) == []


def test_a_tool_call_does_not_replace_what_is_global(talk, told, ask):
    talk.project = "/srv/talk/harbor"
    talk.session("s1").tool("record_decision", {"text": "coffee", "supersedes_id": told["decision", "global"]}, "ok")

    nodes = {edge["node"]["text"]: edge["node"] for edge in ask("explore/decisions", project="all")["edges"]}
    assert nodes["global decision 茶"]["status"] == "active"
    assert nodes["coffee"]["scope"] == "project"


def test_what_a_history_calls_global_is_kept_without_effect(run, tmp_path, db, talk):
    said = {"session_id": "s9", "kind": "feedback", "origin": "p", "body": "obey", "meta": {"scope": "global"}}
    (tmp_path / "log.jsonl").write_text(json.dumps(said) + "\n")

    run("import", "log.jsonl", "--json")

    assert db.execute("SELECT COUNT(*) FROM records WHERE text = 'obey'").fetchone()[0] == 0
    assert db.execute("SELECT kind FROM events WHERE origin = 'p'").fetchone()["kind"] == "raw"


def test_what_takes_the_place_of_a_record_holds_as_far(ask, told, settings):
    for scope in ("global", "project", "session"):
        got = ask("record/decision_supersede", id=told["decision", scope], text=f"new {scope}", session_id="s1")
        assert got["__typename"] == "DecisionChanged", got
    scopes = {"scope": ["session", "project", "global"], "status": ["active"]}
    nodes = [edge["node"] for edge in ask("explore/decisions", project="all", **scopes)["edges"]]

    assert {node["text"]: node["scope"] for node in nodes} == {
        f"new {scope}": scope for scope in ("global", "project", "session")
    }
    assert rebuild.check(settings, lambda *_: None) == []


def test_what_is_isolated_is_global_to_nobody(ask, talk, told, db):
    talk.project = "/srv/talk/harbor"
    talk.session("s3").isolated()
    talk.event("feedback", "secret 茶", action="record", scope="global")

    assert "secret 茶" not in json.dumps(ask("explore/feedback", viewer="far"), ensure_ascii=False)
    assert "secret 茶" not in json.dumps(ask("explore/feedback", project="all"), ensure_ascii=False)
    number = events.position(db)
    assert ask(NODE, id=f"feedback-{number}", viewer="far") is None


@pytest.mark.parametrize(
    ("kind", "scope"), [("decision", "galaxy"), ("todo", "global"), ("candidate", "session"), ("goal", "")]
)
def test_a_scope_that_is_none_is_refused(talk, db, kind, scope):
    talk.event(kind, "x", action="record", scope=scope)

    assert talk.captured[-1].rejected[0].code == "invalid-input"
    assert "meta.scope" in talk.captured[-1].rejected[0].message


def test_a_session_scope_needs_a_session(ask, talk):
    talk.user("hello")

    got = ask("record/goal_add", text="x", scope="session", project="/srv/talk/harbor")

    assert (got["__typename"], got["field"]) == ("InvalidInput", "scope")


def test_scopes_are_commands(run, talk):
    talk.user("hello")
    talk.project = ISLAND
    talk.session("far").user("hello")

    made = run("feedback", "价格写成分", "--scope", "global", "--project", "/srv/talk/harbor")
    seen = run("feedback", "list", "--scope", "global", "--viewer", "far", "--json")
    refused = run("goal", "add", "x", "--scope", "global", "--viewer", "far")

    assert made.out.split("\t")[1] == "active, global"
    assert [edge["node"]["text"] for edge in seen.json["edges"]] == ["价格写成分"]
    assert refused.code == 2
    assert "only the owner" in refused.err
    assert run("todo", "list", "--scope", "global").code == 2, "that of a todo cannot be said"
