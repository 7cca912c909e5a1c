"""How the word index comes to hold the ledger. It needs no envelope and no schema: capturing indexes too."""

from __future__ import annotations

from typing import Final

from graphsvc.recall import analyser
from graphsvc.store.database import Connection
from graphsvc.store.index import words
from graphsvc.store.index.units import Unit

CATCH_UP_MS: Final = 150


def proof() -> tuple[words.Analyse, str]:
    """Return what a check of the index needs: the analyser and its version."""
    return analyse, analyser.VERSION


def catch_up(db: Connection, limit_ms: float = CATCH_UP_MS) -> int:
    """Bring the word index up to the ledger within that time, one text at least; return how many events passed."""
    return words.catch_up(db, analyse, analyser.VERSION, limit_ms)


def analyse(unit: Unit) -> words.Columns:
    """Return what the columns of the word index hold of a unit."""
    return (*analyser.columns(analyser.spoken(unit.kind, unit.text, unit.tool), unit.ts), analyser.FILLER)
