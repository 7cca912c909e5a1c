"""From a line of code to the words that asked for it: stories told into real repositories, every line of every file.

What is right is told by `Ledger`, which follows the lines of each file while the story is told, and knows nothing of
versions, hashes and blame.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import random
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from graphsvc import resources
from graphsvc.api import schema
from graphsvc.api.context import Context
from graphsvc.cli.main import program
from graphsvc.clock import utc_text
from graphsvc.importers import run as importing
from graphsvc.lineage import lines
from graphsvc.memory import capture
from graphsvc.model import Event, EventKind
from graphsvc.recall.scope import Asker

TRANSCRIPTS = Path(__file__).resolve().parents[2] / "shared" / "transcripts"
LATER = "2026-12-01T09:00:00+00:00"
HAND = None  # whose a line is that no session wrote


@dataclass(slots=True)
class Ledger:
    """Whose each line of each file is: the words that asked for it, or HAND. White space alone makes no line new."""

    files: dict[str, list[tuple[str, str | None]]] = field(default_factory=dict)

    def text(self, path: str) -> str:
        return "".join(line for line, _ in self.files[path])

    def write(self, path: str, text: str, owner: str | None) -> None:
        """The whole text is new, but for lines that were there before in the same order."""
        self.files[path] = _kept(self.files.get(path, []), text, owner)

    def edit(self, path: str, old: str, new: str, owner: str | None) -> None:
        """Only the lines that the replaced text touches can be new."""
        before = self.files[path]
        whole = self.text(path)
        assert whole.count(old) == 1, old
        start = whole.index(old)
        first = whole.count("\n", 0, start)
        last = whole.count("\n", 0, start + len(old)) + (not (old.endswith("\n") and new.endswith("\n")))
        begin = sum(len(line) for line, _ in before[:first])
        end = sum(len(line) for line, _ in before[:last])
        middle = whole[begin:start] + new + whole[start + len(old) : end]
        self.files[path] = before[:first] + _kept(before[first:last], middle, owner) + before[last:]

    def move(self, path: str, to: str) -> None:
        self.files[to] = self.files.pop(path)

    def change(self, path: str, change: Callable[[str], str]) -> None:
        """Change each line and leave it whose it is."""
        self.files[path] = [(change(line), owner) for line, owner in self.files[path]]


def _kept(before: Sequence[tuple[str, str | None]], text: str, owner: str | None) -> list[tuple[str, str | None]]:
    new = text.splitlines(keepends=True)
    matcher = difflib.SequenceMatcher(
        None, ["".join(line.split()) for line, _ in before], ["".join(line.split()) for line in new], autojunk=False
    )
    owners: list[str | None] = [owner] * len(new)
    for block in matcher.get_matching_blocks():
        for step in range(block.size):
            owners[block.b + step] = before[block.a + step][1]
    return list(zip(new, owners, strict=True))


@dataclass(slots=True)
class Repository:
    """A real git repository beside what its ledger says."""

    folder: Path
    ledger: Ledger = field(default_factory=Ledger)
    at: str = "2026-11-30T09:00:00+00:00"

    def git(self, *arguments: str, cwd: Path | None = None) -> str:
        settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        who = {f"GIT_{one}_{what}": "Ada" for one in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        when = {"GIT_AUTHOR_DATE": self.at, "GIT_COMMITTER_DATE": self.at}
        return subprocess.run(
            ["git", *arguments],  # noqa: S607 # found on PATH
            cwd=cwd or self.folder,
            env={**os.environ, **settings, **who, **when},
            capture_output=True,
            check=True,
        ).stdout.decode()

    def save(self) -> None:
        """Write every file as the ledger has it."""
        for path, rows in self.ledger.files.items():
            file = self.folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes("".join(line for line, _ in rows).encode())

    def commit(self, subject: str, at: object = None) -> str:
        """Commit everything at a time; return git's own line about it."""
        self.at = str(at or self.at)
        self.save()
        self.git("add", "-A")
        return self.git("commit", "-m", subject)


@dataclass(frozen=True, slots=True)
class Tally:
    """What came of asking about every line of every file."""

    right: int
    unknown: int
    wrong: tuple[str, ...] = ()
    missed: tuple[str, ...] = field(default=(), compare=False)


def asked(target: str, *options: str) -> tuple[int, dict]:
    ran = CliRunner().invoke(program, ["why", target, "--json", *options])
    assert ran.exception is None or isinstance(ran.exception, SystemExit), ran.output
    return ran.exit_code, json.loads(ran.stdout)


def tally(repository: Repository, *options: str) -> Tally:
    """Ask about every line. Wrong is a prompt that did not ask for it, also for a line that was added by hand."""
    right, missed, wrong = 0, [], []
    for path, rows in repository.ledger.files.items():
        assert (repository.folder / path).read_bytes().decode() == repository.ledger.text(path), path
        for number, (line, owner) in enumerate(rows, 1):
            code, answer = asked(f"{repository.folder / path}:{number}", *options)
            told = answer.get("prompt", {}).get("body", {}).get("text")
            assert code == (0 if "version" in answer else 1)
            if told == owner and (told is not None or code == 1):
                right += 1
            elif told is None and code == 1:
                missed.append(f"{path}:{number} {line!r}: {answer.get('notes')}, not {owner!r}")
            else:
                wrong.append(f"{path}:{number} {line!r}: {told!r}, not {owner!r} ({answer.get('confidence')})")
    return Tally(right, len(missed), tuple(wrong), tuple(missed))


