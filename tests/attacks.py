"""Requests that cost their sender nothing and a service much, in one table: name → the body of a POST.

Each must be refused, and soon. Used by `test_attacks.py`, and by `suites/attacks.py` which measures.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final


def body(document: str, variables: Mapping[str, object] | None = None, operation: str | None = None) -> bytes:
    """Write a request."""
    asked = {"query": document, "variables": variables or {}, "operationName": operation}
    return json.dumps(asked).encode()


def fragments(count: int, inside: str, last: str, on: str = "Query") -> str:
    """Write a chain of fragments; `inside` may name the next one as NEXT."""
    chain = " ".join(f"fragment f{i} on {on} {{ {inside.replace('NEXT', f'...f{i + 1}')} }}" for i in range(count))
    return f"{chain} fragment f{count} on {on} {{ {last} }}"


def nested(levels: int, opening: str, inner: str, closing: str) -> str:
    """Write something inside itself."""
    return opening * levels + inner + closing * levels


STATS: Final = "stats { position }"
PAGE: Final = "edges { node { %s } }"
PAGES: Final = "sessions(first: 100) { %s }" % (
    PAGE % ("events(first: 100) { %s }" % (PAGE % "lineage(first: 100) { edges { node { rule } } }"))
)
INTROSPECT: Final = "fields { type { fields { type { fields { type { fields { name } } } } } } }"
CLIQUE: Final = 18  # fragments that all name each other
EVENT: Final = {"session_id": "s", "kind": "user_message", "origin": "o", "body": "x"}

DOCUMENTS: Final[Mapping[str, tuple[str, Mapping[str, object], str | None]]] = {
    name: (document, variables, operation)
    for name, document, variables, operation in [
        # deep
        ("deep: fields", "{ sessions { edges { node { " + nested(200, "lineage { edges { node { source { ... on Session { ", "id", "} } } } }") + " } } } }", {}, None),
        ("deep: 20,000 braces", "{a" * 20_000, {}, None),
        ("deep: inline fragments", nested(150, "{ ... ", "{ __typename }", " }"), {}, None),
        ("deep: list literal", '{ nodes(ids: ' + nested(900, "[", "1", "]") + ") { id } }", {}, None),
        ("deep: object literal", "mutation { capture(events: [{session_id: \"s\", kind: \"k\", origin: \"o\", body: \"b\", meta: " + nested(400, "{a: ", "1", "}") + "}]) { accepted } }", {}, None),
        ("deep: type of a variable", "query ($v: " + nested(900, "[", "Int", "]") + ") { __typename }", {}, None),
        # wide
        ("wide: one field 600 times", "{ " + "__typename " * 600 + "}", {}, None),
        ("wide: one object 450 times", "{ " + f"{STATS} " * 450 + "}", {}, None),
        ("wide: 700 names that are none", "{ " + " ".join(f"n{i}" for i in range(700)) + " }", {}, None),
        ("wide: 1,900 near names", "{ " + "sessionz " * 1_900 + "}", {}, None),
        ("wide: 45 repeated in 40 branches", "{ " + " ".join("... on Query { " + "stats { position } " * 10 + "}" for _ in range(40)) + " }", {}, None),
        ("wide: conflicts", "{ " + " ".join(f"stats(project: \"{i}\") {{ position }}" for i in range(50)) + " }", {}, None),
        ("wide: conflicts through fragments", "{ " + " ".join(f"...f{i}" for i in range(45)) + " } " + " ".join(f"fragment f{i} on Query {{ " + f'stats(project: "{i}") {{ position }} ' * 5 + "}" for i in range(45)), {}, None),
        ("wide: conflicts of conflicts", "{ " + " ".join("sessions { " + "edges { cursor } " * 10 + "}" for _ in range(20)) + " }", {}, None),
        ("wide: conflicts that nobody uses", "{ __typename } fragment f on Query { " + " ".join(f'stats(project: "{i}") {{ position }}' for i in range(200)) + " }", {}, None),
        ("wide: conflicts in cycles", "{ ...a } fragment a on Query { ...b " + " ".join(f'stats(project: "{i}") {{ position }}' for i in range(200)) + " } fragment b on Query { ...a }", {}, None),
        # aliases
        ("aliases: 1,000", "{ " + " ".join(f"a{i}: __typename" for i in range(1_000)) + " }", {}, None),
        ("aliases: 31 searches", "{ " + " ".join(f'a{i}: search(query: "a") {{ __typename }}' for i in range(31)) + " }", {}, None),
        ("aliases: through fragments", "{ ...f ...f } fragment f on Query { " + " ".join(f"a{i}: __typename" for i in range(16)) + " }", {}, None),
        # fragments
        ("fragments: 60 that double", "{ ...f0 } " + fragments(60, "NEXT NEXT", STATS), {}, None),
        ("fragments: 60 that double in fields", "{ sessions { edges { node { ...f0 } } } } " + fragments(60, "lineage { edges { node { source { NEXT } target { NEXT } } } }", "id", "Linked"), {}, None),
        ("fragments: 240 in a chain", "{ ...f0 } " + fragments(240, "NEXT", STATS), {}, None),
        ("fragments: 30 of fields that double", "{ ...f0 } " + fragments(30, STATS + " NEXT " + STATS + " NEXT", STATS), {}, None),
        ("fragments: a cycle", "{ ...a } fragment a on Query { ...b } fragment b on Query { ...a }", {}, None),
        ("fragments: of itself", "{ ...a } fragment a on Query { ...a __typename ...a }", {}, None),
        ("fragments: all name all", "{ ...f0 } " + " ".join(f"fragment f{i} on Query {{ " + " ".join(f"...f{j}" for j in range(CLIQUE)) + " __typename }" for i in range(CLIQUE)), {}, None),
        ("fragments: cycles of fields", "{ sessions { edges { node { ...a } } } } fragment a on Session { lineage { edges { node { source { ...a } target { ...a } } } } }", {}, None),
        ("fragments: 200 that nobody uses", "{ __typename } " + " ".join(f"fragment f{i} on Query {{ __typename }}" for i in range(200)), {}, None),
        ("fragments: 60 that double and nobody uses", "{ __typename } " + fragments(60, "NEXT NEXT", STATS), {}, None),
        ("fragments: cycles that branch", "{ sessions { edges { node { ...a ...b } } } } " + " ".join(f"fragment {one} on Linked {{ lineage {{ edges {{ node {{ source {{ ...a ...b }} target {{ ...b ...a }} }} }} }} }}" for one in "ab"), {}, None),
        ("fragments: overlapping", "{ " + " ".join(f"...f{i}" for i in range(40)) + " } " + " ".join(f"fragment f{i} on Query {{ stats {{ position }} x: stats {{ events }} ...f{(i + 1) % 40} }}" for i in range(40)), {}, None),
        # directives
        ("directives: 1,000", "{ __typename " + "@include(if: true) " * 1_000 + "}", {}, None),
        ("directives: 600 unknown", "{ __typename " + "@a " * 600 + "}", {}, None),
        ("directives: 300 on the operation", "query " + "@skip(if: false) " * 300 + "{ __typename }", {}, None),
        # size
        ("size: 100,000 tokens", "{ " + "a " * 30_000 + "}", {}, None),
        ("size: 20,000 comments", "#\n" * 20_000 + "{", {}, None),
        ("size: a name of 60,000", "{ " + "a" * 60_000 + " }", {}, None),
        ("size: a text of 60,000", '{ nothing(a: "' + "a" * 60_000 + '") }', {}, None),
        ("size: 15,000 escapes", '{ nothing(a: "' + "\\u0061" * 10_000 + '") }', {}, None),
        ("size: a block text", '{ nothing(a: """' + "\n a" * 15_000 + '""") }', {}, None),
        ("size: a number of 60,000", "{ nodes(ids: " + "9" * 60_000 + ") { id } nothing }", {}, None),
        ("size: a list of 1,900", "{ nodes(ids: [" + "1 " * 1_900 + "]) { id } nothing }", {}, None),
        ("size: 100 names of 500", "{ " + " ".join(f"{'a' * 500}{i}" for i in range(100)) + " }", {}, None),
        # variables
        ("variables: 400 unused", "query (" + " ".join(f"$v{i}: Int" for i in range(400)) + ") { __typename }", {}, None),
        ("variables: 250,000 numbers", "query ($ids: [ID!]!) { nodes(ids: $ids) { id nothing } }", {"ids": [1] * 250_000}, None),
        ("variables: 100,000 wrong ones", "query ($first: PageSize!) { sessions(first: $first) { totalCount } }", {"first": [[]] * 100_000}, None),
        ("variables: 30,000 wrong events", "mutation ($e: [EventInput!]!) { capture(events: $e) { accepted } }", {"e": [{"a": 1}] * 30_000}, None),
        ("variables: deep", "query ($v: JSON) { __typename }", {"v": json.loads(nested(90, "[", "1", "]"))}, None),
        ("variables: too deep", "query ($v: String) { __typename }", {"v": json.loads(nested(140, '{"a":', "1", "}"))}, None),
        ("variables: a text of 1,000,000", "query ($first: PageSize!) { sessions(first: $first) { totalCount } }", {"first": "9" * 1_000_000}, None),
        ("variables: 50,000 names", "query ($v: Int!) { __typename }", {f"v{i}": 1 for i in range(50_000)}, None),
        # introspection
        ("introspection: deep types", "{ __schema { types { " + INTROSPECT + " } } }", {}, None),
        ("introspection: 40 levels of ofType", '{ __type(name: "Query") { ' + nested(40, "ofType { ", "name", " }") + " } }", {}, None),
        ("introspection: 40 times all", "{ " + " ".join(f"a{i}: __schema {{ types {{ fields {{ name args {{ name }} }} }} }}" for i in range(40)) + " }", {}, None),
        ("introspection: through fragments", "{ __schema { types { ...f0 } } } " + fragments(6, "fields { type { NEXT } }", "name", "__Type"), {}, None),
        # operations
        ("operations: 300", " ".join(f"query q{i} {{ __typename }}" for i in range(300)), {}, "q1"),
        ("operations: 100 of one name", "query q { __typename } " * 100, {}, "q"),
        ("operations: 49 with 30 searches", " ".join(f"query q{i} {{ {STATS} {STATS} {STATS} nothing }}" for i in range(49)), {}, "q1"),
        ("operations: none of that name", "query q { __typename }", {}, "x" * 60_000),
        # letters
        ("letters: control characters", "{ __type\x00name\x07\x1b[31m }", {}, None),
        ("letters: 20,000 lone surrogates", "{ " + "\ud800" * 20_000 + " }", {}, None),
        ("letters: no letters", "\u202e{ \u200b__typename\u2028 }", {}, None),
        ("letters: 30,000 byte order marks", "\ufeff" * 30_000 + "{ nothing }", {}, None),
        ("letters: digits of other scripts", "{ sessions(first: \u0661\u0662) { totalCount } }", {}, None),
        ("letters: a text that does not end", '{ nodes(ids: "' + "\\" * 30_001, {}, None),
        # answers
        ("answers: 100 x 100 x 100 nodes", "{ " + PAGES + " }", {}, None),
        ("answers: by variables", "query ($n: PageSize!) { sessions(first: $n) { " + PAGE % ("events(first: $n) { " + PAGE % "body(length: 100000) { text }" + " }") + " } }", {"n": 100}, None),
        ("answers: by default values", "query ($n: PageSize! = 100) { sessions(first: $n) { " + PAGE % ("events(first: $n) { " + PAGE % "body { text }" + " }") + " } }", {}, None),
        ("answers: of 30 aliases", "{ " + " ".join(f"a{i}: events(first: 100) {{ {PAGE % 'body(length: 100000) { text }'} }}" for i in range(30)) + " }", {}, None),
        ("answers: of ids", "query ($ids: [ID!]!) { nodes(ids: $ids) { ... on Session { events(first: 100) { " + PAGE % "id" + " } } } }", {"ids": ["session-s"] * 100}, None),
        ("answers: through fragments", "{ ...a ...b ...c } " + " ".join(f"fragment {name} on Query {{ sessions(first: 100) {{ {PAGE % 'events(first: 50) { edges { node { id } } }'} }} }}" for name in "abc"), {}, None),
        # errors
        ("errors: 100 kinds at once", "query q($a: Nothing, $b: [Int!]! = null, $b: Int) { " + " ".join(f"stats(x{i}: $y{i}) @z{i} {{ w{i} }}" for i in range(40)) + " ...gone ...gone }", {}, None),
        ("errors: 49 wrong arguments", "{ " + " ".join(f"sessions(first: \"{i}\", after: {i}, order: no) {{ totalCount }}" for i in range(49)) + " }", {}, None),
    ]
}  # fmt: skip

BODIES: Final[Mapping[str, bytes]] = {
    **{name: body(*asked) for name, asked in DOCUMENTS.items()},
    "body: 1": b"1",
    "body: null": b"null",
    "body: nothing": b"",
    "body: 60,000 arrays": b"[" * 60_000,
    "body: 60,000 objects": b'{"a":' * 60_000,
    "body: 1 MB of arrays": b"[[],[]," * 140_000 + b"[]]",
    "body: 2 MB": b'{"query": "' + b"a" * 2_000_000 + b'"}',
    "body: a batch of 5,000": b"[" + b",".join([b'{"query":"{__typename}"}'] * 5_000) + b"]",
    "body: one name 70,000 times": b"{" + b",".join([b'"query": 1'] * 70_000) + b"}",
    "body: a number of 900,000": b'{"query": "{ __typename }", "variables": {"n": ' + b"9" * 900_000 + b"}}",
}
