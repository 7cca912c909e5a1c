"""The command line as people and programs use it: what commands print and their exit codes, in real processes too."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import click
import commands
import pytest
from click.testing import CliRunner

from graphsvc.cli import main as cli

ROOT = Path(__file__).resolve().parent.parent
DEMO = ROOT / "examples" / "demo"
CAFE = "/home/demo/harbor-cafe"


def line(body: str = "Hello", **fields: object) -> bytes:
    event = {"session_id": "s1", "kind": "user_message", "origin": "m1", "body": body, "project": "/srv/cafe", **fields}
    return json.dumps(event).encode() + b"\n"


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """A home that holds the demo conversations, and what their import said."""
    folder = tmp_path_factory.mktemp("imported")
    ran = commands.program(folder / "home", "import", str(DEMO), "--json", cwd=folder)
    assert ran.code == 0, ran.err
    return folder / "home", ran.json


@pytest.fixture
def cafe(imported, home):
    """A home that holds the demo conversations; what their import said."""
    shutil.copytree(imported[0], home)
    return imported[1]


def test_import_says_what_it_read(cafe):
    assert cafe["files"] == 3
    assert cafe["gaps"] == []
    assert cafe["skipped"] == []
    assert "harbor-cafe-2026-11-05" in cafe["sessions"]
    assert cafe["kinds"]["decision"] == 2
    assert cafe["records"] == 45
    assert cafe["events_added"] == sum(cafe["kinds"].values()) > 45, "what follows by rule is counted too"


def test_import_again_adds_nothing(cafe, program):
    again = program("import", str(DEMO), "--json").json

    assert again["events_added"] == 0


def test_import_reports_a_bad_line_and_a_strange_file_and_keeps_the_rest(run, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "talk.jsonl").write_bytes(line() + b"{broken\n" + line(origin="m2"))
    (tmp_path / "in" / "notes.txt").write_text("no conversation\n")

    got = run("import", str(tmp_path / "in"), "--json").json

    assert [(Path(gap["file"]).name, gap["line"]) for gap in got["gaps"]] == [("talk.jsonl", 2)]
    assert [Path(skipped["file"]).name for skipped in got["skipped"]] == ["notes.txt"]
    assert got["kinds"] == {"user_message": 2}


def test_import_for_people_names_sessions_gaps_and_the_next_command(run, tmp_path):
    (tmp_path / "talk.jsonl").write_bytes(line() + b"{broken\n")

    ran = run("import", str(tmp_path / "talk.jsonl"))

    assert ran.code == 0
    assert "s1" in ran.out
    assert "talk.jsonl:2" in ran.err


@pytest.mark.parametrize("path", ["nowhere.jsonl", "a" * 300])
def test_import_of_a_missing_path_is_an_error_that_names_it(run, path):
    ran = run("import", path, "--json")

    assert ran.code == 2
    assert path in ran.json["error"]["message"]


def test_import_without_anything_to_find_suggests_the_demo(run):
    ran = run("import")

    assert ran.code == 0
    assert "graphsvc demo" in ran.out


def test_import_without_anything_to_find_shows_the_demo_when_asked_to(run):
    ran = run("import", "--yes", "--demo")

    assert ran.code == 0
    assert "harbor-cafe-2026-11-05" in ran.out


def test_import_finds_the_histories_of_the_machine(run, program, tmp_path):
    folder = tmp_path / ".claude" / "projects" / "-home-demo-harbor-cafe"
    folder.mkdir(parents=True)
    (folder / "5f0c6a1e-8d0b-4c57-9d0e-1a7c2f4b9e01.jsonl").write_bytes((DEMO / "1-english.jsonl").read_bytes())

    refused = program("import", stdin=b"n\n")
    before = run("search", "rounding error", "--project", "all")
    ran = run("import", "--yes")

    assert (refused.code, before.code, ran.code) == (0, 1, 0)
    assert "claude-code" in refused.out
    assert run("search", "rounding error", "--project", "all").code == 0


def test_capture_stores_good_lines_and_rejects_bad_ones_by_number(program):
    ran = program(
        "capture", "--json", stdin=line() + b"\xff\n[]\n" + line(kind="song", origin="m2") + line(origin="m3")
    )

    assert ran.code == 2
    assert ran.json["accepted"] == 2
    assert [bad["line"] for bad in ran.json["rejected"]] == [2, 3, 4]
    assert all(bad["code"] and bad["message"] for bad in ran.json["rejected"])
    assert ran.json["position"] >= 2


def test_capture_indexes_what_it_stored_without_the_schema(home):
    code = """
import sys
from graphsvc.cli import main as cli
try:
    cli.program(["capture", "--json"])
except SystemExit:
    print(sorted({"strawberry", "graphql", "starlette", "rich", "uvicorn"} & set(sys.modules)))