LOGIN = '''"""Signing in."""

import secrets

TOKEN_MINUTES = 30


def sign_in(user, password):
    if not password_matches(user, password):
        return None
    token = secrets.token_urlsafe(32)
    remember(user, token, TOKEN_MINUTES)
    return token


def sign_out(user):
    """End the session on the server."""
    forget(user)
    return None
'''
NOTES = """# 登录设计

会话保存在服务器上。

- 令牌有效期 30 分钟
- 密码统一用 bcrypt
"""
FIRST = "Write the login module, in src/login.py. We decided: tokens live 30 minutes."
SECOND = "写一份设计说明 docs/登录设计.md"
THIRD = "Lock an account after five failures."
FOURTH = "把令牌有效期改成 45 分钟"


@pytest.fixture
def repository(tmp_path) -> Repository:
    folder = tmp_path / "港口"
    folder.mkdir()
    found = Repository(folder)
    found.git("init", "-q", "-b", "main")
    return found


@dataclass(slots=True)
class Story:
    """What agents do, told to the memory and to the repository alike."""

    talk: object
    repository: Repository
    prompt: str = ""

    def user(self, text: str) -> None:
        self.prompt = text
        self.talk.user(text)

    def wrote(self, path: str, text: str) -> None:
        self.talk.wrote(path, text)
        self.repository.ledger.write(path, text, self.prompt)

    def edited(self, path: str, old: str, new: str, *, tells: bool = True) -> None:
        """Edit a file; a host `tells` what it held before."""
        about = {"original_file": self.repository.ledger.text(path)} if tells else {}
        self.talk.edited(path, old, new, **about)
        self.repository.ledger.edit(path, old, new, self.prompt)

    def committed(self, subject: str) -> None:
        said = self.repository.commit(subject, self.talk.moment.isoformat())
        self.talk.ran(f"git add -A && git commit -m '{subject}'", said)

    def by_hand(self, path: str, old: str, new: str, subject: str | None = None) -> None:
        """Somebody edits a file, and commits it when there is a subject."""
        self.repository.ledger.edit(path, old, new, HAND)
        if subject:
            self.repository.commit(subject, self.talk.moment.isoformat())
        else:
            self.repository.save()


@pytest.fixture
def story(talk, repository) -> Story:
    """Two sessions and a person write two files; most of it is committed."""
    talk.project = str(repository.folder)
    story = Story(talk, repository)
    story.user(FIRST)
    story.wrote("src/login.py", LOGIN)
    story.user(SECOND)
    story.wrote("docs/登录设计.md", NOTES)
    story.committed("Sign in")
    story.by_hand(
        "src/login.py", "import secrets\n", "import logging\nimport secrets\n\nlog = logging.getLogger('gate')\n", "Log"
    )
    talk.session("s2")
    story.user(THIRD)
    story.edited(
        "src/login.py",
        "        return None\n    token =",
        "        count_failure(user)\n        return None\n    clear_failures(user)\n    token =",
    )
    story.committed("Lock accounts")
    story.user(FOURTH)
    story.edited("src/login.py", "TOKEN_MINUTES = 30", "TOKEN_MINUTES = 45")
    story.edited("docs/登录设计.md", "- 令牌有效期 30 分钟", "- 令牌有效期 45 分钟")
    story.committed("Longer tokens")
    return story


def test_every_line_leads_to_the_words_that_asked_for_it(story):
    assert tally(story.repository) == Tally(29, 1)


def _moved_by_git(story: Story) -> None:
    story.repository.git("mv", "src/login.py", "src/gate.py")
    story.repository.ledger.move("src/login.py", "src/gate.py")
    story.repository.commit("Rename", LATER)


def _moved_and_edited(story: Story) -> None:
    _moved_by_git(story)
    story.talk.at("2026-12-01T10:00:00+00:00").session("s3")
    story.user("Say goodbye when somebody signs out.")
    story.edited("src/gate.py", "    forget(user)\n", "    forget(user)\n    say_goodbye(user)\n")
    story.committed("Goodbye")


def _moved_in_the_index(story: Story) -> None:
    story.repository.git("mv", "src/login.py", "src/gate.py")
    story.repository.ledger.move("src/login.py", "src/gate.py")


def _moved_before_any_commit(story: Story) -> None:
    """An agent writes a file, a shell renames it, it is edited under the new name, and all of that is one commit."""
    story.talk.session("s3")
    story.user("Write a rate limiter.")
    story.wrote("src/limit.py", LIMIT)
    story.repository.ledger.move("src/limit.py", "src/rates.py")
    story.user("Allow ten calls a second.")
    story.edited("src/rates.py", "CALLS = 5", "CALLS = 10")
    story.committed("Rates")


def _indented(story: Story) -> None:
    story.repository.ledger.change("src/login.py", lambda line: f"    {line}" if line.strip() else line)
    story.repository.commit("Indent", LATER)


def _indented_only_here(story: Story) -> None:
    story.repository.ledger.change("src/login.py", lambda line: f"\t{line}" if line.strip() else line)
    story.repository.save()


