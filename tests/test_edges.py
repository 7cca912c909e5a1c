"""The edges of the protocol: one test for each relation and rule."""

from __future__ import annotations

import pytest

from graphsvc.store import events


def _edges(db, kind, src_type, dst_type):
    rows = db.execute(
        "SELECT * FROM lineage_edges WHERE type = ? AND src_type = ? AND dst_type = ? ORDER BY begin_event, src, dst",
        (kind, src_type, dst_type),
    )
    return [(row["src"], row["dst"], row["rule"], row["end_event"] is None) for row in rows]


def _id(db, origin):
    return db.execute("SELECT id FROM events WHERE origin = ?", (origin,)).fetchone()["id"]


def _asset(db, path):
    return db.execute("SELECT id FROM knowledge_assets WHERE path = ?", (path,)).fetchone()["id"]


def _session(db, name):
    return events.find_session(db, name)[0]


def test_a_session_produces_what_it_writes_once(db, talk):
    talk.wrote("a.md")
    talk.wrote("a.md", "again")
    talk.session("s2").wrote("a.md", "by another")

    asset = _asset(db, "a.md")
    assert _edges(db, "produces", "session", "asset") == [
        (_session(db, "s1"), asset, "writes", True),
        (_session(db, "s2"), asset, "writes", True),
    ]


def test_a_report_tool_produces_a_report(db, talk):
    talk.tool("report", {"topic": "x"}, "# Findings\n\nAll fine.")

    row = db.execute(
        "SELECT a.path, v.kind, v.title FROM knowledge_assets a JOIN asset_versions v ON v.asset = a.id"
    ).fetchone()
    assert (row["path"], row["kind"], row["title"]) == ("reports/report-call-1.md", "report", "Findings")


def test_each_version_references_the_call_that_wrote_it(db, talk):
    first, second = talk.wrote("a.md", "x"), talk.edited("a.md", "x", "y")

    asset = _asset(db, "a.md")
    assert [edge[:3] for edge in _edges(db, "references", "asset", "event")] == [
        (asset, _id(db, first), "written by"),
        (asset, _id(db, second), "written by"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "see [code](../src/b.py)",
        "look at src/b.py.",
        "见src/b.py，以及别的",
        "依据：[代码](../src/b.py#L3)。",
        "in /srv/talk/harbor/src/b.py:3",
    ],
)
@pytest.mark.parametrize("later", [True, False], ids=["target registered later", "target registered first"])
def test_a_text_that_names_a_registered_path_references_it(db, talk, text, later):
    if not later:
        talk.wrote("src/b.py", "b = 1\n")
    talk.wrote("docs/a.md", f"# A\n\n{text}\n")
    if later:
        talk.wrote("src/b.py", "b = 1\n")

    assert _edges(db, "references", "asset", "asset") == [
        (_asset(db, "docs/a.md"), _asset(db, "src/b.py"), "names", True)
    ]


def test_a_link_ends_with_the_version_that_no_longer_has_it(db, talk):
    talk.wrote("b.md", "# B\n")
    talk.wrote("a.md", "see b.md")
    talk.edited("a.md", "see b.md", "see nothing")
    assert [edge[3] for edge in _edges(db, "references", "asset", "asset")] == [False]
    talk.edited("a.md", "nothing", "b.md again")

    assert [edge[3] for edge in _edges(db, "references", "asset", "asset")] == [True]


@pytest.mark.parametrize("first", [True, False], ids=["read before it was written", "read after"])
def test_a_call_that_reads_an_asset_references_it(db, talk, first):
    read = talk.read("a.md") if first else None
    talk.wrote("a.md")
    read = read or talk.read("a.md")
    talk.failed("Read", "a.md")

    assert _edges(db, "references", "event", "asset") == [(_id(db, read), _asset(db, "a.md"), "reads", True)]


def test_a_decision_always_has_evidence(db, talk):
    said = talk.user("JWT it is")
    stated = talk.decided("use JWT", evidence=[said])
    bare = talk.decided("use bcrypt")

    assert [edge[:3] for edge in _edges(db, "evidence", "decision", "event")] == [
        (_id(db, stated), _id(db, said), "stated by"),
        (_id(db, bare), _id(db, bare), "stated by"),
    ]


def test_a_decision_that_names_a_path_has_it_as_evidence(db, talk):
    decided = talk.decided("the design in docs/a.md holds")
    talk.wrote("docs/a.md")

    assert _edges(db, "evidence", "decision", "asset") == [(_id(db, decided), _asset(db, "docs/a.md"), "names", True)]


def test_a_checkpoint_stands_on_what_it_replaced_and_on_the_one_before(db, talk):
    said, answered = talk.user("one"), talk.assistant("two")
    first = talk.compacted("summary", replaces=[said, answered, "unknown"])
    second = talk.compacted("another")

    assert _edges(db, "evidence", "event", "event") == [
        (_id(db, first), _id(db, said), "replaces", True),
        (_id(db, first), _id(db, answered), "replaces", True),
    ]
    assert _edges(db, "precedes", "event", "event") == [(_id(db, first), _id(db, second), "checkpoint", True)]


