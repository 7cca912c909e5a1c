"""The switch of isolation and what is published: by message, by command, over GraphQL; row by row and no further."""

from __future__ import annotations

import pytest

from graphsvc import resources
from graphsvc.api import schema
from graphsvc.api.context import Context
from graphsvc.memory import capture, rebuild
from graphsvc.model import Event, EventKind
from graphsvc.recall.scope import Asker
from graphsvc.store import events


@pytest.fixture
def state(db, clock):
    """Send a mutation: `state("publish", viewer="s1", ids=[…])` returns the outcome, whatever it is."""

    def state(mutation, *, viewer=None, **variables):
        document = resources.text(f"queries/privacy/{mutation}.graphql")
        context = Context(db=db, asker=Asker(session_id=viewer), clock=clock)
        response = schema.respond(document, variables, None, context)
        assert "errors" not in response, response["errors"]
        return response["data"][mutation]

    return state


@pytest.fixture
def hidden(db):
    """Return the bodies that only their sessions see, in order."""

    def hidden() -> list[str]:
        rows = db.execute("SELECT event FROM hidden ORDER BY event").fetchall()
        return [events.get(db, row["event"]).body for row in rows]

    return hidden


def newest(db) -> str:
    return f"event-{events.position(db)}"


@pytest.mark.parametrize(
    "phrase",
    [
        "/thread-iso",
        "／ｔｈｒｅａｄ－ｉｓｏ",
        "/THREAD-ISO\n",
        "\u3000隔离\u3000",
        "ＩＳＯＬＡＴＥ",
        "Go\tPrivate",
        "静默",
    ],
)
def test_a_phrase_is_heeded_whatever_its_case_width_and_white_space(talk, hidden, phrase):
    talk.user(phrase)
    talk.user("mine")

    assert hidden() == ["on", phrase, "mine"]


@pytest.mark.parametrize("phrase", ["/Thread-UnIso", "ｇｏ　ｐｕｂｌｉｃ", " 恢复共享\r\n", "UNISOLATE"])
def test_a_phrase_ends_isolation_before_it_is_stored(talk, hidden, phrase):
    talk.isolated()
    talk.user(phrase)
    talk.user("ours")

    assert hidden() == ["on", "/thread-iso"]


@pytest.mark.parametrize(
    "words", ["/thread-iso please", "隔离。然后继续", "isolated", "go private now", "x" * 50_000, "隔 离"]
)
def test_what_only_holds_a_phrase_is_none(talk, hidden, words):
    talk.user(words)

    assert hidden() == []


def test_what_an_agent_says_switches_nothing(db, talk, hidden):
    talk.assistant("/thread-iso")
    talk.tool("Bash", {"command": "echo"}, "isolate")
    told = Event(session_id="s1", kind=EventKind.USER_MESSAGE, origin="sub", body="隔离", actor="helper")
    capture.capture(db, [told])

    assert hidden() == []


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("/thread-pub dec all", {"用四位码", "four digits"}),
        ("／ＴＨＲＥＡＤ－ＰＵＢ　ｄｅｃ　ａｌｌ", {"用四位码", "four digits"}),
        ("/thread-pub dec {0}", {"用四位码"}),
        ("/thread-pub dec {0}，{1}", {"用四位码", "four digits"}),
        ("/thread-pub decision-{0} event-{2}", {"用四位码", "secret words"}),
        ("/thread-pub ast all", {"docs/plan.md"}),
        ("/thread-pub gol {0}", set()),
        ("/thread-pub", set()),
        ("/thread-pub all", set()),
        ("/thread-pub dec", set()),
        ("/thread-pub , ", set()),
        ("please /thread-pub dec all", set()),
        ("/thread-pub dec 999999", set()),
    ],
)
def test_a_message_publishes_what_it_names(db, talk, hidden, settings, command, shown):
    talk.isolated()
    first = talk.decided("用四位码")
    second = talk.decided("four digits")
    said = talk.user("secret words")
    talk.wrote("docs/plan.md")
    known = dict(db.execute("SELECT origin, id FROM events").fetchall())
    numbers = [known[one] for one in (first, second, said)]
    before = hidden()

    talk.user(command.format(*numbers))

    assert set(before) - set(hidden()) == shown
    assert rebuild.check(settings, lambda *_: None) == []


def test_a_message_publishes_nothing_of_another_session(db, talk, hidden):
    talk.session("s2").isolated()
    talk.decided("theirs")
    number = events.position(db)
    talk.session("s1").isolated()
    talk.user(f"/thread-pub decision-{number} event-{number}")
    talk.user("/thread-pub dec all")

    assert "theirs" in hidden()
    assert db.execute("SELECT COUNT(*) FROM events WHERE kind = 'publish'").fetchone()[0] == 0


@pytest.mark.parametrize("kind", ["goal", "feedback", "todo", "candidate", "decision"])
def test_every_kind_of_record_is_published_by_its_id(db, talk, state, tool, kind):
    talk.isolated()
    talk.event(kind, "只给自己", action="record")
    number = events.position(db)
    other = talk.event(kind, "for me", action="record")

    done = state("publish", viewer="s1", ids=[f"{kind}-{number}"])

    assert done["events"] == [f"event-{number}"]
    assert tool(query="只给自己", project="all")["results"][0]["id"] == f"{kind}-{number}"
    assert tool(query="for me", project="all")["status"] == "not-found"
    assert other


