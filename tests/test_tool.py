"""The tool as a thin client: which document it sends, what it prints, and which executor it finds."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from graphsvc.client import executor, tool
from graphsvc.envelope import (
    Long,
    NavContext,
    NavItem,
    NavKind,
    NavResult,
    NavType,
    SearchHit,
    SearchResult,
)
from graphsvc.errors import ServiceError
from graphsvc.recall import budget
from graphsvc.recall.scope import Asker

OWNER = Asker(owner=True, session_id=None, project=None, cwd=None)


@pytest.fixture
def call(settings, db):
    """Call the tool in this process: the printed line and the exit code."""
    execute = executor.in_process(settings, OWNER)
    return lambda **arguments: tool.call(arguments, execute)


def answering(response):
    """An executor that keeps what it was asked and answers with this."""
    asked = []

    def execute(document, variables):
        asked.append((document, variables))
        return response

    return asked, execute


@pytest.mark.parametrize("nav", ["ls", "cd", "cat", "grep"])
def test_nav_sends_the_document_of_its_verb(nav):
    asked, execute = answering({"data": {"nav": {"kind": "list", "title": "t", "items": []}}})

    tool.call({"nav": nav, "target": "event-1", "query": "x", "limit": 5}, execute)

    assert asked == [(tool.document(nav), {"target": "event-1", "query": "x", "limit": 5})]


def test_parameters_filled_with_nothing_are_left_out():
    asked, execute = answering({"data": {"search": {"status": "found", "results": []}}})

    tool.call({"query": "x", "kind": "", "nav": None, "target": " ", "session_id": "", "count_only": False}, execute)

    assert asked[0][1] == {"query": "x", "count_only": False}


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"limit": 51}, "limit"),
        ({"limit": "5"}, "limit"),
        ({"kind": "poem"}, "kind"),
        ({"nav": "rm"}, "nav"),
        ({"nav": "cd"}, "target"),
        ({"nav": "grep"}, "query"),
        ({"target": "event-1"}, "target"),
        ({"nav": "grep", "query": "x", "count_only": True}, "count_only"),
        ({"token_budget": 59}, "token_budget"),
        ({"since": "soon"}, "since"),
        ({"query": "\ud800"}, "query"),
        ({"viewer": "s1"}, "viewer"),
    ],
)
def test_argument_outside_the_contract_names_the_field(arguments, field):
    line, code = tool.call(arguments, answering({})[1])

    error = json.loads(line)["error"]
    assert code == 2
    assert list(error) == ["field", "problem", "allowed", "message"]
    assert error["field"] == field
    assert error["allowed"]


def test_argument_that_the_service_refuses_is_printed_the_same_way():
    refused = {"field": "project", "problem": "unknown", "allowed": "a", "message": "project: unknown; allowed: a"}

    line, code = tool.call({"project": "x"}, answering({"data": {"search": refused}})[1])

    assert json.loads(line) == {"error": refused}
    assert code == 2


def test_huge_token_budget_is_as_good_as_the_largest(call):
    assert call(query="x", token_budget=10**30)[1] in {0, 1}


def test_count_only_false_says_nothing_to_nav(call, talk):
    talk.user("the harbour opens at nine")

    assert call(nav="grep", query="harbour", count_only=False) == call(nav="grep", query="harbour")


def test_cursor_belongs_to_what_was_resolved_not_to_how_it_was_said(settings, db, talk):
    talk.wrote("a.md")
    talk.wrote("b.md")
    talk.user("harbour")
    talk.user("harbour")
    everywhere = executor.in_process(settings, Asker(project="all"))
    here = executor.in_process(settings, Asker(project=talk.project))
    unsaid = executor.in_process(settings, OWNER)
    for asked in ({"query": "harbour"}, {"nav": "ls", "target": "s1"}):
        first = json.loads(tool.call({**asked, "limit": 1}, everywhere)[0])
        rest = {**asked, "limit": 1, "cursor": first["cursor"]}

        assert tool.call(rest, everywhere) == tool.call({**rest, "project": "all"}, unsaid)
        assert json.loads(tool.call(rest, here)[0])["error"]["field"] == "cursor"

    narrow = json.loads(tool.call({"query": "harbour", "session_id": "s1", "limit": 1}, everywhere)[0])["cursor"]
    rest = {"query": "harbour", "session_id": "session-s1", "project": talk.project, "cursor": narrow}
    assert tool.call(rest, unsaid)[1] == 0


def test_errors_of_the_service_are_raised():
    with pytest.raises(ServiceError, match="too deep"):
        tool.call({"query": "x"}, answering({"errors": [{"message": "too deep"}]})[1])


RESULTS = [
    NavResult(kind=NavKind.LIST, title="t", items=[]),
    NavResult(
        kind=NavKind.NODE,
        title="决定 \u2028 \ud800",
        items=[
            NavItem(id="decision-4", type=NavType.DECISION, label="用服务端会话"),
            NavItem(id="event-9", type=NavType.EVENT, label="", ref="goal-9"),
        ],
        context=NavContext(session_id="s", asset_id=Long(2**40), evidence=["event-1"]),
        status="not-found",
        suggestion="ls",
        cursor="c",
        notes=["n"],
    ),
    NavResult(kind=NavKind.HITS, title="", items=[], context=NavContext(evidence=[])),
    SearchResult(status="found", results=[], count=Long(0)),
    SearchResult(
        status="degraded",
        results=[
            SearchHit(id="a", kind="goal", ts=None, seq=Long(1), session_id="s", body="b", score=1.0, why=["word"]),
            SearchHit(id="b", kind="goal", ts="", seq=Long(2), session_id="", body="", score=1e-7, why=[]),
            SearchHit(id="c", kind="goal", ts="", seq=Long(3), session_id="", body="", score=0.0, why=[]),
        ],
        cursor="c",
        suggestion="s",
        notes=[],
    ),
]  # fmt: skip


@pytest.mark.parametrize("result", RESULTS, ids=range(len(RESULTS)))
def test_printed_line_is_the_one_whose_tokens_were_counted(result):
    # What GraphQL answers: all selected fields in order, null where there is nothing.
    def selected(value):
        if isinstance(value, list):
            return [selected(part) for part in value]
        if hasattr(value, "__dataclass_fields__"):
            return {name: selected(getattr(value, name)) for name in value.__dataclass_fields__}
        return budget.wire(value)

    verb = {"nav": "ls"} if isinstance(result, NavResult) else {}

    line, code = tool.call(verb, answering({"data": {"field": selected(result)}})[1])

    assert line == budget.line(result)
    assert code == (1 if result.status == "not-found" else 0)


def test_printed_answers(call, talk, snapshot):
    talk.user("the harbour opens at nine")
    talk.wrote("docs/harbour.md", "# Harbour\n\n港口九点开门。\n")

    answers = [
        call(query="港口", count_only=True),
        call(nav="ls", target="s1"),
        call(nav="cat", target="event-1"),
        call(nav="cd", target="event-404"),
        call(nav="cd", target="event-1", limit=51),
    ]

    assert answers == snapshot


def test_without_a_service_the_store_answers(settings, db, talk):
    talk.user("the harbour opens at nine")

    assert executor.http(settings, OWNER) is None
    assert tool.call({"query": "harbour"}, executor.connect(settings, OWNER))[1] == 0


def test_asking_a_service_needs_the_standard_library_only():
    loaded = "import sys, graphsvc.client.executor; print(*{name.partition('.')[0] for name in sys.modules})"

    names = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True).stdout.split()

    assert not {"strawberry", "graphql", "starlette", "uvicorn", "rich"} & set(names)


@pytest.mark.parametrize("char", ["\u0085", "\u2028", "\u2029", "\x0b", "\x1c", "\r", "\ud800", "\0"])
def test_an_answer_is_one_line_for_every_reader(talk, call, char):
    talk.user(f"before{char}after")
    line, _ = call(nav="cat", target="event-1")

    assert len(line.splitlines()) == 1
    assert json.loads(line.encode("utf-8"))["items"][0]["label"] == f"before{char}after"
