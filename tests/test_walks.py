"""Lineage is what the tables give, for every direction, depth, filter, moment and viewer; and its pages join."""

from __future__ import annotations

import json
import random
import statistics
from contextlib import closing
from dataclasses import replace

import networkx
import pytest
from histories import Oracle, reach, tell

from graphsvc.errors import InvalidInput, NotFoundError
from graphsvc.lineage.answer import Reason
from graphsvc.lineage.walk import HARD, Asked, Budget, lineage
from graphsvc.memory import rebuild
from graphsvc.model import Direction, EdgeType, NodeType
from graphsvc.store.edges import walk as edges
from graphsvc.store.edges.walk import Filter
from graphsvc.store.visibility import Viewer

SEEDS = range(12)
DIRECTIONS = list(Direction)
FILTERS = [
    Filter(),
    Filter(edges=(EdgeType.PRECEDES, EdgeType.EVIDENCE)),
    Filter(edges=(EdgeType.REFERENCES,)),
    Filter(edges=(EdgeType.PRODUCES, EdgeType.NEXT_STEP)),
    Filter(nodes=(NodeType.DECISION, NodeType.ASSET)),
]


def key_of(oracle, name):
    """Return what the store keeps a printed id under."""
    kind, _, rest = name.partition("-")
    if kind == "session":
        return NodeType.SESSION, next(number for number, host in oracle.sessions.items() if host == rest)
    if kind == "asset":
        return NodeType.ASSET, next(one["asset"] for one in oracle.versions if one["event"] == int(rest))
    return NodeType(kind), int(rest)


def all_of(db, viewer, root, asked):
    """Walk to the end; return the answers."""
    answers = [lineage(db, viewer, root, asked)]
    while answers[-1].truncation.resume:
        answers.append(lineage(db, viewer, root, replace(asked, resume=answers[-1].truncation.resume)))
        assert len(answers) < 500
    return answers


def edges_of(answers):
    return sorted((one.type, one.source, one.target, one.begin_event) for answer in answers for one in answer.edges)


def expected_edges(graph, nodes):
    return sorted(
        (one.type, one.source, one.target, one.begin)
        for _, _, one in graph.edges(data="edge")
        if one.source in nodes and one.target in nodes
    )


@pytest.fixture(params=SEEDS)
def history(request, db, talk):
    tell(talk, request.param)
    return random.Random(request.param)  # noqa: S311 # no secret


def asked_of(oracle_of, chosen, rounds=24):
    """Choose questions that have answers: (oracle, root, asked, viewer's name)."""
    for _ in range(rounds):
        viewer = chosen.choice([None, "s1", "s2"])
        as_of = chosen.choice([None, None, "position", "time"])
        oracle = oracle_of(viewer, as_of)
        chosen_filter = chosen.choice(FILTERS)
        names = sorted({end for one in oracle.edges for end in (one.source, one.target)})
        if not names:
            continue
        yield oracle, chosen.choice(names), chosen_filter, chosen.choice(DIRECTIONS), chosen.choice([0, 1, 2, 3, 50])


def moments(db, chosen):
    newest = db.execute("SELECT MAX(id) FROM events").fetchone()[0]
    position = chosen.randint(1, newest)
    at = db.execute("SELECT at FROM events WHERE id = ?", (chosen.randint(1, newest),)).fetchone()[0]
    return position, at


