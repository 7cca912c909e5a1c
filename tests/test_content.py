"""`cat`: whole contents in pages, and no file but those an agent wrote."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time

import pytest

from graphsvc.client import executor, tool
from graphsvc.recall import budget, content
from graphsvc.recall.scope import Asker


@pytest.fixture
def cat(settings, db):
    def cat(target, viewer=None, **more):
        line, code = tool.call(
            {"nav": "cat", "target": target, **more}, executor.in_process(settings, Asker(session_id=viewer))
        )
        assert code == 2 or budget.tokens(line) <= more.get("token_budget", 4000)
        return json.loads(line), code

    return cat


@pytest.fixture
def whole(cat):
    """Read all pages of a target and join them."""

    def whole(target, **more):
        text, cursor, pages = "", None, 0
        while True:
            answer, code = cat(target, **more, **({"cursor": cursor} if cursor else {}))
            assert code == 0
            text += answer["items"][0]["label"]
            pages += 1
            cursor = answer.get("cursor")
            if cursor is None:
                return text, pages

    return whole


@pytest.mark.parametrize("size", [60, 100, 1000])
@pytest.mark.parametrize(
    "body",
    [
        "plain words " * 200,
        "决定改用服务端会话。" * 100,
        'a"b\\c\n\t\0\u2028' * 90,
        "👩‍👩‍👧‍👦" * 80,
        "\ud800x" * 90,
        "",
        "x",
    ],
)
def test_the_labels_of_all_pages_joined_are_the_body(talk, whole, body, size):
    talk.user(body)
    text, pages = whole("event-1", token_budget=size)

    assert text == body
    assert pages > 1 or len(body) < 3000


def test_a_page_uses_its_budget(talk, settings, cat):
    talk.user("words and more words " * 2000)

    for size in (200, 1000, 4000):
        answer, _ = cat("event-1", token_budget=size)
        assert budget.cost(answer) >= 0.7 * size


def test_a_session_reads_as_one_text_in_order(talk, whole):
    talk.user("first 问题")
    talk.wrote("a.md", '# A\n\n"quoted"\n')
    talk.assistant("last")
    text, _ = whole("s1", token_budget=120)

    places = [text.index(part) for part in ("first 问题", '# A\n\n"quoted"\n', "last")]
    assert places == sorted(places)
    assert text == whole("s1", token_budget=100_000)[0]


def test_isolated_parts_of_a_session_are_one_marker(talk, whole):
    talk.user("shared one")
    talk.isolated()
    talk.user("hidden one")
    talk.user("hidden two")
    talk.isolated(False)
    talk.user("shared two")
    text, _ = whole("s1", token_budget=60)

    assert "hidden" not in text
    assert text.count(content.HIDDEN) == 1
    assert "shared two" in text
    assert "hidden two" in whole("s1", viewer="s1")[0]


@pytest.fixture
def project(talk, tmp_path):
    """A real folder with a registered document, and a secret outside of it."""
    root = tmp_path / "project"
    (root / "docs").mkdir(parents=True)
    (tmp_path / "secret.txt").write_text("CANARY")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.md").write_text("CANARY")
    talk.project = str(root)
    talk.wrote("docs/a.md", "# As written\n")
    (root / "docs" / "a.md").write_text("# As it is now\n")
    return root


def test_cat_of_an_asset_shows_the_live_file(project, cat):
    assert cat("docs/a.md")[0]["items"][0]["label"] == "# As it is now\n"


def test_an_unreadable_file_says_so_and_names_what_was_captured(project, cat):
    (project / "docs" / "a.md").unlink()
    answer, code = cat("docs/a.md")

    assert code == 0
    assert answer["items"][0]["label"] == f"[文件不可读: {project}/docs/a.md]"
    captured, _ = cat(json.loads(answer["suggestion"])["target"])
    assert captured["items"][0]["label"] == "# As written\n"


EVIL = [
    "../secret.txt",
    "docs/../../secret.txt",
    "/etc/passwd",
    "docs/link.md",
    "linked/a.md",
    "docs/a.md/../../../secret.txt",
    "docs//..//..//secret.txt",
    "./../secret.txt",
    "docs\\..\\..\\secret.txt",
    "docs/./../../secret.txt",
    "%2e%2e/secret.txt",
    "~/secret.txt",
    "docs/pipe.md",
    "docs",
    "/dev/null",
    "docs/socket.md",
]


@pytest.mark.parametrize("name", EVIL)
@pytest.mark.parametrize("registered", [False, True], ids=["unregistered", "registered"])
def test_cat_reads_nothing_outside_registered_paths(project, talk, cat, tmp_path, name, registered):
    (project / "docs" / "link.md").symlink_to(tmp_path / "secret.txt")
    (project / "linked").symlink_to(tmp_path / "outside")
    os.mkfifo(project / "docs" / "pipe.md")
    if registered:
        talk.wrote(name, "# Registered\n")
    started = time.monotonic()
    for target in (name, str(project / name), name.rpartition("/")[2] or name):
        answer, code = cat(target)
        assert "CANARY" not in json.dumps(answer)
        assert "root:" not in json.dumps(answer)
        if not registered:
            assert code == 1 or answer["items"][0]["label"].startswith(("# As it is", "[文件"))
    assert time.monotonic() - started < 5


def test_a_file_that_an_isolated_session_wrote_shows_what_others_know_of_it(project, talk, cat):
    talk.session("s2").isolated()
    talk.wrote("docs/a.md", "# Hidden\n")

    assert cat("docs/a.md")[0]["items"][0]["label"] == "# As written\n"
    assert cat("docs/a.md", viewer="s2")[0]["items"][0]["label"] == "# As it is now\n"
    (project / "docs" / "a.md").unlink()
    assert cat("docs/a.md")[0]["items"][0]["label"].startswith("[文件不可读")


def test_a_page_of_a_large_body_costs_no_more_than_what_it_shows(talk, cat):
    talk.user("x" * 10_000_000)
    started = time.monotonic()
    for _ in range(5):
        cat("event-1")

    assert time.monotonic() - started < 1.5


def test_bytes_that_are_no_text_are_said_to_be(project, cat):
    (project / "docs" / "a.md").write_bytes(b"caf\xe9\n")
    latin, _ = cat("docs/a.md")
    (project / "docs" / "a.md").write_bytes(b"\0\1\2")
    binary, _ = cat("docs/a.md")

    assert latin["items"][0]["label"] == "caf\ufffd\n"
    assert "UTF-8" in latin["notes"][0]
    assert binary["items"][0]["label"] == "[binary file, 3 bytes: docs/a.md]"


def test_a_folder_that_becomes_a_link_never_leads_outside(tmp_path):
    """A swap in the middle of a read: the naive control must leak, or the test would prove nothing."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "real").mkdir(parents=True)
    outside.mkdir()
    (root / "real" / "a.md").write_text("inside")
    (outside / "a.md").write_text("CANARY")
    (root / "docs").symlink_to("real")
    stop = threading.Event()

    def swap():
        for number in range(10**9):
            if stop.is_set():
                return
            fresh = root / f"next-{number % 2}"
            if number % 2:
                fresh.symlink_to(outside)
            else:
                fresh.mkdir()
                (fresh / "a.md").write_text("inside")
            old = root / "old"
            (root / "docs").rename(old)
            fresh.rename(root / "docs")
            if old.is_symlink():
                old.unlink()
            else:
                (old / "a.md").unlink(missing_ok=True)
                old.rmdir()

    def naive():
        path = root / "docs" / "a.md"
        return path.read_text() if path.resolve().is_relative_to(root.resolve()) else None

    thread = threading.Thread(target=swap)
    thread.start()
    seen, leaks = {"good": 0, "refused": 0}, 0
    until = time.monotonic() + 4
    try:
        while time.monotonic() < until:
            try:
                text, _ = content.live(str(root), "docs/a.md")
                assert text == "inside"
                seen["good"] += 1
            except content.Unreadable:
                seen["refused"] += 1
            with contextlib.suppress(OSError):
                leaks += naive() == "CANARY"
    finally:
        stop.set()
        thread.join()
    assert seen["good"] > 100
    assert leaks > 0, "the naive control did not leak: no race was run"
