"""Search and grep through their front door: what is found, in which order, how much of it is printed."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import jsonschema
import pytest
import stores
from conftest import Talk

from graphsvc import resources
from graphsvc.config import Settings
from graphsvc.envelope import NavResult, SearchResult
from graphsvc.errors import InvalidInput
from graphsvc.memory import capture, rebuild
from graphsvc.model import Event, EventKind
from graphsvc.recall import analyser, budget, index, search
from graphsvc.recall.request import check
from graphsvc.store import database, events, visibility
from graphsvc.store.database import Connection
from graphsvc.store.index import words
from graphsvc.store.visibility import Viewer

Ask = Callable[..., dict]
NAV = jsonschema.Draft202012Validator(json.loads(resources.text("schema/nav_result.json")))


@pytest.fixture
def ask(db: Connection) -> Ask:
    """Ask as the tool does, `viewer=` a session id; the answer as printed, its budget and envelope checked."""

    def ask(*, viewer: str | None = None, project: str | None = None, catch_up: bool = True, **given: object) -> dict:
        session = events.find_session(db, viewer) if viewer else None
        seen = Viewer(
            session=session[0] if session else None, project=events.find_project(db, project) if project else None
        )
        request = check(given)
        if catch_up:
            index.catch_up(db)
        answer: SearchResult | NavResult = (search.grep if request.nav else search.search)(db, seen, request)
        assert budget.cost(answer) <= request.token_budget
        printed = json.loads(budget.line(answer))
        if request.nav:
            NAV.validate(printed)
        return printed

    return ask


def ids(answer: dict) -> list[str]:
    return [row["id"] for row in answer.get("results", answer.get("items"))]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("say hello to them", 'say "hello'),
        ("well, don't", "don't"),
        ("call open_store() now", "open_store()"),
        ("call openStore now", "open_store"),
        ("call open_store now", "openstore"),
        ("in a/b.py", "a/b.py"),
        ("in src/a/store.py:12", "store.py"),
        ("written in C++", "C++"),
        ("50% off", "50% off"),
        ("drop the table", "'; drop table"),
        ("an open-store policy", "open-store"),
        ("KeyError: 'x'", "KeyError: 'x'"),
        (r"on C:\x today", "C:\\x"),
        ('{"a": [1]}', '{"a": [1]}'),
        ("this AND that", "AND"),
        ("so NOT x", "NOT x"),
        ("a near b", "NEAR(a b)"),
        ("the store", "t:store"),
        ("it is open", "^open"),
        ("the store", "store*"),
        ("they decided", "decides"),
        ("数据库迁移", "库"),
        ("数据库迁移", "据库"),
        ("我们用Docker部署", "docker 部署"),
        ("ＦＵＬＬ width", "full"),
        ("half ｗｉｄｔｈ", "width"),
        ("ze\u200bro width", "zero"),
        ("zero width", "ze\u200bro"),
        ("done 🚀", "🚀"),
        ("a -> b", "->"),
        ("what?!... no", "?!..."),
        ("one\0two", "two"),
        ("lone \ud800 surrogate", "surrogate"),
        ("line\u2028separator", "separator"),
        ("x" * 20_000 + " tail", "tail"),
        ("ends on 8 May 2023", "2023-05-08"),
        ("五月了，5月8号", "5月8日"),
    ],
)
def test_what_was_written_is_found(talk, ask: Ask, text: str, query: str):
    talk.user("nothing of that kind")
    talk.assistant(text)

    answer = ask(query=query)

    assert answer["status"] == "found"
    assert answer["results"][0]["body"].strip("…") in text
    assert "nothing of that kind" not in {row["body"] for row in answer["results"]}


@pytest.mark.parametrize("query", ["(" * 5000, "zzz", "缺席", "🛶", "\\", "%", "'", '""'])
def test_what_was_not_written_is_not_found(talk, ask: Ask, query: str):
    talk.user("some text 文字")

    answer = ask(query=query)

    assert answer["status"] == "not-found"
    assert answer["results"] == []
    assert ask(**json.loads(answer["suggestion"])) if "nav" not in answer["suggestion"] else True


def test_words_of_a_tool_call_are_found_behind_escaped_line_ends(talk, ask: Ask):
    talk.tool("Bash", {"command": "cd /tmp\nmakefoo"})

    assert ids(ask(query="makefoo")) == ["event-1"]
    assert ids(ask(query="bash")) == ["event-1"]


def test_records_and_assets_are_found_under_their_own_ids(talk, ask: Ask):
    first = talk.decided("sessions use JWT tokens")
    talk.superseded(first, "sessions use server cookies")
    talk.event("feedback", "cookies in short sentences", action="record")
    talk.wrote("docs/饼干.md", "# Cookies\n\n为什么用服务端会话\n")

    found = {row["id"]: row for row in ask(query="cookies")["results"]}

    assert found["decision-2"]["kind"] == "decision"
    assert found["feedback-3"]["kind"] == "feedback"
    assert found["asset-6"]["body"].startswith("docs/饼干.md\n# Cookies")
    assert ask(query="JWT")["results"][0]["why"] == ["word", "status:superseded"]
    assert ids(ask(kind="decision")) == ["decision-2", "decision-1"]
    assert ids(ask(query="服务端")) == ["asset-6", "event-4"]


def test_only_the_newest_version_of_an_asset_is_found(talk, ask: Ask):
    talk.wrote("notes.md", "old pewter\n")
    talk.wrote("notes.md", "new velvet\n")

    assert "asset-3" not in ids(ask(query="pewter"))
    assert "asset-3" in ids(ask(query="velvet"))


def test_the_rarer_word_wins_and_equals_are_newest_first(talk, ask: Ask):
    for number in range(9):
        talk.user(f"common text {number}")
    talk.user("common text rare")

    assert ids(ask(query="common rare"))[:3] == ["event-10", "event-9", "event-8"]


def test_the_active_session_goes_first_among_equals(talk, ask: Ask):
    talk.session("older").user("velvet curtain")
    talk.session("newer").user("velvet curtain")
    talk.session("ended").user("velvet curtain")
    talk.ended()

    assert [row["session_id"] for row in ask(query="velvet")["results"]] == ["newer", "ended", "older"]


def test_isolated_events_are_found_by_their_session_only(talk, ask: Ask):
    talk.user("shared velvet")
    talk.session("private").event("isolation", "on", action="on")
    talk.user("secret velvet")

    assert ids(ask(query="velvet")) == ["event-1"]
    assert ask(query="velvet", count_only=True)["count"] == 1
    assert ask(query="secret")["status"] == "not-found"
    assert ask(query="secret")["notes"] == [visibility.NOTE]
    assert ask(query="anything at all")["notes"] == [visibility.NOTE]
    assert "secret velvet" in {row["body"] for row in ask(query="velvet", viewer="private")["results"]}
    assert "notes" not in ask(query="velvet", viewer="private")


def test_no_score_and_no_order_moves_with_what_others_isolate(tmp_path: Path, clock):

    def told(hidden: str) -> list[str]:
        with closing(database.connect(Settings(home=tmp_path / str(len(hidden))))) as db:
            talk = Talk(db=db, clock=clock)
            talk.user("velvet curtain")
            talk.session("own").event("isolation", "on", action="on")
            talk.user("velvet of my own, long long long")
            talk.session("other").event("isolation", "on", action="on")
            for _ in range(5):
                talk.user(hidden)
            own = events.find_session(db, "own")
            viewers = (Viewer(), Viewer(session=own[0] if own else None))
            requests = [check({"query": query}) for query in ("velvet", "curtain velvet", "gravel", "velvte")]
            return [budget.line(search.search(db, viewer, request)) for viewer in viewers for request in requests]

    assert told("velvet curtain gravel velvte") == told(" ")


def test_a_published_event_is_found_by_all_at_once(db: Connection, talk, ask: Ask):
    talk.session("private").event("isolation", "on", action="on")
    origin = talk.user("secret velvet")
    assert ask(query="velvet")["status"] == "not-found"

    talk.event("publish", "", of=[origin])

    assert ids(ask(query="velvet")) == ["event-2"]
    assert index.catch_up(db) == 0
    assert ids(ask(query="velvet", viewer="private")) == ["event-2"]
    assert ask(query="velvet", count_only=True, viewer="private")["count"] == 1


def test_a_copied_event_belongs_to_both_sessions(talk, ask: Ask):
    origin = talk.session("first").user("velvet curtain", message_id="m")
    talk.moment = talk.moment.replace(second=0, minute=0)
    talk.session("second").event("user_message", "velvet curtain", origin=origin, message_id="m")

    assert ids(ask(query="velvet", session_id="second")) == ["event-1"]
    assert ids(ask(session_id="session-second", kind="user_message")) == ["event-1"]


def test_what_is_not_indexed_yet_is_found_too(db: Connection, talk, ask: Ask, settings: Settings):
    talk.user("velvet indexed")
    index.catch_up(db)
    talk.user("velvet late")
    talk.user("they were deciding")
    with closing(database.connect(settings)) as other:
        other.execute("BEGIN IMMEDIATE")

        assert ids(ask(query="velvet")) == ["event-2", "event-1"]
        assert ids(ask(query="decides")) == ["event-3"]
        assert words.indexed(db, analyser.VERSION) == 1
        other.execute("ROLLBACK")
    before = ask(query="velvet")

    assert words.indexed(db, analyser.VERSION) == 3
    assert ask(query="velvet") == before


def test_a_file_that_cannot_be_written_is_searched(db: Connection, talk, settings: Settings):
    talk.user("velvet curtain")
    with closing(sqlite3.connect(f"file:{settings.database}?mode=ro", uri=True, isolation_level=None)) as other:
        other.row_factory = sqlite3.Row

        answer = search.search(other, Viewer(), check({"query": "velvet"}))

    assert [hit.id for hit in answer.results] == ["event-1"]


def test_a_tail_that_is_too_long_is_said(db: Connection, talk, ask: Ask, settings: Settings):
    talk.user("velvet")
    for size in range(4):
        talk.assistant(f"{size} " + "noise" * 600_000)
    with closing(database.connect(settings)) as other:
        other.execute("BEGIN IMMEDIATE")
        answer = ask(query="velvet", token_budget=500)
        other.execute("ROLLBACK")

    assert answer["status"] == "degraded"
    assert "not indexed yet" in answer["notes"][0]
    while index.catch_up(db):
        pass
    assert ids(ask(query="velvet")) == ["event-1"]


NOISE = "noise " * (words.TAIL_BYTES // 6 + 1)  # more than a request looks at before it is indexed


@pytest.fixture(scope="module")
def behind(tmp_path_factory, clock) -> Path:
    """A store whose index is behind, so far that a request does not read all that is missing."""
    settings = Settings(home=tmp_path_factory.mktemp("behind") / "home")
    with closing(rebuild.connect(settings)) as db:
        talk = Talk(db=db, clock=clock)

        def told(count: int) -> None:
            for number in range(count):
                talk.user("velvet curtain " * (1 + number % 4))

        told(6)
        index.catch_up(db)
        told(9)
        talk.wrote("velvet.md", "in the gap, but found by its name")
        talk.assistant(NOISE)
        told(8)
    return settings.database


@pytest.mark.parametrize("nav", [None, "grep"])
@pytest.mark.parametrize("order", [None, "asc", "desc"])
def test_pages_agree_on_what_was_searched_while_the_index_catches_up(db: Connection, behind, ask: Ask, nav, order):
    stores.fill(db, behind)

    found: list[str] = []
    cursor, notes = None, []
    while True:
        answer = ask(nav=nav, order=order, query="velvet", limit=5, cursor=cursor, catch_up=False)
        found += ids(answer)
        notes.append(answer["notes"])
        index.catch_up(db)
        cursor = answer.get("cursor")
        if cursor is None:
            break

    assert len(found) == len(set(found)) == 6 + 8 + (nav == "grep")
    assert all(note == notes[0] and note[0].startswith("texts not searched: 13, not indexed yet") for note in notes)
    assert len(ids(ask(nav=nav, query="velvet", limit=50))) == 26


def test_a_text_that_is_too_large_for_a_request_is_searched_after_it_is_indexed(db: Connection, talk, ask: Ask):
    talk.assistant(f"{NOISE}velvet")
    talk.user("a velvet curtain")

    before = ask(query="velvet", catch_up=False)

    assert (before["status"], ids(before)) == ("degraded", ["event-2"])
    assert ask(query="velvet", count_only=True, catch_up=False)["count"] == 1
    assert sorted(ids(ask(query="velvet"))) == ["event-1", "event-2"], "one text at least, however long it takes"


def test_another_version_of_the_analyser_indexes_anew(db: Connection, talk):
    talk.user("velvet")
    talk.user("curtain")
    assert index.catch_up(db) == 2

    assert words.catch_up(db, index.analyse, "another", 1000) == 2
    assert words.indexed(db, analyser.VERSION) == 0
    words.reset(db)
    assert index.catch_up(db) == 2
    assert db.execute("SELECT COUNT(*) FROM words_docsize").fetchone()[0] == 2


def test_ten_megabytes_are_searchable_to_the_end(db: Connection, talk, ask: Ask):
    text = "".join(f"{number:090} 日志\n" for number in range(108_000)) + "at last a velvet curtain"
    talk.tool("Bash", {"command": "make"}, text)
    while index.catch_up(db, 10_000):
        pass

    answer = ask(query="velvet curtain", token_budget=200)

    assert ids(answer) == ["event-2"]
    assert answer["results"][0]["body"].endswith("at last a velvet curtain")
    assert answer["results"][0]["body"].startswith("…")


def test_an_answer_fills_its_budget_and_never_exceeds_it(talk, ask: Ask):
    chance = random.Random(5)  # noqa: S311  # a made-up story, no secret
    vocabulary = ["velvet", "gravel", "灯塔", "open_harbor", "docs/a.md", "😀", '"quoted"', "\\n", "港口的灯"]
    for number in range(150):
        talk.session(f"0f8fad5b-d9cb-469f-a165-70867728{number % 4:04}")
        size = chance.choice([1, 3, 12, 80, 600])
        talk.event(
            chance.choice(["user_message", "assistant_message", "tool_result", "decision"]),
            " ".join(chance.choices(vocabulary, k=size)) + " .",
            tool_use_id=f"t{number}",
        )
    talk.session("private").event("isolation", "on", action="on")
    talk.user("velvet")

    cut = 0
    for _ in range(500):
        given: dict[str, object] = {
            "token_budget": chance.choice([60, 70, 90, 120, 200, 500, 2000, 4000, chance.randint(60, 3000)]),
            "limit": chance.choice([1, 20, 50]),
            "query": chance.choice([*vocabulary, "velvet gravel", "none", None]),
            "kind": chance.choice([None, None, "user_message", "decision"]),
            "order": chance.choice([None, "asc", "desc"]),
        }
        if given["query"] and chance.random() < 0.5:
            given["nav"] = "grep"
        answer = ask(**given)
        rows = answer.get("results", answer.get("items"))
        if "cursor" in answer and len(rows) < given["limit"]:
            cut += 1
            assert (
                budget.tokens(json.dumps(answer, ensure_ascii=False, separators=(",", ":")))
                >= 0.7 * given["token_budget"]
            )
        assert rows or answer["status"] == "not-found", given
    assert cut > 100


@pytest.mark.parametrize("nav", [None, "grep"])
def test_a_short_row_before_one_that_does_not_fit_leaves_no_budget_unused(talk, ask: Ask, nav: str | None):
    talk.user("velvet .")
    talk.user("velvet " * 300)

    for size in range(60, 200):
        answer = ask(query="velvet", nav=nav, order="asc", token_budget=size)

        spent = budget.tokens(json.dumps(answer, ensure_ascii=False, separators=(",", ":")))
        assert spent <= size
        assert "cursor" not in answer or spent >= 0.7 * size


@pytest.mark.parametrize("order", [None, "asc", "desc"])
@pytest.mark.parametrize(
    ("nav", "query"), [(None, None), (None, "velvet gravel"), (None, "…"), ("grep", "velvet gravel"), ("grep", "…")]
)
def test_pages_hold_every_hit_once_while_others_write(talk, ask: Ask, nav, order, query):
    chance = random.Random(7)  # noqa: S311  # a made-up story, no secret
    for _ in range(60):
        talk.user(" ".join(chance.choices(["velvet", "gravel", "pewter", "…"], k=chance.randint(1, 9))))
    wanted = (query or "").split()
    expected = [
        f"event-{number}" for number in range(1, 61) if not wanted or any(word in body(talk, number) for word in wanted)
    ]

    found: list[str] = []
    cursor = None
    while True:
        answer = ask(
            nav=nav, query=query, order=order, cursor=cursor, token_budget=chance.choice([200, 300, 900]), limit=11
        )
        found += ids(answer)
        talk.user("velvet gravel …")
        cursor = answer.get("cursor")
        if cursor is None:
            break

    assert sorted(found) == sorted(expected)


def body(talk, number: int) -> str:
    stored = events.get(talk.db, number)
    assert stored is not None
    return stored.body


@pytest.mark.parametrize("cursor", ["x", "a.b.c.d", "....", "z" * 500, "1.2.3", "k.zzzzzzzzzz.1.1", "１.1.1.1"])
def test_a_cursor_that_is_none_is_refused(talk, ask: Ask, cursor: str):
    talk.user("velvet")

    with pytest.raises(InvalidInput, match="cursor"):
        ask(query="velvet", cursor=cursor)


def test_a_cursor_of_other_parameters_is_refused(talk, ask: Ask):
    for _ in range(5):
        talk.user("velvet gravel")
    cursor = ask(query="velvet", limit=2)["cursor"]

    assert len(ids(ask(query="velvet", limit=3, token_budget=900, cursor=cursor))) == 3
    for other in ({"query": "gravel"}, {"query": "velvet", "order": "asc"}, {"query": "velvet", "nav": "grep"}, {}):
        with pytest.raises(InvalidInput, match="other parameters"):
            ask(**other, cursor=cursor)


@pytest.mark.parametrize("nav", [None, "grep"])
@pytest.mark.parametrize(
    ("given", "suggested"),
    [
        ({"query": "velvet", "kind": "decision"}, {"query": "velvet"}),
        (
            {"query": "velvet", "since": "2027-01-01", "kind": "user_message"},
            {"query": "velvet", "kind": "user_message"},
        ),
        ({"query": "velvet", "session_id": "s2", "until": "2020-01-01"}, {"query": "velvet"}),
        ({"query": "velvte"}, {"query": "velvet"}),
        ({"query": "灯台"}, {"query": "灯塔"}),
        ({"query": "zzzzz"}, {"nav": "ls"}),
    ],
)
def test_a_suggestion_is_a_call_that_finds_something(talk, ask: Ask, nav, given, suggested):
    talk.user("velvet 灯塔")
    talk.session("s2").user("gravel")

    answer = ask(nav=nav, **given)
    call = json.loads(answer["suggestion"])

    assert answer["status"] == "not-found"
    assert call == ({"nav": "grep", **suggested} if nav and "query" in suggested else suggested)
    if "query" in call:
        assert ids(ask(**call))


def test_a_suggestion_names_no_word_that_the_viewer_may_not_see(talk, ask: Ask):
    talk.user("nothing here")
    talk.project = "/srv/other"
    talk.session("elsewhere").user("velvet")
    talk.event("isolation", "on", action="on")
    talk.user("gravel")

    assert "velvet" not in ask(query="velvte", project="/srv/talk/harbor")["suggestion"]
    assert "gravel" not in ask(query="gravle")["suggestion"]
    assert ask(session_id="elsewhere", project="/srv/talk/harbor")["status"] == "not-found"


def test_help_with_spelling_looks_at_what_the_viewer_can_find_only(talk, ask: Ask):
    talk.user("here is the receipt")
    before = ask(query="recipt", project="/srv/talk/harbor")
    talk.project = "/srv/other"
    talk.session("elsewhere").user("recipts reciptx recipta reciptb reciptc recipt1 recipt2 ricipt")

    assert json.loads(before["suggestion"]) == {"query": "receipt"}
    assert ask(query="recipt", project="/srv/talk/harbor") == before
    assert json.loads(ask(query="recipt", session_id="s1")["suggestion"]) == {"query": "recipt"}


def test_a_count_without_words_says_how_many_texts_were_looked_at(db: Connection, talk, ask: Ask):
    told = [
        Event(session_id="s1", kind=EventKind.USER_MESSAGE, origin=f"o{number}", body=f"{number} 🚀", project="/srv/a")
        for number in range(search.SCAN_UNITS + 1)
    ]
    capture.capture(db, told)

    answer = ask(query="🚀", count_only=True, catch_up=False)

    assert answer["status"] == "degraded"
    assert answer["count"] <= search.SCAN_UNITS
    assert answer["notes"] == [f"counted in {answer['count']} texts; the others were not looked at"]
    assert "cursor" not in answer


def test_an_unknown_session_leads_to_the_nearest(talk, ask: Ask):
    talk.session("claude-harbor-1").user("one")
    talk.session("dsh-9").user("two")

    answer = ask(query="one", session_id="claude-harbour-1")

    assert answer["status"] == "not-found"
    assert json.loads(answer["suggestion"]) == {"session_id": "claude-harbor-1"}
    assert ids(ask(**json.loads(answer["suggestion"])))
    assert json.loads(ask(nav="grep", query="one", session_id="x")["suggestion"])["nav"] == "ls"


def test_the_owner_reaches_a_session_of_another_project(db: Connection, talk, ask: Ask):
    talk.user("velvet here")
    talk.project = "/srv/other"
    talk.session("elsewhere").user("velvet there")
    owner = Viewer(project=events.find_project(db, "/srv/talk/harbor"), everywhere=True)

    answer = search.search(db, owner, check({"query": "velvet", "session_id": "elsewhere"}))

    assert [hit.id for hit in answer.results] == ["event-2"]
    assert [hit.id for hit in search.search(db, owner, check({"query": "velvet"})).results] == ["event-1"]


def test_an_empty_store_answers(ask: Ask):
    for given in ({}, {"query": "velvet"}, {"query": "😀"}, {"count_only": True}, {"nav": "grep", "query": "x"}):
        assert ask(**given)["status"] == "not-found"


def test_grep_shows_matching_lines_and_names(talk, ask: Ask):
    talk.assistant("first\nsecond\nthe velvet line\nfourth\nfifth\nsixth\nvelvet again\nlast")
    talk.wrote("docs/Velvet-curtain.md", "# Curtain\n\nnothing\n")
    talk.decided("we hang velvet")
    talk.event("feedback", "no velvet please", action="record")

    rows = {row["id"]: row for row in ask(nav="grep", query="velvet")["items"]}

    assert rows["event-1"] == {
        "id": "event-1", "type": "event", "ref": "assistant_message",
        "label": "second\nthe velvet line\nfourth\n…\nsixth\nvelvet again\nlast",
    }  # fmt: skip
    assert rows["asset-4"]["type"] == "asset"
    assert rows["asset-4"]["ref"] == "docs/Velvet-curtain.md"
    assert rows["decision-5"]["type"] == "decision"
    assert rows["event-6"]["ref"] == "feedback-6"
    assert ids(ask(nav="grep", query="t-CURT"))[0] == "asset-4"
    assert "asset-4" not in ids(ask(nav="grep", query="velvet", kind="user_message", order="asc"))


def test_the_body_is_cut_around_the_match(talk, ask: Ask):
    talk.user("前文" * 3000 + "这里是灯塔的位置" + "后文" * 3000)

    body = ask(query="灯塔", token_budget=200)["results"][0]["body"]

    assert "灯塔" in body
    assert body.startswith("…")
    assert body.endswith("…")


def test_a_result_that_cannot_fit_names_the_call_that_shows_it(talk, ask: Ask):
    talk.session("s" * 300).user("velvet")

    answer = ask(query="velvet", token_budget=60)

    assert answer["results"] == []
    assert ids(ask(**json.loads(answer["suggestion"]))) == ["event-1"]
    assert ids(ask(query="velvet", cursor=answer["cursor"])) == ["event-1"]
