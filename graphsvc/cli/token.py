"""Tokens for others than the owner: made, listed, ended."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

import click

from graphsvc import config
from graphsvc.cli.options import Command, as_json, line, printable
from graphsvc.errors import InvalidInput
from graphsvc.model import TokenKind

if TYPE_CHECKING:
    from graphsvc.store.access.tokens import Token

_KINDS: Final = [kind.value for kind in TokenKind]


@click.group(short_help="Let others use the service, for one thing each.")
def token() -> None:
    """Make tokens that allow less than the owner's own, and end them.

    A token is shown once; of each only a digest is kept. One that was ended closes what is open under it.

    \b
    graphsvc token create --kind read --project /srv/cafe --name dashboard
    graphsvc token list
    graphsvc token revoke token-1
    """


@token.command("create", cls=Command, short_help="Make a token and show it, once.")
@click.option("--kind", type=click.Choice(_KINDS), required=True, help="Everything, only capture, or only reading.")
@click.option("--project", metavar="KEY|all", help="Only this project; default: that of the session, else all.")
@click.option("--session", "session_id", metavar="SESSION", help="Read as this session, or capture only its events.")
@click.option("--agent", metavar="NAME", help="Whom it is for; it captures only events of this actor.")
@click.option("--name", metavar="TEXT", help="What it is for, to tell it from others.")
@click.option("--expires", metavar="TIME", help="When it ends by itself: an ISO time, or a date, inclusive.")
@as_json
def _create(
    kind: str,
    project: str | None,
    session_id: str | None,
    agent: str | None,
    name: str | None,
    expires: str | None,
    as_json: bool,
) -> None:
    """Make a token and print it, the only time that it is shown.

    read: queries and subscriptions; of other projects nothing, without a session only what all may see. capture: the
    mutation `capture`, and nothing that reads. owner: everything.

    \b
    graphsvc token create --kind read --project /srv/cafe --name dashboard
    graphsvc token create --kind read --session harbor-cafe-2026-11-05 --expires 2027-01-31
    graphsvc token create --kind capture --project /srv/cafe --json
    """
    from graphsvc import clock
    from graphsvc.client import token as made
    from graphsvc.memory import rebuild
    from graphsvc.store.access.tokens import Token

    wanted = Token(
        id=0,
        kind=TokenKind(kind),
        project=project if project != "all" else None,
        session_id=session_id,
        agent=agent,
        name=name,
        expires_at=clock.bound("expires", expires, end=True) if expires is not None else None,
    )
    with closing(rebuild.connect(config.from_environment())) as db:
        found, secret = made.create(db, wanted)
    if as_json:
        line({**_told(found), "token": secret})
        return
    click.echo(secret)
    click.echo(f"{_id(found)} {_allows(found)}; it is not shown again", err=True)
    click.echo(f"to end it: graphsvc token revoke {_id(found)}", err=True)


@token.command("list", cls=Command, short_help="List tokens and whether they hold.")
@as_json
def _list(as_json: bool) -> None:
    """List all tokens that were made, what each allows, and whether it holds; never the tokens themselves.

    \b
    graphsvc token list --json
    """
    from graphsvc import render
    from graphsvc.memory import rebuild
    from graphsvc.store.access import tokens

    with closing(rebuild.connect(config.from_environment())) as db:
        found = tokens.every(db)
    if as_json:
        line({"tokens": [_told(one) for one in found]})
        return
    rows = [
        (_id(one), one.kind, one.project or "all", one.session_id or "", one.agent or "", one.name or "", _state(one))
        for one in found
    ]
    render.table(("id", "kind", "project", "session", "agent", "name", "state"), rows)
    if not found:
        click.echo("none but the owner's own, in the file `token` of the home", err=True)


@token.command("revoke", cls=Command, short_help="End a token at once.")
@click.argument("id", metavar="ID")
@as_json
def _revoke(id: str, as_json: bool) -> None:  # noqa: A002 # click's argument
    """End a token. A running service closes what is open under it within a second.

    \b
    graphsvc token revoke token-1
    """
    from graphsvc import clock
    from graphsvc.memory import rebuild
    from graphsvc.store.access import tokens

    number = re.fullmatch(r"(?:token-)?([0-9]{1,18})", id.strip())
    with closing(rebuild.connect(config.from_environment())) as db:
        found = tokens.revoke(db, int(number[1]), clock.utc_text(clock.system())) if number is not None else None
    if found is None:
        # It may be a token itself that was pasted here.
        raise InvalidInput("id", "there is no such token", "an id that graphsvc token list shows, such as token-1")
    if as_json:
        line(_told(found))
        return
    click.echo(f"{_id(found)} is revoked since {found.revoked_at}")


def _id(token: Token) -> str:
    return f"token-{token.id}"


def _told(token: Token) -> dict[str, object]:
    return {**asdict(token), "id": _id(token), "state": _state(token)}


def _state(token: Token) -> str:
    from graphsvc import clock

    if token.revoked_at is not None:
        return f"revoked {token.revoked_at[:19]}Z"
    if token.expires_at is None:
        return "holds"
    over = token.expires_at <= clock.utc_text(clock.system())
    return f"{'expired' if over else 'holds until'} {token.expires_at[:19]}Z"


def _allows(token: Token) -> str:
    """Say in words what a token allows."""
    where = printable(f"of {token.project}") if token.project is not None else "of all projects"
    if token.kind == "owner":
        return "allows everything"
    if token.kind == "capture":
        who = f"session {token.session_id}" if token.session_id is not None else "any session"
        actor = f", actor {token.agent}" if token.agent is not None else ""
        return printable(f"captures events of {who}{actor} {where}, and reads nothing")
    seen = f"what session {token.session_id} sees" if token.session_id is not None else "what all may see"
    return printable(f"reads {seen} {where}, and changes nothing")
