"""What others learn of isolated rows: nothing. Stories are told twice, and every read must answer the same.

`graphsvc.audit` says what is asked, how, and what a difference is; `graphsvc audit isolation` does the same with the
store of whoever runs it. Here are few stories; tests/suites/isolation has many, over every transport.
"""

from __future__ import annotations

from collections import Counter

import pytest
import stories
import transports
from graphql import build_schema

from graphsvc.audit import asking, proof, reads
from graphsvc.recall.scope import Asker

STORIES = 12
MIRRORED = 6  # of so many stories one has a mirror


@pytest.fixture(params=range(STORIES))
def seed(request):
    return request.param


@pytest.fixture
def worlds(seed, tmp_path):
    with stories.worlds(stories.tell(seed), tmp_path, mirrored=seed % MIRRORED == 0) as worlds:
        yield worlds


def found(worlds, seed, viewers, ways=asking.WAYS, ids=None, every=1):
    """Return what leaks to viewers, and how many answers were compared, by way; `ids` says how many are asked for."""
    told, blank = worlds
    secrets, leaks, compared = stories.secrets(stories.tell(seed)), [], Counter()
    for number, name in enumerate(viewers):
        asker, chance, pool = stories.VIEWERS[name], stories.dice(seed), stories.pool(told)
        # One opens every id, another one a part.
        most = ids or (10 if number else len(pool.ids))
        pool = pool.some(tuple(chance.sample(pool.ids, most)))
        calls = list(reads.calls(pool, chance, often=1 if number or ids else 2))[::every]
        calls = [one for one in calls if proof.applies(one, asker, mirrored=told.mirror is not None)]
        for way in ways:
            with way.open(told, asker) as here, way.open(blank, asker) as there:
                for call, leak, _ in proof.compare(calls, way, name, here, there, secrets):
                    compared[way.name] += 1
                    leaks += [(leak, call.variables)] if leak else []
        lines = proof.exported(proof.Pair(told, blank, 0, 0), asker)
        leaks += [("export", name) for here, there in lines if here != there]
    return leaks, compared


def test_every_read_of_the_schema_is_asked_with_every_argument():
    assert reads.unknown() == []
    pool = reads.Pool(
        ids=("event-1", "asset-1", "decision-1", "session-a", "5"),
        **dict.fromkeys(("sessions", "projects", "moments", "paths", "words"), ("2026-11-30",)),
        texts=(("a.md", "# a\n"),),
        position=9,
    )
    calls = [call for seed in range(40) for call in reads.calls(pool, stories.dice(seed))]
    schema = reads.sdl()

    asked = {(call.sort, call.field) for call in calls}
    assert set(reads.fields()) <= asked
    for root, sort in ((schema.query_type, reads.Sort.QUERY), (schema.subscription_type, reads.Sort.SUBSCRIPTION)):
        for name, field in root.fields.items():
            given = {one for call in calls if (call.sort, call.field) == (sort, name) for one in call.variables}
            assert set(field.args) <= given | reads.FOLLOWS, name
    tool = {one for call in calls if call.sort is reads.Sort.TOOL for one in call.variables}
    named = {name for field in ("nav", "search") for name in schema.query_type.fields[field].args}
    assert named <= tool | {"verb", "cursor"}


def test_what_is_added_to_the_schema_and_not_asked_is_named(monkeypatch):
    more = "type Query {\n  whispers(to_whom: String, node: ID): String\n  plain: Long\n"
    grown = build_schema(reads.api.print_sdl().replace("type Query {", more))
    monkeypatch.setattr(reads, "sdl", lambda: grown)
    pool = reads.Pool(
        ids=("event-1",),
        **dict.fromkeys(("sessions", "projects", "moments", "paths", "words"), ("x",)),
        texts=(("a.md", "# a\n"),),
        position=9,
    )

    assert reads.unknown() == ["whispers.to_whom"]
    assert {"whispers", "plain"} <= {call.field for call in reads.calls(pool, stories.dice(0))}


def test_others_get_what_they_got_if_blanks_stood_in_the_place_of_isolated_rows(worlds, seed):
    told, blank = worlds
    names = list(stories.VIEWERS)
    viewers = [names[(seed + number) % len(names)] for number in (0, 2)]

    assert blank.rows == told.rows
    leaks, compared = found(worlds, seed, viewers)
    assert leaks == []
    assert compared["tool"] > 100 < compared["in process"]


def test_every_transport_answers_others_the_same_and_the_session_itself_not(forks, tmp_path):
    seed = 3
    with (
        stories.worlds(stories.tell(seed), tmp_path) as worlds,
        transports.standing(worlds, tmp_path, forks) as standing,
    ):
        leaks, compared = found(standing, seed, ["a session beside"], transports.SERVED, ids=6, every=2)
        told, blank = standing
        control = set()
        for way in transports.SERVED:
            cat = reads.Call(reads.Sort.TOOL, "nav", "", {"nav": "cat", "target": "session-closed"})
            document = "{ events(first: 100) { edges { node { body { text } } } } }"
            listed = reads.Call(reads.Sort.QUERY, "events", document, {})
            document = "subscription { events_captured(after: 0) { body { text } } }"
            heard = reads.Call(reads.Sort.SUBSCRIPTION, "events_captured", document, {})
            with way.open(told, stories.ITSELF) as here, way.open(blank, stories.ITSELF) as there:
                asked = proof.compare([cat, listed, heard], way, "itself", here, there)
                control |= {(way.name, call.sort) for call, leak, _ in asked if leak}

    assert leaks == []
    assert set(compared) == {way.name for way in transports.SERVED}
    assert control == {(way.name, sort) for way in transports.SERVED for sort in way.sorts}


