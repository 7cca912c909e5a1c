"""What a document may cost: how many objects its answer may hold, told before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest
import strawberry
from graphql import parse
from strawberry.schema.config import StrawberryConfig

from graphsvc import resources
from graphsvc.api import cost, limits, schema
from graphsvc.api.limits import LIMITS
from graphsvc.api.pages import TWENTY


@strawberry.type
class Item:
    @strawberry.field
    def name(self) -> str:
        return "x"

    @strawberry.field
    def text(self, length: int = 4_000) -> str:
        return "x" * length

    @strawberry.field
    def page(self, first: int = 20) -> Page:
        raise AssertionError(first)

    @strawberry.field
    def rows(self, first: int | None = None) -> list[Item]:
        raise AssertionError(first)

    @strawberry.field
    def chosen(self, ids: list[strawberry.ID]) -> list[Item | None]:
        raise AssertionError(ids)

    @strawberry.field
    def found(self, token_budget: int) -> Item:
        raise AssertionError(token_budget)

    @strawberry.field
    def one(self) -> Item:
        raise AssertionError("ran")


@strawberry.type
class Edge:
    node: Item


@strawberry.type
class Page:
    edges: list[Edge]


PAGES = strawberry.Schema(
    query=strawberry.type(type("Query", (Item,), {})),
    config=StrawberryConfig(auto_camel_case=False),
    extensions=limits.extensions(),
)
HERE = object()  # without anything to work with, nothing would be executed
PAGE = "edges { node { name } }"


def nodes(document, operation=None, **variables):
    return cost.measure(PAGES._schema, parse(document), operation, variables).nodes


@pytest.mark.parametrize(
    ("document", "variables", "expected"),
    [
        ("{ name }", {}, 0),
        ("{ one { name } }", {}, 1),
        ("{ one { one { name } } }", {}, 2),
        ("{ page { edges { node { name } } } }", {}, 1 + 20 * 2),
        ("{ page(first: 7) { edges { node { name } } } }", {}, 1 + 7 * 2),
        ("{ rows { name } }", {}, 20),
        ("{ rows(first: 7) { one { name } } }", {}, 14),
        ("{ rows(first: null) { name } }", {}, 100),
        ("{ rows(first: 1000000) { name } }", {}, 100),
        ("{ rows(first: 99999999999999999999) { name } }", {}, 100),
        ("{ rows(first: -3) { name } }", {}, 100),
        ("{ rows(first: true) { name } }", {}, 100),
        ("query ($n: Int) { rows(first: $n) { name } }", {}, 20),
        ("query ($n: Int) { rows(first: $n) { name } }", {"n": 3}, 3),
        ("query ($n: Int) { rows(first: $n) { name } }", {"n": 3.0}, 3),
        ("query ($n: Int) { rows(first: $n) { name } }", {"n": "3"}, 100),
        ("query ($n: Int = 5) { rows(first: $n) { name } }", {}, 5),
        ("query ($n: Int = 5) { rows(first: $n) { name } }", {"n": 6}, 6),
        ("{ text }", {}, 4),
        ("{ text(length: 1) }", {}, 1),
        ("{ text(length: 1001) }", {}, 2),
        ("{ chosen(ids: [1, 2, 3]) { name } }", {}, 3),
        ("query ($ids: [ID!]!) { chosen(ids: $ids) { one { name } } }", {"ids": ["a", "b"]}, 4),
        ("query ($ids: [ID!]!) { chosen(ids: $ids) { name } }", {"ids": ["a"] * 5_000}, 100),
        ("{ found(token_budget: 5001) { name } }", {}, 1 + 21),
        ("{ found(token_budget: 1000000000) { name } }", {}, 1 + 2_000),
        ("{ rows(first: 10) { text(length: 5000) } }", {}, 10 * (1 + 5)),
        ("{ ...a ...a } fragment a on Query { rows(first: 3) { ...b } } fragment b on Item { one { name } }", {}, 12),
        ("{ ... on Query { rows(first: 3) { ... { name } } } }", {}, 3),
        ("{ ...a } fragment a on Query { one { name } ...a }", {}, 1),
        ("{ nothing { more } ...gone }", {}, 0),
    ],
)
def test_objects_of_an_answer_are_counted_from_its_arguments(document, variables, expected):
    assert nodes(document, **variables) == expected


def test_the_operation_that_runs_is_counted():
    document = "query small { name } query large { rows(first: 9) { name } }"

    assert nodes(document, "small") == 0
    assert nodes(document, "large") == 9
    assert nodes(document, "none") == 0


def test_variables_decide_each_time_whether_a_document_is_too_expensive():
    document = "query ($n: Int) { rows(first: $n) { rows(first: $n) { rows(first: $n) { name } } } }"

    few = PAGES.execute_sync(document, {"n": 21}, HERE)
    many = PAGES.execute_sync(document, {"n": 22}, HERE)

    assert [type(error.original_error) for error in few.errors] == [AssertionError], "it ran"
    [error] = many.errors
    assert error.extensions == {"code": "TOO_EXPENSIVE", "limit": "nodes", "most": 10_000, "cost": 11_154}
    assert "first" in error.message


def test_a_bound_is_found_without_expanding_fragments():
    chain = " ".join(f"fragment f{i} on Item {{ one {{ ...f{i + 1} ...f{i + 1} }} }}" for i in range(40))

    document = f"{{ one {{ ...f0 }} }} {chain} fragment f40 on Item {{ name }}"

    assert nodes(document) == cost.MOST


def test_what_is_nested_too_deeply_to_be_counted_costs_the_most():
    assert nodes("{ one " * 110 + "{ name " + "} " * 111) == cost.MOST


def test_every_limit_of_a_document_is_a_number_of_its_cost():
    measured = cost.measure(PAGES._schema, parse("{ a: one { name name } __schema { types { name } } }"))

    assert {name for name in limits.LIMITS if hasattr(measured, name)} == {
        "tokens", "operations", "depth", "introspection", "fields", "aliases", "pairs", "nesting", "nodes"
    }  # fmt: skip
    assert measured == cost.Cost(
        tokens=16, operations=1, depth=2, introspection=3, fields=6, aliases=1, pairs=1, nesting=3, nodes=3
    )


def test_many_errors_are_told_in_part():
    answer = PAGES.execute_sync("{ " + " ".join(f"gone{i}" for i in range(90)) + " }")

    assert len(answer.errors) == limits.ERRORS + 1
    assert "more errors than these 20" in answer.errors[-1].message


def test_an_error_that_quotes_what_was_sent_is_short():
    answer = PAGES.execute_sync("{ " + "x" * 60_000 + " }")

    assert len(answer.errors[0].message) < 1_000


def test_documents_of_the_tool_are_far_from_the_limits():
    for name in resources.names("queries/tool", ".graphql"):
        measured = cost.measure(schema.schema._schema, parse(resources.text(name)))

        assert [one for one in limits.LIMITS if getattr(measured, one, 0) * 2 > limits.LIMITS[one].most] == []


@pytest.mark.parametrize(
    "words",
    [
        f"depth ({LIMITS['depth'].most})",
        f"fields ({LIMITS['fields'].most})",
        f"aliases ({LIMITS['aliases'].most})",
        f"may hold ({LIMITS['nodes'].most:,})",
        f"`first` (at most {LIMITS['first'].most}, {TWENTY} when left out)",
        f"has {LIMITS['seconds'].most} seconds, one that captures {LIMITS['capture_seconds'].most}",
        f"at most {LIMITS['asker_waiting'].most} requests inside",
    ],
)
def test_readme_tells_the_limits_as_they_are(words):
    readme = (Path(__file__).resolve().parent.parent / "README.md").read_text("utf-8")

    assert words in " ".join(readme.split())
