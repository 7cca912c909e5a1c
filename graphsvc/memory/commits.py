"""What a shell command committed: its `git add`, `git commit` and `git reset` read as a shell would, nothing guessed.

A commit counts when git's own line, or a log line that repeats the message just given, names its hash.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

MAX_COMMAND: Final = 20_000  # characters that are read
_SEPARATORS: Final = frozenset({"&&", "||", ";", "|", "&", "\n"})
_VALUED: Final = frozenset({"-c", "-C", "--git-dir", "--work-tree", "--namespace"})  # options of git with a value
_HERE: Final = frozenset({".", "./", ":/", "*"})
_COMMITTED: Final = re.compile(r"^\[[^\]\n]{0,200}?\b([0-9a-f]{7,40})\] (.{0,300})$", re.MULTILINE)
_LOGGED: Final = re.compile(r"^(?:commit )?([0-9a-f]{7,40})\s+(?:\([^)\n]{0,300}\) )?(.{1,300})$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit that was made. `paths`: what it took as far as the command says, None for everything there was.

    `staged`: the command staged nothing itself, so what it took was staged before.
    """

    hash: str
    subject: str
    paths: tuple[str, ...] | None
    staged: bool


def read(command: str, output: str) -> Commit | None:
    """Return the last commit that a command made, with the hash its output states; None when there is none."""
    added: list[str] = []
    everything = staged = False
    message: str | None = None
    made: tuple[tuple[str, ...] | None, bool] | None = None
    for words in _git(command):
        verb, rest = words[0], words[1:]
        if verb == "add":
            everything = everything or bool({"-A", "--all", "-u", "--update", *_HERE}.intersection(rest))
            added += [word for word in rest if not word.startswith("-") and word not in _HERE]
            staged = True
        elif verb in {"reset", "restore", "stash"}:
            added = [word for word in added if word not in rest]
            everything = False
        elif verb == "commit":
            every, given, only = _options(rest)
            message = given or message
            everything = everything or every
            paths = tuple(only) if only else None if everything else tuple(added)
            made = paths, not (staged or every or only)
    if made is None:
        return None
    named = _named(output, message)
    return Commit(named[0], named[1], *made) if named else None


def _git(command: str) -> Iterator[list[str]]:
    """Yield the git calls of a command line as words, from the subcommand on."""
    lexer = shlex.shlex(command[:MAX_COMMAND].replace("\n", " ; "), posix=True, punctuation_chars="();&|")
    lexer.whitespace_split = True
    call: list[str] = []
    try:
        words = [*lexer, ";"]
    except ValueError:  # an open quote: what cannot be read is not a commit
        return
    for word in words:
        if word not in _SEPARATORS and not set(word) <= set("();&|"):
            call.append(word)
            continue
        if "git" in call[:4]:
            rest = call[call.index("git") + 1 :]
            while rest and rest[0].startswith("-"):
                rest = rest[2:] if rest[0] in _VALUED else rest[1:]
            if rest:
                yield rest
        call = []


def _options(words: list[str]) -> tuple[bool, str | None, list[str]]:
    """Read the words of `git commit`: whether it takes all tracked files, its message, and the paths it is given."""
    every, message, rest = False, None, list(words)
    paths: list[str] = []
    while rest:
        word = rest.pop(0)
        if word == "--":
            return every, message, [*paths, *rest]
        if word in {"-a", "--all"}:
            every = True
        elif word in {"-m", "--message", "-F", "--file", "-C", "-c", "--author", "--date", "-t"}:
            value = rest.pop(0) if rest else ""
            message = value if word in {"-m", "--message"} and message is None else message
        elif word.startswith("--message="):
            message = message or word.partition("=")[2]
        elif re.fullmatch(r"-[a-zA-Z]{2,6}", word):  # flags written together: -am, -qm
            every = every or "a" in word
            if word.endswith("m"):
                value = rest.pop(0) if rest else ""
                message = message or value
        elif not word.startswith("-"):
            paths.append(word)
    return every, message, paths


def _named(output: str, message: str | None) -> tuple[str, str] | None:
    """Return (hash, subject): from git's own line, or from a log line that repeats the message just given."""
    found = _COMMITTED.findall(output)
    if found:
        return found[-1][0], found[-1][1].strip()
    subject = next((line.strip() for line in (message or "").splitlines() if line.strip()), None)
    logged = ((match[1], match[2].strip()) for match in _LOGGED.finditer(output))
    return next(((number, said) for number, said in logged if said == subject), None)