def test_lineage_is_what_the_tables_give(db, history):
    def oracle_of(viewer, as_of):
        position, at = moments(db, history)
        return Oracle(db, viewer, position if as_of == "position" else None, at if as_of == "time" else None)

    for oracle, root, chosen, direction, depth in asked_of(oracle_of, history):
        as_of = f"event-{oracle.position}" if oracle.position is not None else oracle.at
        asked = Asked(direction=direction, depth=depth, chosen=chosen, as_of=as_of, budget=HARD)

        [answer] = all_of(db, Viewer(session=oracle.viewer), key_of(oracle, root), asked)

        graph = oracle.graph(chosen.edges, chosen.nodes, root)
        expected = reach(graph, root, direction, depth)
        assert {one.id: one.depth for one in answer.nodes} == expected
        assert edges_of([answer]) == expected_edges(graph, expected)
        assert [one.depth for one in answer.nodes] == sorted(one.depth for one in answer.nodes)
        deeper = reach(graph, root, direction, depth + 1)
        assert answer.truncation.reasons == ([Reason.DEPTH] if len(deeper) > len(expected) else [])
        for one in answer.nodes:
            assert one.via is None or graph.has_edge(one.via, one.id) or graph.has_edge(one.id, one.via)
        if not chosen.nodes and not chosen.edges:
            totals = {one.id: (one.upstream_total, one.downstream_total) for one in answer.nodes}
            assert totals == {one: (graph.in_degree(one), graph.out_degree(one)) for one in totals}
            assert {one.id for one in answer.nodes if one.hidden} == oracle.hiding & set(totals)


def test_pages_join_to_the_whole_walk(db, history):
    def oracle_of(viewer, as_of):
        return Oracle(db, viewer, moments(db, history)[0] if as_of else None)

    for oracle, root, chosen, direction, depth in asked_of(oracle_of, history):
        budget = Budget(nodes=history.randint(1, 5), edges=history.randint(1, 6), fanout=history.randint(1, 3))
        as_of = None if oracle.position is None else str(oracle.position)
        asked = Asked(direction=direction, depth=depth, chosen=chosen, as_of=as_of, budget=budget)
        viewer, key = Viewer(session=oracle.viewer), key_of(oracle, root)

        answers = all_of(db, viewer, key, asked)

        [whole] = all_of(db, viewer, key, replace(asked, budget=HARD))
        nodes = [one.id for answer in answers for one in answer.nodes]
        assert len(nodes) == len(set(nodes)), "nothing twice"
        assert set(nodes) == {one.id for one in whole.nodes}
        assert edges_of(answers) == edges_of([whole])
        assert all(len(one.nodes) <= budget.nodes and len(one.edges) <= budget.edges for one in answers)
        assert all(one.truncation.truncated for one in answers[:-1])
        assert answers[-1].truncation.reasons == whole.truncation.reasons


def test_pages_join_while_others_write(db, talk, history):
    oracle = Oracle(db)
    names = sorted({end for one in oracle.edges for end in (one.source, one.target)})
    root = key_of(oracle, history.choice(names))
    asked = Asked(depth=50, budget=Budget(nodes=3, fanout=2))
    [whole] = all_of(db, Viewer(), root, replace(asked, budget=HARD))

    answers = [lineage(db, Viewer(), root, asked)]
    talk.session("s1").isolated(False)
    while answers[-1].truncation.resume:
        talk.superseded(talk.decided("docs/plan.md again"), "docs/menu.md instead")
        talk.wrote("docs/menu.md", f"see docs/plan.md, {talk.told}")
        answers.append(lineage(db, Viewer(), root, replace(asked, resume=answers[-1].truncation.resume)))

    assert sorted(one.id for answer in answers for one in answer.nodes) == sorted(one.id for one in whole.nodes)
    ended_later = {(one.type, one.source, one.target, one.begin_event) for one in whole.edges}
    assert set(edges_of(answers)) == ended_later


def test_the_present_is_the_plain_answer(db, history):
    oracle = Oracle(db)
    newest = db.execute("SELECT MAX(id) FROM events").fetchone()[0]
    for root in sorted({one.source for one in oracle.edges})[:6]:
        plain = lineage(db, Viewer(), key_of(oracle, root), Asked(depth=4, budget=HARD))
        for now in (f"event-{newest}", str(newest), "2030-01-01T00:00:00Z"):
            then = lineage(db, Viewer(), key_of(oracle, root), Asked(depth=4, budget=HARD, as_of=now))
            assert replace(then, freshness=plain.freshness) == plain


