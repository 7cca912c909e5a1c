"""Tokens. The owner's own stands in a file of the home, made at the first start, read by whoever asks the service.

Others are made for somebody and something. They are shown once: the store keeps a digest of each.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import stat
from contextlib import suppress
from dataclasses import replace
from typing import Final

from graphsvc import clock
from graphsvc.config import Settings, make_home
from graphsvc.errors import InvalidInput, StoreError
from graphsvc.memory import paths
from graphsvc.memory.named import check_text
from graphsvc.model import MAX_NAME, MAX_PATH, TokenKind
from graphsvc.store import events, sessions
from graphsvc.store.access import tokens
from graphsvc.store.access.tokens import Token
from graphsvc.store.database import Connection, transaction
from graphsvc.store.visibility import Viewer

PREFIX: Final = "gsvc_"  # by which redaction knows one, too
_SECRET: Final = re.compile(rf"{PREFIX}[A-Za-z0-9_-]{{43}}")


def make_token(settings: Settings) -> str:
    """Return the owner token of this home, making it first when there is none."""
    make_home(settings)
    path = settings.token_file
    if path.exists():
        return read_token(settings)
    # Written aside and linked: whoever finds the file finds the whole token.
    new = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    handle = os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            os.fchmod(handle, 0o600)  # whatever the umask took away
            file.write(f"{_made()}\n")
        with suppress(FileExistsError):
            os.link(new, path)
    finally:
        new.unlink()
    return read_token(settings)


def read_token(settings: Settings) -> str:
    """Return the owner token; raise StoreError when others may read it, FileNotFoundError when there is none."""
    path = settings.token_file
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            raise StoreError(f"{path} is not a file of yours: remove it, a new token is made at the next start")
        if found.st_mode & 0o077:
            raise StoreError(
                f"{path} can be read by others (mode {found.st_mode & 0o777:04o}): chmod 600, or remove it"
            )
        token = file.read(1024).strip()
    if not token.isascii() or len(token) < 32:
        raise StoreError(f"{path} holds no token: remove it, a new one is made at the next start")
    return token.decode("ascii")


def create(db: Connection, wanted: Token, *, now: clock.Clock = clock.system) -> tuple[Token, str]:
    """Make a token that allows what is wanted; return it and the secret, which is kept nowhere.

    Raise InvalidInput for what no token can be: of an owner that is bound, of a project or session that is not there.
    """
    for field in ("project", "session_id", "agent", "name"):
        value = getattr(wanted, field)
        if value is not None:
            check_text(field, value, MAX_PATH if field == "project" else MAX_NAME)
    bounds = [name for name in ("project", "session_id", "agent") if getattr(wanted, name) is not None]
    if wanted.kind is TokenKind.OWNER and bounds:
        raise InvalidInput(bounds[0], "an owner's token is for everything", "kind capture or read, to bind it")
    at = clock.utc_text(now())
    if wanted.expires_at is not None and wanted.expires_at <= at:
        raise InvalidInput("expires", f"{wanted.expires_at} is over", "a time to come")
    secret = _made()
    with transaction(db):
        project, session_id = _place(db, wanted)
        found = replace(wanted, project=project, session_id=session_id, created_at=at, revoked_at=None)
        return tokens.add(db, digest(secret), found), secret


def digest(secret: str) -> bytes:
    """Return what is kept of a token."""
    return hashlib.sha256(secret.encode()).digest()


def is_secret(text: str) -> bool:
    """Say whether a text looks like a token that was made here."""
    return _SECRET.fullmatch(text) is not None


def _made() -> str:
    return f"{PREFIX}{secrets.token_urlsafe(32)}"


def _place(db: Connection, wanted: Token) -> tuple[str | None, str | None]:
    """Return project and session as the store knows them. What captures may be first in a project or a session."""
    first = wanted.kind is TokenKind.CAPTURE
    project, session_id = wanted.project, wanted.session_id
    if project is not None and events.find_project(db, project) is None:
        project = paths.project_of(project)
        if events.find_project(db, project) is None and not first:
            known = ", ".join(events.project_keys(db)[:10])
            raise InvalidInput("project", f"{wanted.project!r} is unknown", f"one that is stored: {known}")
    if session_id is None:
        return project, None
    session = sessions.find(db, Viewer(), session_id)
    if session is None and not first:
        near = sessions.nearest(db, Viewer(), session_id)
        raise InvalidInput("session_id", f"{session_id!r} is unknown", near or "the id of one that is stored")
    if session is None:
        return project, session_id
    if project not in {None, session.project_key}:
        raise InvalidInput("project", "the session belongs to another one", session.project_key)
    return session.project_key, session.session_id
