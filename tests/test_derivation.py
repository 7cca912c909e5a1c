"""What follows from an event by rule, in both languages; and what does not."""

from __future__ import annotations

import json

import pytest

from graphsvc.store import events


def _records(db, kind):
    return [
        (row["status"], row["text"]) for row in db.execute("SELECT * FROM records WHERE type = ? ORDER BY id", (kind,))
    ]


@pytest.mark.parametrize(
    ("message", "candidate"),
    [
        ("Fine. We decided: sessions use JWT, no cookies.", "We decided: sessions use JWT, no cookies."),
        ("let's go with postgres 15.2 for now", "let's go with postgres 15.2 for now"),
        ("We'll go with option B", "We'll go with option B"),
        ("we've decided to drop the cache. Thanks!", "we've decided to drop the cache."),
        ("继续登录模块：决定改用服务端会话，不再用 JWT。更新文档。", "继续登录模块：决定改用服务端会话，不再用 JWT。"),
        ("数据库就用 SQLite", "数据库就用 SQLite"),
        ("方案敲定：两个表", "方案敲定：两个表"),
        ("不过我们决定用两个表", "不过我们决定用两个表"),
        ("没错，决定用 SQLite", "没错，决定用 SQLite"),
        ("we’ve decided: two tables", "we’ve decided: two tables"),
        ("let’s go with SQLite", "let’s go with SQLite"),
    ],
)
def test_a_decision_in_the_users_words_is_a_candidate_with_evidence(db, talk, message, candidate):
    talk.user(message)

    assert _records(db, "candidate") == [("pending", candidate)]
    assert _records(db, "decision") == []
    row = db.execute("SELECT id, evidence FROM records WHERE type = 'candidate'").fetchone()
    assert json.loads(row["evidence"]) == [1]
    assert events.get(db, row["id"]).meta["cause"] == "s1:1"


@pytest.mark.parametrize(
    "message",
    [
        "What did we decide about sessions, and what is still open?",
        "Have we decided on JWT?",
        "We haven't decided yet.",
        "once we decided that, tell me",
        "还没决定用哪个库",
        "决定了吗？",
        "数据库由谁决定",
        "是否就用 SQLite？",
        "he is decidedly slow",
        "cookie 的决定权在浏览器",
        "成就用户价值",
        "就用户登录问题开个会",
        "看选定的代码",
        "你来决定",
        "帮我决定用哪个",
        "需要做决定",
        "决定因素是什么时候上线",
        "这个决定是错的",
        "I don’t think we decided on that",
        "I didn't say we decided",
        "No decision: pending",
        "吗" + " " * 19_990 + "x",
    ],
)
def test_questions_and_negations_are_no_candidates(db, talk, message):
    talk.user(message)

    assert _records(db, "candidate") == []


def test_only_the_user_decides(db, talk):
    talk.assistant("We decided: sessions use JWT.")
    talk.ran("cat notes", "we decided to use JWT\n决定改用服务端会话")

    assert db.execute("SELECT COUNT(*) FROM records").fetchone()[0] == 0


@pytest.mark.parametrize(
    ("message", "is_goal"),
    [
        ("Implement session_store in src/session_store.py", True),
        ("please fix the login test", True),
        ("把登录模块实现到 src/login.py", True),
        ("给登录加上测试", True),
        ("Let's implement the store", True),
        ("Plan B is cheaper", False),
        ("Build fails with error X", False),
        ("support ticket 12 arrived", False),
        ("验证码收不到", False),
        ("设计文档在哪里", False),
        ("构建报错", False),
        ("修复后还是报错", False),
        ("实现登录模块", True),
        ("帮我修复登录测试", True),
        ("How complete is the login module?", False),
        ("登录模块完成了吗？", False),
        ("Fix is done", False),
        ("implement a\nand b", False),
        ("/compact", False),
        ("Implement " + "x" * 300, False),
        ("the plan is fine", False),
    ],
)
def test_a_short_imperative_is_a_goal(db, talk, message, is_goal):
    talk.user(message)

    assert _records(db, "goal") == ([("active", message)] if is_goal else [])


