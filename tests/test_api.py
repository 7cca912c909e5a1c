"""The schema: what is printed is what is kept, documents fit it, and no document costs more than it may."""

from __future__ import annotations

import json
import logging
import re
import time
from dataclasses import fields

import pytest
from graphql import (
    FieldNode,
    InlineFragmentNode,
    build_client_schema,
    build_schema,
    get_introspection_query,
    lexicographic_sort_schema,
    parse,
    print_schema,
    validate,
)

from graphsvc import envelope, resources
from graphsvc.api import schema
from graphsvc.api.cost import shape
from graphsvc.api.limits import LIMITS, exceeded
from graphsvc.clock import utc_text
from graphsvc.model import ASKED_KINDS
from graphsvc.recall.scope import Asker
from graphsvc.store import imports

DOCUMENTS = [name for folder in ("queries/tool",) for name in resources.names(folder, ".graphql")]
OUTCOMES = {"NavResult": envelope.NavResult, "SearchResult": envelope.SearchResult}
NESTED = {
    "items": envelope.NavItem,
    "context": envelope.NavContext,
    "results": envelope.SearchHit,
}

OWNER = Asker(owner=True, session_id=None, project=None, cwd=None)


@pytest.fixture
def ask(db, clock):
    """Execute a document as the local owner: `ask("{ stats { position } }", x=1)`."""

    def ask(document, asker=None, **variables):
        context = schema.Context(db=db, asker=asker or OWNER, clock=clock)
        return schema.respond(document, variables, None, context)

    return ask


def test_printed_schema_is_the_committed_one():
    assert schema.print_sdl() == resources.text("schema/graphsvc.graphql")


def test_schema_rebuilt_by_introspection_is_the_printed_one(ask):
    rebuilt = build_client_schema(ask(get_introspection_query(specified_by_url=True))["data"])
    printed = build_schema(schema.print_sdl())

    # Introspection keeps another order of types than the printer.
    assert print_schema(lexicographic_sort_schema(rebuilt)) == print_schema(lexicographic_sort_schema(printed))


def test_everything_in_the_schema_says_what_it_is():
    undescribed = []
    for name, kind in schema.schema._schema.type_map.items():
        if name.startswith("__"):
            continue
        if not kind.description:
            undescribed.append(name)
        for field_name, field in getattr(kind, "fields", {}).items():
            if not field.description:
                undescribed.append(f"{name}.{field_name}")
            undescribed += [
                f"{name}.{field_name}({arg})" for arg, one in getattr(field, "args", {}).items() if not one.description
            ]

    assert undescribed == []


def test_kinds_are_those_of_the_protocol():
    assert [kind.value for kind in envelope.SearchKind] == list(ASKED_KINDS)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_document_is_valid(name):
    assert validate(schema.schema._schema, parse(resources.text(name))) == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_document_selects_every_field_in_the_order_it_is_printed(name):
    operation = parse(resources.text(name)).definitions[0]
    branches = operation.selection_set.selections[0].selection_set.selections

    for branch in branches:
        assert isinstance(branch, InlineFragmentNode)
        if branch.type_condition.name.value in OUTCOMES:
            check_order(branch.selection_set, OUTCOMES[branch.type_condition.name.value])


def check_order(selection, kind):
    nodes = [node for node in selection.selections if isinstance(node, FieldNode)]

    assert [node.name.value for node in nodes] == [item.name for item in fields(kind)]
    for node in nodes:
        if node.selection_set:
            check_order(node.selection_set, NESTED[node.name.value])


def test_answers_arrive(ask, talk):
    talk.user("the harbour opens at nine")

    found = ask('{ search(query: "harbour") { ... on SearchResult { status results { id body } } } }')

    assert found["data"]["search"]["results"][0]["body"] == "the harbour opens at nine"


def test_gaps_of_all_projects_are_told_to_the_owner_only(ask, talk):
    talk.user("the harbour opens at nine")

    assert ask("{ stats { gaps } }")["data"]["stats"]["gaps"] == 0
    assert ask("{ stats { gaps } }", asker=Asker(session_id="s1"))["data"]["stats"]["gaps"] is None


def test_argument_outside_the_contract_is_an_outcome(ask):
    outcome = "{ ... on InvalidInput { field problem allowed message } }"

    found = ask(
        f'{{ nav(verb: ls, limit: 51) {outcome} search(since: "soon") {outcome} }}'.replace(
            "} search", "} found: search"
        )
    )

    assert "errors" not in found
    assert found["data"]["nav"]["field"] == "limit"
    assert found["data"]["nav"]["allowed"] == "1 to 50"
    assert found["data"]["found"]["field"] == "since"