def test_the_session_itself_is_not_spared(tmp_path):
    """Without this, a store that shows nothing to anybody would pass."""
    left = {field for _, field in reads.fields()}
    for seed in (2, 7, 13):
        with stories.worlds(stories.tell(seed), tmp_path / str(seed)) as (told, blank):
            ways = asking.carry(told, stories.ITSELF), asking.carry(blank, stories.ITSELF)
            for call in reads.calls(stories.pool(told), stories.dice(seed), often=6):
                for way in asking.WAYS:
                    if call.field in left and proof.applies(call, stories.ITSELF, mirrored=False):
                        found = proof.compare([call], way, "itself", *ways)
                        left -= {call.field for call, leak, _ in found if leak}

    # What all may see, and what tells nothing that anybody said.
    assert left == {"insight", "insights", "limits", "cost", "whoami", "explain_visibility"}


def test_every_read_is_answered_with_data(tmp_path):
    """Without this, documents that are refused would pass."""
    with stories.worlds(stories.tell(0), tmp_path, mirrored=True) as (told, _):
        ask, answered = asking.carry(told, stories.VIEWERS["the owner"]), set()
        for call in reads.calls(stories.pool(told), stories.dice(0), often=8):
            if call.sort is reads.Sort.TOOL or (call.sort, call.field) in answered:
                continue
            for answer in asking.answers(call, ask):
                if "errors" not in answer:
                    assert answer["data"]
                    answered.add((call.sort, call.field))

    assert answered == set(reads.fields())


def test_files_of_one_path_are_named_in_an_order_that_isolated_writes_do_not_move(db, talk, tool):
    """What the store keeps a file under is the event that registered it, which may be an isolated one."""
    talk.user("hello")
    talk.isolated()
    talk.wrote("docs/plan.md", "# Hidden\n")
    talk.isolated(on=False)
    talk.project = "/srv/talk/another"
    talk.session("s2").wrote("docs/plan.md", "# Theirs\n")
    talk.project = stories.HERE
    talk.session("s1").wrote("docs/plan.md", "# Ours\n")

    listed = tool(nav="cd", project="all", target="docs/plan.md")["items"]
    document = '{ line_origin(path: "docs/plan.md", line: 1) { ... on InvalidInput { allowed } } }'
    [answer] = asking.carry(asking.Place(db), Asker(project="all"))(document, {}, False)

    keys = ["/srv/talk/another", stories.HERE]
    # Theirs was registered first of what is seen, ours is kept under what registered it unseen.
    assert [item["label"].partition(" · ")[2].partition(" ")[0] for item in listed] == ["Theirs", "Ours"]
    assert (
        answer["data"]["line_origin"]["allowed"] == f"with a project: {keys[0]}: docs/plan.md, {keys[1]}: docs/plan.md"
    )


def test_isolated_words_take_no_place_among_those_a_session_is_known_by(db, talk, tool):
    talk.user("Where do the boats go?")
    talk.assistant("To the island.")
    talk.isolated()
    for number in range(6):
        talk.assistant(f"secret {number}")

    shown = [item["label"] for item in tool(nav="cd", target="session-s1")["items"]]

    assert "assistant_message: To the island." in shown
    assert not any("secret" in label for label in shown)


def test_an_edge_that_ended_in_isolation_stands_for_others(db, talk, tool):
    """It was drawn in isolation, too, and published; what ended it was not."""
    talk.user("hello")
    talk.session("s2").user("hello, too")
    talk.isolated()
    said = talk.user("Boats are blue, says the painter.")
    decision = talk.decided("Paint it blue.")
    ends = {"source": {"type": "decision", "of": decision}, "target": {"type": "event", "of": said}}
    drawn = talk.event("edge", "", action="add", type="evidence", **ends)
    talk.event("edge", "", action="retract", type="evidence", **ends)
    talk.event("publish", "", of=[said, decision, drawn])
    number = db.execute("SELECT id FROM events WHERE origin = ?", (decision,)).fetchone()["id"]
    document = """query ($id: ID!) {
      node(id: $id) { ... on Decision { lineage { edges { node { rule end_position end_at } } } } }
      stats { edges { name count } }
    }"""

    def shown(session):
        place = asking.Place(db)
        [answer] = asking.carry(place, Asker(session_id=session))(document, {"id": f"decision-{number}"}, False)
        edges = [edge["node"] for edge in answer["data"]["node"]["lineage"]["edges"]]
        items = tool(nav="cd", target=f"decision-{number}", viewer=session)["items"]
        counted = {one["name"]: one["count"] for one in answer["data"]["stats"]["edges"]}
        return (
            [one for one in edges if one["rule"] == "stated"],
            any("ended" in item["label"] for item in items),
            counted["evidence"],
        )

    assert shown("s1") == ([{"rule": "stated", "end_position": None, "end_at": None}], False, 2)
    [edge], ended, counted = shown("s2")
    assert edge["end_position"] is not None
    assert (ended, counted) == (True, 1)


def test_an_edge_to_what_is_isolated_is_not_counted(db, talk):
    """It is there for others, with a mark in the place of its end, and never a number."""
    talk.user("hello")
    talk.session("s2").user("hello, too")
    talk.isolated()
    secret = talk.user("the vermilion plan")
    talk.isolated(on=False)
    talk.decided("Paint it.", evidence=[secret])

    counted = {
        name: asking.answers(
            reads.Call(reads.Sort.QUERY, "stats", "{ stats { edges { name count } } }", {}),
            asking.carry(asking.Place(db), Asker(session_id=name)),
        )[0]["data"]["stats"]["edges"]
        for name in ("s1", "s2")
    }

    assert counted == {"s1": [], "s2": [{"name": "evidence", "count": 1}]}