def _with_carriage_returns(story: Story) -> None:
    for path in story.repository.ledger.files:
        story.repository.ledger.change(path, lambda line: line.replace("\n", "\r\n"))
    story.repository.commit("DOS", LATER)


def _with_carriage_returns_here(story: Story) -> None:
    for path in story.repository.ledger.files:
        story.repository.ledger.change(path, lambda line: line.replace("\n", "\r\n"))
    story.repository.save()


def _block_moved(story: Story) -> None:
    """Somebody moves a function to a file of its own."""
    rows = story.repository.ledger.files["src/login.py"]
    at = next(number for number, (line, _) in enumerate(rows) if line.startswith("def sign_out"))
    story.repository.ledger.files["src/logout.py"] = [("from gate import forget\n", HAND), ("\n", HAND), *rows[at:]]
    story.repository.ledger.files["src/login.py"] = rows[:at]


def _block_moved_and_committed(story: Story) -> None:
    _block_moved(story)
    story.repository.commit("Split", LATER)


def _block_moved_only_here(story: Story) -> None:
    _block_moved(story)
    story.repository.save()


def _block_moved_up(story: Story) -> None:
    """Somebody moves the sign-out function to the top of its file."""
    rows = story.repository.ledger.files["src/login.py"]
    at = next(number for number, (line, _) in enumerate(rows) if line.startswith("def sign_out"))
    story.repository.ledger.files["src/login.py"] = [*rows[:2], *rows[at:], *rows[2:at]]
    story.repository.commit("Order", LATER)


def _amended(story: Story) -> None:
    story.repository.at = LATER
    story.repository.git("commit", "--amend", "-m", "Tokens live longer")


def _amended_with_more(story: Story) -> None:
    story.by_hand("src/login.py", "def sign_out(user):\n", "def sign_out(user):\n    log.info('%s leaves', user)\n")
    story.repository.at = LATER
    story.repository.git("commit", "-a", "--amend", "-m", "Tokens live longer")


def _rebased(story: Story) -> None:
    """All commits get other hashes, on another base that has changed a line of one of the files."""
    repository = story.repository
    first = repository.git("rev-list", "--max-parents=0", "HEAD").strip()
    repository.git("checkout", "-q", "-b", "other", first)
    login = repository.folder / "src" / "login.py"
    login.write_text(login.read_text().replace("Signing in.", "Signing in, and out."))
    repository.at = LATER
    repository.git("commit", "-a", "-m", "Say more")
    repository.git("checkout", "-q", "main")
    repository.git("rebase", "-q", "other")
    repository.ledger.edit("src/login.py", '"""Signing in."""', '"""Signing in, and out."""', HAND)


def _squashed(story: Story) -> None:
    repository = story.repository
    first = repository.git("rev-list", "--max-parents=0", "HEAD").strip()
    repository.git("checkout", "-q", "-b", "short", first)
    repository.git("merge", "-q", "--squash", "main")
    repository.at = LATER
    repository.git("commit", "-m", "All at once")


def _more_by_hand(story: Story) -> None:
    """Lines that a session wrote elsewhere, and others, are added by hand."""
    story.by_hand(
        "src/login.py",
        "    forget(user)\n    return None\n",
        "    forget(user)\n    return None\n\n\ndef whoami(token):\n    if not known(token):\n"
        "        return None\n    return owner_of(token)\n",
        "Who am I",
    )
    story.by_hand("docs/登录设计.md", "# 登录设计\n", "# 登录设计\n\n手写的一行。\n")


def _written_again(story: Story) -> None:
    """An agent writes a file as a whole that somebody has changed and committed before, and its host tells no more."""
    story.by_hand("src/login.py", "    forget(user)\n", "    forget(user)\n    audit('out', user)\n", "Audit")
    story.talk.at("2026-12-01T10:00:00+00:00").session("s3")
    story.user("Add a way to sign out everywhere.")
    text = story.repository.ledger.text("src/login.py")
    story.wrote("src/login.py", text + "\n\ndef sign_out_everywhere(user):\n    forget_all(user)\n")
    story.committed("Everywhere")


def _restored(story: Story) -> None:
    """A commit of a session is reverted: the lines of before are from where they were from."""
    story.repository.at = LATER
    story.repository.git("revert", "--no-edit", "HEAD")
    for path in story.repository.ledger.files:
        text = (story.repository.folder / path).read_text()
        rows = story.repository.ledger.files[path]
        story.repository.ledger.files[path] = [
            (line, owner if owner != FOURTH else (FIRST if "TOKEN" in line else SECOND))
            for line, (_, owner) in zip(text.splitlines(keepends=True), rows, strict=True)
        ]


def _copied_within(story: Story) -> None:
    """Somebody copies a function of an agent in its file, and changes the name."""
    rows = story.repository.ledger.files["src/login.py"]
    at = next(number for number, (line, _) in enumerate(rows) if line.startswith("def sign_out"))
    copy = [("\n", HAND), ("\n", HAND), ("def leave(user):\n", HAND), *((line, HAND) for line, _ in rows[at + 1 :])]
    story.repository.ledger.files["src/login.py"] = [*rows, *copy]
    story.repository.commit("Leave", LATER)


