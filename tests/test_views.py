"""The SQL views show what every other answer shows to all, under the same ids."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing

import pytest

from graphsvc.api import schema
from graphsvc.api.context import Context
from graphsvc.memory import rebuild
from graphsvc.recall.scope import Asker
from graphsvc.store import database, events

VIEWS = ("shared_events", "shared_records", "shared_assets", "shared_versions", "shared_edges")


@pytest.fixture
def story(talk):
    said = talk.user("Fix the door. We decided: doors open inwards.")
    old = talk.decided("doors open inwards", evidence=[said])
    talk.wrote("docs/门.md", "# 门\n")
    talk.session("s2").superseded(old, "门向外开")
    talk.wrote("docs/门.md", "# 门，向外\n" + "长" * 3000)
    talk.isolated()
    talk.user("Fix my secret")
    talk.wrote("docs/secret.md", "# secret\n")
    talk.wrote("docs/门.md", "# secret door\n")
    talk.wrote("docs/first.md", "# secret first\n")
    talk.decided("secrets stay")
    talk.session("s1").wrote("docs/first.md", "# Open to all\n")
    return talk


@pytest.fixture
def published(story, db):
    """Publish a decision and a candidate whose later states stay isolated, and title the session after its secrets."""
    story.session("s3").event("raw", "named", title="On secrets", message_id="m")
    story.isolated()
    old = story.decided("open: doors are green")
    guess = story.event("candidate", "open: paint twice", action="record")
    story.superseded(old, "secret: doors are red")
    story.event("candidate", "secret: paint it once", action="promote", of=guess)
    ids = [f"event-{events.by_origin(db, 1, origin).id}" for origin in (old, guess)]
    story.isolated(on=False)
    story.event("publish", "", ids=ids)
    assert story.captured[-1].accepted == 1
    return story


@pytest.fixture
def sql(settings, story):
    """Ask the file as a person does, read-only and without any of our functions."""
    with closing(sqlite3.connect(f"{settings.database.as_uri()}?mode=ro", uri=True)) as db:
        db.row_factory = sqlite3.Row
        yield lambda text: db.execute(text).fetchall()


def test_views_hold_what_the_lists_hold(sql, db, clock):
    def ids(field: str) -> set[str]:
        context = Context(db=db, asker=Asker(project="all"), clock=clock)
        found = schema.respond(f"{{ {field}(first: 100) {{ edges {{ node {{ id }} }} }} }}", {}, None, context)
        return {edge["node"]["id"] for edge in found["data"][field]["edges"]}

    assert {row["id"] for row in sql("SELECT id FROM shared_events")} == ids("events")
    assert {row["id"] for row in sql("SELECT id FROM shared_assets")} == ids("assets")
    for kind, field in (("decision", "decisions"), ("goal", "goals"), ("todo", "todos"), ("candidate", "candidates")):
        assert {row["id"] for row in sql(f"SELECT id FROM shared_records WHERE type = '{kind}'")} == ids(field)


def test_views_show_of_an_event_what_the_list_shows_of_it(sql, published, db, clock):
    context = Context(db=db, asker=Asker(project="all"), clock=clock)
    found = schema.respond("{ events(first: 100) { edges { node { id meta } } } }", {}, None, context)
    shown = {edge["node"]["id"]: edge["node"]["meta"] for edge in found["data"]["events"]["edges"]}
    rows = sql("SELECT id, meta FROM shared_events WHERE meta IS NOT NULL")

    assert [json.loads(row["meta"]) for row in rows] == [shown[row["id"]] for row in rows]
    assert any('"message_id":"m"' in row["meta"] for row in rows)


def test_an_edge_names_both_of_its_ends_as_every_answer_does(sql):
    edges = {(row["source"], row["type"], row["target"]) for row in sql("SELECT * FROM shared_edges")}
    [asset] = [row["id"] for row in sql("SELECT id FROM shared_assets WHERE path = 'docs/门.md'")]
    old, new = [row["id"] for row in sql("SELECT id FROM shared_records WHERE type = 'decision' ORDER BY at")]

    assert ("session-s1", "produces", asset) in edges
    assert ("session-s2", "produces", asset) in edges
    assert (old, "precedes", new) in edges


def test_no_view_shows_what_is_isolated(sql, published):
    for view in VIEWS:
        rows = sql(f"SELECT * FROM {view}")
        assert rows, view
        assert not [row for row in rows if re.search("secret", repr(tuple(row)))], view


def test_no_view_names_or_dates_what_is_isolated(sql, published):
    hidden = sql("SELECT e.id, e.at FROM hidden h JOIN events e ON e.id = h.event")
    numbers, times = {row["id"] for row in hidden}, {row["at"] for row in hidden}
    counts = {"seq", "versions"}  # numbers of no event
    assert len(hidden) > 10

    for view in VIEWS:
        for row in sql(f"SELECT * FROM {view}"):
            cells = {name: row[name] for name in row.keys() if name not in counts}  # noqa: SIM118 # a Row holds values
            names = [re.fullmatch(r"(?:[a-z]+-)?([0-9]+)", str(cell)) for cell in cells.values()]
            assert not numbers & {int(name[1]) for name in names if name}, (view, cells)
            assert not times & set(cells.values()), (view, cells)


def test_a_record_changed_in_isolation_is_as_it_was_recorded(sql, published):
    rows = sql("SELECT at, updated_at, superseded_by, promoted_to FROM shared_records WHERE text LIKE 'open: %'")

    assert len(rows) == 2
    for row in rows:
        assert (row["updated_at"], row["superseded_by"], row["promoted_to"]) == (row["at"], None, None)


def test_a_record_changed_in_the_open_says_when_and_by_what(sql):
    [old] = sql("SELECT * FROM shared_records WHERE text = 'doors open inwards'")
    [new] = sql("SELECT * FROM shared_records WHERE text = '门向外开'")

    assert (old["superseded_by"], old["updated_at"]) == (new["id"], new["at"])


def test_versions_name_the_asset_that_the_assets_list(sql):
    assets = {row["path"]: (row["id"], row["versions"]) for row in sql("SELECT * FROM shared_assets")}
    versions = sql("SELECT asset, path FROM shared_versions")

    assert {row["path"]: row["asset"] for row in versions} == {path: name for path, (name, _) in assets.items()}
    assert len(versions) == sum(count for _, count in assets.values())


def test_views_stand_after_a_replay(db, settings, story):
    before = {view: [tuple(row) for row in db.execute(f"SELECT * FROM {view}")] for view in VIEWS}
    rebuild.rebuild(db, lambda *_: None)

    assert {view: [tuple(row) for row in db.execute(f"SELECT * FROM {view}")] for view in VIEWS} == before


def test_views_cannot_be_written(db, story):
    for view in VIEWS:
        with pytest.raises(database.Error):
            db.execute(f"DELETE FROM {view}")