def test_a_todo_list_that_a_tool_writes_is_followed(db, talk):
    def write(*todos):
        talk.tool("TodoWrite", {"todos": [{"content": text, "status": status} for text, status in todos]})

    write(("a", "pending"), ("b", "in_progress"), ("c", "completed"))
    assert _records(db, "todo") == [("pending", "a"), ("pending", "b"), ("done", "c")]
    write(("a", "pending"), ("b", "completed"), ("c", "completed"))
    assert _records(db, "todo") == [("pending", "a"), ("done", "b"), ("done", "c")]
    write(("d", "pending"))
    assert _records(db, "todo") == [("dropped", "a"), ("done", "b"), ("done", "c"), ("pending", "d")]
    write(("a", "pending"), ("d", "pending"))
    assert _records(db, "todo")[-1] == ("pending", "a")


def test_tasks_are_created_and_moved_by_their_number(db, talk):
    talk.tool("TaskCreate", {"subject": "write tests"}, "Task #7 created successfully: write tests")
    talk.tool("TaskUpdate", {"taskId": "7", "status": "in_progress"})
    assert _records(db, "todo") == [("pending", "write tests")]
    talk.tool("TaskUpdate", {"taskId": "7", "status": "completed"})

    assert _records(db, "todo") == [("done", "write tests")]


def test_goals_and_todo_lists_that_a_host_keeps_itself_are_records(db, talk):
    talk.event("goal", "two turns", action="record", key="g1")
    talk.event("goal", "two turns", action="complete", key="g1")
    talk.event("todo", "[]", action="snapshot", todos=[{"text": "x", "status": "pending"}])

    assert _records(db, "goal") == [("completed", "two turns")]
    assert _records(db, "todo") == [("pending", "x")]


def test_an_approved_plan_and_an_answered_question_are_candidates(db, talk):
    talk.tool("ExitPlanMode", {"plan": "1. drop JWT"}, "User has approved your plan.")
    talk.tool("ExitPlanMode", {"plan": "2. drop all"}, "The user rejected it.", is_error=True)
    talk.tool("AskUserQuestion", {"questions": [{"question": "Which?"}]}, 'User answered: "Which?"="SQLite"')

    assert [text for _, text in _records(db, "candidate")] == ["1. drop JWT", 'User answered: "Which?"="SQLite"']


def test_record_decision_is_the_explicit_channel(db, talk):
    call = talk.tool("mcp__graphsvc__record_decision", {"text": "use JWT"})
    number = db.execute("SELECT id, evidence FROM records").fetchone()
    talk.tool("record_decision", {"text": "use server sessions", "supersedes_id": f"decision-{number['id']}"})

    assert _records(db, "decision") == [("superseded", "use JWT"), ("active", "use server sessions")]
    assert events.get(db, json.loads(number["evidence"])[0]).origin == call


def test_promoting_a_candidate_makes_a_decision_with_its_evidence(db, talk):
    said = talk.user("We decided: sessions use JWT")
    origin = events.get(db, db.execute("SELECT id FROM records").fetchone()["id"]).origin
    talk.event("candidate", "Sessions use JWT (RFC 7519)", action="promote", of=origin)

    assert _records(db, "candidate") == [("promoted", "We decided: sessions use JWT")]
    assert _records(db, "decision") == [("active", "Sessions use JWT (RFC 7519)")]
    evidence = json.loads(db.execute("SELECT evidence FROM records WHERE type = 'decision'").fetchone()["evidence"])
    assert said in {events.get(db, number).origin for number in evidence}


