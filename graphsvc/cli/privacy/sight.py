"""Who sees what, and why."""

from __future__ import annotations

import sys

import click

from graphsvc.cli import lists
from graphsvc.cli.options import Command, as_json, line
from graphsvc.errors import InvalidInput, NotFoundError


@click.command(cls=Command, short_help="Say whether something is seen, and by which rule.")
@click.argument("node", metavar="ID|PATH")
@click.option("--viewer", metavar="SESSION", help="Say it of this session; default: of you.")
@as_json
def visibility(node: str, viewer: str | None, as_json: bool) -> None:
    """Say whether you, or the session of --viewer, see the node ID, and by which rule, in English and Chinese.

    What neither of you sees is isolated; more is not told. Exit 0: it is there, seen or not; 1: nothing is known.

    \b
    graphsvc visibility decision-41
    graphsvc visibility docs/设计.md --viewer SESSION
    """
    about = {"viewer": viewer} if viewer else {}
    got = lists.ask("privacy/explain_visibility", None, None, {"node": node, **about})
    if got.pop("__typename") == "InvalidInput":
        raise InvalidInput(got["field"], got["problem"], got["allowed"])
    if got["rule"] == "unknown" and not as_json:
        raise NotFoundError(node, got["suggestion"])
    if as_json:
        line(got)
        sys.exit(NotFoundError.exit_code if got["rule"] == "unknown" else 0)
    from graphsvc import render

    sees = "yes" if got["visible"] else "no"
    row = (got["node"], got.get("viewer", "you"), sees, got["rule"], got.get("by"), got["reason"], got["reason_zh"])
    render.table(("id", "viewer", "seen", "rule", "by", "reason", "理由"), [row])
