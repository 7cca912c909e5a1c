"""Files in, report out: walk, recognise, parse, hand over in batches, remember what was done.

Where events go and where the memory of files lies are callables, so that this module opens no store.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, Final, Protocol

from graphsvc.errors import InvalidInput
from graphsvc.importers import claude_code, codex, dsh, neutral, source, swe_agent
from graphsvc.importers.source import FORMATS, DamagedError, Gap, Head, Item, Noise, Record, SkippedError, Unknown
from graphsvc.model import Event
from graphsvc.store.database import storable
from graphsvc.store.imports import Done

MAX_EVENTS: Final = 256
MAX_CHARACTERS: Final = 4 << 20

_PARSERS: Final[dict[str, Callable[[Iterable[Record], Head], Iterator[Item]]]] = {
    "claude-code": claude_code.parse,
    "dsh": dsh.parse,
    "codex": codex.parse,
    "swe-agent": swe_agent.parse,
    "neutral": neutral.parse,
}


class Rejected(Protocol):
    """An event that capture refused."""

    @property
    def index(self) -> int: ...
    @property
    def code(self) -> str: ...
    @property
    def message(self) -> str: ...


class Captured(Protocol):
    """What capture did with a batch."""

    @property
    def accepted(self) -> int: ...
    @property
    def duplicates(self) -> int: ...
    @property
    def rejected(self) -> Sequence[Rejected]: ...
    @property
    def kinds(self) -> Mapping[str, int]: ...


Capture = Callable[[Sequence[Event]], Captured]
Progress = Callable[[Path, int, int], None]  # the file at hand, bytes read of all files, bytes of all files


@dataclass(slots=True)
class Report:
    """What an import found and did."""

    files: int = 0
    records: int = 0
    events_added: int = 0  # rows of the ledger, events by rule included: the sum of `kinds`
    duplicates: int = 0
    forgotten: int = 0  # events that were forgotten here, and stay out
    gaps: list[dict[str, str | int]] = field(default_factory=list)
    skipped: list[dict[str, str]] = field(default_factory=list)
    sessions: dict[str, None] = field(default_factory=dict)  # in the order they were met
    kinds: Counter[str] = field(default_factory=Counter)
    noise: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)

    def to_json(self) -> dict[str, object]:
        """Return the report as JSON values."""
        return {
            "files": self.files,
            "records": self.records,
            "events_added": self.events_added,
            "duplicates": self.duplicates,
            "forgotten": self.forgotten,
            "gaps": self.gaps,
            "skipped": self.skipped,
            "sessions": [storable(name) for name in self.sessions],
            "kinds": dict(sorted(self.kinds.items())),
            "noise": {storable(name): count for name, count in sorted(self.noise.items())},
            "unknown": {storable(name): count for name, count in sorted(self.unknown.items())},
        }


def import_files(
    paths: Iterable[Path],
    *,
    capture: Capture,
    known: Callable[[str], Done | None],
    record: Callable[[str, Done], None],
    project: str | None = None,
    format: str | None = None,  # noqa: A002  # the option's name
    progress: Progress | None = None,
) -> Report:
    """Import files and folders in the order given; an unchanged file is not read again."""
    if format is not None and format not in FORMATS:
        raise InvalidInput("format", f"{format[:80]!r} is unknown", ", ".join(FORMATS))
    report = Report()
    files = _unique(walk(paths, report))
    sizes = [_size(path) for path in files]
    run = _Run(report, capture, known, record, project, format, progress or _silent, sum(sizes))
    for path, size in zip(files, sizes, strict=True):
        try:
            with source.open_file(path) as stream:
                _import(run, path, stream)
        except SkippedError as error:
            report.skipped.append({"file": printable_path(path), "reason": str(error)})
        except DamagedError as error:
            report.files += 1
            report.gaps.append({"file": printable_path(path), "line": 1, "reason": str(error)})
        run.before += size
        run.progress(path, run.before, run.total)
    return report


def walk(paths: Iterable[Path], report: Report) -> Iterator[Path]:
    """Yield the files below the paths in sorted order. Links inside a folder are not followed, and reported."""
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        for folder, folders, names in os.walk(path, onerror=lambda error: _unreadable(report, error)):
            here = Path(folder)
            linked = [name for name in folders if (here / name).is_symlink()]
            folders[:] = sorted(name for name in folders if name not in linked)
            for name in sorted([*names, *linked]):
                if (here / name).is_symlink():
                    report.skipped.append({"file": printable_path(here / name), "reason": "symbolic link"})
                else:
                    yield here / name


def printable_path(path: Path) -> str:
    """Write a path as valid Unicode, whatever bytes its name has."""
    return storable(str(path))


@dataclass(slots=True)
class _Run:
    report: Report
    capture: Capture
    known: Callable[[str], Done | None]
    record: Callable[[str, Done], None]
    project: str | None
    format: str | None
    progress: Progress
    total: int
    before: int = 0  # bytes of the files that are done


@dataclass(slots=True)
class _File:
    """The file at hand: what was read of it, and the batch that waits to be handed over."""

    path: Path
    records: int = 0
    events: int = 0
    forgotten: int = 0
    gaps: dict[int, str] = field(default_factory=dict)
    sessions: dict[str, None] = field(default_factory=dict)
    batch: list[tuple[int, Event]] = field(default_factory=list)
    characters: int = 0
    kept_out: str | None = None  # why events of it were not stored, and will be when it is read again

    def gap(self, line: int, reason: str) -> None:
        """Add a gap; two of one line are one."""
        self.gaps[line] = f"{self.gaps[line]}; {reason}" if line in self.gaps else reason


def _import(run: _Run, path: Path, stream: BinaryIO) -> None:
    stat = os.fstat(stream.fileno())
    key = storable(os.path.realpath(path))
    done = run.known(key)
    if done and (done.size, done.mtime_ns) == (stat.st_size, stat.st_mtime_ns) and run.format in {None, done.format}:
        run.report.duplicates += done.events
        run.report.forgotten += done.forgotten
    else:
        done, kept_out = _read(run, path, stream)
        if kept_out is None:
            run.record(key, done)
        else:
            run.report.skipped.append({"file": printable_path(path), "reason": storable(kept_out)})
    run.report.files += 1
    run.report.records += done.records
    run.report.sessions.update(dict.fromkeys(done.sessions))
    run.report.gaps += [{"file": printable_path(path), "line": line, "reason": reason} for line, reason in done.gaps]


def _read(run: _Run, path: Path, stream: BinaryIO) -> tuple[Done, str | None]:
    """Read a file, and return what became of it; and why it is to be read again, if it is."""
    # Before reading: what is appended meanwhile makes the file a changed one at the next import.
    stat = os.fstat(stream.fileno())
    head = source.sniff(stream, run.format)
    file = _File(path)
    for line, found in _PARSERS[head.format](_readable(file, stream, head.format), head):
        if isinstance(found, Event):
            _add(run, file, stream, line, found)
        elif isinstance(found, Gap):
            file.gap(found.line, found.reason)
        elif isinstance(found, Noise):
            run.report.noise[found.type] += 1
        elif isinstance(found, Unknown):
            run.report.unknown[found.type] += 1
    _hand_over(run, file, stream)
    done = Done(
        size=stat.st_size,
        mtime_ns=stat.st_mtime_ns,
        format=head.format,
        records=file.records,
        events=file.events,
        forgotten=file.forgotten,
        sessions=tuple(file.sessions),
        gaps=tuple(sorted((line, storable(reason)) for line, reason in file.gaps.items())),
    )
    return done, file.kept_out


def _readable(file: _File, stream: BinaryIO, name: str) -> Iterator[Record]:
    for found in source.document(stream) if name == "swe-agent" else source.records(stream):
        if isinstance(found, Gap):
            file.gap(found.line, found.reason)
        else:
            file.records += 1
            yield found


def _add(run: _Run, file: _File, stream: BinaryIO, line: int, event: Event) -> None:
    if file.batch and (len(file.batch) == MAX_EVENTS or file.characters + len(event.body) > MAX_CHARACTERS):
        _hand_over(run, file, stream)
    file.batch.append((line, replace(event, project=run.project) if run.project else event))
    file.characters += len(event.body)
    file.sessions[event.session_id] = None


def _hand_over(run: _Run, file: _File, stream: BinaryIO) -> None:
    if file.batch:
        captured = run.capture([event for _, event in file.batch])
        run.report.events_added += sum(captured.kinds.values())
        run.report.duplicates += captured.duplicates
        run.report.kinds.update(captured.kinds)
        for rejected in captured.rejected:
            if rejected.code == "paused":  # not to be recorded is no fault of the file
                run.report.noise["paused"] += 1
                continue
            if rejected.code == "forgotten":
                run.report.forgotten += 1
                file.forgotten += 1
                continue
            if rejected.code == "settings":
                file.kept_out = rejected.message
                continue
            file.gap(file.batch[rejected.index][0], f"{rejected.code}: {rejected.message}")
        file.events += captured.accepted + captured.duplicates
    file.batch.clear()
    file.characters = 0
    run.progress(file.path, run.before + min(stream.tell(), run.total - run.before), run.total)


def _unique(paths: Iterable[Path]) -> list[Path]:
    found: dict[str, Path] = {}
    for path in paths:
        found.setdefault(os.path.realpath(path), path)
    return list(found.values())


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except (OSError, ValueError):
        return 0


def _silent(path: Path, done: int, total: int) -> None:
    del path, done, total


def _unreadable(report: Report, error: OSError) -> None:
    report.skipped.append({"file": storable(str(error.filename)), "reason": f"unreadable: {error.strerror}"})