"""
    printed = subprocess.run(
        [sys.executable, "-c", code],
        input=line(),
        capture_output=True,
        check=True,
        env={**os.environ, "GRAPHSVC_HOME": str(home)},
    ).stdout.splitlines()

    assert printed[-1] == b"[]"
    assert json.loads(printed[0])["position"] == 1
    with sqlite3.connect(home / "graphsvc.db") as db:
        assert db.execute("SELECT position FROM read_models WHERE name = 'words'").fetchall() == [(1,)]
    db.close()


def test_capture_again_counts_duplicates(run):
    first, second = run("capture", "--json", stdin=line()), run("capture", "--json", stdin=line())

    assert (first.code, second.code) == (0, 0)
    assert (second.json["accepted"], second.json["duplicates"]) == (0, 1)
    assert second.json["position"] == first.json["position"]


def test_capture_splits_at_line_feeds_only(run, program):
    body = "one\u2028two\u0085three\rfour\x0cfive"

    ran = program("capture", "--json", stdin=json.dumps(json.loads(line(body)), ensure_ascii=False).encode() + b"\n")

    assert ran.json["accepted"] == 1
    assert run("cat", "m1", "--project", "all").code == 1
    assert run("cat", "event-1", "--project", "all").out == body


@pytest.mark.parametrize("text", ["", "no json", "[]", "null", '{"query": ', "{" * 5000])
def test_tool_arguments_that_are_no_object_are_refused(run, text):
    ran = run("tool", text)

    assert ran.code == 2
    assert ran.json["error"]["field"] == "arguments"
    assert ran.out.count("\n") == 1


def test_tool_reads_its_arguments_from_standard_input(cafe, run, program):
    given = '{"query": "取餐码"}'

    assert program("tool", "-", stdin=given.encode()).json == run("tool", given).json


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"query": "rounding error"}, 0),
        ({"nav": "ls", "target": "harbor-cafe-2026-11-05"}, 0),
        ({"nav": "cat", "target": "event-999"}, 1),
        ({"query": "xyzzy-nothing-like-this"}, 1),
        ({"limit": 0}, 2),
        ({"nav": "fly"}, 2),
        ({"query": "a\0b"}, 2),
    ],
)
def test_tool_exit_codes(cafe, run, arguments, code):
    ran = run("tool", json.dumps(arguments))

    assert ran.code == code, ran.out
    assert ran.err == ""
    assert ran.out.count("\n") == 1
    assert ran.json


def test_tool_prints_utf8_whatever_the_locale(cafe, program):
    ran = program("tool", '{"query": "取餐码"}', env={"LC_ALL": "C", "PYTHONIOENCODING": "ascii"})

    assert ran.code == 0
    assert "取餐码" in ran.json["results"][0]["body"]
    assert "取餐码".encode() in ran.out.encode()


def test_project_and_viewer_choose_what_is_asked(cafe, run):
    run("capture", stdin=line("取餐码 in another project"))

    everywhere = run("tool", '{"query": "取餐码", "limit": 50}', "--project", "all").json
    there = run("tool", '{"query": "取餐码", "limit": 50}', "--project", "/srv/cafe").json
    as_session = run("tool", '{"query": "取餐码", "limit": 50}', "--viewer", "s1").json

    assert {hit["session_id"] for hit in everywhere["results"]} == {"s1", "harbor-cafe-2026-11-05"}
    assert {hit["session_id"] for hit in there["results"]} == {"s1"}
    assert {hit["session_id"] for hit in as_session["results"]} == {"s1"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["ls", "harbor-cafe-2026-11-05"],
        ["cd", "docs/ordering.md"],
        ["cat", "docs/ordering.md"],
        ["grep", "total_cents"],
        ["search", "rounding error", "--kind", "assistant_message"],
        ["search", "付款", "--since", "2026-11-05", "--until", "2026-11-05", "--order", "asc", "--limit", "3"],
        ["search", "付款", "--count-only"],
    ],
)
def test_commands_for_people_and_for_programs_agree(cafe, run, arguments):
    people = run(*arguments, "--project", CAFE)
    programs = run(*arguments, "--project", CAFE, "--json")

    assert (people.code, programs.code) == (0, 0), people.err + programs.out
    rows = programs.json.get("items") or programs.json.get("results") or []
    if arguments[0] == "cat":
        assert people.out == rows[0]["label"]
    else:
        assert all(row["id"] in people.out for row in rows)
    assert "\x1b" not in people.out


def test_cat_follows_the_cursor_to_the_end_and_is_exact(run, program):
    text = "一行 line\r\n\ttab \x1b[31m bell\x07 😀\n" * 20_000
    run("capture", stdin=line(text))

    assert program("cat", "event-1", "--project", "all").out == text
    assert "cursor" in run("cat", "event-1", "--project", "all", "--json").json


def test_not_found_says_what_to_try(cafe, program):
    ran = program("cd", "docs/orderin.md", "--project", CAFE)

    assert ran.code == 1
    assert "not-found" in ran.err
    assert "try: " in ran.err


def test_a_suggestion_for_people_is_a_command_that_runs(cafe, run):
    ran = run("cat", "docs/ordering.md", "--project", CAFE)
    [suggested] = [text.removeprefix("try: ") for text in ran.err.splitlines() if text.startswith("try: ")]

    followed = run(*shlex.split(suggested)[1:])

    assert "文件不可读" in ran.out
    assert followed.code == 0
    assert "# Ordering online" in followed.out


def test_a_refused_argument_is_one_line(cafe, run, program):
    ran = program("search", "x", "--limit", "51")

    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.startswith("graphsvc: limit: ")
    assert run("search", "x", "--limit", "51", "--json").json["error"]["field"] == "limit"


def test_rebuild_check_holds_and_finds_a_changed_row(cafe, run, home):
    assert run("rebuild", "--check").code == 0

    corrupt(
        home, "UPDATE records SET text = 'free coffee' WHERE id = (SELECT min(id) FROM records WHERE type = 'decision')"
    )
    ran = run("rebuild", "--check")
    programs = run("rebuild", "--check", "--json")

    assert ran.code == programs.code == 1
    assert "decision-" in ran.out or "records" in ran.out
    assert len(programs.json["differences"]) == 1

    assert run("rebuild").code == 0
    assert run("rebuild", "--check").code == 0


def test_stats_counts_what_is_there(cafe, run):
    got = run("stats", "--json").json

    assert (got["projects"], got["sessions"], got["gaps"]) == (1, 2, 0)
    assert got["position"] == sum(got["kinds"].values()) == sum(cafe["kinds"].values())
    assert "sessions\t2\n" in run("stats").out


def test_demo_answers_from_the_store(run):
    ran = run("demo")

    assert ran.code == 0, ran.err
    for word in ("harbor-cafe-2026-11-05", "docs/ordering.md", "superseded", "到店付款", "rounding error", "取餐码"):
        assert word in ran.out


def test_demo_for_programs_is_the_report_of_its_import(run):
    ran = run("demo", "--json")

    assert ran.json["files"] == 3
    assert "harbor-cafe-2026-11-05" in ran.json["sessions"]


def test_cat_refuses_a_budget_of_nothing(cafe, run):
    assert run("cat", "event-1", "--token-budget", "0").code == 2


def test_demo_again_adds_nothing(run):
    first = run("demo")

    assert run("demo").out == first.out


def test_serve_answers_and_the_tool_asks_it(cafe, program, home, tmp_path):
    ready = tmp_path / "ready.json"
    process = subprocess.Popen(
        [sys.executable, "-m", "graphsvc", "serve", "--port", "0", "--ready-file", str(ready), "--json"],
        env={**os.environ, "GRAPHSVC_HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        until(ready.exists)
        told = json.loads(ready.read_text())
        assert set(told) == {"url", "socket", "token_file", "pid"}
        assert told["pid"] == process.pid
        assert json.loads(process.stdout.readline()) == told
        assert program("tool", '{"query": "取餐码"}', "--project", CAFE).code == 0
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


def test_a_newer_database_is_refused_in_one_line(cafe, run, program, home):
    corrupt(home, "PRAGMA user_version = 999")

    ran = program("stats")

    assert ran.code == 3
    assert ran.err.count("\n") == 1
    assert "999" in ran.err
    assert "999" in run("stats", "--json").json["error"]["message"]


def test_ctrl_c_is_quiet_and_exits_130(home):
    process = subprocess.Popen(
        [sys.executable, "-m", "graphsvc", "capture"],
        env={**os.environ, "GRAPHSVC_HOME": str(home)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    until((home / "graphsvc.db").exists)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)

    assert (process.returncode, out, err) == (130, b"", b"")


def test_import_that_nobody_can_answer_imports_nothing(run, program, tmp_path):
    folder = tmp_path / ".claude" / "projects" / "p"
    folder.mkdir(parents=True)
    (folder / "s.jsonl").write_bytes((DEMO / "1-english.jsonl").read_bytes())

    assert program("import").code == 2
    assert run("import", "--json").json["error"]["field"] == "yes"
    assert run("stats", "--json").json["events"] == 0
    assert run("import", "--json", "--yes").json["files"] == 1


def test_a_closed_pipe_is_quiet(cafe, home):
    process = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m graphsvc cat docs/ordering.md --project {CAFE} | true"],  # noqa: S607 # found on PATH
        env={**os.environ, "GRAPHSVC_HOME": str(home)},
        capture_output=True,
        check=False,
    )

    assert process.stderr == b""


@pytest.mark.parametrize(
    ("env", "coloured"), [({"TERM": "xterm-256color"}, True), ({"TERM": "xterm-256color", "NO_COLOR": "1"}, False)]
)
def test_a_terminal_gets_colour_unless_it_says_no(cafe, home, env, coloured):
    shown = terminal(["ls", "harbor-cafe-2026-11-05"], home, env)

    assert "docs/ordering.md" in shown
    assert ("\x1b[36m" in shown) is coloured


def test_captured_control_characters_never_reach_a_terminal(run, home):
    run("capture", stdin=line("before \x1b]0;owned\x07\x1b[2J \u202eafter"))

    for command in (["cat", "event-1"], ["search", "before"], ["grep", "before"], ["cd", "event-1"]):
        shown = terminal([*command, "--project", "all"], home, {"TERM": "xterm"})
        assert "after" in shown
        assert not {"\x07", "\u202e"} & set(shown)
        assert "\x1b]0" not in shown
        assert "\x1b[2J" not in shown


def test_help_starts_without_the_rooms():
    code = """
