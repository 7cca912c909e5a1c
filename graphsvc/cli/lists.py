"""Lists, a page at a time: the documents in `queries/explore` as commands."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NoReturn, TypeVar

import click

from graphsvc import clock, config
from graphsvc.cli.ask import answer, as_options
from graphsvc.cli.options import Command, as_json, asking, folder, line
from graphsvc.errors import InvalidInput, NotFoundError
from graphsvc.model import CURSOR, NodeType

F = TypeVar("F", bound=Callable[..., Any])
# How a note begins that says why nothing could be listed.
_UNRESOLVED: Final = ("the viewer is no session", "project: ", "no session is known")


def paged(command: F) -> F:
    """Add what every list takes: where, when, how many, from where on."""
    for option in (
        as_json,
        asking,
        click.option("--cursor", "after", help="The next page of the previous answer."),
        click.option("--limit", "first", type=click.IntRange(1, 100), metavar="N", help="Most rows, 1 to 100 (20)."),
        click.option("--order", type=click.Choice(("asc", "desc")), help="By time; default: desc."),
        click.option("--until", metavar="TIME", help="Up to this ISO time or date, inclusive."),
        click.option("--since", metavar="TIME", help="From this ISO time or date on, inclusive."),
        click.option("--session-id", metavar="SESSION", help="Only this session."),
    ):
        command = option(command)
    return command


@click.command(cls=Command, short_help="What happened, newest first.")
@click.argument("root", metavar="[ID]", required=False)
@click.option(
    "--type",
    "types",
    multiple=True,
    type=click.Choice([one.value for one in NodeType]),
    help="Only what happened to these.",
)
@paged
def timeline(**given: object) -> None:
    """List what happened, newest first: sessions, files, decisions, goals, todos; with ID only what happened to it.

    \b
    graphsvc timeline
    graphsvc timeline decision-41
    graphsvc timeline session-harbor-cafe-2026-11-05 --type asset --order asc
    """
    show("timeline", given, ("when", "what", "id", "text", "event"), _happened)


def show(
    document: str,
    given: Mapping[str, object],
    columns: Sequence[str],
    row: Callable[[Mapping[str, Any]], Sequence[object]],
) -> None:
    """Ask for a page of a list, and print it."""
    about = dict(given)
    quiet = bool(about.pop("as_json"))
    viewer, project = (str(name) if name else None for name in (about.pop("viewer"), about.pop("project")))
    for name in ("since", "until"):
        if about[name] is not None:
            clock.bound(name, str(about[name]), end=name == "until")
    if about["after"] is not None and not CURSOR.fullmatch(str(about["after"])):
        raise InvalidInput("cursor", "is none", "the one that the answer before has printed")
    variables = {name: value for name, value in about.items() if value not in (None, ())}
    got = ask(f"explore/{document}", viewer, project, variables)
    root = about.get("root")
    if root is not None and not got["edges"]:
        known = answer(viewer, project, nav="cd", target=root)
        if known.get("status") == "not-found":
            _unknown(got, known, as_options(viewer, project), quiet=quiet)
    if quiet:
        line(got)
        return
    from graphsvc import render

    render.table(columns, [row(edge["node"]) for edge in got["edges"]])
    page = got["pageInfo"]
    more = {"cursor": page["endCursor"]} if page["hasNextPage"] else {}
    render.remarks({"notes": got.get("notes", []), **more}, as_options(viewer, project))
    if not got["edges"] and any(note.startswith(_UNRESOLVED) for note in got.get("notes", [])):
        sys.exit(NotFoundError.exit_code)
    if not got["edges"] and not got.get("notes"):
        render.say("nothing is listed" + ("" if project else "; --project all looks into every project"))


def _unknown(got: object, known: Mapping[str, Any], options: Sequence[str], *, quiet: bool) -> NoReturn:
    """Say that there is nothing under a name, and what may be meant."""
    from graphsvc import render

    if quiet:
        line(got)
    else:
        render.remarks(known, options)
    sys.exit(NotFoundError.exit_code)


def ask(name: str, viewer: str | None, project: str | None, variables: Mapping[str, object]) -> dict[str, Any]:
    """Send one of the project's documents as the local owner, from this folder; return the value of its field."""
    from graphsvc import resources
    from graphsvc.client import executor, tool
    from graphsvc.recall.scope import Asker

    asker = Asker(session_id=viewer, project=project, cwd=folder())
    execute = executor.connect(config.from_environment(), asker)
    return tool.prune(tool.outcome(execute(resources.text(f"queries/{name}.graphql"), variables)))


def _happened(entry: Mapping[str, Any]) -> Sequence[object]:
    from graphsvc import render

    node = entry.get("node") or {}
    return render.when(entry["at"]), entry["verb"], node.get("id"), _said(entry), entry["event"]["id"]


def _said(entry: Mapping[str, Any]) -> str:
    """Write what happened with the reason for it, unless that is all that was said."""
    reason = entry.get("reason")
    return f"{entry['text']} ({reason})" if reason and reason != entry["text"] else str(entry["text"])
