"""Lists over GraphQL: filters, pages, counts, what a viewer sees of them, and what they cost."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from graphsvc.api import schema
from graphsvc.api.context import Context
from graphsvc.recall.scope import Asker
from graphsvc.store import lists

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
LISTS = ("sessions", "events", "assets", "decisions", "goals", "todos", "candidates", "feedback", "timeline")
PAGE = "edges { node { __typename %s } cursor } pageInfo { hasNextPage endCursor } totalCount total_capped notes"


@pytest.fixture
def ask(db, clock):
    """Execute a document: `ask(text, viewer="s1", first=3)` returns its data; errors fail the test."""

    def ask(document: str, viewer: str | None = None, **variables: object) -> dict:
        asker = Asker(session_id=viewer, project=None if viewer else "all")
        answer = schema.respond(document, variables, None, Context(db=db, asker=asker, clock=clock, catch_up=True))
        assert "errors" not in answer, answer
        return answer["data"]

    return ask


def listed(ask, field: str, arguments: str = "", viewer: str | None = None, shown: str = "id") -> list[str]:
    """The ids of all pages of a list, three rows a page."""
    shown = "event { id }" if field == "timeline" else shown
    found, after = [], None
    while True:
        document = f"query ($after: Cursor) {{ {field}(first: 3, after: $after {arguments}) {{ {PAGE % shown} }} }}"
        page = ask(document, viewer=viewer, after=after)[field]
        nodes = [edge["node"] for edge in page["edges"]]
        found += [node["event"]["id"] if field == "timeline" else node["id"] for node in nodes]
        assert page["totalCount"] >= len(found)
        after = page["pageInfo"]["endCursor"]
        if not page["pageInfo"]["hasNextPage"]:
            assert page["totalCount"] == len(found)
            return found


@pytest.fixture
def story(talk):
    """Two sessions that fill every list, in both languages."""
    said = talk.user("Fix the rounding of totals. We decided: prices are in cents.")
    old = talk.decided("prices are in cents", evidence=[said])
    talk.wrote("docs/prices.md", "# Prices\n\nIn cents.\n")
    talk.edited("docs/prices.md", "In cents.", "In whole cents.")
    talk.wrote("src/price.py", "CENTS = 100\n")
    talk.tool("TodoWrite", {"todos": [{"content": "round totals", "status": "pending"}]})
    talk.event("feedback", "answer in English", action="record")
    talk.session("s2").user("实现取餐码。决定用四位数字。")
    talk.superseded(old, "价格以分为单位，四舍五入")
    talk.wrote("docs/取餐码.md", "# 取餐码\n")
    talk.tool("TodoWrite", {"todos": [{"content": "打印说明牌", "status": "completed"}]})
    talk.compacted("so far")
    talk.ended()
    return talk


def test_every_list_pages_without_gap_or_repetition(ask, story):
    for field in LISTS:
        forwards = listed(ask, field)
        backwards = listed(ask, field, "order: asc")

        assert len(forwards) == len(set(forwards))
        assert forwards, field
        assert backwards == forwards[::-1], field


@pytest.mark.parametrize(
    ("field", "arguments", "expected"),
    [
        ("decisions", "status: [active]", ["价格以分为单位，四舍五入"]),
        ("decisions", "status: [superseded, revoked]", ["prices are in cents"]),
        ("decisions", 'query: "cents"', ["prices are in cents"]),
        ("decisions", 'query: "四舍五入"', ["价格以分为单位，四舍五入"]),
        ("decisions", 'query: "四舍五入 cents"', []),
        ("decisions", 'session_id: "s1"', ["prices are in cents"]),
        ("todos", "status: [pending]", ["round totals"]),
        ("todos", "status: [done]", ["打印说明牌"]),
        ("goals", 'query: "取餐码"', ["实现取餐码。决定用四位数字。"]),
        ("candidates", "status: [promoted]", []),
        ("feedback", "", ["answer in English"]),
    ],
)
def test_records_are_filtered(ask, story, field, arguments, expected):
    found = ask(f"{{ {field}(first: 50 {arguments}) {{ edges {{ node {{ text }} }} totalCount }} }}")[field]

    assert [edge["node"]["text"] for edge in found["edges"]] == expected
    assert found["totalCount"] == len(expected)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("kind: [code]", ["src/price.py"]),
        ('query: "whole cents"', ["docs/prices.md"]),
        ('query: "取餐码"', ["docs/取餐码.md"]),
        ('session_id: "s1"', ["src/price.py", "docs/prices.md"]),
        ('session_id: "s2", kind: [document]', ["docs/取餐码.md"]),
    ],
)
def test_assets_are_filtered(ask, story, arguments, expected):
    found = ask(f"{{ assets({arguments}) {{ edges {{ node {{ path }} }} totalCount }} }}")["assets"]

    assert [edge["node"]["path"] for edge in found["edges"]] == expected
    assert found["totalCount"] == len(expected)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [("status: [ended]", ["s2"]), ('query: "ROUNDING"', ["s1"]), ('query: "取餐码"', ["s2"]), ('query: "s1"', ["s1"])],
)
def test_sessions_are_filtered(ask, story, arguments, expected):
    found = ask(f"{{ sessions({arguments}) {{ edges {{ node {{ session_id }} }} totalCount }} }}")["sessions"]

    assert [edge["node"]["session_id"] for edge in found["edges"]] == expected


def test_bounds_of_time_are_inclusive_and_a_day_is_all_of_it(ask, story):
    every = ask("{ events(first: 100, order: asc) { edges { node { id at } } } }")["events"]["edges"]
    first, second = every[0]["node"]["at"], every[1]["node"]["at"]

    assert (
        listed(ask, "events", f'until: "{first}"')
        == [edge["node"]["id"] for edge in every if edge["node"]["at"] <= first][::-1]
    )
    assert set(listed(ask, "events", f'since: "{second}"')) == {
        edge["node"]["id"] for edge in every if edge["node"]["at"] >= second
    }
    assert len(listed(ask, "events", f'since: "{first[:10]}" until: "{first[:10]}"')) == len(every)


def test_updated_after_finds_what_came_since_whatever_a_host_says(ask, db, talk):
    old = talk.decided("doors open inwards")
    talk.user("Fix the door")
    talk.wrote("docs/door.md")
    polled = "2026-11-30T12:30:00Z"
    talk.clock = lambda: NOW + timedelta(hours=1)
    talk.moment = NOW - timedelta(days=30)  # a history that is imported later
    talk.session("s2").user("Fix the window")
    talk.wrote("docs/window.md")
    talk.moment = NOW
    talk.superseded(old, "doors open outwards")

    found = {field: listed(ask, field, f'updated_after: "{polled}"') for field in LISTS if field != "timeline"}

    assert [len(found[field]) for field in ("sessions", "assets", "decisions", "goals")] == [1, 1, 2, 1]
    assert len(found["events"]) == 6
    later = (NOW + timedelta(hours=2)).isoformat()
    assert not any(listed(ask, field, f'updated_after: "{later}"') for field in LISTS if field != "timeline")


def test_a_page_stays_whole_while_events_arrive(ask, story):
    first = ask(f"{{ events(first: 5) {{ {PAGE % 'id'} }} }}")["events"]
    before = listed(ask, "events")
    story.session("s3").user("later")
    page = ask(
        f"query ($after: Cursor) {{ events(first: 100, after: $after) {{ {PAGE % 'id'} }} }}",
        after=first["pageInfo"]["endCursor"],
    )["events"]

    assert [edge["node"]["id"] for edge in [*first["edges"], *page["edges"]]] == before


def test_what_is_unknown_is_an_empty_list_that_says_so(ask, story):
    for field in ("events", "decisions", "assets"):
        for arguments in ('project: "/nowhere"', 'session_id: "nobody"'):
            found = ask(f"{{ {field}({arguments}) {{ edges {{ cursor }} totalCount notes }} }}")[field]
            assert found["edges"] == []
            assert found["totalCount"] == 0
            assert "unknown" in found["notes"][0] or "no session" in found["notes"][0]
    found = ask('{ timeline(root: "decision-404") { edges { cursor } notes } }')["timeline"]
    assert found["edges"] == []
    assert "decision-404" in found["notes"][0]


def test_a_count_is_capped_and_says_so(ask, story, monkeypatch):
    monkeypatch.setattr(lists, "MOST_COUNTED", 4)

    found = ask("{ events { totalCount total_capped } }")["events"]

    assert found == {"totalCount": 4, "total_capped": True}


def test_others_see_nothing_of_what_is_isolated_in_any_list(ask, db, talk):
    talk.user("shared goal: fix the door")
    talk.decided("doors open inwards")
    before = {field: listed(ask, field) for field in LISTS}
    counted = ask("{ stats { kinds { name count } records { name count } versions } }")
    talk.isolated()
    talk.user("Fix my secret. We decided: secrets stay.")
    talk.wrote("docs/secret.md", "# Secret\n")
    talk.decided("secrets stay")
    talk.tool("TodoWrite", {"todos": [{"content": "hide", "status": "pending"}]})

    assert {field: listed(ask, field) for field in LISTS} == before
    assert ask("{ stats { kinds { name count } records { name count } versions } }") == counted
    own = {field: listed(ask, field, viewer="s1") for field in LISTS if field != "sessions"}
    assert all(len(own[field]) > len(before[field]) for field in ("events", "assets", "decisions", "todos", "timeline"))
    assert "secret" not in json.dumps(ask(f"{{ sessions {{ {PAGE % 'title'} }} }}"))


def test_the_timeline_of_a_node_is_its_own_history(ask, story):
    def verbs(root: str) -> list[str]:
        found = ask("query ($root: ID) { timeline(root: $root, order: asc) { edges { node { verb } } } }", root=root)
        return [edge["node"]["verb"] for edge in found["timeline"]["edges"]]

    decisions = listed(ask, "decisions", "order: asc")
    assets = listed(ask, "assets", "order: asc")

    assert verbs(decisions[0]) == ["record", "supersede"]
    assert verbs(decisions[1]) == ["supersede"]
    assert verbs(assets[0]) == ["register", "write"]
    assert {"compacted", "ended", "register", "supersede"} <= set(verbs("session-s2"))


def test_nodes_of_every_type_are_found_by_their_ids(ask, story):
    wanted = [listed(ask, field)[0] for field in LISTS if field != "timeline"]
    document = "query ($ids: [ID!]!) { nodes(ids: $ids) { __typename id ... on Recorded { version } } }"

    found = ask(document, ids=[*wanted, "decision-1", "asset-404", "nonsense", ""])["nodes"]

    assert [node["id"] for node in found[: len(wanted)]] == wanted
    assert found[len(wanted) :] == [None] * 4
    assert len({node["__typename"] for node in found[: len(wanted)]}) == len(wanted)


def test_an_isolated_node_is_a_marker(ask, talk):
    talk.isolated()
    talk.user("secret")
    document = '{ node(id: "event-2") { __typename id ... on Isolated { marker } } }'

    assert ask(document)["node"]["__typename"] == "Isolated"
    assert "已隔离" in ask(document)["node"]["marker"]
    assert ask(document, viewer="s1")["node"]["__typename"] == "Event"


def test_a_text_is_read_in_parts_that_join_to_the_whole(ask, talk):
    whole = "取餐码 and more, " * 500
    talk.user(whole)
    parts, offset = [], 0
    while offset is not None:
        document = 'query ($at: Long!) { node(id: "event-1") { ... on Event { body(offset: $at, length: 999)'
        part = ask(f"{document} {{ text total next_offset }} }} }} }}", at=offset)["node"]["body"]
        parts.append(part["text"])
        offset = part["next_offset"]

    assert "".join(parts) == whole
    assert part["total"] == len(whole)
    outside = ask('{ node(id: "event-1") { ... on Event { body(offset: 99999999) { text next_offset } } } }')
    assert outside["node"]["body"] == {"text": "", "next_offset": None}


def test_edges_page_without_gap_or_repetition(ask, story):
    for root in (listed(ask, "assets")[-1], "session-s1", listed(ask, "decisions")[0]):
        document = (
            "query ($id: ID!, $first: PageSize!, $after: EdgeCursor) { node(id: $id) { ... on Linked {"
            " lineage(first: $first, after: $after) {"
            " edges { node { type source { id } target { id } } } pageInfo { hasNextPage endCursor }"
            " totalCount } } } }"
        )
        whole = ask(document, id=root, first=100, after=None)["node"]["lineage"]
        found, after = [], None
        while True:
            page = ask(document, id=root, first=1, after=after)["node"]["lineage"]
            found += page["edges"]
            after = page["pageInfo"]["endCursor"]
            if not page["pageInfo"]["hasNextPage"]:
                break

        assert found == whole["edges"]
        assert len(found) == whole["totalCount"] > 0


def test_upstream_leads_to_causes_and_downstream_to_results(ask, story):
    new, old = listed(ask, "decisions")
    document = (
        "query ($id: ID!, $way: Direction!) { node(id: $id) { ... on Linked { lineage(direction: $way)"
        " { edges { node { type source { id } target { id } } } } } } }"
    )

    def around(way: str, root: str = old) -> set[tuple[str, str]]:
        found = ask(document, id=root, way=way)["node"]["lineage"]["edges"]
        return {
            (edge["node"]["type"], end["id"])
            for edge in found
            for end in (edge["node"]["source"], edge["node"]["target"])
            if end["id"] != root
        }

    assert around("downstream") == {("precedes", new)}
    [(kind, said)] = around("upstream")
    assert kind == "evidence"
    assert around("both") == around("upstream") | around("downstream")
    assert ("precedes", old) in around("upstream", new)
    assert around("downstream", new) == set()
    assert ("evidence", old) in around("downstream", said)
    assert around("upstream", said) == set()


@pytest.mark.parametrize(
    ("field", "shown"),
    [
        ("decisions", "text status updated_at superseded_by { id } event { id } evidence { id }"),
        ("todos", "text status updated_at event { id }"),
        ("assets", "path content(length: 50) { text } versions(first: 3) { edges { node { id } } }"),
        ("events", "kind body(length: 50) { text } meta"),
    ],
)
def test_a_page_of_a_hundred_nodes_with_edges_and_sessions_costs_a_dozen_statements(ask, db, talk, field, shown):
    for number in range(110):
        talk.session(f"s{number}")
        said = talk.user(f"do {number}")
        talk.decided(f"decision {number}", evidence=[said])
        talk.wrote(f"docs/{number}.md", f"# {number}\n")
        talk.tool("TodoWrite", {"todos": [{"content": f"todo {number}", "status": "pending"}]})
    session = "" if field == "assets" else "session { id title host }"
    document = (
        f"{{ {field}(first: 100) {{ edges {{ node {{ id {shown} {session} lineage(first: 5) {{ edges {{ node"
        " { type source { id } target { id } } } totalCount hidden } } } pageInfo { hasNextPage } totalCount } }"
    )
    ask(document)
    statements: list[str] = []
    db.set_trace_callback(statements.append)

    found = ask(document)[field]

    db.set_trace_callback(None)
    assert len(found["edges"]) == 100
    assert any(edge["node"]["lineage"]["edges"] for edge in found["edges"]) or field == "todos"
    assert len(statements) <= 12, "\n".join(statements)


def test_sessions_of_a_page_list_their_parts_in_a_few_statements(ask, db, story):
    parts = (
        "events(first: 2) { edges { node { id } } totalCount pageInfo { hasNextPage } }"
        " assets(first: 2) { edges { node { path } } totalCount }"
        " decisions(first: 2) { edges { node { text } } totalCount }"
        " todos(first: 2) { edges { node { text } } } goals(first: 2) { edges { node { text } } }"
    )
    statements: list[str] = []
    db.set_trace_callback(statements.append)

    found = ask(f"{{ sessions {{ edges {{ node {{ session_id {parts} }} }} }} }}")["sessions"]["edges"]

    db.set_trace_callback(None)
    assert len(statements) <= 12, "\n".join(statements)
    by_session = {edge["node"]["session_id"]: edge["node"] for edge in found}
    assert [edge["node"]["path"] for edge in by_session["s1"]["assets"]["edges"]] == ["src/price.py", "docs/prices.md"]
    assert [edge["node"]["text"] for edge in by_session["s2"]["decisions"]["edges"]] == ["价格以分为单位，四舍五入"]
    assert by_session["s1"]["events"]["totalCount"] == len(listed(ask, "events", 'session_id: "s1"'))


def test_a_node_of_another_project_has_its_parts_whatever_folder_asks(db, clock, story):
    story.project = "/srv/talk/other"
    story.session("s9").user("Fix the other thing")
    story.wrote("docs/other.md", "# Other\n")
    parts = "events { totalCount } assets { totalCount }"
    document = f'{{ nodes(ids: ["session-s1", "session-s9"]) {{ ... on Session {{ {parts} }} }} }}'

    def ask(project: str) -> list[dict]:
        context = Context(db=db, asker=Asker(cwd=project), clock=clock)
        return schema.respond(document, {}, None, context)["data"]["nodes"]

    assert ask("/srv/talk/other") == ask("/srv/talk/harbor") == ask("/nowhere")
    assert all(part["totalCount"] for node in ask("/nowhere") for part in node.values())


def test_a_record_that_was_published_after_it_moved_unseen_is_listed(ask, talk):
    talk.isolated()
    old = talk.decided("secrets stay")
    talk.superseded(old, "secrets go")
    talk.event("publish", "", of=[old])

    found = ask("{ decisions { edges { node { text updated_at superseded_by { id } event { id } } } } }")["decisions"]

    assert [edge["node"]["text"] for edge in found["edges"]] == ["secrets stay"]
    assert found["edges"][0]["node"]["superseded_by"] is None


@pytest.mark.parametrize("action", [["record"], {"a": 1}, 7, None, True])
def test_an_action_that_is_no_word_ends_no_timeline(ask, talk, action):
    talk.event("goal", "doors that close", action=action)

    assert listed(ask, "timeline")


def test_a_commit_happens_in_its_session(ask, talk):
    talk.wrote("docs/a.md")
    talk.ran("git add -A && git commit -m 'A'", "[main 1a2b3c4] A")

    [entry] = ask('{ timeline(root: "docs/a.md", first: 1) { edges { node { verb node { id } } } } }')["timeline"][
        "edges"
    ]

    assert entry["node"] == {"verb": "commit", "node": {"id": "session-s1"}}


@pytest.mark.parametrize("query", ["Über", "über", "ÜBER", "BOOT über"])
def test_a_session_is_found_in_any_case_of_any_script(ask, talk, query):
    talk.user("hello", title="Über das Boot")

    found = ask("query ($query: String) { sessions(query: $query) { totalCount } }", query=query)

    assert found["sessions"]["totalCount"] == 1


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ('{ events(since: "x") { totalCount } }', "ISO 8601"),
        ('{ events(after: "0.0.4.0.2.4") { totalCount } }', "endCursor"),
        ('{ node(id: "event-1") { ... on Event { lineage(after: "5.5") { totalCount } } } }', "page of edges"),
        ('{ node(id: "event-1") { ... on Event { lineage(after: "0.0.4.9.9.4") { totalCount } } } }', "page of edges"),
        ("{ events(first: 0) { totalCount } }", "1 to 100"),
    ],
)
def test_a_bad_argument_is_refused_with_its_place(db, clock, talk, document, said):
    talk.user("hello")

    answer = schema.respond(document, {}, None, Context(db=db, asker=Asker(project="all"), clock=clock))

    [error] = answer["errors"]
    assert said in error["message"]
    assert error["locations"]
    assert "data" not in answer


def test_more_ids_than_one_answer_takes_are_refused(db, clock):
    document = "query ($ids: [ID!]!) { nodes(ids: $ids) { id } }"

    answer = schema.respond(document, {"ids": ["event-1"] * 101}, None, Context(db=db, asker=Asker(), clock=clock))

    assert answer["errors"][0]["extensions"]["code"] == "TOO_EXPENSIVE"


def test_many_nodes_by_id_are_read_together(ask, db, talk):
    for number in range(60):
        talk.decided(f"decision {number}", evidence=[talk.user(f"do {number}")])
    ids = [*listed(ask, "decisions")[:40], *listed(ask, "events")[:40], "decision-1", "event-9999"]
    document = "query ($ids: [ID!]!) { nodes(ids: $ids) { id ... on Recorded { text } ... on Event { kind } } }"
    statements: list[str] = []
    db.set_trace_callback(statements.append)

    found = ask(document, ids=ids)["nodes"]

    db.set_trace_callback(None)
    assert [node and node["id"] for node in found] == [*ids[:80], None, None]
    assert len(statements) <= 12, "\n".join(statements)
