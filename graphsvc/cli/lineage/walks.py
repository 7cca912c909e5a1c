"""Lineage as commands: walks as trees, what came of something, ways between nodes, what changed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import click

from graphsvc.cli.ask import as_options
from graphsvc.cli.lists import ask
from graphsvc.cli.options import Command, as_json, asking, line
from graphsvc.errors import InvalidInput, NotFoundError
from graphsvc.model import Direction, EdgeType, NodeType

F = TypeVar("F", bound=Callable[..., Any])

_FORMATS: Final = ("mermaid", "dot", "graphml", "openlineage", "csv", "json")
_ASKED: Final = frozenset({"viewer", "project", "as_json"})
_DIRECTION = click.option("--direction", type=click.Choice([one.value for one in Direction]), help="Where to go.")
_DEPTH = click.option("--depth", type=int, metavar="N", help="Most edges from ID.")
_TYPES = click.option(
    "--type", "types", multiple=True, type=click.Choice([one.value for one in EdgeType]), help="Only such edges."
)
_STATED = click.option("--stated", is_flag=True, default=None, help="Only what a host or a person stated.")
_AS_OF = click.option("--as-of", metavar="MOMENT", help="As things stood behind an event, or at a time or date.")
_MAX_NODES = click.option("--max-nodes", type=int, metavar="N", help="Most nodes of an answer (200, at most 2000).")
_RESUME = click.option("--resume", metavar="TOKEN", help="Go on where the answer before stopped.")


def _with(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Add options, and those of every question."""

    def add(command: F) -> F:
        for option in reversed((*options, asking, as_json)):
            command = option(command)
        return command

    return add


@click.command(cls=Command, short_help="The graph around a node, as a tree.")
@click.argument("root", metavar="ID")
@_with(
    _DIRECTION,
    _DEPTH,
    _TYPES,
    click.option(
        "--node", "nodes", multiple=True, type=click.Choice([one.value for one in NodeType]), help="Only such nodes."
    ),
    _STATED,
    _AS_OF,
    _MAX_NODES,
    click.option("--max-edges", type=int, metavar="N", help="Most edges of an answer (600, at most 6000)."),
    click.option("--fanout", type=int, metavar="N", help="Most neighbours of a node a side (25, at most 200)."),
    _RESUME,
    click.option("--export", "format", type=click.Choice(_FORMATS), help="Print it as text for another program."),
)
def lineage(**given: object) -> None:
    """Show the part of the graph around ID: any target, such as decision-41, docs/ordering.md, a session.

    \b
    graphsvc lineage docs/ordering.md
    graphsvc lineage decision-41 --direction downstream --depth 3
    graphsvc lineage docs/ordering.md --as-of 2026-11-04
    graphsvc lineage docs/ordering.md --export mermaid
    """
    if given["format"] is None:
        walk("lineage", given)
        return
    if given["resume"] is not None:
        raise InvalidInput("export", "is of one whole answer", "--max-nodes in place of --resume")
    got = _asked("lineage_export", given)
    from graphsvc import render

    render.write(got["text"] if got["text"].endswith("\n") else f"{got['text']}\n")
    if got["truncation"]["truncated"]:
        render.say(f"not all: {', '.join(got['truncation']['reasons'])}")


@click.command(cls=Command, short_help="What came of something, counted and listed.")
@click.argument("root", metavar="ID")
@_with(
    _DIRECTION,
    _DEPTH,
    _TYPES,
    _STATED,
    _AS_OF,
    click.option(
        "--list", "listed", multiple=True, type=click.Choice([one.value for one in NodeType]), help="List only these."
    ),
    click.option("--limit", "first", type=int, metavar="N", help="Most rows, 0 to 100 (50); 0 counts only."),
    click.option("--cursor", "after", metavar="CURSOR", help="The next page of the previous answer."),
)
def impact(**given: object) -> None:
    """Count what came of ID and list it, nearest first: files, commits' calls, todos, later decisions.

    \b
    graphsvc impact decision-41
    graphsvc impact session-harbor-cafe-2026-11-05 --list todo
    """
    got = _asked("impact", given)
    from graphsvc import render

    counts = ", ".join(f"{one['count']} {one['type']}" for one in got["by_type"]) or "nothing"
    more = " at least" if got["partial"] else ""
    render.title(f"{got['root']} {got['direction']}:{more} {got['total']} nodes ({counts})")
    _nodes(got["nodes"])
    if got.get("end_cursor"):
        render.remarks({"cursor": got["end_cursor"]}, as_options(*_asker(given)))