@pytest.mark.parametrize(
    ("tool", "given", "meta", "content"),
    [
        ("Write", {"file_path": "a.md", "content": "# A\n"}, {}, "# A\n"),
        ("write_file", {"path": "a.md", "content": "# A\n"}, {}, "# A\n"),
        ("mcp__fs__create_file", {"path": "a.md", "file_text": "# A\n"}, {}, "# A\n"),
        ("Edit", {"file_path": "a.md", "old_string": "x", "new_string": "y"}, {"original_file": "x z"}, "y z"),
        ("Edit", {"file_path": "a.md", "old_string": "x", "new_string": "y"}, {}, None),
        ("Edit", {"file_path": "a.md", "old_string": "x", "new_string": "y"}, {"original_file": "x x"}, None),
        (
            "Edit",
            {"file_path": "a.md", "old_string": "x", "new_string": "y", "replace_all": True},
            {"original_file": "x x"},
            "y y",
        ),
        (
            "MultiEdit",
            {
                "file_path": "a.md",
                "edits": [{"old_string": "x", "new_string": "y"}, {"old_string": "y", "new_string": "z"}],
            },
            {"original_file": "x"},
            "z",
        ),
        ("str_replace_editor", {"command": "create", "path": "a.md", "file_text": "T"}, {}, "T"),
        (
            "str_replace_based_edit_tool",
            {"command": "insert", "path": "a.md", "insert_line": 2, "insert_text": "c"},
            {"original_file": "a\nb"},
            "a\nb\nc",
        ),
        ("apply_patch", {"input": "*** Add File: a.md\n+x\u2028y\n"}, {}, "x\u2028y\n"),
        ("shell", {"command": ["apply_patch", "*** Add File: a.md\n+x\n"]}, {}, "x\n"),
        (
            "str_replace_based_edit_tool",
            {"command": "insert", "path": "a.md", "insert_line": 1, "insert_text": "b"},
            {"original_file": "a\nc\n"},
            "a\nb\nc\n",
        ),
        ("apply_patch", {"input": "*** Begin Patch\n*** Add File: a.md\n+# A\n+x\n*** End Patch"}, {}, "# A\nx\n"),
        ("apply_patch", {"input": "*** Update File: a.md\n@@\n-x\n+y\n"}, {}, None),
        ("NotebookEdit", {"notebook_path": "a.md", "new_source": "x"}, {}, None),
        ("Edit", {"file_path": "a.md", "old_string": "x", "new_string": "y"}, {"new_file": "whole"}, "whole"),
    ],
)
def test_write_tools_of_every_host_leave_a_version(db, talk, tool, given, meta, content):
    talk.tool(tool, given, **meta)
    rows = db.execute(
        "SELECT a.path, v.event FROM knowledge_assets a JOIN asset_versions v ON v.asset = a.id"
    ).fetchall()

    from graphsvc.store import assets

    assert [row["path"] for row in rows] == ["a.md"]
    assert assets.version_of(db, rows[0]["event"]).content == content


@pytest.mark.parametrize(
    ("tool", "given", "meta"),
    [
        ("Read", {"file_path": "a.md"}, {}),
        ("Bash", {"command": "echo hi > a.md"}, {}),
        ("str_replace_editor", {"command": "view", "path": "a.md"}, {}),
        ("Write", {"file_path": "a.md", "content": "x"}, {"is_error": True}),
        ("Write", {"content": "x"}, {}),
        ("Write", {"file_path": "", "content": "x"}, {}),
    ],
)
def test_what_wrote_nothing_leaves_no_asset(db, talk, tool, given, meta):
    talk.tool(tool, given, **meta)

    assert db.execute("SELECT COUNT(*) FROM knowledge_assets").fetchone()[0] == 0


def test_a_call_without_a_result_wrote_nothing(db, talk):
    talk.event("tool_call", '{"file_path": "a.md", "content": "x"}', tool_name="Write", tool_use_id="t1")

    assert db.execute("SELECT COUNT(*) FROM knowledge_assets").fetchone()[0] == 0


def test_an_edit_builds_on_the_newest_whole_version(db, talk):
    talk.wrote("a.md", "one two\n")
    talk.edited("a.md", "two", "three")
    talk.edited("a.md", "absent", "x")
    talk.edited("a.md", "one", "x")

    from graphsvc.store import assets
    from graphsvc.store.visibility import Viewer

    number = db.execute("SELECT id FROM knowledge_assets").fetchone()["id"]
    versions = assets.versions(db, Viewer(), number)
    whole = [assets.version_of(db, version.event).content for version in versions]
    assert whole == ["one two\n", "one three\n", None, None]


def test_the_same_relative_path_in_two_projects_is_two_assets(db, talk):
    talk.wrote("notes.md", "# Harbor\n")
    talk.project = "/srv/talk/other"
    talk.session("s2").wrote("notes.md", "# Other\n")

    assert [tuple(row) for row in db.execute("SELECT path FROM knowledge_assets")] == [("notes.md",), ("notes.md",)]
    assert len({row["asset"] for row in db.execute("SELECT asset FROM asset_versions")}) == 2


