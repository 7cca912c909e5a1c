"""Measurements: that they measure the same work, on a story that is the same each time."""

from __future__ import annotations

import json
from itertools import islice

import pytest
from histories import tell

from graphsvc.bench import story
from graphsvc.bench.dicts import Dicts
from graphsvc.bench.graph import NEAR, Bench, Figure, _compared
from graphsvc.errors import StoreError
from graphsvc.lineage.walk import Asked, Budget, lineage
from graphsvc.memory.capture import capture
from graphsvc.store import counts, sessions
from graphsvc.store.visibility import Viewer

EVERYONE = Viewer(everywhere=True)


def silent(*_):
    pass


@pytest.fixture
def told(db):
    """A store that holds the beginning of the story."""
    capture(db, list(islice(story.tell(1), 800)), history=True)
    return db


def test_the_story_is_the_same_for_the_same_seed():
    first, again, other = (list(islice(story.tell(seed), 500)) for seed in (1, 1, 2))

    assert first == again
    assert first != other


def test_the_story_is_captured_whole_and_draws_edges_of_all_types(db):
    captured = capture(db, list(islice(story.tell(1), 2_000)), history=True)

    assert captured.rejected == ()
    assert set(counts.edges(db, EVERYONE)) >= {"produces", "references", "evidence", "precedes", "next_step"}
    assert db.execute("SELECT COUNT(*) FROM hidden").fetchone()[0] > 0
    assert db.execute("SELECT COUNT(*) FROM lineage_edges WHERE end_event IS NOT NULL").fetchone()[0] > 0


def test_the_store_grows_until_it_has_so_many_edges(db):
    drawn = story.fill(db, story.tell(1), 1_000, silent)

    assert drawn == sum(counts.edges(db, EVERYONE).values())
    assert 1_000 <= drawn < 5_000


@pytest.mark.parametrize("budget", [Budget(), Budget(nodes=7, edges=9, fanout=3)])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_walk_over_dicts_answers_what_lineage_does(db, talk, seed, budget):
    tell(talk, seed)
    walked = 0
    for name in (None, "s1", "s2"):
        session = sessions.find(db, EVERYONE, name) if name else None
        viewer = Viewer(session=session.number if session else None, everywhere=True)
        dicts = Dicts(db, viewer)
        for root in dicts.named:
            answer = lineage(db, viewer, root, Asked(budget=budget))
            nodes, edges = dicts.lineage(root, 2, budget)
            told = [(one.id, one.label, one.status, one.at, one.depth) for one in answer.nodes]
            totals = [(one.upstream_total, one.downstream_total, one.hidden) for one in answer.nodes]
            assert told == [one[:5] for one in nodes]
            assert totals == [one[6:] for one in nodes]
            assert [(one.type, one.begin_event) for one in answer.edges] == [
                (one.type, one.begin_event) for one in edges
            ]
            walked += len(nodes)
    assert walked > 100


def test_an_answer_that_differs_from_the_walk_over_dicts_is_no_measurement(told):
    viewer = Viewer(everywhere=True)
    dicts = Dicts(told, viewer)
    root = max(dicts.named, key=lambda node: len(dicts.edges[node]))
    assert _compared(lineage(told, viewer, root, NEAR), dicts, root) > 1
    dicts.edges[root].pop()

    with pytest.raises(StoreError, match="not what the walk over dicts tells"):
        _compared(lineage(told, viewer, root, NEAR), dicts, root)


@pytest.mark.parametrize(("aim", "ours", "ratio", "holds"), [
    ("<= 6", 20.0, 5.9, True),
    ("<= 6", 1.0, 6.1, False),
    (">= 0.5", 1.0, 0.5, True),
    (">= 0.5", 1.0, 0.4, False),
    ("<= 250", 250.0, None, True),
    (None, 1.0, None, None),
])  # fmt: skip
def test_a_figure_says_whether_it_is_what_it_should_be(aim, ours, ratio, holds):
    assert Figure(edges=1, what="", ours=ours, unit="ms", ratio=ratio, aim=aim).holds is holds


def test_a_run_measures_at_each_size(tmp_path):
    figures = list(Bench(tmp_path / "home", silent).run([1_000, 2_500]))

    assert len(figures) == 10
    assert [one.aim for one in figures[5:]] == ["<= 6", "<= 1.5", ">= 0.5", ">= 10", "<= 250"]
    assert all(one.ours > 0 for one in figures)
    assert all(one.ratio == pytest.approx(one.ours / one.other) for one in figures if one.other is not None)
    assert figures[0].edges < 2_500 <= figures[5].edges
    assert not list((tmp_path / "home").glob("*.kuzu"))


@pytest.mark.parametrize("edges", ["", "many", "10", "3000,2000", "2000,2000", "2000,9000000"])
def test_sizes_that_are_none_are_refused(run, edges):
    got = run("bench", "graph", "--edges", edges, "--json")

    assert got.code == 2
    assert json.loads(got.out)["error"]["field"] == "edges"