def _copied_elsewhere(story: Story) -> None:
    """Somebody copies a function of an agent to another file, and edits the first one in the same commit."""
    rows = story.repository.ledger.files["src/login.py"]
    at = next(number for number, (line, _) in enumerate(rows) if line.startswith("def sign_out"))
    story.repository.ledger.files["src/leave.py"] = [("leave = 1\n", HAND), *((line, HAND) for line, _ in rows[at:])]
    story.repository.ledger.edit("src/login.py", "import secrets", "import leave\nimport secrets", HAND)
    story.repository.commit("Leave", LATER)


def _written_anew(story: Story) -> None:
    """Somebody writes a file anew, with the blank lines and brackets that any file has."""
    story.talk.session("s3")
    story.user("Write the table of ports.")
    story.wrote("src/ports.js", "const ports = {\n  kiel: 1,\n}\n\nfunction port(name) {\n  return ports[name]\n}\n")
    story.committed("Ports")
    text = "let all = [\n  'oslo',\n]\n\nfunction first() {\n  return all[0]\n}\n\nif (all) {\n  first()\n}\n"
    story.repository.ledger.files["src/ports.js"] = [(line, HAND) for line in text.splitlines(keepends=True)]
    story.repository.commit("Anew", LATER)


def _edited_between(story: Story) -> None:
    """Somebody edits a file and commits nothing; then an agent does, and one host tells what the file held before."""
    story.talk.at(LATER).session("s3")
    story.by_hand("src/login.py", "    forget(user)\n", "    forget(user)\n    audit('out', user)\n")
    story.user("Say goodbye.")
    story.edited("src/login.py", "    forget(user)\n", "    forget(user)\n    say_goodbye(user)\n")
    story.by_hand("docs/登录设计.md", "会话保存", "用户会话保存")
    story.edited("docs/登录设计.md", "bcrypt\n", "bcrypt\n- 离开时说再见\n", tells=False)
    story.committed("Goodbye")


LIMIT = """CALLS = 5
SECONDS = 1


def allowed(times, now):
    return sum(now - one < SECONDS for one in times) < CALLS
"""
SITUATIONS = {
    _moved_by_git: Tally(28, 2),
    _moved_and_edited: Tally(30, 1),
    _moved_in_the_index: Tally(28, 2),
    _moved_before_any_commit: Tally(35, 1),
    _indented: Tally(28, 2),
    _indented_only_here: Tally(28, 2),
    _with_carriage_returns: Tally(29, 1),
    _with_carriage_returns_here: Tally(29, 1),
    _block_moved_and_committed: Tally(30, 2),
    _block_moved_only_here: Tally(30, 2),
    _block_moved_up: Tally(28, 2),
    _amended: Tally(29, 1),
    _amended_with_more: Tally(29, 2),
    _rebased: Tally(27, 3),
    _squashed: Tally(29, 1),
    _more_by_hand: Tally(35, 3),
    _written_again: Tally(33, 2),
    _restored: Tally(29, 1),
    _copied_within: Tally(31, 5),
    _copied_elsewhere: Tally(34, 2),
    _written_anew: Tally(40, 1),
    _edited_between: Tally(31, 2),
}


@pytest.mark.parametrize("change", SITUATIONS, ids=lambda change: change.__name__.strip("_"))
def test_whatever_git_did_no_line_leads_to_other_words(story, change):
    change(story)

    got = tally(story.repository)
    print(*got.wrong, *got.missed, sep="\n")
    assert got == SITUATIONS[change]


def _as_it_is(_: Repository) -> None:
    """Nothing happens after the sessions."""


def _all_renamed(repository: Repository) -> None:
    repository.commit("Rest", LATER)
    for path in [*repository.ledger.files]:
        repository.git("mv", path, f"neu-{Path(path).name}")
        repository.ledger.move(path, f"neu-{Path(path).name}")
    repository.commit("Rename", LATER)


def _all_indented(repository: Repository) -> None:
    repository.commit("Rest", LATER)
    for path in repository.ledger.files:
        repository.ledger.change(path, lambda line: f"  {line}" if line.strip() else line)
    repository.commit("Indent", LATER)


def _all_with_carriage_returns(repository: Repository) -> None:
    for path in repository.ledger.files:
        repository.ledger.change(path, lambda line: line.replace("\n", "\r\n"))
    repository.commit("DOS", LATER)


def _all_longer(repository: Repository) -> None:
    """Somebody adds lines at both ends and in the middle of each file."""
    for path, rows in repository.ledger.files.items():
        middle = len(rows) // 2
        more = [(f"hand-written {number} in {path}\n", HAND) for number in range(3)]
        repository.ledger.files[path] = [more[0], *rows[:middle], more[1], *rows[middle:], more[2]]
    repository.commit("By hand", LATER)


def _all_in_one(repository: Repository) -> None:
    """Somebody puts the texts of all documents into one file."""
    repository.commit("Rest", LATER)
    documents = [path for path in repository.ledger.files if path.startswith("docs/")]
    one = [row for path in documents for row in [(f"<!-- {path} -->\n", HAND), *repository.ledger.files.pop(path)]]
    for path in documents:
        (repository.folder / path).unlink()
    repository.ledger.files["docs/all.md"] = one
    repository.commit("One", LATER)


def _all_amended(repository: Repository) -> None:
    repository.save()
    repository.git("add", "-A")
    repository.at = LATER
    repository.git("commit", "--amend", "-m", "Other words")