@click.command(cls=Command, short_help="The way from one node to another.")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@_with(
    click.option("--mode", type=click.Choice(("shortest", "subgraph")), help="One way, or all that lies between."),
    _DIRECTION,
    click.option("--max-length", type=int, metavar="N", help="Most edges of a way (12)."),
    _TYPES,
    _STATED,
    _AS_OF,
)
def path(**given: object) -> None:
    """Show the shortest way from FROM to TO, or with --mode subgraph all that lies on ways of at most
    --max-length edges; in both directions a way may turn back.

    \b
    graphsvc path docs/ordering.md src/orders.py
    graphsvc path session-harbor-cafe-2026-11-05 docs/ordering.md --mode subgraph --max-length 4
    """
    given["from"], given["to"] = given.pop("source"), given.pop("target")
    got = _asked("path", given)
    from graphsvc import render

    if got.get("length") is None:
        render.say("no way was found" + (", and not all was looked at" if got["partial"] else ""))
        sys.exit(NotFoundError.exit_code)
    render.title(f"{got['mode']}: {got['length']} edges" + (", and not all was looked at" if got["partial"] else ""))
    _nodes(got["nodes"])
    _edges(got["edges"])


@click.command(cls=Command, short_help="What changed around a node between two moments.")
@click.argument("root", metavar="ID")
@click.option("--from", "before", required=True, metavar="MOMENT", help="The earlier: an event, a time or a date.")
@click.option("--to", "after", metavar="MOMENT", help="The later one (now).")
@_with(_DIRECTION, _DEPTH, _TYPES, _STATED)
def diff(**given: object) -> None:
    """Tell what changed around ID: nodes and edges that came and went, and statuses with the event that changed them.

    \b
    graphsvc diff docs/ordering.md --from 2026-11-04
    graphsvc diff decision-41 --from event-20 --to event-60
    """
    given["from"], given["to"] = given.pop("before"), given.pop("after")
    got = _asked("lineage_diff", given)
    from graphsvc import render

    rows = [
        *(("+", one["id"], one["type"], one["label"]) for one in got["added_nodes"]),
        *(("-", one["id"], one["type"], one["label"]) for one in got["removed_nodes"]),
        *(("+", one["source"], one["type"], one["target"]) for one in got["added_edges"]),
        *(("-", one["source"], one["type"], one["target"]) for one in got["removed_edges"]),
        *(("!", one["id"], one["to"], f"{one.get('before') or 'new'}, by {one['event']}") for one in got["statuses"]),
    ]
    render.table(("", "id", "what", "text"), rows)
    if not rows:
        render.say("nothing changed" + (", as far as was looked at" if got["partial"] else ""))
    elif got["partial"]:
        render.say("not all was compared: ask with a smaller --depth, or for some types only")


def walk(document: str, given: Mapping[str, object]) -> None:
    """Ask for a walk, and draw it as a tree."""
    got = _asked(document, given)
    from graphsvc import render

    render.walk(got)
    cut = got["truncation"]
    for cycle in got["cycles"]:
        render.say(f"cycle: {' '.join(cycle)}")
    if cut["truncated"]:
        render.say(f"not all: {', '.join(cut['reasons'])}; not followed: {' '.join(cut['frontier']) or 'none'}")
    if cut.get("resume"):
        render.say(f"there is more: the same command with --resume {cut['resume']}")


def _asked(document: str, given: Mapping[str, object]) -> dict[str, Any]:
    """Ask, and return the answer; print it and leave when JSON is wanted, or when there is none."""
    variables = {name: value for name, value in given.items() if name not in _ASKED and value not in (None, ())}
    got = ask(f"explore/{document}", *_asker(given), variables)
    refused = "field" in got or "suggestion" in got
    if given["as_json"]:
        line(got)
        if refused:
            sys.exit(InvalidInput.exit_code if "field" in got else NotFoundError.exit_code)
        sys.exit(0)
    if "field" in got:
        raise InvalidInput(got["field"], got["problem"], got["allowed"])
    if "suggestion" in got:
        raise NotFoundError(str(given.get("root") or given.get("from")), got["suggestion"])
    if "marker" in got:
        from graphsvc import render

        render.write(f"{got['id']} {got['marker']}\n")
        sys.exit(0)
    return got


def _asker(given: Mapping[str, object]) -> tuple[str | None, str | None]:
    viewer, project = (given[name] for name in ("viewer", "project"))
    return str(viewer) if viewer else None, str(project) if project else None


def _nodes(nodes: Sequence[Mapping[str, Any]]) -> None:
    from graphsvc import render

    columns = ("depth", "id", "type", "status", "text")
    render.table(columns, [(one["depth"], one["id"], one["type"], one.get("status"), one["label"]) for one in nodes])


def _edges(edges: Sequence[Mapping[str, Any]]) -> None:
    from graphsvc import render

    render.table(("from", "edge", "to", "rule"), [(e["source"], e["type"], e["target"], e["rule"]) for e in edges])