def test_the_histories_are_worth_walking(tmp_path, clock):
    from conftest import Talk

    from graphsvc.config import from_environment

    reached, cyclic = [], 0
    for seed in SEEDS:
        with closing(rebuild.connect(from_environment({"GRAPHSVC_HOME": str(tmp_path / str(seed))}))) as db:
            tell(Talk(db=db, clock=clock), seed)
            oracle = Oracle(db)
            graph = oracle.graph()
            graph.remove_node("")
            reached += [len(reach(graph, root, "both", 50)) for root in graph]
            cyclic += any(len(one) > 1 for one in networkx.strongly_connected_components(graph))
    assert statistics.median(reached) >= 20
    assert cyclic >= len(SEEDS) / 5


def test_cycles_are_told(db, talk):
    talk.wrote("docs/a.md", "see docs/b.md")
    talk.wrote("docs/b.md", "see docs/a.md")
    talk.wrote("docs/c.md", "see docs/a.md")
    oracle = Oracle(db)
    [a, b, c] = [f"asset-{row[0]}" for row in db.execute("SELECT id FROM knowledge_assets ORDER BY path").fetchall()]

    answer = lineage(db, Viewer(), key_of(oracle, a), Asked(depth=3, chosen=Filter(nodes=(NodeType.ASSET,))))

    assert answer.cycles == [[a, b]]
    assert {one.id: one.on_cycle for one in answer.nodes} == {a: True, b: True, c: False}


@pytest.mark.parametrize("kind", list(EdgeType))
def test_flipping_any_row_of_the_orientation_is_noticed(db, talk, monkeypatch, kind):
    tell(talk, 3)
    oracle = Oracle(db)
    flipped = {far: {row: down ^ (row == kind) for row, down in rows.items()} for far, rows in edges._DOWN.items()}
    monkeypatch.setattr(edges, "_DOWN", flipped)
    graph = oracle.graph()
    graph.remove_node("")

    def agrees(root):
        answer = lineage(
            db, Viewer(), key_of(oracle, root), Asked(direction=Direction.DOWNSTREAM, depth=1, budget=HARD)
        )
        return {one.id for one in answer.nodes} == set(reach(graph, root, "downstream", 1))

    assert not all(agrees(root) for root in sorted(graph))


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"depth": -1}, "depth"),
        ({"depth": 10_001}, "depth"),
        ({"budget": Budget(nodes=0)}, "max_nodes"),
        ({"budget": Budget(nodes=2_001)}, "max_nodes"),
        ({"budget": Budget(edges=6_001)}, "max_edges"),
        ({"budget": Budget(fanout=0)}, "fanout"),
        ({"budget": Budget(deadline_ms=10_000)}, "deadline_ms"),
        ({"as_of": "tomorrow"}, "as_of"),
        ({"as_of": "event-999999"}, "as_of"),
        ({"resume": "nonsense"}, "resume"),
        ({"resume": "é"}, "resume"),
    ],
)
def test_what_cannot_be_asked_is_refused(db, talk, changed, field):
    talk.wrote("docs/a.md")
    root = NodeType.ASSET, db.execute("SELECT id FROM knowledge_assets").fetchone()[0]

    with pytest.raises(InvalidInput) as refused:
        lineage(db, Viewer(), root, replace(Asked(), **changed))

    assert refused.value.field == field


def test_a_walk_goes_on_only_as_the_walk_it_was(db, talk):
    for number in range(8):
        talk.wrote(f"docs/{number}.md")
    root = NodeType.SESSION, 1
    asked = Asked(budget=Budget(nodes=3))
    resume = lineage(db, Viewer(), root, asked).truncation.resume

    for other in ({"depth": 3}, {"direction": Direction.UPSTREAM}, {"chosen": FILTERS[1]}, {"as_of": "event-3"}):
        with pytest.raises(InvalidInput, match="another walk"):
            lineage(db, Viewer(), root, replace(asked, resume=resume, **other))
    talk.isolated()
    hidden = talk.user("private")
    talk.event("publish", "", of=[hidden])
    with pytest.raises(InvalidInput, match="changed since"):
        lineage(db, Viewer(), root, replace(asked, resume=resume))


