"""The SQL views show what every other answer shows to all, under the same ids."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing

import pytest

from graphsvc.api import schema
from graphsvc.api.context import Context
from graphsvc.memory import rebuild
from graphsvc.recall.scope import Asker
from graphsvc.store import database

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
    talk.decided("secrets stay")
    return talk


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


def test_an_edge_names_both_of_its_ends_as_every_answer_does(sql):
    edges = {(row["source"], row["type"], row["target"]) for row in sql("SELECT * FROM shared_edges")}
    [asset] = [row["id"] for row in sql("SELECT id FROM shared_assets")]
    old, new = [row["id"] for row in sql("SELECT id FROM shared_records WHERE type = 'decision' ORDER BY at")]

    assert ("session-s1", "produces", asset) in edges
    assert ("session-s2", "produces", asset) in edges
    assert (old, "precedes", new) in edges


def test_no_view_shows_what_is_isolated(sql):
    for view in VIEWS:
        rows = sql(f"SELECT * FROM {view}")
        assert rows, view
        assert not [row for row in rows if re.search("secret", repr(tuple(row)))], view


def test_views_stand_after_a_replay(db, settings, story):
    before = {view: [tuple(row) for row in db.execute(f"SELECT * FROM {view}")] for view in VIEWS}
    rebuild.rebuild(db, lambda *_: None)

    assert {view: [tuple(row) for row in db.execute(f"SELECT * FROM {view}")] for view in VIEWS} == before


def test_views_cannot_be_written(db, story):
    for view in VIEWS:
        with pytest.raises(database.Error):
            db.execute(f"DELETE FROM {view}")
