"""Whether a document may change something is told without parsing it whole, and as its parser would tell."""

from __future__ import annotations

import socket
import threading
from contextlib import closing

import pytest
from graphql import GraphQLSyntaxError, OperationDefinitionNode, OperationType, parse
from hypothesis import given
from hypothesis import strategies as st

from graphsvc import resources
from graphsvc.client import executor
from graphsvc.client.operation import mutates
from graphsvc.client.token import make_token
from graphsvc.recall.scope import Asker

DO = "{ do }"
MUTATIONS = [
    f"mutation {DO}",
    "mutation{do}",
    f"  \t mutation M {DO}",
    f"\ufeffmutation M {DO}",
    f"# what it does\nmutation {DO}",
    f'# "\nmutation {DO}',
    f'# """\rmutation {DO}',
    f"fragment f on Query {{ a }} mutation {DO}",
    f"query a {{ a }}, mutation b {DO}",
    f"{{ a }} mutation {DO}",
    f'query a {{ a(t: "}}{{\\"") }} mutation b {DO}',
    f'query a {{ a(t: """ \\""" }} {{ "" """) }} mutation b {DO}',
    f'query a {{ a(t: """\\\\ """) }} mutation b {DO}',
    f"query ($o: O = {{ a: [1] }}) @skip(if: true) {{ a(o: {{ b: {{}} }}) }} mutation {DO}",
]
QUERIES = [
    "",
    DO,
    "{\nmutation\n}",
    f"query mutation {DO}",
    f"query\nmutation {DO}",
    "fragment mutation on Query { a } query a { ...mutation }",
    "query a($mutation: [String]\n@mutation) { a }",
    f"query a\n@mutation {DO}",
    f"# mutation {DO}\n{DO}",
    '{ a(t: """\nmutation { do }\n""") }',
    '{ a(t: "\\"} mutation { do }") }',
    f"query ($o: O = {{ a: 1 }}\nmutation: 1) {DO}",
    f"subscription mutation {DO}",
    f"mutations {DO}",
]


@pytest.mark.parametrize("document", MUTATIONS)
def test_a_mutation_is_one_wherever_it_stands(document):
    assert mutates(document)


@pytest.mark.parametrize("document", QUERIES)
def test_a_word_in_another_place_is_no_mutation(document):
    assert not mutates(document)


def test_a_long_document_is_read_in_a_moment():
    for part in ('"', '"""', "\\", '"""\\', "{", '"""a"', "#"):
        assert not mutates(part * 100_000)


@given(st.lists(st.sampled_from([*'{}()\n\\#", ', '"""', "mutation", "query", "a", "$a", ":", "@", "fragment", "on"])))
def test_what_can_be_parsed_is_told_as_its_parser_tells(tokens):
    document = " ".join(tokens)
    try:
        found = parse(document).definitions
    except GraphQLSyntaxError:
        mutates(document)
        return
    operations = [one.operation for one in found if isinstance(one, OperationDefinitionNode)]
    assert mutates(document) == (OperationType.MUTATION in operations)


@pytest.mark.parametrize("name", resources.names("queries", ".graphql"))
def test_saved_documents_are_told_as_their_parser_tells(name):
    text = resources.text(name)
    operations = [one.operation for one in parse(text).definitions if isinstance(one, OperationDefinitionNode)]

    assert mutates(text) == (OperationType.MUTATION in operations)


def test_a_mutation_that_a_dying_service_took_is_not_repeated(settings, db):
    """A service that takes each request and closes without an answer."""
    make_token(settings)
    with closing(socket.socket(socket.AF_UNIX)) as listener, executor.address(settings.socket) as name:
        listener.bind(name)
        listener.listen()

        def die() -> None:
            for _ in range(2):
                listener.accept()[0].close()

        dying = threading.Thread(target=die)
        dying.start()
        ask = executor.connect(settings, Asker())
        with pytest.raises(executor.NoAnswer):
            ask('# add a goal\n  mutation { goal_add(text: "open") { __typename } }', {})
        dying.join()
    assert db.execute("SELECT COUNT(*) FROM records").fetchone()[0] == 0