def test_a_token_is_of_who_asked(db, talk):
    for number in range(8):
        talk.wrote(f"docs/{number}.md")
    root, asked = (NodeType.SESSION, 1), Asked(budget=Budget(nodes=3))
    resume = lineage(db, Viewer(session=1), root, asked).truncation.resume

    with pytest.raises(InvalidInput, match="another walk"):
        lineage(db, Viewer(), root, replace(asked, resume=resume))


def test_a_page_tells_statuses_of_the_position_that_it_tells(db, talk):
    told = [talk.decided("one", origin="first")]
    for number in range(6):
        told.append(talk.superseded(told[-1], f"number {number}"))
    root = NodeType.DECISION, db.execute("SELECT MIN(id) FROM records").fetchone()[0]
    asked = Asked(depth=20, budget=Budget(nodes=2), chosen=Filter(nodes=(NodeType.DECISION,)))
    answers = [lineage(db, Viewer(), root, asked)]
    talk.event("decision", "", action="revoke", of=told[-1])
    while answers[-1].truncation.resume:
        answers.append(lineage(db, Viewer(), root, replace(asked, resume=answers[-1].truncation.resume)))

    assert [one.status for answer in answers for one in answer.nodes] == ["superseded"] * 6 + ["active"]
    assert lineage(db, Viewer(), root, replace(asked, budget=HARD)).nodes[-1].status == "revoked"


def test_what_a_host_cut_in_half_can_be_named(db, talk):
    asked = talk.user("cut \ud83d here")
    talk.tool("m\ud800__Write", {"path": "x"})
    talk.decided("\ud83d holds", evidence=[asked])
    root = NodeType.DECISION, db.execute("SELECT id FROM records WHERE type = 'decision'").fetchone()[0]

    answer = lineage(db, Viewer(), root, Asked())

    assert len(answer.nodes) == 2
    json.dumps([one.label for one in answer.nodes], ensure_ascii=False).encode()


def test_an_end_that_is_isolated_is_none(db, talk):
    said, decided = talk.user("hours"), talk.decided("at nine", origin="d")
    about = {"type": "evidence", "source": {"type": "decision", "of": "d"}, "target": {"type": "event", "of": said}}
    talk.isolated()
    private = talk.event("edge", "", action="add", **about)
    talk.event("edge", "", action="retract", **about)
    talk.isolated(False)
    talk.event("publish", "", of=[private])
    root = NodeType.DECISION, db.execute("SELECT id FROM records WHERE type = 'decision'").fetchone()[0]

    others, own = (lineage(db, Viewer(session=one), root, Asked(as_of="2030-01-01")) for one in (None, 1))

    drawn = {one.target: one for one in others.edges}
    assert drawn["event-1"].end_event is None
    assert "event-1" not in {one.target for one in own.edges}
    assert decided


def test_what_was_not_there_then_has_no_lineage_then(db, talk):
    talk.user("first")
    talk.wrote("docs/a.md")
    root = NodeType.ASSET, db.execute("SELECT id FROM knowledge_assets").fetchone()[0]

    with pytest.raises(NotFoundError):
        lineage(db, Viewer(), root, Asked(as_of="event-1"))
    assert lineage(db, Viewer(), root, Asked()).nodes


def test_a_status_is_told_as_it_was(db, talk):
    old = talk.decided("sessions use JWT")
    before = db.execute("SELECT MAX(id) FROM events").fetchone()[0]
    talk.superseded(old, "sessions live on the server")
    root = NodeType.DECISION, db.execute("SELECT MIN(id) FROM records").fetchone()[0]

    now, then = (lineage(db, Viewer(), root, Asked(depth=0, as_of=as_of)) for as_of in (None, f"event-{before}"))

    assert [now.nodes[0].status, then.nodes[0].status] == ["superseded", "active"]