@pytest.mark.parametrize(
    ("command", "answer", "refs"),
    [
        (
            'git add -A && git commit -m "Add a"',
            "[main 1a2b3c4] Add a\n 2 files changed",
            {"a.md": "1a2b3c4", "src/b.py": "1a2b3c4"},
        ),
        (
            "git add a.md && git commit -m 'Add a'",
            "[main (root-commit) 1a2b3c4] Add a",
            {"a.md": "1a2b3c4", "src/b.py": None},
        ),
        (
            "git add src && git commit -qm 'B' && git log --oneline -1",
            "9f8e7d6 B",
            {"a.md": None, "src/b.py": "9f8e7d6"},
        ),
        (
            'git commit -qam "B" && git log --oneline | head -1',
            "9f8e7d6 (HEAD -> main) B",
            {"a.md": "9f8e7d6", "src/b.py": "9f8e7d6"},
        ),
        (
            "git commit -qm 'B' && git log --oneline | head -1",
            "9f8e7d6 Another subject",
            {"a.md": None, "src/b.py": None},
        ),
        ("git log --oneline", "9f8e7d6 B", {"a.md": None, "src/b.py": None}),
        ("git add a.md && git commit -m 'Add user-auth'", "[main 1a2b3c4] x", {"a.md": "1a2b3c4", "src/b.py": None}),
        ("git add a.md; git commit --amend -m x", "[main 1a2b3c4] x", {"a.md": "1a2b3c4", "src/b.py": None}),
        ("git add ./ && git commit -m x", "[main 1a2b3c4] x", {"a.md": "1a2b3c4", "src/b.py": "1a2b3c4"}),
        ("git add *.md && git commit -m x", "[main 1a2b3c4] x", {"a.md": "1a2b3c4", "src/b.py": None}),
        (
            "git -c a=b -c c=d add -A && git -C . commit -m x",
            "[m 1a2b3c4] x",
            {"a.md": "1a2b3c4", "src/b.py": "1a2b3c4"},
        ),
        ("git commit -m p -- a.md", "[main 1a2b3c4] p", {"a.md": "1a2b3c4", "src/b.py": None}),
        (
            "git add a.md src/b.py && git reset src/b.py && git commit -m x",
            "[m 1a2b3c4] x",
            {"a.md": "1a2b3c4", "src/b.py": None},
        ),
        (
            "git add a.md src/b.py && git restore --staged src/b.py && git commit -m x",
            "[m 1a2b3c4] x",
            {"a.md": "1a2b3c4", "src/b.py": None},
        ),
        (
            "git add a.md src/b.py && git stash push src/b.py && git commit -m x",
            "[m 1a2b3c4] x",
            {"a.md": "1a2b3c4", "src/b.py": None},
        ),
        (
            "python -m pytest && git add -A && git commit -qm 'B' && git log -1 --oneline",
            "3 passed\n9f8e7d6 B",
            {"a.md": "9f8e7d6", "src/b.py": "9f8e7d6"},
        ),
        ("git commit -m 'open quote", "[main 1a2b3c4] x", {"a.md": None, "src/b.py": None}),
        ("echo git commit", "nothing to commit", {"a.md": None, "src/b.py": None}),
    ],
)
def test_a_commit_covers_the_versions_it_took(db, talk, command, answer, refs):
    talk.wrote("a.md", "# A\n")
    talk.wrote("src/b.py", "b = 1\n")
    talk.ran(command, answer)

    rows = db.execute("SELECT a.path, v.ref FROM knowledge_assets a JOIN asset_versions v ON v.asset = a.id")
    assert {row["path"]: row["ref"] for row in rows} == refs


def test_a_failed_commit_covers_nothing(db, talk):
    talk.wrote("a.md", "# A\n")
    talk.tool("Bash", {"command": "git commit -am x"}, "[main 1a2b3c4] x\nhook failed", is_error=True)

    assert db.execute("SELECT ref FROM asset_versions").fetchone()["ref"] is None


@pytest.mark.parametrize("phrase", ["/thread-iso", "隔离", "  免打扰 ", "Isolate", "go private"])
def test_an_isolation_phrase_takes_effect_before_it_is_stored(db, talk, phrase):
    talk.user("shared")
    talk.user(phrase)
    talk.assistant("hidden")
    talk.user("解除隔离")
    talk.user("shared again")

    hidden = {events.get(db, row["event"]).body for row in db.execute("SELECT event FROM hidden")}
    assert hidden == {phrase, "on", "hidden"}


@pytest.mark.parametrize("phrase", ["please isolate this module", "隔离级别是什么", "/thread-iso now"])
def test_an_isolation_phrase_is_a_whole_message(db, talk, phrase):
    talk.user(phrase)

    assert db.execute("SELECT COUNT(*) FROM hidden").fetchone()[0] == 0


def test_an_isolated_session_cannot_change_what_others_see(db, talk):
    shared = talk.decided("use JWT")
    talk.session("s2").isolated()
    own = talk.decided("my own")
    talk.event("decision", "", action="revoke", of=own)
    talk.event("decision", "", action="revoke", of=shared)

    assert talk.captured[-1].rejected[0].code == "isolated-session"
    assert _records(db, "decision") == [("active", "use JWT"), ("revoked", "my own")]


