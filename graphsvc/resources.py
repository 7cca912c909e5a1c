"""Find `schema/`, `queries/` and the demo wherever they are installed: wheel, sdist install or checkout."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_PACKAGE: Final = Path(__file__).resolve().parent
ROOT: Final = _PACKAGE / "_data" if (_PACKAGE / "_data").is_dir() else _PACKAGE.parent


def text(name: str) -> str:
    """Return the file `name` (relative to the shipped root, e.g. `schema/tool.json`) as text."""
    return (ROOT / name).read_text("utf-8")


def names(folder: str, suffix: str) -> list[str]:
    """List the shipped files below a folder with that suffix, sorted, relative to the shipped root."""
    return sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob(f"*{suffix}"))
