"""Proofs on the user's own store, which is copied aside and only read."""

from __future__ import annotations

import signal
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Final, NoReturn

import click

from graphsvc import config
from graphsvc.cli.options import Command, as_json, line
from graphsvc.errors import StoreError

if TYPE_CHECKING:
    from graphsvc.audit.proof import Report

_SHOWN: Final = 20  # leaks on a terminal; --json has all
_IDS: Final = 40


class Audit(click.Group):
    """The group of the proofs."""

    command_class = Command


@click.group(cls=Audit, short_help="Prove on your own store that what is isolated stays so.")
def audit() -> None:
    """Prove what the README promises, on a copy of your own store.

    \b
    graphsvc audit isolation
    """


@audit.command(short_help="Ask every read as others, with isolated rows and with blanks, and compare.")
@click.option(
    "--sample", default=_IDS, show_default=True, type=click.IntRange(1, 1000), metavar="N", help="Ask for N ids."
)
@click.option("--seed", default=0, show_default=True, metavar="N", help="Choose other ids, words and arguments.")
@as_json
def isolation(sample: int, seed: int, as_json: bool) -> None:
    """Prove that nobody else learns of isolated rows, on a copy of this store.

    The copy gets a twin in which blanks stand in the place of isolated rows. Every read is asked of both, as you and as
    sessions of the same and of other projects, and the answers are compared byte by byte. Nothing of the store is
    changed, and no isolated text is printed. The copies lie in a temporary folder that only you can read, and go.

    \b
    graphsvc audit isolation
    graphsvc audit isolation --sample 200 --json

    Exit 0 when all is equal, 1 when something leaks, 3 when nothing is stored.
    """
    from graphsvc import render
    from graphsvc.audit import proof

    settings = config.from_environment()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)  # so that the copies are removed, as they are after Ctrl-C
    try:
        found = proof.audit(settings, sample, seed, render.progress)
    except OSError as error:
        raise StoreError(f"no room for a copy of the store: {error.strerror}; TMPDIR names another folder") from error
    if as_json:
        line(_described(found))
    else:
        _printed(found)
    sys.exit(1 if found.tally.leaks else 0)


def _end(number: int, _: object) -> NoReturn:
    sys.exit(128 + number)


def _described(found: Report) -> dict[str, object]:
    return {
        "equal": not found.tally.leaks,
        "reads": [
            {"read": name, "viewers": viewers, "comparisons": count, "differences": leaks}
            for name, viewers, count, leaks in found.rows()
        ],
        "leaks": [asdict(one) for one in found.tally.leaks],
        "viewers": list(found.viewers),
        "isolated": {"events": found.blanks, "texts": found.secrets, "kept": found.kept},
        "asked": {"ids": found.asked, "of": found.ids, "sampled": found.sampled},
        "marks": found.tally.marks,
        "skipped": [{"what": what, "why": why} for what, why in found.skipped],
    }


def _printed(found: Report) -> None:
    from graphsvc import render

    render.table(("read", "viewers", "comparisons", "differences"), found.rows())
    for one in found.tally.leaks[:_SHOWN]:
        click.echo(f"LEAK: {one}", err=True)
    if len(found.tally.leaks) > _SHOWN:
        click.echo(f"and {len(found.tally.leaks) - _SHOWN} more: --json lists them", err=True)
    for what, why in found.skipped:
        click.echo(f"not compared: {what}: {why}", err=True)
    if found.sampled:
        click.echo(f"sampled: {found.asked} of {found.ids} ids were asked for; --sample N asks for more", err=True)
    if found.tally.marks:
        click.echo(f"{found.tally.marks} times only the mark differed that a neighbour is isolated", err=True)
    what = "something leaks" if found.tally.leaks else "nothing leaks" if found.blanks else "nothing is isolated here"
    asked = f"{sum(found.tally.compared.values())} answers to {len(found.viewers)} viewers"
    click.echo(f"{what}: {asked}, {found.blanks} isolated events, {found.secrets} of their texts looked for", err=True)