def _all_rebased(repository: Repository) -> None:
    repository.commit("Rest", LATER)
    repository.git("checkout", "-q", "-b", "other", repository.git("rev-list", "--max-parents=0", "HEAD").strip())
    repository.ledger.files["LICENSE"] = [("Do what you like.\n", HAND)]
    (repository.folder / "LICENSE").write_text("Do what you like.\n")
    repository.git("add", "-A")
    repository.git("commit", "-m", "License")
    repository.git("checkout", "-q", "main")
    repository.git("rebase", "-q", "other")


REAL = {
    _as_it_is: Tally(29, 0),
    _all_renamed: Tally(28, 1),
    _all_indented: Tally(28, 1),
    _all_with_carriage_returns: Tally(29, 0),
    _all_longer: Tally(43, 1),
    _all_in_one: Tally(31, 1),
    _all_amended: Tally(29, 0),
    _all_rebased: Tally(30, 0),
}


@pytest.mark.skipif(not TRANSCRIPTS.is_dir(), reason="no ../shared/transcripts beside this checkout")
@pytest.mark.parametrize("change", REAL, ids=lambda change: change.__name__.strip("_"))
def test_real_transcripts_told_into_a_repository(db, repository, change):
    replay(db, repository)
    change(repository)

    got = tally(repository, "--project", "/srv/demo/harbor")
    print(*got.wrong, *got.missed, sep="\n")
    assert got == REAL[change]


def replay(db, repository: Repository) -> None:
    """Import three real sessions, and do again what their agents did to files, as their host recorded it."""
    done = {}
    files = sorted(TRANSCRIPTS.glob("claude-harbor-*.jsonl"))
    importing.import_files(
        files, capture=lambda batch: capture.capture(db, batch), known=done.get, record=done.__setitem__
    )
    ledger = repository.ledger
    ledger.write("src/login.py", "def sign_in(user):\n    return user\n", HAND)
    repository.commit("Begin", "2026-11-30T09:00:00+00:00")
    for file in files:
        prompt, calls = "", {}
        for record in map(json.loads, file.read_text("utf-8").splitlines()):
            content = record.get("message", {}).get("content")
            if record["type"] == "user" and isinstance(content, str):
                spoken = not record.get("isMeta") and not record.get("isCompactSummary") and content[0] != "<"
                prompt = content if spoken else prompt
            for block in content if isinstance(content, list) else []:
                if block["type"] == "tool_use":
                    calls[block["id"]] = block
                elif block["type"] == "tool_result" and not block.get("is_error"):
                    call = calls[block["tool_use_id"]]
                    given = call["input"]
                    path = given.get("file_path", "").removeprefix("/srv/demo/harbor/")
                    if call["name"] == "Write":
                        ledger.write(path, given["content"], prompt)
                    elif call["name"] == "Edit":
                        ledger.edit(path, given["old_string"], given["new_string"], prompt)
                    elif "git commit" in given.get("command", ""):
                        repository.commit(block["content"].partition(" ")[2], record["timestamp"])
    repository.save()


def test_a_line_leads_to_its_edit_its_words_what_was_decided_and_its_session(story):
    file = story.repository.folder / "src/login.py"
    number = story.repository.ledger.text("src/login.py").splitlines().index("    clear_failures(user)") + 1

    code, answer = asked(f"{file}:{number}", "--author")

    assert code == 0
    assert answer["commit"]["subject"] == "Lock accounts"
    assert answer["commit"]["author"] == "Ada"
    assert answer["confidence"] == "content"
    assert answer["prompt"]["body"]["text"] == THIRD
    assert answer["session"]["id"] == "session-s2"
    for node in (answer["asset"], answer["version"], answer["call"], answer["prompt"], answer["session"]):
        assert CliRunner().invoke(program, ["cat", node["id"]]).exit_code == 0


def test_a_line_leads_to_what_was_decided_in_its_words_and_before_in_its_session(story, talk):
    talk.session("s1").at("2026-11-30T09:00:40+00:00").decided("Passwords are hashed with bcrypt.")
    login = story.repository.folder / "src/login.py"

    _, answer = asked(f"{login}:1")
    _, later = asked(f"{story.repository.folder / 'docs/登录设计.md'}:1")

    assert [(one["basis"], one["candidate"]["text"]) for one in answer["candidates"]] == [
        ("prompt", "We decided: tokens live 30 minutes.")
    ]
    assert answer["decisions"] == []
    assert later["candidates"] == []
    assert [(one["basis"], one["decision"]["text"]) for one in later["decisions"]] == [
        ("session", "Passwords are hashed with bcrypt.")
    ]


def test_a_decision_stands_on_the_edit_until_somebody_says_that_it_does_not(story, talk):
    login = story.repository.folder / "src/login.py"
    call = asked(f"{login}:1")[1]["call"]["id"]
    origin = next(row["origin"] for row in talk.db.execute("SELECT origin FROM events WHERE id = ?", (call[6:],)))
    talk.session("s9").decided("One module for signing in.", evidence=[origin])
    [decided] = asked(f"{login}:1")[1]["decisions"]
    ends = {
        "source": {"type": "decision", "of": "s9:" + str(talk.told)},
        "target": {"type": "event", "of": origin},
    }
    talk.event("edge", "", action="retract", type="evidence", **ends)

    assert decided["basis"] == "edit"
    assert decided["decision"]["text"] == "One module for signing in."
    assert asked(f"{login}:1")[1]["decisions"] == []


