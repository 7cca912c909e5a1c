"""A change of the schema is classed by whom it breaks; documents and schemas of earlier releases stay valid."""

from __future__ import annotations

from pathlib import Path

import pytest
from graphql import build_schema, parse, validate

from graphsvc.api import schema
from graphsvc.cli.changes import changes

ROOT = Path(__file__).resolve().parent.parent
OLD = """
interface Node { id: ID! }
type Note implements Node { id: ID! text: String! old: Old @deprecated(reason: "use text") }
type Old { a: Int }
type Other { a: Int }
enum Kind { user tool gone @deprecated(reason: "nobody sends it") }
input Given { text: String! limit: Int! = 5 size: Int late: Int @deprecated(reason: "no use") }
union Outcome = Note | Other
type Query {
  notes(first: Int! = 20, after: String, gone: Int @deprecated(reason: "no use")): [Note]
  one(id: ID!): Outcome
  kind: Kind
}
type Mutation { add(given: Given!): Note }
"""

# What replaces what in OLD, and the changes that are then found: (effect, a part of the sentence, was deprecated).
SAMPLES = {
    "nothing": ("", "", []),
    "a description": ("type Other {", '"New words." type Other {', []),
    "a field more": ("type Other { a: Int }", "type Other { a: Int b: Int }", [("safe", "Other.b was added", False)]),
    "a field less": ("text: String! old", "old", [("breaking", "Note.text was removed", False)]),
    "a deprecated field less": (
        'old: Old @deprecated(reason: "use text") }\ntype Old { a: Int }',
        "}",
        [("breaking", "Note.old was removed", True), ("breaking", "Old was removed", True)],
    ),
    "a deprecated field of another type": ("old: Old @", "old: Int @", [("breaking", "Note.old changed type", True)]),
    "a type less that others lead to": (
        "| Other",
        "",
        [("breaking", "Other was removed from union type Outcome", False)],
    ),
    "a field that may be null now": (
        "text: String! old",
        "text: String old",
        [("breaking", "Note.text changed", False)],
    ),
    "a field that is never null now": ("kind: Kind", "kind: Kind!", [("safe", "Query.kind changed type", False)]),
    "a required argument more": (
        "one(id: ID!)",
        "one(id: ID!, at: Int!)",
        [("breaking", "required argument Query.one(at:) was added", False)],
    ),
    "an optional argument more": (
        "one(id: ID!)",
        "one(id: ID!, at: Int)",
        [("dangerous", "optional argument Query.one(at:) was added", False)],
    ),
    "an argument less": ("after: String, ", "", [("breaking", "Query.notes(after:) was removed", False)]),
    "a deprecated argument less": (
        ', gone: Int @deprecated(reason: "no use")',
        "",
        [("breaking", "Query.notes(gone:) was removed", True)],
    ),
    "another default": ("first: Int! = 20", "first: Int! = 50", [("dangerous", "defaultValue from 20 to 50", False)]),
    "no default any more": (
        "first: Int! = 20",
        "first: Int!",
        [
            ("breaking", "Argument Query.notes(first:) became required", False),
            ("dangerous", "defaultValue was removed", False),
        ],
    ),
    "no default of an input field": (
        "limit: Int! = 5",
        "limit: Int!",
        [("breaking", "Field Given.limit became required", False), ("dangerous", "Given.limit", False)],
    ),
    "another default of an input field": ("limit: Int! = 5", "limit: Int! = 6", [("dangerous", "from 5 to 6", False)]),
    "a required input field more": ("size: Int", "size: Int more: Int!", [("breaking", "more", False)]),
    "an optional input field more": ("size: Int", "size: Int more: Int", [("dangerous", "more", False)]),
    "a deprecated input field less": (
        'late: Int @deprecated(reason: "no use")',
        "",
        [("breaking", "Given.late was removed", True)],
    ),
    "a value more": ("user tool", "user tool web", [("dangerous", "Kind.web was added", False)]),
    "a value less": ("user tool", "user", [("breaking", "Kind.tool was removed", False)]),
    "a deprecated value less": (
        'gone @deprecated(reason: "nobody sends it")',
        "",
        [("breaking", "Kind.gone was removed", True)],
    ),
    "deprecated now": (
        "kind: Kind",
        'kind: Kind @deprecated(reason: "ask notes")',
        [("safe", "Query.kind is deprecated: ask notes", False)],
    ),
    "not deprecated any more": (
        ' @deprecated(reason: "use text")',
        "",
        [("safe", "Note.old is not deprecated any more", False)],
    ),
    "no mutations any more": (
        "type Mutation {",
        "schema { query: Query }\ntype Mutation {",
        [("breaking", "Mutation is not the root of mutation any more", False)],
    ),
    "a new type of an interface": (
        "type Other {",
        "type New implements Node { id: ID! }\ntype Other {",
        [("dangerous", "New is a new type of interface Node", False), ("safe", "New was added", False)],
    ),
    "an interface less": ("Note implements Node", "Note", [("breaking", "no longer implements", False)]),
}