def test_an_asset_is_published_with_all_that_its_session_wrote_of_it_and_an_event_alone(talk, state, db, tool):
    talk.isolated()
    talk.wrote("docs/a.md", "# One\n")
    talk.wrote("docs/a.md", "# Two\n")
    talk.wrote("docs/b.md", "# B one\n")
    one = db.execute("SELECT MAX(event) FROM asset_versions").fetchone()[0]
    talk.wrote("docs/b.md", "# B two\n")

    whole = state("publish", viewer="s1", ids=["docs/a.md"])
    single = state("publish", viewer="s1", ids=[f"event-{one}"])

    assert (len(whole["events"]), single["events"]) == (2, [f"event-{one}"])
    listed = {item["label"] for item in tool(nav="ls", target="s1")["items"] if item["type"] == "asset"}
    assert listed == {"docs/a.md · Two · document, 2 versions", "docs/b.md · B one · document, 1 version"}
    assert tool(query="Two", kind="tool_call", project="all")["status"] == "not-found", "the call stays isolated"


def test_publishing_again_adds_nothing_and_says_so(talk, state, db):
    talk.isolated()
    talk.user("for all")
    said = newest(db)
    state("publish", viewer="s1", ids=[said], client_mutation_id="p1")
    at = events.position(db)

    again = state("publish", viewer="s1", ids=[said], client_mutation_id="p1")

    assert (again["events"], again["shared"], again["duplicate"]) == ([], [said], True)
    assert events.position(db) == at


def test_nobody_publishes_what_is_another_sessions(talk, state, db, hidden):
    talk.isolated()
    talk.user("mine", origin="m")
    said = newest(db)
    talk.session("s2").user("hello")
    talk.session("copy").user("mine", origin="m")

    kinds = {who: state("publish", viewer=who, ids=[said])["__typename"] for who in (None, "s2", "copy")}

    assert set(kinds.values()) == {"AcrossIsolation"}
    assert "mine" in hidden()


@pytest.mark.parametrize(("ids", "field"), [([], "ids"), (["event-1"] * 101, "ids"), (["session-s1"], "ids")])
def test_what_cannot_be_published_is_named(talk, state, ids, field):
    talk.isolated()

    got = state("publish", viewer="s1", ids=ids)

    assert (got["__typename"], got["field"]) == ("InvalidInput", field)


def test_the_owner_and_the_session_itself_switch_isolation(talk, state, hidden, settings):
    talk.session("s1").user("ours")
    talk.session("s2").user("ours too")

    on = state("isolate", session_id="s1", on=True)
    talk.session("s1").user("mine")
    again = state("isolate", viewer="s1", session_id="session-s1", on=True)
    off = state("isolate", viewer="s1", session_id="s1", on=False)
    talk.session("s1").at("2026-12-02T09:00:00+00:00").user("ours again")
    wrong = state("isolate", viewer="s2", session_id="s1", on=True)
    nobody = state("isolate", session_id="s3", on=True)

    assert [on["session"]["isolated"], again["duplicate"], off["session"]["isolated"]] == [True, True, False]
    assert (wrong["__typename"], wrong["field"]) == ("InvalidInput", "session_id")
    assert nobody["__typename"] == "NotFound"
    assert hidden() == ["on", "mine"]
    assert rebuild.check(settings, lambda *_: None) == []


def test_publish_and_isolate_are_commands(run, talk, db):
    talk.user("hello")
    assert run("isolate", "s1", "on").out == "what session-s1 says from now on is isolated\n"
    assert run("isolate", "session-s1", "on").out == "session-s1 was isolated already\n"
    talk.at("2026-12-30T00:00:00+00:00").decided("秘密")
    number = events.position(db)

    refused = run("publish", f"decision-{number}")
    done = run("publish", f"decision-{number}", "--viewer", "s1")
    again = run("publish", f"decision-{number}", "--viewer", "s1", "--json")

    assert refused.code == 2
    assert "as viewer" in refused.err
    assert done.out == f"event-{number} is published\n"
    assert again.json["shared"] == [f"decision-{number}"]
    assert run("search", "秘密", "--project", "all").code == 0


def test_what_is_published_is_in_the_lineage_of_all_and_what_is_not_is_no_end(talk, state, tool, db, settings):
    talk.isolated()
    said = talk.user("we need a plan")
    talk.decided("写计划", evidence=[said])
    decision = f"decision-{events.position(db)}"
    talk.wrote("docs/plan.md")

    state("publish", viewer="s1", ids=[decision, "docs/plan.md"])

    around = {item["id"]: item["label"] for item in tool(nav="ls", target=decision)["items"]}
    assert around == {decision: "[已隔离: 内容仅其所属会话可见]"}, "the words it stands on stay isolated"
    edges = [item["label"] for item in tool(nav="ls", target="docs/plan.md")["items"] if item["type"] == "session"]
    assert any(label.startswith("← produces") for label in edges)
    [number] = events.ids_of_origins(db, 1, [said])
    state("publish", viewer="s1", ids=[f"event-{number}"])
    assert any("we need a plan" in item["label"] for item in tool(nav="ls", target=decision)["items"])
    assert rebuild.check(settings, lambda *_: None) == []
