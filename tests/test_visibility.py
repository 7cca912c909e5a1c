"""Why something is seen or not: the rule is told to whoever sees the node, and the marker's constant to all others."""

from __future__ import annotations

import pytest

from graphsvc import resources
from graphsvc.api import schema
from graphsvc.api.context import Context
from graphsvc.recall.privacy.sight import TEXTS
from graphsvc.recall.scope import Asker
from graphsvc.store import events
from graphsvc.store.visibility import Rule

DOCUMENT = resources.text("queries/privacy/explain_visibility.graphql")


@pytest.fixture
def why(db, clock):
    """Explain a node: `why("event-1", "s2", viewer="s1")`: as the session s1, or the owner, of the session s2."""

    def why(node, about=None, *, viewer=None, owner=True, project=None):
        asker = Asker(session_id=viewer, owner=owner, project=project)
        response = schema.respond(
            DOCUMENT, {"node": node, "viewer": about}, None, Context(db=db, asker=asker, clock=clock)
        )
        assert "errors" not in response, response["errors"]
        return response["data"]["explain_visibility"]

    return why


@pytest.fixture
def story(talk, db):
    """One node of each type, shared and isolated; return them by name."""
    ids = {}
    for name in ("shared", "mine"):
        if name == "mine":
            talk.isolated()
            ids["switch"] = f"event-{events.position(db) - 1}"
        talk.user(f"{name} words", origin=f"{name}-m")
        ids[name] = {"event": f"event-{events.position(db)}"}
        for kind in ("decision", "goal", "feedback", "todo", "candidate"):
            talk.event(kind, f"{name} 决定", action="record")
            ids[name][kind] = f"{kind}-{events.position(db)}"
        talk.wrote(f"docs/{name}.md")
        ids[name]["asset"] = f"asset-{events.position(db)}"
    talk.session("s2").user("hello")
    talk.session("copy").user("mine words", origin="mine-m")
    talk.project = "/srv/talk/island"
    talk.session("far").user("hello")
    return ids


def rule(answer):
    return answer["visible"], answer["rule"], answer["by"]


def test_what_is_shared_is_seen_by_all_of_its_project(why, story):
    for node in (*story["shared"].values(), "session-s1", "docs/shared.md"):
        assert rule(why(node)) == (True, "shared", None)
        assert rule(why(node, viewer="s2")) == (True, "shared", None)
        assert rule(why(node, "s2")) == (True, "shared", None)
        assert rule(why(node, "far")) == (False, "other_project", None)


def test_a_session_is_told_what_isolated_its_rows_and_the_owner_what_it_is_told(why, story):
    for node in story["mine"].values():
        assert rule(why(node, viewer="s1")) == (True, "own", story["switch"])
        assert rule(why(node, "s1")) == (True, "own", story["switch"])
        assert rule(why(node, "s2", viewer="s1")) == (False, "isolated", story["switch"])
    event = story["mine"]["event"]
    assert rule(why(event, viewer="copy")) == (True, "member", None), "the switch is not in the copy"


@pytest.mark.parametrize("about", [None, "s2", "far"])
def test_others_are_told_no_more_than_the_marker_whatever_it_is(why, story, about):
    told = [why(node, about) for node in (*story["mine"].values(), "decision-11", "asset-12")]

    assert len({str({**one, "node": ""}) for one in told}) == 1
    assert rule(told[0]) == (False, "isolated", None)


def test_a_session_of_another_project_is_told_that_nothing_is_known(why, story):
    for node in (*story["mine"].values(), *story["shared"].values(), "session-s1", "docs/shared.md", "event-999"):
        assert rule(why(node, viewer="far")) == (False, "unknown", None)


def test_what_was_published_names_the_publishing_to_whom_it_is_shown(why, story, talk, db):
    talk.project = "/srv/talk/harbor"
    talk.session("s1").event("publish", "", ids=[story["mine"]["decision"]])
    published = f"event-{events.position(db)}"

    assert rule(why(story["mine"]["decision"], viewer="s1")) == (True, "published", published)
    assert rule(why(story["mine"]["decision"])) == (True, "published", None)
    assert rule(why(story["mine"]["decision"], viewer="s2")) == (True, "published", None)


def test_an_asset_is_seen_by_its_first_version_that_is(why, talk, db):
    talk.isolated()
    talk.wrote("docs/plan.md")
    first = f"asset-{events.position(db)}"
    talk.session("s2").wrote("docs/plan.md")
    second = f"asset-{events.position(db)}"

    assert (why("docs/plan.md")["node"], rule(why("docs/plan.md"))) == (second, (True, "shared", None))
    mine = why("docs/plan.md", viewer="s1")
    assert (mine["node"], mine["rule"]) == (first, "own")


def test_who_is_not_the_owner_asks_about_itself_only(why, story):
    node = story["mine"]["decision"]

    assert rule(why(node, "s1", viewer="s1", owner=False))[:2] == (True, "own")
    for about in ("s1", "nobody"):
        got = why(node, about, viewer="s2", owner=False)
        assert (got["__typename"], got["field"]) == ("InvalidInput", "viewer")


def test_unknown_viewers_and_ambiguous_paths_are_named(why, story, talk):
    talk.wrote("a/plan.md")
    talk.wrote("b/plan.md")

    assert why("event-1", "s22")["allowed"] == "session-s2"
    assert why("event-1", viewer="nobody")["field"] == "viewer"
    assert "may mean several" in why("plan.md")["problem"]


def test_every_rule_has_words_in_both_languages():
    assert set(TEXTS) == set(Rule)
    for english, chinese in TEXTS.values():
        assert english.isascii()
        assert any("\u4e00" <= char <= "\u9fff" for char in chinese)
        assert ("{by}" in english) is ("{by}" in chinese)


def test_visibility_is_a_command(run, story):
    shared, mine = story["shared"]["decision"], story["mine"]["decision"]

    seen = run("visibility", shared)
    unseen = run("visibility", mine)
    own = run("visibility", mine, "--viewer", "s1", "--json")
    unknown = run("visibility", "decision-99999")

    assert seen.out.startswith(f"{shared}\tyou\tyes\tshared\t")
    assert unseen.out.split("\t")[2:5] == ["no", "isolated", ""]
    assert "仅其所属会话可见" in unseen.out
    assert (own.json["visible"], own.json["viewer"]) == (True, "session-s1")
    assert (unknown.code, seen.code, unseen.code) == (1, 0, 0)
    assert "try: graphsvc" in unknown.err
