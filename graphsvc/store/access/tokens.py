"""SQLite: the tokens of a home, each by its digest. Operational, not rebuilt from the ledger."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Final

from graphsvc.model import TokenKind
from graphsvc.store.database import Connection, transaction

_COLUMNS: Final = {"session_id": "session"}
_HOLDS: Final = "revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """What a token allows, and to whom it was given. Times are UTC text.

    `project` and `session_id`: the only ones it is for, None for any. `agent`: the one it was given to.
    """

    id: int
    kind: TokenKind
    project: str | None = None
    session_id: str | None = None
    agent: str | None = None
    name: str | None = None
    created_at: str = ""
    expires_at: str | None = None
    revoked_at: str | None = None


# The token in the file of the home. It is in no table, and ends with its file.
OWN: Final = Token(id=0, kind=TokenKind.OWNER)


def add(db: Connection, digest: bytes, token: Token) -> Token:
    """Keep a new token by its digest; return it with its id."""
    names = [item.name for item in fields(Token) if item.name != "id"]
    columns = ", ".join(_COLUMNS.get(name, name) for name in names)
    with transaction(db):
        row = db.execute(
            f"INSERT INTO tokens (digest, {columns}) VALUES (?{', ?' * len(names)}) RETURNING *",
            [digest, *(getattr(token, name) for name in names)],
        ).fetchone()
    return _read(row)


def every(db: Connection) -> list[Token]:
    """List all tokens there have been, oldest first."""
    return [_read(row) for row in db.execute("SELECT * FROM tokens ORDER BY id")]


def holding(db: Connection, at: str) -> dict[bytes, Token]:
    """Return the tokens that hold at a time, by their digests."""
    return {row["digest"]: _read(row) for row in db.execute(f"SELECT * FROM tokens WHERE {_HOLDS}", (at,))}


def holds(db: Connection, token: Token, at: str) -> bool:
    """Say whether a token holds at a time; the owner's own always does."""
    query = f"SELECT EXISTS (SELECT 1 FROM tokens WHERE id = ? AND {_HOLDS})"
    return token.id == OWN.id or bool(db.execute(query, (token.id, at)).fetchone()[0])


def revoke(db: Connection, number: int, at: str) -> Token | None:
    """End a token; return it as it is then, None when there is none of that number. The first end counts."""
    with transaction(db):
        db.execute("UPDATE tokens SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL", (at, number))
        row = db.execute("SELECT * FROM tokens WHERE id = ?", (number,)).fetchone()
    return _read(row) if row else None


def drop(db: Connection, sessions: Iterable[str]) -> None:
    """Remove the tokens that speak for sessions of which nothing is left; they end by that."""
    db.execute("DELETE FROM tokens WHERE session IN (SELECT value FROM json_each(?))", (json.dumps(list(sessions)),))


def _read(row: sqlite3.Row) -> Token:
    values = {item.name: row[_COLUMNS.get(item.name, item.name)] for item in fields(Token)}
    return Token(**{**values, "kind": TokenKind(values["kind"])})
