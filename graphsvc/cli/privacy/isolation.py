"""What others may see of a session: the switch of its isolation, and single rows that it publishes."""

from __future__ import annotations

import click

from graphsvc.cli import record
from graphsvc.cli.options import Command, as_json, asking, line, printable

_ONCE = click.option("--client-mutation-id", metavar="ID", help="Said again under the same id, it is done once.")


@click.command(cls=Command, short_help="Show others single rows that a session isolated.")
@click.argument("ids", nargs=-1, required=True, metavar="ID|PATH…")
@_ONCE
@asking
@as_json
def publish(ids: tuple[str, ...], as_json: bool, **given: object) -> None:
    """Show others what the session of --viewer holds in isolation: what is named, and nothing beside it.

    An event or a record is one row; an asset means all versions of it that the session wrote in isolation. What is
    published stays published.

    \b
    graphsvc publish decision-41 event-40 --viewer SESSION
    graphsvc publish docs/设计.md --viewer SESSION
    """
    got = record.send("privacy/publish", {"ids": list(ids), **given})
    if as_json:
        line(got)
        return
    for one in got["events"]:
        click.echo(f"{one} is published")
    for one in got["shared"]:
        click.echo(f"{printable(one)} could be seen by all before")


@click.command(cls=Command, short_help="Isolate what a session says from now on, or share it.")
@click.argument("session_id", metavar="SESSION")
@click.argument("switch", type=click.Choice(["on", "off"]))
@_ONCE
@asking
@as_json
def isolate(session_id: str, switch: str, as_json: bool, **given: object) -> None:
    """Isolate what SESSION says from now on (on), or share it again (off). What it said before stays as it was.

    In the session itself a message does the same: /thread-iso, isolate, go private, 隔离, 开始隔离, …
    and /thread-uniso, unisolate, go public, 解除隔离, 退出隔离, 恢复共享.

    \b
    graphsvc isolate 4f1c2e on
    graphsvc isolate 4f1c2e off
    """
    got = record.send("privacy/isolate", {"session_id": session_id, "on": switch == "on", **given})
    if as_json:
        line(got)
        return
    name, state = printable(got["session"]["id"]), "isolated" if got["session"]["isolated"] else "shared"
    click.echo(f"{name} was {state} already" if got["duplicate"] else f"what {name} says from now on is {state}")