def test_a_decision_precedes_what_superseded_it(db, talk):
    old = talk.decided("use JWT")
    new = talk.session("s2").superseded(old, "use server sessions")

    assert _edges(db, "precedes", "decision", "decision") == [(_id(db, old), _id(db, new), "superseded by", True)]


@pytest.mark.parametrize("parent_first", [True, False])
def test_a_session_precedes_the_one_that_names_it_as_parent(db, talk, parent_first):
    def tell(name):
        talk.session(name)
        if name == "child":
            talk.event("session_start", "", parent="parent", relation="fork")
        talk.user(f"in {name}")

    for name in ("parent", "child") if parent_first else ("child", "parent"):
        tell(name)
    talk.session("stranger").user("unrelated")

    assert _edges(db, "precedes", "session", "session") == [
        (_session(db, "parent"), _session(db, "child"), "fork", True)
    ]


def test_successive_writes_precede_each_other_whatever_order_they_arrive_in(db, talk):
    first = talk.at("2026-11-30T09:00:00+00:00").wrote("a.md", "1")
    third = talk.at("2026-11-30T11:00:00+00:00").wrote("a.md", "3")
    second = talk.at("2026-11-30T10:00:00+00:00").wrote("a.md", "2")

    a, b, c = (_id(db, origin) for origin in (first, second, third))
    assert sorted(_edges(db, "precedes", "event", "event")) == sorted(
        [(a, c, "write", False), (a, b, "write", True), (b, c, "write", True)]
    )


@pytest.mark.parametrize("kind", ["goal", "decision"])
def test_a_todo_is_the_next_step_of_its_basis(db, talk, kind):
    basis = talk.event(kind, "ship it", action="record")
    todo = talk.event("todo", "write the notes", action="record", basis=basis)

    assert _edges(db, "next_step", kind, "todo") == [(_id(db, basis), _id(db, todo), "basis", True)]


def test_there_are_no_self_edges(db, talk):
    talk.wrote("a.md", "# A\n\nsee a.md and ./a.md\n")
    talk.event("session_start", "", parent="s1", relation="resume")

    assert db.execute("SELECT COUNT(*) FROM lineage_edges WHERE src_type = dst_type AND src = dst").fetchone()[0] == 0


def test_edges_of_isolated_texts_are_not_those_of_shared_ones(db, talk):
    talk.wrote("b.md", "# B\n")
    talk.session("s2").isolated()
    talk.wrote("a.md", "see b.md")
    from graphsvc.model import NodeType
    from graphsvc.store.edges import hop
    from graphsvc.store.visibility import Viewer

    def links():
        target = _asset(db, "b.md")
        return [
            edge
            for edge in hop.around(db, Viewer(), NodeType.ASSET, target, 99)
            if edge.dst_type == "asset" == edge.src_type
        ]

    assert not links()
    talk.session("s3").wrote("a.md", "see b.md too")
    assert links()


def test_a_late_older_version_does_not_bring_its_links_back(db, talk):
    talk.wrote("b.md", "# B\n")
    talk.at("2026-11-30T11:00:00+00:00").wrote("a.md", "no link")
    talk.at("2026-11-30T10:00:00+00:00").wrote("a.md", "see b.md")

    assert _edges(db, "references", "asset", "asset") == []


def test_a_target_registered_after_the_text_stopped_naming_it_is_not_linked(db, talk):
    talk.wrote("a.md", "see b.md")
    talk.wrote("a.md", "nothing")
    talk.wrote("b.md", "# B\n")

    assert _edges(db, "references", "asset", "asset") == []


def test_a_link_beyond_the_paths_that_are_followed_does_not_end(db, talk):
    talk.wrote("b.md", "# B\n")
    talk.wrote("a.md", "see b.md")
    talk.wrote("a.md", "\n".join(f"see many/{number}.md" for number in range(300)) + "\nsee b.md")

    assert [edge[3] for edge in _edges(db, "references", "asset", "asset")] == [True]


def test_several_paths_glued_by_chinese_words_are_all_named(db, talk):
    talk.wrote("docs/b.md")
    talk.wrote("docs/c.md")
    talk.wrote("a.md", "更新docs/b.md和docs/c.md，完毕")
    talk.wrote("d.md", "[b](docs/b%2Emd)")

    b, c = _asset(db, "docs/b.md"), _asset(db, "docs/c.md")
    assert {edge[:2] for edge in _edges(db, "references", "asset", "asset")} == {
        (_asset(db, "a.md"), b), (_asset(db, "a.md"), c), (_asset(db, "d.md"), b),
    }  # fmt: skip


