"""`.graphsvc.toml`: what the files of a project's folder say. Each is read whole, or refused with what is wrong."""

from __future__ import annotations

import errno
import os
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from graphsvc import clock
from graphsvc.errors import InvalidInput
from graphsvc.memory.settings import values

NAME: Final = ".graphsvc.toml"
MAX_BYTES: Final = 65_536
_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # a pipe must not hold a capture
_PLAIN: Final = f"a plain file of at most {MAX_BYTES} bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectFile:
    """What a file says, by the names of the settings; `written` is when it was changed last, UTC."""

    folder: str
    written: str
    values: Mapping[str, str]

    @property
    def path(self) -> str:
        return f"{self.folder.rstrip('/')}/{NAME}"


def read(folder: Path) -> ProjectFile | None:
    """Return what the file in a folder says, None where there is none; raise InvalidInput when it cannot be read."""
    path = folder / NAME
    try:
        handle = os.open(path, _FLAGS)
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ENOTDIR}:
            return None
        why = "is a link" if error.errno == errno.ELOOP else f"cannot be read: {error.strerror}"
        raise InvalidInput(str(path), why, _PLAIN) from None
    try:
        state = os.fstat(handle)
        if not stat.S_ISREG(state.st_mode):
            raise InvalidInput(str(path), "is no file", _PLAIN)
        with os.fdopen(handle, "rb", closefd=False) as stream:
            data = stream.read(MAX_BYTES + 1)
    finally:
        os.close(handle)
    if len(data) > MAX_BYTES:
        raise InvalidInput(str(path), "is larger than that", _PLAIN)
    try:
        said = tomllib.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        allowed = "TOML, such as [capture] paused = true"
        raise InvalidInput(str(path), f"is no TOML: {str(error)[:200]}", allowed) from None
    written = clock.utc_text(datetime.fromtimestamp(state.st_mtime, UTC))
    return ProjectFile(folder=str(folder), written=written, values=_checked(str(path), said))


def _checked(path: str, said: Mapping[str, object]) -> dict[str, str]:
    """Return the settings of a document by their names, `section.name`."""
    found: dict[str, str] = {}
    for section, part in said.items():
        for name, value in part.items() if isinstance(part, dict) else [("", part)]:
            full = f"{section}.{name}" if name else section
            # TOML's own spelling of true and false; a text "true" is none.
            text = str(value).lower() if isinstance(value, bool) else value if isinstance(value, str) else repr(value)
            quoted = isinstance(value, str) and full == values.PAUSED
            found[full] = values.check(path, full, f'"{text}"' if quoted else text)
    return found
