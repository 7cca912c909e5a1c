"""The owner's token: made at the first start, read by whoever asks the service of this home."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress

from graphsvc.config import Settings, make_home
from graphsvc.errors import StoreError


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
            file.write(f"{secrets.token_urlsafe(32)}\n")
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