@pytest.mark.parametrize("bad", ["\ud800", "a\0b"])
def test_query_that_is_no_text_is_refused(ask, bad):
    document = "query ($words: String) { search(query: $words) { ... on InvalidInput { field } } }"

    assert ask(document, words=bad)["data"]["search"] == {"field": "query"}


def test_sessions_page_without_gap_or_repetition(ask, talk):
    for name in ("s1", "s2", "s3", "s4", "s5"):
        talk.session(name).user("hello")
    fields = "edges { node { id } } pageInfo { hasNextPage endCursor }"
    document = f"query ($after: Cursor) {{ sessions(first: 2, after: $after) {{ {fields} }} }}"
    seen, after, more = [], None, True

    while more:
        page = ask(document, after=after)["data"]["sessions"]
        seen += [edge["node"]["id"] for edge in page["edges"]]
        after, more = page["pageInfo"]["endCursor"], page["pageInfo"]["hasNextPage"]

    assert seen == [f"session-s{number}" for number in (5, 4, 3, 2, 1)]


@pytest.mark.parametrize(
    ("arguments", "allowed"),
    [
        ("first: 101", "1 to 100"),
        ("first: 0", "1 to 100"),
        ('after: "x"', "endCursor"),
        ('since: "yesterday"', "ISO 8601"),
    ],
)
def test_an_argument_of_a_list_is_checked_before_anything_runs(ask, arguments, allowed):
    answer = ask(f"{{ sessions({arguments}) {{ edges {{ cursor }} }} }}")

    assert "data" not in answer
    assert allowed in answer["errors"][0]["message"]


def test_title_of_a_session_that_hides_something_is_its_own(ask, talk):
    talk.isolated()
    talk.user("hello", title="secret plan")
    document = "{ sessions { edges { node { id title } } } }"

    others = ask(document)
    own = ask(document, asker=Asker(owner=True, session_id="s1", project=None, cwd=None))

    assert "secret plan" not in json.dumps(others)
    assert own["data"]["sessions"]["edges"][0]["node"]["id"] == "session-s1"


CAPTURE = (
    "mutation ($events: [EventInput!]!) { capture(events: $events)"
    " { accepted duplicates rejected { index code message } kinds { name count } position } }"
)


def event(origin, **more):
    return {"session_id": "s1", "kind": "user_message", "origin": origin, "body": "hi", "project": "/srv/p", **more}


def test_capture_stores_what_it_can_and_names_the_rest(ask):
    given = [event("a"), event("b", kind="poem"), event("c", meta={"message_id": "m"}), event("d", ts="soon")]

    outcome = ask(CAPTURE, events=given)["data"]["capture"]

    assert outcome["accepted"] == 2
    assert [(one["index"], one["code"]) for one in outcome["rejected"]] == [(1, "invalid-input"), (3, "invalid-input")]
    assert ask(CAPTURE, events=given)["data"]["capture"]["duplicates"] == 2


def test_every_code_of_a_rejected_event_is_one_of_the_table_in_its_description(ask, db, clock, tmp_path):
    about = '{ __type(name: "RejectedEvent") { fields { name description } } }'
    described = {field["name"]: field["description"] for field in ask(about)["data"]["__type"]["fields"]}
    table = set(re.findall(r"^\| ([a-z]+(?:-[a-z]+)*) \| [^|]+ \|$", described["code"], re.MULTILINE)) - {"code"}
    goal = {"kind": "goal", "body": "open", "meta": {"action": "record"}}

    def rejected(*given):
        return [one["code"] for one in ask(CAPTURE, events=list(given))["data"]["capture"]["rejected"]]

    def changes(origin, action, of, **more):
        return event(origin, **{**goal, "meta": {"action": action, "of": of}, **more})

    assert (
        rejected(event("goal", **goal), event("open", **goal), event("iso", session_id="s2", body="/thread-iso")) == []
    )
    met = [
        *rejected(event("a", kind="poem"), event("b", kind="goal", meta={"action": "sing"})),
        *rejected(changes("c", "complete", "nothing"), changes("d", "drop", "goal"), changes("e", "drop", "goal")),
        *rejected(event("f", project="/srv/q"), changes("g", "complete", "open", session_id="s2")),
    ]
    imports.pause(db, "/srv/p", utc_text(clock()))
    met += rejected(event("h"))
    (tmp_path / ".graphsvc.toml").write_text("unknown = 1\n")
    met += rejected(event("j", session_id="s3", project=str(tmp_path)))
    of_another = ask(CAPTURE, asker=Asker(session_id="s1"), events=[event("i", session_id="s2")])
    met += [one["code"] for one in of_another["data"]["capture"]["rejected"]]
    imports.resume(db, "/srv/p", utc_text(clock()))
    ask('mutation { forget(ids: ["event-1"], confirm: true) { ... on Forgotten { done } } }')
    met += rejected(event("goal", **goal))

    assert met[:2] == ["invalid-input", "invalid-input"]
    assert set(met) == table


