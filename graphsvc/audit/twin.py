"""A store and its twin: the same ledger, replayed with blanks in the place of what is isolated.

Both are copies in a folder of their own, which is gone afterwards. The store itself is only read.
"""

from __future__ import annotations

import random
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from graphsvc.audit.asking import Place
from graphsvc.audit.reads import Pool
from graphsvc.config import Settings
from graphsvc.errors import StoreError
from graphsvc.memory import rebuild
from graphsvc.model import RECORD_KINDS, EventKind
from graphsvc.recall import index, scope
from graphsvc.recall.scope import Asker
from graphsvc.store import assets, database, events, sessions, visibility
from graphsvc.store.database import Connection
from graphsvc.store.erase import ledger
from graphsvc.store.sessions import SessionRow
from graphsvc.store.visibility import Viewer

NAMELESS: Final = "title of nothing"
SECRETS: Final = 300  # isolated texts that are looked for in answers
_SHORT: Final = 12  # characters: less may be said anywhere
_ASKED: Final = 50  # sessions that are looked at for whether they may ask
_INDEX_MS: Final = 600_000
_WORD: Final = re.compile(r"[^\W\d_]\w{3,20}|[\u4e00-\u9fff]{2,4}")
_SAYS: Final = re.compile(r"\S\s+\S|[\u4e00-\u9fff]{4}")
_WORDS: Final = 24
_TEXTS: Final = 8
_FILE: Final = 20_000  # characters of a file that a line is asked of
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Pair:
    """What is compared: the store as it is, its twin, and how many isolated events are blank, or not, in the twin."""

    told: Place
    blank: Place
    blanks: int
    kept: int


@contextmanager
def aside(settings: Settings) -> Iterator[Path]:
    """Yield a folder of mode 0700 with a copy of the store in `told`; it is removed whatever happens."""
    with tempfile.TemporaryDirectory(prefix="graphsvc-audit-") as folder:
        home = Path(folder) / "told"
        home.mkdir(mode=0o700)
        database.copy(settings.database, Settings(home=home).database)
        yield Path(folder)