def test_a_todo_stands_on_the_asset_not_on_one_of_its_versions(db, talk):
    talk.wrote("a.md", "1")
    talk.wrote("a.md", "2")
    version = db.execute("SELECT MAX(event) AS event FROM asset_versions").fetchone()["event"]
    talk.event("todo", "x", action="record", basis=f"event-{version}")

    assert [edge[0] for edge in _edges(db, "next_step", "asset", "todo")] == [_asset(db, "a.md")]


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_the_copy_that_went_on_is_the_later_session_whatever_came_in_first(db, talk, order):
    def tell(name):
        talk.session(name).at("2026-11-30T09:00:00+00:00")
        for number in range(3):
            talk.event("user_message", f"shared {number}", origin=f"u{number}")
        if name == "b":
            talk.wrote("x.md")

    for name in order:
        tell(name)

    standing = [edge[:3] for edge in _edges(db, "precedes", "session", "session") if edge[3]]
    assert standing == [(_session(db, "a"), _session(db, "b"), "shared records")]


def test_a_copied_call_is_answered_in_the_copy_and_listed_by_both(db, talk):
    call = {"tool_name": "Write", "tool_use_id": "t"}
    for name in ("s1", "s2"):
        talk.session(name).event("tool_call", '{"file_path": "a.md", "content": "x"}', origin="c", **call)
    talk.event("tool_result", "ok", **call)
    talk.wrote("b.md")
    for name in ("s2", "s3"):
        talk.session(name).event("user_message", "Implement it", origin="u")

    from graphsvc.store import assets, records
    from graphsvc.store.visibility import Viewer

    assert [asset.path for asset in assets.produced(db, Viewer(), _session(db, "s2"))] == ["a.md", "b.md"]
    assert [record.text for record in records.of_session(db, Viewer(), _session(db, "s3"))] == ["Implement it"]


def test_an_edge_that_is_drawn_again_keeps_what_it_was(db, talk):
    talk.wrote("docs/b.md", "# B\n")
    talk.wrote("docs/a.md", "# A\n\nsee docs/b.md\n")
    talk.edited("docs/a.md", "see docs/b.md", "see nothing")
    talk.edited("docs/a.md", "see nothing", "see docs/b.md")

    [now] = db.execute("SELECT * FROM lineage_edges WHERE src_type = 'asset' AND dst_type = 'asset'").fetchall()
    [then] = db.execute("SELECT * FROM past_edges").fetchall()
    assert (now["src"], now["dst"]) == (then["src"], then["dst"])
    assert now["end_event"] is None
    assert then["begin_event"] < then["end_event"] < now["begin_event"] == now["changed_event"]
    assert then["changed_event"] == then["end_event"]


def test_every_edge_tells_which_event_wrote_it(db, talk):
    asked = talk.user("read docs/b.md")
    talk.read("docs/b.md")
    talk.decided("docs/b.md holds", evidence=[asked])
    before = db.execute("SELECT MAX(id) FROM events").fetchone()[0]
    talk.wrote("docs/b.md", "# B\n")

    drawn = db.execute(
        "SELECT begin_event, changed_event FROM lineage_edges WHERE dst_type = 'asset' AND src_type <> 'session'"
    ).fetchall()
    assert drawn
    assert all(begin <= before < changed for begin, changed in drawn), "older than the file, written with it"


def test_what_is_isolated_turns_no_edge_between_sessions(db, talk):
    talk.event("user_message", "the same words", origin="shared")
    talk.session("s2").event("user_message", "the same words", origin="shared")
    talk.session("s1").isolated()
    talk.user("private, and later than all of the other")

    [edge] = db.execute("SELECT * FROM lineage_edges WHERE type = 'precedes' AND src_type = 'session'").fetchall()
    assert (edge["src"], edge["dst"], edge["end_event"]) == (_session(db, "s1"), _session(db, "s2"), None)

    talk.isolated(False)
    talk.user("all may see that this one went on longer")
    [ended] = db.execute("SELECT * FROM lineage_edges WHERE end_event IS NOT NULL").fetchall()
    assert (ended["src"], ended["dst"]) == (_session(db, "s1"), _session(db, "s2"))


def test_an_edge_of_one_session_ends_where_one_that_all_see_takes_its_place(db, talk):
    said = talk.user("hours")
    talk.decided("at nine", origin="d")
    about = {"type": "evidence", "source": {"type": "decision", "of": "d"}, "target": {"type": "event", "of": said}}
    talk.isolated()
    talk.event("edge", "", action="add", **about)
    talk.isolated(False)
    talk.event("edge", "", action="add", **about)

    [own] = db.execute("SELECT * FROM past_edges").fetchall()
    [all_see] = db.execute("SELECT * FROM lineage_edges WHERE dst = ?", (_id(db, said),)).fetchall()
    assert own["begin_event"] < own["end_event"] == all_see["begin_event"]
    assert own["begin_at"] < own["end_at"] == all_see["begin_at"]
    assert all_see["end_event"] is None
