"""Questions about the whole graph as a command: which there are, and what one of them finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import click

from graphsvc.cli.ask import as_options
from graphsvc.cli.lists import ask
from graphsvc.cli.options import Command, as_json, asking, line
from graphsvc.errors import InvalidInput, ServiceError
from graphsvc.model import Direction, NodeType

F = TypeVar("F", bound=Callable[..., Any])

_ASKED: Final = frozenset({"viewer", "project", "as_json"})
_SHOWN: Final = 5  # ids of a row on a terminal


def _options(command: F) -> F:
    for option in (
        as_json,
        asking,
        click.option("--cursor", "after", help="The next page of the previous answer."),
        click.option("--limit", "first", type=click.IntRange(1, 100), metavar="N", help="Most rows, 1 to 100 (20)."),
        click.option(
            "--side", type=click.Choice([one.value for one in Direction]), help="Which edges count, of hubs: both."
        ),
        click.option(
            "--type", type=click.Choice([one.value for one in NodeType]), help="Only such nodes, of orphans and hubs."
        ),
        click.option("--since", metavar="TIME", help="Nothing since this ISO time or date, of goals_without_progress."),
        click.option("--node", metavar="ID", help="Downstream of what, of closure_impact."),
    ):
        command = option(command)
    return command


@click.command(cls=Command, short_help="Ask about the whole graph: conflicts, stale premises, orphans, hubs, …")
@click.argument("name", required=False)
@_options
def insights(name: str | None, **given: object) -> None:
    """Ask about the whole graph as it stands, with the ids that prove each row; without NAME list the questions.

    The running service answers from its mirror of the graph. Without one the mirror is brought up to date first.

    \b
    graphsvc insights
    graphsvc insights stale_premises
    graphsvc insights closure_impact --node docs/ordering.md
    """
    if name is None:
        _list(given)
    else:
        _answer(name, given)


def _list(given: Mapping[str, object]) -> None:
    from graphsvc import render
    from graphsvc.lineage.insights import CATALOGUE

    rows = [
        {"name": str(one.name), "title": one.titles[0], "title_zh": one.titles[1], "takes": [*one.takes]}
        for one in CATALOGUE.values()
    ]
    if given["as_json"]:
        line(rows)
        return
    render.table(("name", "takes", "text"), [(row["name"], row["takes"], row["title"]) for row in rows])


def _answer(name: str, given: Mapping[str, object]) -> None:
    from graphsvc import render
    from graphsvc.lineage.insights import InsightName

    names = [one.value for one in InsightName]
    if name not in names:
        raise InvalidInput("name", f"{name[:80]!r} is no question", ", ".join(names))
    viewer, project = (str(given[one]) if given[one] else None for one in ("viewer", "project"))
    variables = {one: value for one, value in given.items() if one not in _ASKED and value is not None}
    got = ask("explore/insight", viewer, project, {"name": name, **variables})
    if "reason" in got:
        raise ServiceError(got["message"])
    if "field" in got:
        raise InvalidInput(got["field"], got["problem"], got["allowed"])
    if given["as_json"]:
        line(got)
        return
    if got.get("by_type"):
        render.title(", ".join(f"{one['count']} {one['type']}" for one in got["by_type"]))
    columns = ("id", "status", "says", "text", "evidence")
    render.table(
        columns, [(*(row.get(one) for one in ("id", "status", "says", "label")), _ids(row)) for row in got["rows"]]
    )
    more = {"cursor": got["end_cursor"]} if "end_cursor" in got else {}
    render.remarks({"notes": got.get("notes", []), **more}, as_options(viewer, project))
    if not got["rows"]:
        render.say("nothing was found" + ("" if project else "; --project all looks into every project"))


def _ids(row: Mapping[str, Any]) -> str:
    """Write the first ids of a row, and how many more there are."""
    shown = row["evidence"][:_SHOWN]
    left = row["evidence_total"] - len(shown)
    return " ".join([*shown, *([f"+{left}"] if left > 0 else [])])
