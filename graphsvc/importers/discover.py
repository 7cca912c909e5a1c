"""The histories that agents left on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A host's history: its files newest first. `newest` is the time of the first one, in seconds since 1970."""

    host: str
    path: Path
    files: tuple[Path, ...]
    bytes: int
    newest: float
    importable: bool

    @property
    def sessions(self) -> int:
        """How many sessions the files are: those of sub-agents belong to their parent's."""
        return sum("subagents" not in path.parts and not path.name.startswith("agent-") for path in self.files)


@dataclass(frozen=True, slots=True)
class _Place:
    host: str
    folder: Callable[[Mapping[str, str], Path], Path]
    patterns: tuple[str, ...]
    importable: bool


def _under(variable: str, default: str, *parts: str) -> Callable[[Mapping[str, str], Path], Path]:
    """Name a folder that an environment variable may move; the default is relative to the home folder."""

    def folder(env: Mapping[str, str], home: Path) -> Path:
        base = Path(env[variable]).expanduser() if env.get(variable) else home / default
        return base.joinpath(*parts)

    return folder


_PLACES: Final = (
    _Place("claude-code", _under("CLAUDE_CONFIG_DIR", ".claude", "projects"), ("**/*.jsonl",), importable=True),
    _Place("dsh", _under("DSH_HOME", ".dsh", "sessions"), ("**/*.jsonl", "**/*.jsonl.zst*"), importable=True),
    _Place("codex", _under("CODEX_HOME", ".codex", "sessions"), ("**/*.jsonl", "**/*.jsonl.zst*"), importable=True),
    _Place("qoder", _under("QODER_CONFIG_DIR", ".qoder", "projects"), ("**/*.jsonl",), importable=True),
    _Place("gemini-cli", _under("", ".gemini", "tmp"), ("*/chats/*.json", "*/chats/*.jsonl"), importable=False),
    _Place(
        "opencode", _under("XDG_DATA_HOME", ".local/share", "opencode", "storage"), ("**/*.json",), importable=False
    ),
)


def discover(env: Mapping[str, str], home: Path) -> list[Found]:
    """List the histories of the hosts we know, newest first."""
    found = [history for place in _PLACES if (history := _look(place, place.folder(env, home)))]
    return sorted(found, key=lambda history: history.newest, reverse=True)


def newest_first(found: list[Found]) -> list[Path]:
    """Merge the files of all importable histories, newest first."""
    files = [path for history in found if history.importable for path in history.files]
    return [path for _, path in sorted(((_stat(path)[0], path) for path in files), reverse=True)]


def _look(place: _Place, folder: Path) -> Found | None:
    files = sorted(((*_stat(path), path) for path in set(_files(place, folder))), reverse=True)
    if not files:
        return None
    return Found(
        host=place.host,
        path=folder,
        files=tuple(path for _, _, path in files),
        bytes=sum(size for _, size, _ in files),
        newest=files[0][0],
        importable=place.importable,
    )


def _files(place: _Place, folder: Path) -> Iterator[Path]:
    for pattern in place.patterns:
        try:
            yield from (path for path in folder.glob(pattern) if path.is_file() and not path.is_symlink())
        except OSError:  # a folder that may not be read holds nothing for us
            continue


def _stat(path: Path) -> tuple[float, int]:
    try:
        stat = path.stat()
    except OSError:  # removed meanwhile
        return 0.0, 0
    return stat.st_mtime, stat.st_size
