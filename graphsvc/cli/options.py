"""What every command has in common: its errors, its options, and how it prints."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from graphsvc.errors import GraphsvcError, NotFoundError
from graphsvc.model import ASKED_KINDS

F = TypeVar("F", bound=Callable[..., Any])

INTERRUPTED: Final = 130  # as a shell reports SIGINT


class Command(click.Command):
    """A command whose errors are one line: a sentence for people, an object for programs."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except GraphsvcError as error:
            if ctx.params.get("as_json"):
                line({"error": described(error)})
            else:
                click.echo(f"graphsvc: {printable(str(error))}", err=True)
                if isinstance(error, NotFoundError):
                    from graphsvc import render

                    click.echo(f"try: {printable(render.as_command(error.suggestion, ()))}", err=True)
            ctx.exit(error.exit_code)
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)


def folder() -> str | None:
    """Return the working folder; None when it is gone, as that of a removed worktree."""
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        return None


def as_json(command: F) -> F:
    """Add --json."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON on one line, for programs.")(command)


def asking(command: F) -> F:
    """Add who asks: --viewer and --project."""
    command = click.option("--project", metavar="KEY|all", help="Ask about this project; default: the folder's.")(
        command
    )
    return click.option("--viewer", metavar="SESSION", help="Ask as this session sees it.")(command)


def paging(command: F) -> F:
    """Add the parameters every call of the tool has."""
    command = click.option("--cursor", help="The next page of the previous answer.")(command)
    return click.option("--token-budget", type=int, metavar="N", help="Most tokens of the answer (default 4000).")(
        command
    )


def limited(command: F) -> F:
    """Add --limit."""
    return click.option("--limit", type=int, metavar="N", help="Most rows, 1 to 50 (default 20).")(command)


def filters(command: F) -> F:
    """Add the filters of search and grep, named as the tool's parameters."""
    for option in (
        limited,
        click.option(
            "--order", metavar="asc|desc", help="By time; default: by score.", shell_complete=_words("asc", "desc")
        ),
        click.option("--until", metavar="TIME", help="Up to this ISO time or date, inclusive."),
        click.option("--since", metavar="TIME", help="From this ISO time or date on, inclusive."),
        click.option("--session-id", metavar="SESSION", help="Only this session."),
        click.option(
            "--kind",
            metavar="KIND",
            help="Only this kind: user_message, tool_call, decision, …",
            shell_complete=_words(*ASKED_KINDS),
        ),
    ):
        command = option(command)
    return command


def _words(*words: str) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Complete one of these words; what is typed in full is judged where it is used."""
    return lambda _, __, typed: [word for word in words if word.startswith(typed)]


def described(error: GraphsvcError) -> dict[str, object]:
    """Write an error as the tool does: what it is about, what would do, and the sentence people read."""
    about = {
        name: value
        for name in (
            *("field", "problem", "allowed", "target", "suggestion"),
            *("machine", "status", "action", "expected", "actual"),
        )
        if (value := getattr(error, name, None))
    }
    return {**about, "message": str(error)}


def line(value: object) -> None:
    """Print a value as one compact JSON line."""
    from graphsvc.recall import budget

    put(budget.line(value))


def put(line: str) -> None:
    """Write one line as UTF-8, whatever the locale."""
    sys.stdout.flush()
    sys.stdout.buffer.write(line.encode("utf-8") + b"\n")
    sys.stdout.buffer.flush()


def printable(text: str) -> str:
    """Replace what would steer a terminal."""
    return "".join(char if char.isprintable() or char == "\n" else "\N{REPLACEMENT CHARACTER}" for char in text)