def test_the_way_of_a_line_is_a_line_a_step_in_a_pipe(story):
    login = story.repository.folder / "src/login.py"

    ran = CliRunner().invoke(program, ["why", f"{login}:1"])

    assert ran.exit_code == 0
    steps = [row.split("\t") for row in ran.stdout.splitlines()]
    assert [step[0] for step in steps] == ["commit", "edit", "prompt", "candidate pending", "session"]
    assert steps[0][2].startswith("Sign in 2026-11-30 09:01")
    assert steps[2][2] == FIRST


def test_what_a_shell_wrote_has_no_captured_edit_and_its_commit_is_told(story, talk):
    talk.session("s5").user("Add a version file")
    talk.ran("echo 1.0 > VERSION")
    story.repository.ledger.write("VERSION", "the version is 1.0\n", HAND)
    story.committed("Version")

    ran = CliRunner().invoke(program, ["why", f"{story.repository.folder / 'VERSION'}:1"])

    assert ran.exit_code == 1
    assert [row.split("\t")[0] for row in ran.stdout.splitlines()] == ["commit", "unknown"]
    assert "no captured edit is known" in ran.stdout


def test_lines_that_are_not_committed_are_found_by_their_text(story, talk):
    talk.session("s5").user("Name the module")
    story.prompt = "Name the module"
    story.edited("src/login.py", '"""Signing in."""', '"""The gate: signing in."""')
    story.by_hand("src/login.py", "    forget(user)\n", "    forget(user)\n    wave_goodbye_to(user)\n")
    login, text = story.repository.folder / "src/login.py", story.repository.ledger.text("src/login.py")

    code, found = asked(f"{login}:1")
    other, by_hand = asked(f"{login}:{text.splitlines().index('    wave_goodbye_to(user)') + 1}")

    assert (code, found["prompt"]["body"]["text"]) == (0, "Name the module")
    assert "the line is not committed yet" in found["notes"]
    assert (other, "version" in by_hand) == (1, False)


@pytest.mark.parametrize(
    ("target", "code", "says"),
    [
        ("src/login.py:0", 2, "1 to 24"),
        ("src/login.py:25", 2, "1 to 24"),
        ("src:1", 2, "no regular file"),
        ("src/nowhere.py:1", 1, "nothing at"),
        ("empty:1", 2, "0 lines"),
        ("image.png:1", 2, "binary"),
    ],
)
def test_what_is_no_line_is_said(story, target, code, says):
    (story.repository.folder / "image.png").write_bytes(b"\x89PNG\0\0")
    (story.repository.folder / "empty").touch()

    told, answer = asked(f"{story.repository.folder / target}")

    assert told == code
    assert says in answer["error"]["message"]


def test_a_file_without_git_is_found_by_its_text(story, tmp_path):
    (tmp_path / "away").mkdir()
    (tmp_path / "away" / "登录设计.md").write_text(story.repository.ledger.text("docs/登录设计.md"))

    code, answer = asked(f"{tmp_path / 'away' / '登录设计.md'}:3", "--project", "all")

    assert code == 0
    assert answer["confidence"] == "moved"
    assert any("in no git repository" in note for note in answer["notes"])


def test_a_file_that_git_does_not_track_is_found_by_its_text(story, talk):
    talk.session("s5").user("Write a rate limiter.")
    talk.wrote("src/limit.py", LIMIT)
    (story.repository.folder / "src/limit.py").write_text(LIMIT)

    code, answer = asked(f"{story.repository.folder / 'src/limit.py'}:5")

    assert (code, answer["confidence"]) == (0, "content")
    assert any("not tracked by git" in note for note in answer["notes"])


def test_a_shallow_clone_says_that_a_line_may_be_older(story, tmp_path):
    story.repository.git(
        "clone", "-q", "--depth", "1", f"file://{story.repository.folder}", str(tmp_path / "clone"), cwd=tmp_path
    )

    code, answer = asked(f"{tmp_path / 'clone' / 'src/login.py'}:1", "--project", str(story.repository.folder))

    assert (code, answer["prompt"]["body"]["text"]) == (0, FIRST)
    assert any("shallow" in note for note in answer["notes"])


def test_a_repository_without_a_commit_and_a_name_that_git_quotes(story, talk, repository):
    name = 'src/"a"\tüber 文.py'
    story.user("Odd name")
    story.wrote(name, LIMIT)
    story.committed("Odd")
    repository.git("mv", name, "src/plain.py")
    repository.ledger.move(name, "src/plain.py")
    repository.commit("Plain", LATER)

    code, answer = asked(f"{repository.folder / 'src/plain.py'}:5")

    assert (code, answer["prompt"]["body"]["text"]) == (0, "Odd name")
    assert answer["commit"]["path"] == name