import sys
from graphsvc.cli import main as cli
try:
    cli.program(["--help"])
except SystemExit:
    print(sorted({"strawberry", "starlette", "rich", "uvicorn", "sqlite3"} & set(sys.modules)))
"""

    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.decode()

    assert printed.splitlines()[-1] == "[]"


def corrupt(home: Path, statement: str) -> None:
    """Change the database behind graphsvc's back, with Python's own SQLite."""
    db = sqlite3.connect(home / "graphsvc.db")
    db.execute(statement)
    db.commit()
    db.close()


def terminal(arguments: list[str], home: Path, env: dict[str, str]) -> str:
    """Run a command on a terminal of its own and return all it printed."""
    main, worker = pty.openpty()
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in {"NO_COLOR", "FORCE_COLOR", "TERM", "COLORTERM"}
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "graphsvc", *arguments],
        env={**kept, "GRAPHSVC_HOME": str(home), "COLUMNS": "140", **env},
        stdin=worker,
        stdout=worker,
        stderr=worker,
    )
    os.close(worker)
    shown = b""
    while True:
        try:
            part = os.read(main, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        shown += part
    process.wait(timeout=60)
    os.close(main)
    return shown.decode("utf-8", "replace")


def until(holds, seconds: float = 30) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.05)


def _leaves(command=cli.program, path=("graphsvc",)):
    """Yield every command that does something, with the words that call it."""
    if isinstance(command, click.Group):
        for name, one in command.commands.items():
            yield from _leaves(one, (*path, name))
    else:
        yield path, command


LEAVES = {" ".join(path): command for path, command in _leaves()}
LASTING = {"graphsvc serve", "graphsvc ui"}  # run by the README's blocks, as they need a service


@pytest.fixture(scope="module")
def demo_home(tmp_path_factory):
    home = tmp_path_factory.mktemp("help") / "home"
    invoked = CliRunner().invoke(cli.program, ["demo", "--json"], env={"GRAPHSVC_HOME": str(home)})
    assert invoked.exit_code == 0
    return home


@pytest.mark.parametrize("name", LEAVES)
def test_the_examples_in_the_help_of_a_command_are_calls_of_it_that_it_takes(name, demo_home, tmp_path, monkeypatch):
    text = LEAVES[name].get_help(click.Context(LEAVES[name], info_name=name))
    examples = [line.strip() for line in text.splitlines() if re.match(r"\s*(.*\| )?graphsvc \S", line)]
    verb = name.removesuffix(" add")
    mine = [line for line in examples if verb in line]
    assert mine, text
    if name in LASTING:
        return
    monkeypatch.chdir(tmp_path)
    (tmp_path / "talk.jsonl").write_bytes(line())
    (tmp_path / "log.jsonl").write_bytes(line())
    (tmp_path / "old.graphql").write_text((ROOT / "schema" / "graphsvc.graphql").read_text("utf-8"), "utf-8")

    for example in mine:
        command, _, _ = example.partition("  ")  # what stands behind is a remark
        words = shlex.split(command.split("| ")[-1].split(" > ")[0].split(" < ")[0], comments=True)
        invoked = CliRunner().invoke(
            cli.program, words[1:], input=line(), env={"GRAPHSVC_HOME": str(demo_home), "HOME": str(tmp_path)}
        )
        assert "Usage:" not in invoked.stderr, example
        assert invoked.exit_code in {0, 1, 2}, (example, invoked.stderr, invoked.exception)
        assert invoked.exception is None or isinstance(invoked.exception, SystemExit), example
