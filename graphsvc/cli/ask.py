"""Questions: the tool, and its calls as commands."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any, Final, NoReturn

import click

from graphsvc import config
from graphsvc.cli.options import Command, as_json, asking, described, filters, folder, limited, line, paging, put
from graphsvc.errors import GraphsvcError, InvalidInput

_PAGE: Final = 100_000  # tokens a page when `cat` reads the whole for a person


@click.command(cls=Command, short_help="Call query_session_memory with a JSON object.")
@click.argument("arguments")
@asking
def tool(arguments: str, viewer: str | None, project: str | None) -> None:
    """Call query_session_memory with ARGUMENTS, a JSON object (or - for standard input).

    \b
    graphsvc tool '{"query": "receipt"}'
    graphsvc tool '{"nav": "cd", "target": "docs/ordering.md"}'

    Prints the answer as one compact line. Exit 0: something is there; 1: not found; 2: bad arguments. A host that sets
    GRAPHSVC_SESSION for what it starts names the session that asks; --viewer goes before it.
    """
    from graphsvc.client import process

    viewer = viewer or process.stated(os.environ)
    try:
        printed, code = call(viewer, project, _object(arguments))
    except GraphsvcError as error:
        line({"error": described(error)})
        sys.exit(error.exit_code)
    put(printed)
    sys.exit(code)


@click.command(cls=Command, short_help="Outputs and todos of a session, edges of an asset.")
@click.argument("target", required=False)
@paging
@limited
@asking
@as_json
def ls(target: str | None, viewer: str | None, project: str | None, as_json: bool, **parameters: object) -> None:
    """List what a session made and left to do, or the edges of an asset; without TARGET, the latest session.

    \b
    graphsvc ls
    graphsvc ls harbor-cafe-2026-11-05
    graphsvc ls docs/ordering.md
    """
    _show(viewer, project, as_json, nav="ls", target=target, **parameters)


@click.command(cls=Command, short_help="One node: title, source, everything connected.")
@click.argument("target")
@paging
@limited
@asking
@as_json
def cd(target: str, viewer: str | None, project: str | None, as_json: bool, **parameters: object) -> None:
    """Show one node: its title, the event it came from, and everything it is connected to.

    \b
    graphsvc cd docs/ordering.md
    graphsvc cd decision-41
    """
    _show(viewer, project, as_json, nav="cd", target=target, **parameters)


@click.command(cls=Command, short_help="Whole content of a node.")
@click.argument("target")
@paging
@asking
@as_json
def cat(
    target: str, viewer: str | None, project: str | None, as_json: bool, cursor: str | None, token_budget: int | None
) -> None:
    """Print the whole content of an asset, event, record or session. With --json one page, as the tool gives it.

    \b
    graphsvc cat docs/ordering.md
    graphsvc cat event-40
    """
    if as_json:
        _show(viewer, project, as_json, nav="cat", target=target, cursor=cursor, token_budget=token_budget)
    from graphsvc import render

    budget = _PAGE if token_budget is None else token_budget
    page = answer(viewer, project, nav="cat", target=target, cursor=cursor, token_budget=budget)
    if page["kind"] != "content":
        render.answer(page, as_options(viewer, project))
        sys.exit(_code(page))
    last = ""
    while True:
        for item in page["items"]:
            render.write(item["label"])
            last = item["label"] or last
        if "cursor" not in page:
            break
        page = answer(viewer, project, nav="cat", target=target, cursor=page["cursor"], token_budget=budget)
    if sys.stdout.isatty() and not last.endswith("\n"):
        render.write("\n")
    render.remarks(page, as_options(viewer, project))
    sys.exit(_code(page))


@click.command(cls=Command, short_help="Matching lines in events and assets.")
@click.argument("query")
@filters
@paging
@asking
@as_json
def grep(query: str, viewer: str | None, project: str | None, as_json: bool, **parameters: object) -> None:
    """Find QUERY in the text of events and in titles, paths and content of assets; prints the lines around it.

    \b
    graphsvc grep total_cents
    graphsvc grep 到店付款 --session-id harbor-cafe-2026-11-05
    """
    _show(viewer, project, as_json, nav="grep", query=query, **parameters)


@click.command(cls=Command, short_help="Search everything that was said and done.")
@click.argument("query", required=False)
@filters
@click.option("--count-only", is_flag=True, help="Print the number of hits.")
@paging
@asking
@as_json
def search(
    query: str | None, count_only: bool, viewer: str | None, project: str | None, as_json: bool, **parameters: object
) -> None:
    """Search everything that was said and done; without QUERY, the newest that passes the filters.

    \b
    graphsvc search "rounding error"
    graphsvc search 退款 --kind user_message --since 2026-11-01
    graphsvc search --kind decision
    """
    _show(viewer, project, as_json, query=query, count_only=count_only or None, **parameters)


def answer(viewer: str | None, project: str | None, **arguments: object) -> dict[str, Any]:
    """Call the tool for a person; an argument it refuses is an error of the command."""
    printed, _ = call(viewer, project, arguments)
    found: dict[str, Any] = json.loads(printed)
    if problem := found.get("error"):
        raise InvalidInput(problem["field"], problem["problem"], problem["allowed"])
    return found


def call(viewer: str | None, project: str | None, arguments: Mapping[str, object]) -> tuple[str, int]:
    """Send one call of the tool as the local owner, from this folder."""
    from graphsvc.client import executor
    from graphsvc.client import tool as api_tool
    from graphsvc.recall.scope import Asker

    asker = Asker(session_id=viewer, project=project, cwd=folder())
    given = {name: value for name, value in arguments.items() if value is not None}
    return api_tool.call(given, executor.connect(config.from_environment(), asker))


def as_options(viewer: str | None, project: str | None) -> list[str]:
    """Write who asks as options of a command."""
    pairs = {"--viewer": viewer, "--project": project}
    return [part for name, value in pairs.items() if value for part in (name, value)]


def _show(viewer: str | None, project: str | None, as_json: bool, **arguments: object) -> NoReturn:
    """Call the tool, print its answer, and leave with its exit code."""
    if as_json:
        printed, code = call(viewer, project, arguments)
        put(printed)
        sys.exit(code)
    from graphsvc import render

    found = answer(viewer, project, **arguments)
    render.answer(found, as_options(viewer, project))
    sys.exit(_code(found))


def _code(found: Mapping[str, object]) -> int:
    return 1 if found.get("status") == "not-found" else 0


def _object(text: str) -> Mapping[str, object]:
    """Read the tool's arguments from the command line, or from standard input for `-`."""
    try:
        value = json.loads(sys.stdin.buffer.read().decode("utf-8") if text == "-" else text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InvalidInput("arguments", "no JSON object", 'an object such as {"query": "receipt"}')
    return value
