"""The ledger is the truth: replaying it gives what the tables hold, and a row that differs is named."""

from __future__ import annotations

import hashlib
from contextlib import closing

import pytest

from graphsvc.memory import rebuild
from graphsvc.recall import index
from graphsvc.store import rows


def _quiet(done, total):
    pass


@pytest.fixture
def story(talk):
    """A history that touches every projection."""
    said = talk.user("Implement the login module. We decided: sessions use JWT.")
    old = talk.decided("sessions use JWT", evidence=[said])
    talk.wrote("docs/a.md", "# A\n\nsee src/b.py\n")
    talk.wrote("src/b.py", "b = 1\n")
    talk.edited("docs/a.md", "see", "look at")
    talk.edited("docs/a.md", "src/b.py", "nothing")
    talk.edited("docs/a.md", "nothing", "src/b.py")  # the link is drawn again
    talk.read("docs/a.md")
    talk.tool("TodoWrite", {"todos": [{"content": "x", "status": "pending"}]})
    talk.ran("git add -A && git commit -m 'A'", "[main 1a2b3c4] A")
    talk.compacted("so far", replaces=[said])
    talk.session("s2").event("session_start", "", parent="s1", relation="fork", host="dsh")
    talk.event("user_message", "Implement the login module. We decided: sessions use JWT.", origin=said)
    talk.superseded(old, "sessions live on the server")
    talk.isolated()
    talk.user("private " * 1000)
    talk.wrote("docs/a.md", "# Mine\n")
    return talk


def _hashes(db):
    return {
        table: hashlib.sha256(
            repr(sorted(tuple(row) for row in db.execute(f"SELECT * FROM {table}"))).encode()
        ).hexdigest()
        for table in rows.tables()
    }


def test_a_replay_gives_what_the_tables_hold(db, settings, story):
    held = {table for table in rows.tables() if db.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]}
    assert held == set(rows.tables()) - {"thread_meta"}  # nothing is delivered yet
    assert rebuild.check(settings, _quiet) == []


@pytest.mark.parametrize("table", [name for name, _ in rows.TABLES.values()])
@pytest.mark.parametrize("damage", ["changed", "lost", "added"])
def test_one_damaged_row_is_named(db, settings, story, table, damage):
    key = next(key for name, key in rows.TABLES.values() if name == table)
    columns = [row["name"] for row in db.execute(f"PRAGMA table_info({table})")]
    where = " AND ".join(f"{name} = ?" for name in key)
    row = db.execute(f"SELECT * FROM {table} ORDER BY {', '.join(key)} LIMIT 1").fetchone()
    values = [row[name] for name in key]
    name = "/".join(str(value) for value in values)
    if damage == "lost":
        db.execute(f"DELETE FROM {table} WHERE {where}", values)
    elif damage == "added" or len(columns) == len(key):
        made = {column: row[column] for column in columns}
        for column in {*key, *(["path"] if table == "knowledge_assets" else [])}:
            made[column] = row[column] + 1000 if isinstance(row[column], int) else f"{row[column]}x"
        name = "/".join(str(made[column]) for column in key)
        db.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(columns))})", list(made.values()))
    else:
        column = next(column for column in columns if column not in key)
        value = row[column]
        db.execute(
            f"UPDATE {table} SET {column} = ? WHERE {where}",
            [value + 1 if isinstance(value, int) else f"{value}x", *values],
        )

    found = rebuild.check(settings, _quiet)
    assert [(one.table, one.id) for one in found] == [(table, name)]


def test_the_word_index_is_compared_too(db, settings, story):
    while index.catch_up(db):
        pass
    story.user("not indexed yet, and that is right")
    assert rebuild.check(settings, _quiet) == []
    hidden = db.execute("SELECT MAX(id) FROM words_isolated_docsize").fetchone()[0]

    db.execute("DELETE FROM words_docsize WHERE id = 1")
    db.execute("INSERT INTO words_docsize VALUES (?, x'00')", (hidden,))
    db.execute("UPDATE words_isolated_docsize SET id = 99999 WHERE id = ?", (hidden,))
    found = [(one.table, one.id, one.problem) for one in rebuild.check(settings, _quiet)]

    assert found == [
        ("words", "1", "missing"),
        ("words", str(hidden), "not what the ledger gives"),
        ("words_isolated", str(hidden), "missing"),
        ("words_isolated", "99999", "not what the ledger gives"),
    ]
    db.execute("UPDATE read_models SET position = 99999")
    assert ("words", "read_models") in [(one.table, one.id) for one in rebuild.check(settings, _quiet)]
    rebuild.rebuild(db, _quiet)
    index.catch_up(db)
    assert rebuild.check(settings, _quiet) == []


def test_what_was_published_is_in_both_tables_of_the_word_index(db, settings, talk):
    talk.session("private").isolated()
    said = talk.user("velvet")
    index.catch_up(db)
    talk.event("publish", "", of=[said])
    assert rebuild.check(settings, _quiet) == []

    index.catch_up(db)

    assert rebuild.check(settings, _quiet) == []


def test_dropping_everything_and_rebuilding_gives_the_same(db, settings, story):
    before = _hashes(db)
    for table in rows.tables():
        db.execute(f"DROP TABLE {table}")
    assert rebuild.check(settings, _quiet)
    rebuild.rebuild(db, _quiet)

    assert _hashes(db) == before
    assert rebuild.check(settings, _quiet) == []


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("goals", 1),
        ("decisions", 2),
        ("feedback", 0),
        ("pending_candidates", 1),
        ("todos", 1),
        ("knowledge_assets", 2),
        ("lineage_edges", 20),
        ("thread_meta", 0),
    ],
)
def test_the_protocols_table_names_can_be_read(db, story, name, rows):
    assert db.execute(f"SELECT COUNT(*) FROM {name}").fetchone()[0] == rows


def test_what_names_something_that_comes_later_is_replayed_as_it_was_taken(db, settings, talk):
    talk.event("todo", "now", action="record", basis="later")
    talk.decided("do it", evidence=["later"])
    talk.compacted("so far", replaces=["later"])
    talk.event("goal", "ship", origin="later", action="record")
    talk.compacted("and so on")

    assert rebuild.check(settings, _quiet) == []


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE words_data SET block = x'00010203' WHERE id >= 10",
        "DELETE FROM words_data WHERE id >= 10",
        "DELETE FROM words_docsize WHERE id = 1",
        "UPDATE read_models SET position = position + 9",
        "UPDATE read_models SET version = 'x'",
        "INSERT INTO thread_meta VALUES (1, 'delivered', '9')",
    ],
)
def test_a_damaged_read_model_is_found(db, settings, story, damage):
    while index.catch_up(db):
        pass
    assert rebuild.check(settings, _quiet, index.proof()) == []
    db.execute(damage)

    assert rebuild.check(settings, _quiet, index.proof())


def test_a_store_that_other_rules_wrote_is_replayed_when_it_is_opened(db, settings, story):
    before = _hashes(db)
    db.execute("DROP TABLE mentions")  # a table that the older rules did not know
    db.execute("UPDATE records SET status = 'of an older rule'")
    rows.stamp(db, "0")

    with closing(rebuild.connect(settings)) as opened:
        assert _hashes(opened) == before
    assert rebuild.check(settings, _quiet) == []