def test_publishing_shows_single_rows_of_the_own_session(db, talk):
    talk.isolated()
    talk.user("for all")
    number = events.position(db)
    talk.user("for me")
    talk.session("s2").event("publish", "", ids=[f"event-{number}"])
    assert talk.captured[-1].rejected
    assert db.execute("SELECT COUNT(*) FROM hidden WHERE event = ?", (number,)).fetchone()[0] == 1
    talk.session("s1").event("publish", "", ids=[f"event-{number}"])

    assert db.execute("SELECT COUNT(*) FROM hidden WHERE event = ?", (number,)).fetchone()[0] == 0


def test_a_result_without_an_id_answers_only_the_call_right_before_it(db, talk):
    talk.event("tool_call", '{"file_path": "a.md", "content": "x"}', tool_name="Write")
    talk.event("tool_result", "ok", tool_name="Write")
    talk.event("tool_result", "a stray one", tool_name="Write")
    talk.wrote("b.md")
    talk.event("tool_result", "another stray one", tool_name="Write")

    rows = db.execute("SELECT a.path FROM knowledge_assets a JOIN asset_versions v ON v.asset = a.id ORDER BY 1")
    assert [row["path"] for row in rows] == ["a.md", "b.md"]


def test_add_all_commits_what_other_sessions_wrote_too(db, talk):
    talk.wrote("a.md")
    talk.session("s2").ran("git add -A && git commit -m x", "[main 1a2b3c4] x")

    assert db.execute("SELECT ref FROM asset_versions").fetchone()["ref"] == "1a2b3c4"


def test_todos_survive_what_cannot_be_read(db, talk):
    def write(*todos):
        talk.tool("TodoWrite", {"todos": list(todos)})

    write({"content": "a", "status": "pending"}, {"content": "a", "status": "pending"}, {"content": "b"})
    assert _records(db, "todo") == [("pending", "a"), ("pending", "b")]
    write({"content": "a", "status": "blocked"}, "nonsense")
    assert _records(db, "todo") == [("pending", "a"), ("pending", "b")]
    write({"content": "a", "status": "completed"}, {"content": "b"})
    write({"content": "a", "status": "pending"}, {"content": "b"})
    assert _records(db, "todo") == [("done", "a"), ("pending", "b"), ("pending", "a")]
    write({"content": "\ud800", "status": "pending"})
    write({"content": "\ud800", "status": "pending"})
    assert len(_records(db, "todo")) == 4


@pytest.mark.parametrize("how", ["todo", "decision", "commit"])
def test_rules_of_an_isolated_session_change_nothing_that_others_see(db, talk, how):
    talk.tool("TodoWrite", {"todos": [{"content": "a", "status": "pending"}]})
    talk.decided("use JWT")
    talk.wrote("a.md")
    tables = ("records", "asset_versions")
    before = [tuple(row) for table in tables for row in db.execute(f"SELECT * FROM {table}")]
    number = db.execute("SELECT id FROM records WHERE type = 'decision'").fetchone()["id"]
    talk.isolated()
    if how == "todo":
        talk.tool("TodoWrite", {"todos": [{"content": "a", "status": "completed"}]})
    elif how == "decision":
        talk.tool("record_decision", {"text": "mine", "supersedes_id": number})
    else:
        talk.ran("git add -A && git commit -m x", "[main 1a2b3c4] x")

    shared = [
        tuple(row)
        for table, key in zip(tables, ("id", "event"), strict=True)
        for row in db.execute(f"SELECT * FROM {table} WHERE {key} NOT IN (SELECT event FROM hidden)")
    ]
    assert shared == before


def test_nobody_supersedes_what_another_session_hides(db, talk):
    talk.isolated()
    hidden = talk.decided("my own")
    number = db.execute("SELECT id FROM records").fetchone()["id"]
    talk.session("s2").tool("record_decision", {"text": "ours", "supersedes_id": number})
    talk.superseded(hidden, "ours")

    assert db.execute("SELECT status FROM records WHERE id = ?", (number,)).fetchone()["status"] == "active"
    assert talk.captured[-1].rejected[0].code == "not-found"


def test_a_decision_that_names_one_of_another_project_stands_on_its_own(db, talk):
    talk.decided("use sessions")
    number = db.execute("SELECT id FROM records").fetchone()["id"]
    talk.project = "/srv/talk/elsewhere"
    talk.session("s9").tool("record_decision", {"text": "ours", "supersedes_id": number})

    found = db.execute("SELECT text, status FROM records WHERE type = 'decision' ORDER BY id")
    assert [tuple(row) for row in found] == [("use sessions", "active"), ("ours", "active")]
    meta = json.loads(db.execute("SELECT meta FROM events WHERE kind = 'decision' ORDER BY id DESC").fetchone()["meta"])
    assert meta["action"] == "record"
    assert "of" not in meta