def test_no_program_that_a_repository_names_is_run(story, tmp_path):
    repository = story.repository
    trap, sprung = tmp_path / "trap", tmp_path / "sprung"
    trap.write_text(f"#!/bin/sh\ntouch {sprung}\ncat\n")
    trap.chmod(0o755)
    settings = "core.fsmonitor core.pager core.editor diff.external filter.x.clean filter.x.smudge filter.x.process"
    for name in (*settings.split(), "diff.x.textconv", "diff.x.command", "core.sshCommand", "gpg.program"):
        repository.git("config", name, str(trap))
    (repository.folder / ".git/info/attributes").write_text("* filter=x diff=x\n")
    for hook in ("post-index-change", "post-checkout", "reference-transaction"):
        (repository.folder / ".git/hooks" / hook).write_text(trap.read_text())
        (repository.folder / ".git/hooks" / hook).chmod(0o755)
    login = repository.folder / "src/login.py"
    login.write_text(login.read_text() + "\n\nlast = 1\n")
    sprung.unlink(missing_ok=True)

    asked(f"{login}:1")
    asked(f"{login}:{len(login.read_text().splitlines())}")
    asked(f"{repository.folder / 'docs/登录设计.md'}:3")

    assert not sprung.exists()
    subprocess.run(["git", "status"], cwd=repository.folder, capture_output=True, check=False)  # noqa: S607
    assert sprung.exists(), "the trap does not work"


def test_what_an_isolated_session_wrote_is_told_to_nobody_else(story, talk):
    talk.session("secret").isolated()
    talk.user("Write a rate limiter.")
    talk.wrote("src/limit.py", LIMIT)
    (story.repository.folder / "src/limit.py").write_text(LIMIT)
    file = f"{story.repository.folder / 'src/limit.py'}:5"

    code, answer = asked(file)
    own, told = asked(file, "--viewer", "secret")

    assert (code, "version" in answer) == (1, False)
    assert "isolated sessions exist; their content is visible to them only" in answer["notes"]
    assert (own, told["prompt"]["body"]["text"]) == (0, "Write a rate limiter.")


def test_words_that_may_have_been_said_in_isolation_are_not_guessed(story, talk):
    talk.session("half").user("Write something open.")
    talk.isolated()
    talk.user("Now write the secret limiter.")
    talk.isolated(on=False)
    talk.wrote("src/limit.py", LIMIT)
    (story.repository.folder / "src/limit.py").write_text(LIMIT)

    code, answer = asked(f"{story.repository.folder / 'src/limit.py'}:5")

    assert code == 0
    assert "prompt" not in answer
    assert "what the user said before it is not known" in answer["notes"]


def test_a_sub_agent_is_told_beside_the_words_of_the_user(story, talk, db, clock):
    def by(actor: str | None, kind: str, body: str, **meta: object) -> None:
        talk.moment += timedelta(seconds=10)
        event = Event(
            session_id="s6", kind=EventKind(kind), origin=f"s6:{talk.moment}:{actor}", body=body,
            ts=utc_text(talk.moment), project=talk.project, cwd=talk.project, actor=actor, meta=meta,
        )  # fmt: skip
        capture.capture(db, [event], now=clock)

    about = {"tool_name": "Write", "tool_use_id": "sub-1"}
    by(None, "user_message", "Protect the gate.")
    by("agent-7", "user_message", "Write a rate limiter in src/limit.py and report.")
    by(None, "user_message", "Hurry up, please.")
    call = json.dumps({"file_path": talk.path("src/limit.py"), "content": LIMIT})
    by("agent-7", "tool_call", call, **about)
    by("agent-7", "tool_result", "File created", **about, is_error=False)
    (story.repository.folder / "src/limit.py").write_text(LIMIT)

    code, answer = asked(f"{story.repository.folder / 'src/limit.py'}:5")

    assert code == 0
    assert answer["prompt"]["body"]["text"] == "Protect the gate."
    assert answer["task"]["body"]["text"] == "Write a rate limiter in src/limit.py and report."


def test_a_patch_that_is_known_in_part_has_the_lines_it_put_in(story, talk):
    """Of a patch the memory knows what it adds and not the whole text; the lines around it are somebody else's."""
    repository = story.repository
    repository.ledger.write("src/rates.py", LIMIT, HAND)
    repository.commit("Rates", talk.moment.isoformat())
    story.user("Let nobody in twice a second.")
    patch = (
        "*** Begin Patch\n*** Update File: src/rates.py\n@@\n def allowed(times, now):\n"
        "+    forget_older(times, now - SECONDS)\n"
        "     return sum(now - one < SECONDS for one in times) < CALLS\n*** End Patch"
    )
    talk.tool("apply_patch", {"input": patch}, "Done!")
    repository.ledger.edit(
        "src/rates.py", "now):\n", "now):\n    forget_older(times, now - SECONDS)\n", "Let nobody in twice a second."
    )
    story.committed("Once")

    assert tally(repository).wrong == ()
    code, answer = asked(f"{repository.folder / 'src/rates.py'}:6")
    assert (code, answer["prompt"]["body"]["text"]) == (0, "Let nobody in twice a second.")
    assert answer["confidence"] == "commit"


def test_what_the_user_changed_before_it_was_written_is_not_the_agents(story, talk):
    story.user("Write a rate limiter.")
    written = LIMIT.replace("CALLS = 5", "CALLS = 5  # per second and user")
    talk.tool("Write", {"file_path": talk.path("src/limit.py"), "content": LIMIT}, "File created", new_file=written)
    (story.repository.folder / "src/limit.py").write_text(written)

    assert asked(f"{story.repository.folder / 'src/limit.py'}:1")[0] == 1
    assert asked(f"{story.repository.folder / 'src/limit.py'}:2")[0] == 0