@contextmanager
def twins(folder: Path, viewer: Viewer, progress: Progress) -> Iterator[Pair]:
    """Open the copy and make its twin for who sees no more than this viewer: what it may not see is blank there."""
    homes = [Settings(home=folder / name, durability="normal") for name in ("told", f"blank-{viewer.session or 0}")]
    homes[1].home.mkdir(mode=0o700)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, homes[1].home)
        told = stack.enter_context(closing(rebuild.connect(homes[0], progress)))
        index.catch_up(told, _INDEX_MS)
        database.copy(homes[0].database, homes[1].database)
        blank = stack.enter_context(closing(rebuild.connect(homes[1])))
        kept = visibility.beneath(told)
        hidden = visibility.unseen(told, viewer)
        blanks = [number for number in hidden if number not in kept]
        ledger.blank(blank, blanks, NAMELESS)
        rebuild.rebuild(blank, progress)
        index.catch_up(blank, _INDEX_MS)
        yield Pair(Place(told), Place(blank), len(blanks), len(hidden) - len(blanks))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What of a store is asked for, and which isolated texts no answer may hold. `ids` counts those there are."""

    pool: Pool
    secrets: tuple[str, ...]
    ids: int
    events: int


class _Some:
    """Keeps at most so many of what it is given, each with the same chance."""

    def __init__(self, most: int, chance: random.Random) -> None:
        self.kept: list[str] = []
        self.seen = 0
        self._most = most
        self._chance = chance

    def add(self, one: str) -> None:
        self.seen += 1
        if len(self.kept) < self._most:
            self.kept.append(one)
        elif (place := self._chance.randrange(self.seen)) < self._most:
            self.kept[place] = one


def sample(db: Connection, most: int, chance: random.Random, progress: Progress) -> Sample:
    """Choose what to ask for, half of the ids isolated: one look at the ledger, one more for what is said openly."""
    hidden = set(visibility.unseen(db, Viewer(everywhere=True)))
    ids = {isolated: _Some(max(1, most // 2), chance) for isolated in (True, False)}
    names = {isolated: _Some(_WORDS // 2, chance) for isolated in (True, False)}
    written = {isolated: _Some(_TEXTS // 2, chance) for isolated in (True, False)}
    sessions_, moments, paths = _Some(most, chance), _Some(most, chance), _Some(most, chance)
    lines, known, newest = _Some(SECRETS, chance), set[str](), events.position(db)
    count = 0
    for event in events.after(db, 0):
        isolated = event.id in hidden
        count += 1
        ids[isolated].add(f"event-{event.id}")
        if event.kind in RECORD_KINDS or event.kind is EventKind.ASSET:
            ids[isolated].add(f"{event.kind}-{event.id}")
        if event.kind is EventKind.ASSET:
            paths.add(event.body)
            text = assets.texts(db, [event.id]).get(event.id)
            if text and len(text) <= _FILE:
                written[isolated].add(f"{event.body}\0{text}")
        if event.session_id not in known:
            known.add(event.session_id)
            sessions_.add(event.session_id)
        moments.add(event.at)
        for word in chance.sample(found := _WORD.findall(event.body[:2_000]), min(len(found), 3)):
            names[isolated].add(word)
        if isolated:
            for line in _said(event.body):
                lines.add(line)
        progress(event.id, 2 * newest)
    if not count:
        raise StoreError("nothing is stored yet, so there is nothing to ask for; graphsvc import, or graphsvc demo")
    chosen = (*ids[True].kept, *ids[False].kept, *(f"session-{one}" for one in sessions_.kept[: most // 4 + 1]))
    pool = Pool(
        ids=(*chosen, *paths.kept[:4], str(newest), f"event-{newest + 9}"),
        sessions=tuple(sessions_.kept),
        projects=tuple(chance.sample(keys := events.project_keys(db), min(len(keys), most))),
        moments=tuple(moments.kept),
        paths=tuple(paths.kept) or ("README.md",),
        words=tuple(dict.fromkeys((*names[True].kept, *names[False].kept))) or ("word",),
        texts=_files(written) or (("README.md", "# Read me\n"),),
        position=newest,
    )
    return Sample(pool=pool, secrets=_only(db, hidden, lines.kept, progress), ids=sum(one.seen for one in ids.values()),
                  events=count)  # fmt: skip


def askers(db: Connection, most: int, chance: random.Random) -> tuple[list[tuple[str, Asker]], list[tuple[str, Asker]]]:
    """Return who asks: those to whom everything isolated is closed, and sessions that hold isolated events themselves.

    The owner, who is nobody's session, of all projects and of one; sessions of the projects with isolated events, and
    of others. Of a project its newest 500 sessions are considered, and at most 50 of those that isolate nothing.
    """
    listed = [
        one
        for key in events.project_keys(db)
        for one in sessions.page(db, Viewer(project=events.find_project(db, key)), None, 500)
    ]
    hiding = {one.project_key for one in listed if one.hides}
    everything = len(visibility.unseen(db, Viewer(everywhere=True)))
    holders = [one for one in listed if one.hides]
    plain: list[SessionRow] = []
    others = [one for one in listed if not one.hides]
    for one in chance.sample(others, min(len(others), _ASKED)):
        # It may hold what another session isolates: a fork does.
        unseen = visibility.unseen(db, Viewer(session=one.number, project=one.project))
        (plain if len(unseen) == everything else holders).append(one)
    closed = [("the owner", Asker(project="all"))]
    for key in sorted(hiding)[:1]:
        closed += [("the owner, one project", Asker(project=key))]
        closed += [("a viewer of one project", Asker(owner=False, project=key))]
    for name, inside in (("a session beside", True), ("a session elsewhere", False)):
        group = [one for one in plain if (one.project_key in hiding) is inside]
        closed += [(name, _as(one)) for one in chance.sample(group, min(len(group), most))]
    return closed, [("an isolated session", _as(one)) for one in chance.sample(holders, min(len(holders), most))]


def viewer_of(db: Connection, asker: Asker) -> Viewer:
    """Return who somebody is to the store."""
    viewer, _ = scope.resolve(db, asker, None)
    return viewer


def _as(session: SessionRow) -> Asker:
    return Asker(session_id=session.session_id)


def _said(body: str) -> list[str]:
    """Return the lines of a text that say enough to be known again: several words, in any script."""
    lines = [line.strip() for line in body.splitlines()]
    return [line for line in lines if len(line) >= _SHORT and _SAYS.search(line)]


def _files(written: dict[bool, _Some]) -> tuple[tuple[str, str], ...]:
    parts = [one.partition("\0") for some in written.values() for one in some.kept]
    return tuple((path, text) for path, _, text in parts)


def _only(db: Connection, hidden: set[int], lines: list[str], progress: Progress) -> tuple[str, ...]:
    """Keep the texts that nothing visible holds."""
    left, newest = dict.fromkeys(lines), events.position(db)
    for event in events.after(db, 0):
        if not left:
            break
        if event.id not in hidden:
            said = f"{event.body}\n{event.meta}"
            left = {line: None for line in left if line not in said}
        progress(newest + event.id, 2 * newest)
    progress(2 * newest, 2 * newest)
    return tuple(left)
