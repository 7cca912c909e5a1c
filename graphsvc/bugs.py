"""Bugs: the asker gets an id, the log says under it where one happened; its text stays out, it may quote people."""

from __future__ import annotations

import logging
import secrets
import traceback
from typing import Final

_LOG: Final = logging.getLogger("graphsvc")


def new_id() -> str:
    """Return an id under which bugs are told and logged."""
    return secrets.token_hex(6)


def log(where: str, error: BaseException | None, correlation: str | None = None) -> str:
    """Log where a bug happened, under its id or a new one; return the id."""
    correlation = correlation or new_id()
    frames = "".join(traceback.format_tb(error.__traceback__)) if error is not None else ""
    about = {"correlation_id": correlation, "where": where, "error": type(error).__name__, "frames": frames}
    _LOG.error("bug %(correlation_id)s in %(where)s: %(error)s\n%(frames)s", about)
    return correlation


def told(correlation: str) -> str:
    """Return what the asker is told of a bug."""
    return f"a bug of graphsvc; its log tells more under {correlation}"
