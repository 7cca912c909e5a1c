"""The mirror of the graph: it holds what all may see, whatever happened to the store or to it."""

from __future__ import annotations

import random
from contextlib import closing

import ledgers
import pytest
from mirrored import assert_mirrors

from graphsvc.graph import build
from graphsvc.graph.driver import Failed, Graph
from graphsvc.memory.apply import VERSION
from graphsvc.store import database, events


@pytest.fixture
def graph(tmp_path):
    """Where the tests build a graph."""
    return tmp_path / "graph.kuzu"


def built(db, path):
    return build.build(db, path, VERSION, lambda *_: None)


def story(seed, many):
    chance = random.Random(seed)  # noqa: S311 # a made-up story, no secret
    names = [*ledgers.DOES, *(["wrote", "decided", "superseded", "goal"] * 4)]
    return [(chance.choice(names), chance.randint(0, 2), chance.randint(0, 50)) for _ in range(many)]


@pytest.mark.parametrize("seed", range(6))
def test_a_built_graph_holds_what_the_tables_say(tmp_path, graph, seed):
    home = ledgers.Home(tmp_path / "home")
    home.tell(ledgers.Story(projects=2).tell(story(seed, 150)), history=seed % 2 == 0)
    with closing(database.reader(home.settings.database)) as db:
        meta = built(db, graph)
        position = events.position(db)

    assert meta.position == position
    assert_mirrors(graph, home.settings.database)


@pytest.fixture
def told(db, talk, graph):
    """A small built graph, open."""
    talk.user("write the report")
    talk.wrote("docs/report.md")
    talk.superseded(talk.decided("cents, see docs/report.md"), "whole euros")
    built(db, graph)
    with closing(Graph(graph)) as one:
        yield one


def asked(graph, text, *, most=10, timeout_ms=1_000, **parameters):
    return graph.ask(text, parameters, most=most, timeout_ms=timeout_ms)


def test_a_question_returns_rows_with_names_and_says_when_there_are_more(told):
    text = "MATCH (n:Node {type: $type}) RETURN n.id AS id, n.status AS status ORDER BY n.number"
    rows, more = asked(told, text, type="decision")

    assert [row["status"] for row in rows] == ["superseded", "active"]
    assert not more
    assert asked(told, text, type="decision", most=1) == (rows[:1], True)


def test_a_question_changes_nothing(told, graph):
    before = told.tallies()

    with pytest.raises(Failed, match="read-only"):
        asked(told, "MATCH (n:Node) DETACH DELETE n")
    told.close()
    with closing(Graph(graph)) as reopened:
        assert reopened.tallies() == before


def test_a_parameter_that_is_missing_or_unknown_is_no_null(told):
    with pytest.raises(ValueError, match="type"):
        asked(told, "MATCH (n:Node {type: $type}) RETURN n.id")
    with pytest.raises(ValueError, match="other"):
        asked(told, "MATCH (n:Node) RETURN n.id", other=1)
