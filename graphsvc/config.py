"""Where graphsvc keeps things and how durable it is, read once from the environment."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from graphsvc.errors import InvalidInput, StoreError

DURABILITIES: Final = {"normal": "NORMAL", "full": "FULL"}
LOG_LEVELS: Final = ("debug", "info", "warning", "error")
_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://(\[[0-9a-f:]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?")
_DEFAULT_PORT: Final = re.compile(r"http://.*:80|https://.*:443")  # which no browser writes


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`durability` normal survives the death of a process, full survives the loss of power too.

    `origins` are the pages beside its own that may use the service. `openlineage` is where the service sends what was
    written and read, as it was given: it may hold a password, and only the service looks whether it is an address.
    """

    home: Path
    durability: str = "normal"
    log: str = "warning"  # what the service logs: this and what is more serious
    origins: frozenset[str] = frozenset()
    openlineage: str | None = field(default=None, repr=False)

    @property
    def database(self) -> Path:
        return self.home / "graphsvc.db"

    @property
    def socket(self) -> Path:
        return self.home / "service.sock"

    @property
    def token_file(self) -> Path:
        return self.home / "token"


def from_environment(env: Mapping[str, str] = os.environ) -> Settings:
    """Read GRAPHSVC_HOME (else XDG_DATA_HOME/graphsvc, else ~/.local/share/graphsvc) and the other settings."""
    if home := env.get("GRAPHSVC_HOME"):
        try:
            path = Path(home).expanduser().absolute()
        except RuntimeError:
            raise InvalidInput("GRAPHSVC_HOME", f"{home!r} names no user", "a folder") from None
    else:
        path = Path(env.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "graphsvc"
    durability = env.get("GRAPHSVC_DURABILITY", "normal")
    if durability not in DURABILITIES:
        raise InvalidInput("GRAPHSVC_DURABILITY", f"{durability!r} is unknown", " or ".join(DURABILITIES))
    log = env.get("GRAPHSVC_LOG", "warning")
    if log not in LOG_LEVELS:
        raise InvalidInput("GRAPHSVC_LOG", f"{log!r} is unknown", ", ".join(LOG_LEVELS))
    origins = _origins(env.get("GRAPHSVC_ORIGINS", ""))
    openlineage = env.get("OPENLINEAGE_URL") or None
    return Settings(home=path, durability=durability, log=log, origins=origins, openlineage=openlineage)


def make_home(settings: Settings) -> None:
    """Create the home with mode 0700, whatever the umask; raise StoreError for one that others may look into.

    A folder of one's own with nothing in it is closed to others: nobody has read anything there.
    """
    home = settings.home
    if not home.is_dir():
        missing = [folder for folder in home.parents if not folder.exists()]
        for folder in (*reversed(missing), home):
            folder.mkdir(mode=0o700, exist_ok=True)
        home.chmod(0o700)
        return
    loose = loose_home(home)
    if loose is None:
        return
    if home.stat().st_uid == os.geteuid() and not any(home.iterdir()):
        home.chmod(0o700)
        return
    problem, todo = loose
    raise StoreError(f"{problem}: {todo}")


def loose_home(home: Path) -> tuple[str, str] | None:
    """Say why a home is not the user's own alone, and what to do about it; None when it is."""
    found = home.stat()
    if found.st_uid != os.geteuid():
        return f"{home} belongs to another user (uid {found.st_uid})", "set GRAPHSVC_HOME to a folder of yours"
    if found.st_mode & 0o077:
        can = "write to" if found.st_mode & 0o022 else "look into"
        problem = f"others can {can} {home} (mode {found.st_mode & 0o777:04o})"
        return problem, f"chmod -R go= {shlex.quote(str(home))}"
    return None


def write_whole(path: Path, data: bytes) -> None:
    """Write a file with mode 0600, whatever the umask, in the place of another: whoever looks finds all of one."""
    new = path.with_name(f"{path.name}.{os.getpid()}")
    handle = os.open(new, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    new.replace(path)


def _origins(listed: str) -> frozenset[str]:
    """Read a list of origins, each as a browser writes it: no pattern and no path, for both would let in more."""
    found = frozenset(one.strip().lower() for one in listed.split(",") if one.strip())
    for one in sorted(found):
        if not _ORIGIN.fullmatch(one) or _DEFAULT_PORT.fullmatch(one):
            allowed = "exact origins with commas between them, such as http://localhost:3000"
            raise InvalidInput("GRAPHSVC_ORIGINS", f"{one[:200]!r} is no origin that a browser sends", allowed)
    return found