def test_lines_that_stand_elsewhere_still_were_not_moved(story):
    """Somebody copies what an agent wrote into another file; the original stays."""
    rows = story.repository.ledger.text("src/login.py").splitlines(keepends=True)
    copy = [row for row in rows if row.strip()][-8:]
    (story.repository.folder / "src/copy.py").write_text("".join(copy))

    code, answer = asked(f"{story.repository.folder / 'src/copy.py'}:3")

    assert code == 1
    assert any("stand in src/login.py still" in note for note in answer["notes"])


def test_a_line_of_a_file_too_large_to_be_sent_is_found(story, talk):
    talk.session("s7").user("Fill the table.")
    text = "".join(f"    ({number}, 'row {number} of the table'),\n" for number in range(15_000))
    talk.wrote("src/table.py", text)
    (story.repository.folder / "src/table.py").write_text(text)
    (story.repository.folder / "src/other.py").write_text("# by hand\n" + text)

    code, answer = asked(f"{story.repository.folder / 'src/table.py'}:7500")
    other, shifted = asked(f"{story.repository.folder / 'src/other.py'}:7500")

    assert (code, answer["confidence"], answer["prompt"]["body"]["text"]) == (0, "content", "Fill the table.")
    assert (other, "version" in shifted) == (1, False)


def ask(db, clock, **variables: object) -> dict:
    document = resources.text("queries/explore/line_origin.graphql")
    context = Context(db=db, asker=Asker(project="all"), clock=clock)
    answer = schema.respond(document, variables, None, context)
    assert "errors" not in answer, answer
    return answer["data"]["line_origin"]


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"path": "", "line": 1, "text": {"text": "a\n"}}, "path"),
        ({"path": "a", "line": 0, "text": {"text": "a\n"}}, "line"),
        ({"path": "a", "line": 2, "text": {"text": "a\n"}}, "line"),
        ({"path": "a", "line": 2**62, "text": {"text": ""}}, "line"),
        ({"path": "a", "line": 1, "text": {"text": "a" * 500_001}}, "text"),
        ({"path": "a", "line": 9, "text": {"text": "a\n", "first_line": 9}}, "text.sha256"),
        ({"path": "a", "line": 1, "text": {"text": "a\n", "sha256": "0"}}, "text.sha256"),
        ({"path": "a", "line": 1, "text": {"text": "a\n"}, "commit": {"hash": "HEAD"}}, "commit.hash"),
        ({"path": "docs/plan.md", "line": 4}, "line"),
    ],
)
def test_an_argument_outside_the_contract_is_named(db, talk, clock, given, field):
    talk.wrote("docs/plan.md")
    if "commit" in given:
        given = {**given, "commit": {"committed_at": LATER, "path": "a", "line": 1, **given["commit"]}}

    assert ask(db, clock, **given)["field"] == field


def test_without_a_text_the_newest_captured_one_is_asked_about(db, talk, clock):
    talk.user("Plan it.")
    talk.wrote("docs/plan.md")

    assert ask(db, clock, path="docs/plan.md", line=3)["prompt"]["body"]["text"] == "Plan it."
    assert ask(db, clock, path="docs/other.md", line=3)["notes"] == [
        "no text of docs/other.md was captured whole: send the text of the file"
    ]


def test_a_hash_that_is_not_of_the_text_breaks_nothing(db, talk, clock):
    talk.wrote("docs/plan.md", "# Plan\n")
    text = {"text": "# Plan\n", "first_line": 900, "sha256": hashlib.sha256(b"# Plan\n").hexdigest()}
    commit = {"hash": "0" * 40, "committed_at": "9999-12-31T23:59:59.999999Z", "path": "docs/plan.md", "line": 900}

    answer = ask(db, clock, path="docs/plan.md", line=900, text=text, commit={**commit, "text": text})

    assert answer["line"] == "# Plan"


def test_an_answer_says_when_it_would_have_to_compare_too_much(db, talk, clock):
    talk.user("Fill the table.")
    talk.wrote("table.txt", "row\n" * 1_000_001)

    assert ask(db, clock, path="table.txt", line=2)["notes"] == [
        "more than 1000000 lines of captured versions would have to be compared"
    ]


@pytest.mark.parametrize("seed", range(200))
def test_an_edit_leaves_every_line_that_it_does_not_touch_where_it_was(seed):
    chance = random.Random(seed)  # noqa: S311 # no secret
    before = "".join(chance.choice(("a\n", "b\n", "\n", "  a b\n")) for _ in range(chance.randint(0, 12)))
    before += chance.choice(("", "a", "end"))
    start = chance.randint(0, len(before))
    old = before[start : chance.randint(start, len(before))]
    new = chance.choice(("", "x", "x\n", "\nx", "a\nx\n", old + "x", "x" + old))
    everywhere = chance.random() < 0.5

    got = lines.edited(before, [(old, new, everywhere)])

    if (not old and before) or (before.count(old) != 1 and not everywhere and before):
        assert got is None
        return
    text, places = got
    assert text == (before.replace(old, new) if before else new)
    now, then = lines.keys(text), lines.keys(before)
    assert len(places) == len(now)
    known = [(place, number) for number, place in enumerate(places) if place is not None]
    assert lines.UNSURE not in places
    assert all(then[place] == now[number] for place, number in known)
    assert known == sorted(known)
    first = before[: before.find(old)].count("\n") if before else 0
    assert places[:first] == list(range(first))