@pytest.mark.parametrize(("part", "instead", "expected"), SAMPLES.values(), ids=SAMPLES)
def test_a_change_is_classed_by_whom_it_breaks(part, instead, expected):
    assert part in OLD

    found = changes(OLD, OLD.replace(part, instead, 1))

    assert [(one.effect, one.deprecated) for one in found] == [(effect, gone) for effect, _, gone in expected]
    for one, (_, words, _) in zip(found, expected, strict=True):
        assert words in one.change


def test_the_schema_is_compared_with_an_older_one(run, tmp_path):
    now = schema.print_sdl()
    (tmp_path / "same.graphql").write_text(now)
    (tmp_path / "fewer.graphql").write_text(now + "\nextend type Query { another: Int }\n")
    field = '  """Old."""\n  kept: Int @deprecated(reason: "x")\n'
    (tmp_path / "told.graphql").write_text(now + "\nextend type Query {\n" + field + "}\n")
    (tmp_path / "none.graphql").write_text("type {")

    same, fewer, told = (run("schema", "--diff", f"{name}.graphql") for name in ("same", "fewer", "told"))
    programs = run("schema", "--diff", "fewer.graphql", "--json")

    assert (same.code, same.out) == (0, "nothing changed\n")
    assert (fewer.code, fewer.out) == (1, "breaking\t\tField Query.another was removed.\n")
    assert (told.code, told.out) == (0, "breaking\twas deprecated\tField Query.kept was removed.\n")
    assert programs.code == 1
    assert programs.json == {
        "breaks": True,
        "changes": [{"effect": "breaking", "change": "Field Query.another was removed.", "deprecated": False}],
    }
    for name, said in (("none.graphql", "no schema"), ("nowhere.graphql", "cannot be read")):
        ran = run("schema", "--diff", name)
        assert (ran.code, said in ran.err, ran.err.count("\n")) == (2, True, 1)


def test_the_schema_is_printed_for_programs_too(run):
    assert run("schema", "--json").json == {"sdl": run("schema").out}


def _unfit(document: str) -> list[str]:
    """Return why a document is no question to the schema of today."""
    return [error.message for error in validate(build_schema(schema.print_sdl()), parse(document))]


def _released(root: Path) -> dict[str, list[str]]:
    """Return what is wrong with what earlier releases promised: their schemas' parts and their documents."""
    wrong = {
        str(path.relative_to(root)): [
            one.change for one in changes(path.read_text("utf-8"), schema.print_sdl()) if one.breaks
        ]
        for path in (root / "schema" / "released").glob("*.graphql")
    }
    wrong |= {
        str(path.relative_to(root)): _unfit(path.read_text("utf-8"))
        for path in (root / "queries" / "released").rglob("*.graphql")
    }
    return {name: found for name, found in wrong.items() if found}


def test_what_earlier_releases_promised_still_holds():
    assert _released(ROOT) == {}


def test_a_broken_promise_is_found(tmp_path):
    kept, schemas = tmp_path / "queries" / "released" / "0.1.0" / "tool", tmp_path / "schema" / "released"
    kept.mkdir(parents=True)
    schemas.mkdir(parents=True)
    (kept / "good.graphql").write_text("{ stats { events } }")
    (kept / "bad.graphql").write_text("{ stats { gone } }")
    (schemas / "0.1.0.graphql").write_text(schema.print_sdl() + "\nextend type Stats { gone: Int }\n")

    assert _released(tmp_path) == {
        "queries/released/0.1.0/tool/bad.graphql": ["Cannot query field 'gone' on type 'Stats'."],
        "schema/released/0.1.0.graphql": ["Field Stats.gone was removed."],
    }
