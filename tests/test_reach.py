"""Impact, paths and differences are what the tables give."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import networkx
import pytest
from histories import Oracle, reach, tell
from test_walks import DIRECTIONS, FILTERS, key_of

from graphsvc.errors import InvalidInput
from graphsvc.lineage import reach as engine
from graphsvc.lineage.answer import PathMode
from graphsvc.lineage.diff import lineage_diff
from graphsvc.lineage.reach import impact, path
from graphsvc.lineage.walk import HARD, Asked, lineage
from graphsvc.model import Direction, NodeType
from graphsvc.store.edges.walk import Filter
from graphsvc.store.visibility import Viewer


@pytest.fixture(params=range(6))
def history(request, db, talk):
    tell(talk, request.param + 100)
    return random.Random(request.param)  # noqa: S311 # no secret


def questions(db, chosen, rounds=15):
    for _ in range(rounds):
        oracle = Oracle(db, chosen.choice([None, "s1", "s2"]))
        names = sorted({end for one in oracle.edges for end in (one.source, one.target)})
        if len(names) > 1:
            yield oracle, *chosen.sample(names, 2), chosen.choice(FILTERS[:4]), chosen.choice(DIRECTIONS)


def test_impact_counts_and_lists_what_is_reached(db, history):
    for oracle, root, _, chosen, direction in questions(db, history):
        depth = history.choice([1, 2, 50])
        expected = reach(oracle.graph(chosen.edges, root=root), root, direction, depth)
        asked = {"direction": direction, "depth": depth, "chosen": chosen, "first": history.randint(1, 7)}
        viewer, key = Viewer(session=oracle.viewer), key_of(oracle, root)

        pages = [impact(db, viewer, key, **asked)]
        while pages[-1].end_cursor:
            pages.append(impact(db, viewer, key, **asked, after=pages[-1].end_cursor))

        listed = {one.id: one.depth for page in pages for one in page.nodes}
        assert listed == {name: far for name, far in expected.items() if name != root}
        assert sum(len(page.nodes) for page in pages) == len(listed)
        for page in pages:
            assert page.total == len(listed)
            assert not page.partial
            assert {one.type.value: one.count for one in page.by_type} == Counter(
                name.partition("-")[0] for name in listed
            )
            assert page.by_depth == [count for _, count in sorted(Counter(listed.values()).items())]


def test_impact_may_list_some_types_only_and_counts_them_all(db, talk):
    asked = talk.user("see docs/plan.md")
    talk.wrote("docs/plan.md")
    talk.decided("docs/plan.md holds", evidence=[asked])
    root = NodeType.SESSION, 1

    answer = impact(db, Viewer(), root, chosen=Filter(), types=(NodeType.DECISION,))

    assert [one.type for one in answer.nodes] == [NodeType.DECISION]
    assert answer.total > 1


def test_a_shortest_way_is_one(db, history):
    for oracle, root, target, chosen, direction in questions(db, history, 30):
        graph = oracle.graph(chosen.edges, root=root)
        graph.add_node(target)
        expected = reach(graph, root, direction, 12).get(target)

        answer = path(
            db, Viewer(session=oracle.viewer), key_of(oracle, root), key_of(oracle, target),
            direction=direction, chosen=chosen,
        )  # fmt: skip

        assert answer.length == expected
        if expected is None:
            assert (answer.nodes, answer.edges) == ([], [])
            continue
        names = [one.id for one in answer.nodes]
        assert (names[0], names[-1], len(names)) == (root, target, expected + 1)
        ends = {frozenset((one.source, one.target)) for one in answer.edges}
        assert ends == {frozenset(pair) for pair in pairwise(names)}


def test_a_subgraph_holds_all_ways_that_are_not_too_long(db, history):
    for oracle, root, target, chosen, direction in questions(db, history):
        length = history.choice([2, 4, 8])
        graph = oracle.graph(chosen.edges, root=root)
        graph.add_node(target)
        back = {"upstream": "downstream", "downstream": "upstream"}.get(direction, direction)
        here, there = reach(graph, root, direction, length), reach(graph, target, back, length)
        expected = {name for name in here if name in there and here[name] + there[name] <= length}

        answer = path(
            db, Viewer(session=oracle.viewer), key_of(oracle, root), key_of(oracle, target),
            mode=PathMode.SUBGRAPH, direction=direction, length=length, chosen=chosen,
        )  # fmt: skip

        assert {one.id for one in answer.nodes} == expected
        assert answer.length == here.get(target)
        steps = {
            (one.type, one.source, one.target)
            for cause, result, one in graph.edges(data="edge")
            for near, far in ((cause, result), (result, cause))
            if near in expected and far in expected and here[near] + 1 + there[far] <= length
            and (direction == "both" or (direction == "downstream") == (near == cause))
        }  # fmt: skip
        assert {(one.type, one.source, one.target) for one in answer.edges} == steps


def test_a_difference_is_that_of_two_walks(db, history):
    newest = db.execute("SELECT MAX(id) FROM events").fetchone()[0]
    for oracle, root, _, chosen, direction in questions(db, history):
        before, after = sorted(history.sample(range(1, newest + 1), 2))
        viewer, key = Viewer(session=oracle.viewer), key_of(oracle, root)
        then = [Oracle(db, viewer and oracle.sessions.get(oracle.viewer), position) for position in (before, after)]
        if not then[1].was_there(*key) or then[1].name(*key) is None:
            continue
        there = [one.was_there(*key) and one.name(*key) is not None for one in then]
        found = [
            reach(one.graph(chosen.edges, root=root), root, direction, 3) if was else {}
            for one, was in zip(then, there, strict=True)
        ]

        answer = lineage_diff(
            db, viewer, key, before=f"event-{before}", after=f"event-{after}", direction=direction, chosen=chosen
        )

        assert {one.id for one in answer.added_nodes} == found[1].keys() - found[0].keys()
        assert {one.id for one in answer.removed_nodes} == found[0].keys() - found[1].keys()
        assert not answer.partial


def test_a_difference_tells_status_changes_and_who_made_them(db, talk):
    old = talk.decided("sessions use JWT")
    before = db.execute("SELECT MAX(id) FROM events").fetchone()[0]
    talk.superseded(old, "sessions live on the server")
    number, better = (row[0] for row in db.execute("SELECT id FROM records ORDER BY id"))

    answer = lineage_diff(
        db, Viewer(), (NodeType.DECISION, number), before=f"event-{before}", after=None, chosen=Filter()
    )

    assert [(one.id, one.before, one.to, one.event) for one in answer.statuses] == [
        (f"decision-{number}", "active", "superseded", f"event-{better}"),
        (f"decision-{better}", None, "active", f"event-{better}"),
    ]
    assert [one.id for one in answer.added_nodes] == [f"decision-{better}", f"event-{better}"]


def test_a_cursor_is_of_one_question_and_one_viewer(db, talk):
    for number in range(5):
        talk.wrote(f"docs/{number}.md")
    after = impact(db, Viewer(session=1), (NodeType.SESSION, 1), chosen=Filter(), first=2).end_cursor

    for viewer, other in ((Viewer(), {}), (Viewer(session=1), {"depth": 1}), (Viewer(session=1), {"as_of": "0"})):
        with pytest.raises(InvalidInput, match="another question"):
            impact(db, viewer, (NodeType.SESSION, 1), chosen=Filter(), first=2, after=after, **other)


def test_moments_in_the_wrong_order_are_refused(db, talk):
    talk.wrote("docs/a.md")

    for before, after in (("3", "2"), ("2026-12-01", "2026-11-01")):
        with pytest.raises(InvalidInput, match="earlier moment first"):
            lineage_diff(db, Viewer(), (NodeType.SESSION, 1), before=before, after=after, chosen=Filter())


def test_what_is_too_much_is_said(db, talk, monkeypatch):
    for number in range(12):
        talk.wrote(f"docs/{number}.md")
    monkeypatch.setattr(engine, "MOST", 5)

    answer = impact(db, Viewer(), (NodeType.SESSION, 1), chosen=Filter())
    away = path(db, Viewer(), (NodeType.SESSION, 1), (NodeType.ASSET, 3), mode=PathMode.SUBGRAPH, chosen=Filter())

    assert answer.partial
    assert away.partial


@pytest.mark.parametrize(
    ("ask", "field"),
    [
        (lambda db, root: impact(db, Viewer(), root, chosen=Filter(), depth=-1), "depth"),
        (lambda db, root: impact(db, Viewer(), root, chosen=Filter(), first=101), "first"),
        (lambda db, root: impact(db, Viewer(), root, chosen=Filter(), after="nonsense"), "after"),
        (lambda db, root: path(db, Viewer(), root, root, chosen=Filter(), length=0), "max_length"),
        (lambda db, root: lineage_diff(db, Viewer(), root, before="never", after=None, chosen=Filter()), "from"),
    ],
)
def test_what_cannot_be_asked_is_refused(db, talk, ask, field):
    talk.wrote("docs/a.md")

    with pytest.raises(InvalidInput) as refused:
        ask(db, (NodeType.SESSION, 1))

    assert refused.value.field == field


def shape(db, talk, edges):
    """Draw decisions that precede each other: pairs of numbers, cause first; return the keys of all of them."""
    made = {}
    for number in sorted({end for pair in edges for end in pair}):
        talk.decided(f"number {number}", origin=f"d{number}")
        made[number] = NodeType.DECISION, db.execute("SELECT MAX(id) FROM records").fetchone()[0]
    db.executemany(
        "INSERT INTO lineage_edges VALUES ('precedes', 'decision', ?, 'decision', ?, 'stated', 'stated', ?, '2026',"
        " NULL, NULL, ?)",
        [(made[a][1], made[b][1], made[b][1], made[b][1]) for a, b in edges],
    )
    return made


def test_stacked_diamonds_are_nodes_and_not_paths(db, talk):
    ladder = [pair for n in range(0, 42, 3) for pair in ((n, n + 1), (n, n + 2), (n + 1, n + 3), (n + 2, n + 3))]
    made = shape(db, talk, ladder)
    only = Filter(nodes=(NodeType.DECISION,))

    answer = lineage(db, Viewer(), made[0], Asked(direction=Direction.DOWNSTREAM, depth=28, chosen=only, budget=HARD))
    ways = path(db, Viewer(), made[0], made[42], mode=PathMode.SUBGRAPH, length=28, chosen=only)

    assert (len(answer.nodes), len(answer.edges)) == (43, 56)
    assert (len(ways.nodes), len(ways.edges), ways.length) == (43, 56, 28)
    assert not ways.partial


def test_thirty_nodes_with_ninety_edges_at_depth_thirty(db, talk):
    chosen = random.Random(5)  # noqa: S311 # no secret
    pairs = set()
    while len(pairs) < 90:
        pairs.add(tuple(chosen.sample(range(30), 2)))
    made = shape(db, talk, sorted(pairs))
    graph = networkx.DiGraph(sorted(pairs))

    answer = lineage(
        db, Viewer(), made[0],
        Asked(direction=Direction.DOWNSTREAM, depth=30, chosen=Filter(nodes=(NodeType.DECISION,)), budget=HARD),
    )  # fmt: skip

    assert len(answer.nodes) == 1 + len(networkx.descendants(graph, 0))
    assert {frozenset(group) for group in answer.cycles} == {
        frozenset(f"decision-{made[n][1]}" for n in group)
        for group in networkx.strongly_connected_components(graph)
        if len(group) > 1
    }


def test_a_long_chain_is_walked_to_its_end(db, talk):
    made = shape(db, talk, [(0, 1)])
    db.execute("BEGIN")
    first = made[1][1]
    length = 5_000
    db.executemany(
        "INSERT INTO events (id, project, session, seq, kind, origin, at, received_at, body, meta, isolated)"
        " SELECT ?, project, session, ?, kind, ?, at, received_at, body, meta, 0 FROM events WHERE id = ?",
        [(first + n, 10_000 + n, f"chain-{n}", first) for n in range(1, length)],
    )
    db.executemany(
        "INSERT INTO records SELECT ?, type, project, session, status, text, scope, key, basis, kind, evidence,"
        " superseded_by, promoted_to, at, ?, changed_ts FROM records WHERE id = ?",
        [(first + n, first + n, first) for n in range(1, length)],
    )
    db.executemany(
        "INSERT INTO lineage_edges VALUES ('precedes', 'decision', ?, 'decision', ?, 'stated', 'stated', ?, '2026',"
        " NULL, NULL, ?)",
        [(first + n - 1, first + n, first + n, first + n) for n in range(1, length)],
    )
    db.commit()
    asked = Asked(direction=Direction.DOWNSTREAM, depth=10_000, budget=HARD, chosen=Filter(nodes=(NodeType.DECISION,)))

    answers = [lineage(db, Viewer(), made[0], asked)]
    while answers[-1].truncation.resume:
        answers.append(lineage(db, Viewer(), made[0], replace(asked, resume=answers[-1].truncation.resume)))

    nodes = [one for answer in answers for one in answer.nodes]
    assert [one.depth for one in nodes] == list(range(length + 1))
    assert sum(len(answer.edges) for answer in answers) == length
    assert not answers[-1].truncation.truncated


def test_a_hub_shows_a_few_and_counts_all(db, talk):
    talk.wrote("docs/hub.md")
    hub = NodeType.ASSET, db.execute("SELECT id FROM knowledge_assets").fetchone()[0]
    db.execute("BEGIN")
    for n in range(10_000):
        number = 100_000 + n
        db.execute(
            "INSERT INTO events (id, project, session, seq, kind, origin, at, received_at, body, meta, isolated)"
            " SELECT ?, project, session, ?, 'tool_call', ?, at, received_at, x'72', '{}', 0 FROM events LIMIT 1",
            (number, number, f"read-{n}"),
        )
        db.execute(
            "INSERT INTO lineage_edges VALUES ('references', 'event', ?, 'asset', ?, 'reads', 'stated', ?, '2026',"
            " NULL, NULL, ?)",
            (number, hub[1], number, number),
        )
    db.commit()
    asked = Asked(depth=1, direction=Direction.DOWNSTREAM)

    answer = lineage(db, Viewer(), hub, asked)

    assert len(answer.nodes) == 1 + asked.budget.fanout
    assert answer.nodes[0].downstream_total == 10_000
    assert [one.value for one in answer.truncation.reasons] == ["fanout"]
    assert answer.truncation.frontier == [answer.root]
    wide = replace(asked, budget=HARD)
    answers = [lineage(db, Viewer(), hub, wide)]
    while answers[-1].truncation.resume:
        if len(answers) in {20, 40}:
            talk.read("docs/hub.md")
        answers.append(lineage(db, Viewer(), hub, replace(wide, resume=answers[-1].truncation.resume)))
    names = [one.id for one in (node for answer in answers for node in answer.nodes)]
    assert len(names) == len(set(names)) == 10_001