def test_captured_text_is_kept_whatever_it_holds(ask):
    body = "lone \ud800, NUL \0, \u2028, \r\n, \ufeff"

    assert ask(CAPTURE, events=[event("a", body=body)])["data"]["capture"]["accepted"] == 1
    found = ask('{ nav(verb: cat, target: "event-1") { ... on NavResult { items { label } } } }')

    assert found["data"]["nav"]["items"][0]["label"] == body


def test_bug_is_masked_and_logged_under_its_id(clock, caplog):
    closed = schema.Context(db=None, asker=OWNER, clock=clock)

    with caplog.at_level(logging.DEBUG):
        found = schema.respond('{ search(query: "canary") { __typename } }', {}, None, closed)

    correlation = found["errors"][0]["extensions"]["correlation_id"]
    assert correlation in caplog.text
    assert "canary" not in caplog.text + json.dumps(found)
    assert "NoneType" not in json.dumps(found)


def doubling(count):
    """A chain of fragments, each naming the next one twice."""
    chain = " ".join(f"fragment f{i} on Query {{ ...f{i + 1} ...f{i + 1} }}" for i in range(count))
    return f"{{ ...f0 }} {chain} fragment f{count} on Query {{ stats {{ position }} }}"


def deep(levels):
    """`__type` and `ofType` below it: fields of a schema that nest without end."""
    return '{ __type(name: "Query") ' + "{ ofType " * (levels - 2) + "{ name" + " }" * (levels - 1) + " }"


COSTLY = {
    "fragments that double": doubling(60),
    "fragments in a long chain": doubling(150),
    "aliases": "{ " + " ".join(f"a{i}: stats {{ position }}" for i in range(31)) + " }",
    "aliases through fragments": "{ ...f ...f } fragment f on Query { "
    + "".join(f"a{i}: __typename " for i in range(16)) + "}",
    "fields": "{ " + "".join(f"...f{i} " for i in range(20)) + "} "
    + "".join(f"fragment f{i} on Query {{ " + "__typename stats { position } " * 9 + "} " for i in range(20)),
    "one field again and again": "{ " + "__typename " * 600 + "}",
    "tokens": "{ " + "__typename " * 100_000 + "}",
    "introspection too deep": deep(17),
    "nesting without fields": "{ " + "... { " * 150 + "__typename" + " }" * 151,
    "directives": "{ __typename " + "@include(if: true) " * 1_000 + "}",
}  # fmt: skip


@pytest.mark.parametrize("document", COSTLY.values(), ids=COSTLY.keys())
def test_costly_document_is_refused_cheaply(ask, document):
    ask("{ __typename }")
    begun = time.process_time()

    found = ask(document)

    assert time.process_time() - begun < 1
    assert "data" not in found
    assert found["errors"]


def test_depth_of_fields_is_limited():
    # Nothing of our own nests that deep yet, so the document belongs to another schema.
    def nested(levels):
        return parse("{ " + "a { " * (levels - 1) + "a" + " }" * levels)

    assert exceeded(shape(nested(12))) == []
    assert "12 fields below each other" in exceeded(shape(nested(13)))[0].message


def test_fragment_cycle_is_an_error_of_validation(ask):
    found = ask("{ ...a } fragment a on Query { ...b } fragment b on Query { ...a }")

    assert "itself" in found["errors"][0]["message"]


def test_operation_that_is_not_there_is_a_request_error(ask, db, clock):
    context = schema.Context(db=db, asker=OWNER, clock=clock)

    found = schema.respond("query a { __typename } query b { __typename }", {}, "c", context)

    assert "data" not in found


def test_usual_introspection_is_within_the_limits(ask):
    assert "errors" not in ask(get_introspection_query())


def test_cost_is_what_the_limits_measure(ask):
    document = (
        "query a($n: PageSize!) { cost { nodes fields depth aliases tokens }"
        " events(first: $n) { edges { node { ...f } } } }"
        " fragment f on Event { id session { title } }"
    )

    few, many = (ask(document, n=n)["data"]["cost"] for n in (1, 100))

    assert few["nodes"] * 50 < many["nodes"] < LIMITS["nodes"].most
    assert {name: few[name] for name in ("fields", "depth", "aliases", "tokens")} == {
        "fields": 12, "depth": 5, "aliases": 0, "tokens": 47,
    }  # fmt: skip