def test_what_was_said_while_isolated_stays_so_when_it_arrives_late(db, talk):
    talk.at("2026-11-30T10:00:00+00:00").isolated()
    talk.at("2026-11-30T11:00:00+00:00").isolated(False)
    talk.at("2026-11-30T10:30:00+00:00").assistant("Your salary is 5")
    talk.at("2026-11-30T12:00:00+00:00").assistant("for all")

    hidden = {events.get(db, row["event"]).body for row in db.execute("SELECT event FROM hidden")}
    assert "Your salary is 5" in hidden
    assert "for all" not in hidden


def test_a_shared_version_is_not_built_on_a_hidden_one(db, talk):
    talk.wrote("a.md", "# Open\nx\n")
    talk.isolated()
    talk.wrote("a.md", "# SECRET\nx\n")
    talk.isolated(False)
    talk.edited("a.md", "x", "y")

    from graphsvc.store import assets
    from graphsvc.store.visibility import Viewer

    number = db.execute("SELECT id FROM knowledge_assets").fetchone()["id"]
    shown = [assets.version_of(db, version.event).content for version in assets.versions(db, Viewer(), number)]
    assert shown == ["# Open\nx\n", "# Open\ny\n"]


@pytest.mark.parametrize("how", ["key", "id", "of"])
def test_a_promoted_candidate_becomes_one_decision_however_it_is_named(db, talk, how):
    talk.event("candidate", "use JWT", action="record", key="k1")
    number = db.execute("SELECT id FROM records").fetchone()["id"]
    name = {"key": "k1", "id": f"candidate-{number}", "of": f"candidate-{number}"}[how]
    talk.event("candidate", "", action="promote", **{how: name})
    talk.event("candidate", "", action="promote", **{how: name})

    assert _records(db, "candidate") == [("promoted", "use JWT")]
    assert _records(db, "decision") == [("active", "use JWT")]


def test_a_promotion_older_than_the_rejection_makes_no_decision(db, talk):
    origin = talk.event("candidate", "use JWT", action="record")
    talk.at("2026-11-30T12:00:00+00:00").event("candidate", "", action="reject", of=origin)
    talk.at("2026-11-30T11:00:00+00:00").event("candidate", "", action="promote", of=origin)

    assert _records(db, "candidate") == [("rejected", "use JWT")]
    assert _records(db, "decision") == []


def test_the_record_that_is_checked_is_the_one_that_moves(db, talk):
    talk.event("goal", "one", action="record", key="k1")
    talk.event("goal", "two", action="record", key="k2")
    number = db.execute("SELECT MIN(id) AS id FROM records").fetchone()["id"]
    talk.event("goal", "", action="complete", id=f"goal-{number}", key="k2")

    assert _records(db, "goal") == [("completed", "one"), ("active", "two")]


def test_evidence_and_basis_may_be_named_by_id(db, talk):
    talk.user("we need it")
    talk.wrote("a.md")
    goal = talk.event("goal", "ship it", action="record")
    asset = db.execute("SELECT id FROM knowledge_assets").fetchone()["id"]
    number = db.execute("SELECT id FROM records").fetchone()["id"]
    talk.decided("do it", evidence=["event-1", f"asset-{asset}", goal])
    talk.event("todo", "now", action="record", basis=f"goal-{number}")
    talk.event("todo", "later", action="record", basis=f"asset-{asset}")

    edges = [
        tuple(row) for row in db.execute("SELECT type, dst_type, dst FROM lineage_edges WHERE src_type = 'decision'")
    ]
    assert sorted(edges) == sorted(
        [("evidence", "event", 1), ("evidence", "asset", asset), ("evidence", "event", number)]
    )
    steps = db.execute("SELECT src_type, src FROM lineage_edges WHERE type = 'next_step' ORDER BY src_type")
    assert [tuple(row) for row in steps] == [("asset", asset), ("goal", number)]


@pytest.mark.parametrize("origin", ["rule:u9:0", "member:s1:u9"])
def test_origins_that_rules_use_are_refused_from_outside(talk, origin):
    talk.event("user_message", "hi", origin=origin)

    assert talk.captured[-1].rejected[0].code == "invalid-input"
