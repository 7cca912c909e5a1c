"""Where a line of a file comes from: the captured edit that wrote it, the words that asked for that, what was decided.

The versions of a file hold whole texts. A line is looked up in the version that is the text, or that the text was made
from, and followed from version to version back to the one that has it first. Between two versions others may have
edited: what the host says the file held before an edit (`original_file`) tells their lines from the edit's own.
Nothing is guessed: a line that may have come from elsewhere has no origin, and notes say what is known of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from graphsvc import clock
from graphsvc.lineage import lines
from graphsvc.lineage.lines import UNSURE
from graphsvc.memory import tools
from graphsvc.memory.derive import toggle
from graphsvc.model import Record, Stored, Version
from graphsvc.store import assets, events, records, sessions, visibility
from graphsvc.store.assets import AssetRow
from graphsvc.store.database import Connection
from graphsvc.store.visibility import Viewer

LINES: Final = 1_000_000  # lines of versions that are read for one answer
VERSIONS: Final = 500  # versions of other files that are looked into for a line that was moved
RECORDS: Final = 10  # decisions of the session that are told
_DEPTH: Final = 5  # agents between a user and the one that wrote
# Letters and digits in a row of lines that two texts have in common.
_NEAR: Final = 20  # to have been moved within a file, as for `git blame -M`
_FAR: Final = 40  # to another file, as for `git blame -C`
_SHORT: Final = 7  # digits of the hash that a host tells of a commit


class Confidence(StrEnum):
    """How a line was found; the first is the best."""

    CONTENT = "content"
    COMMIT = "commit"
    TEXT = "text"
    MOVED = "moved"


class Basis(StrEnum):
    """What a record is to a line."""

    PROMPT = "prompt"
    EDIT = "edit"
    SESSION = "session"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A file, or a part of it around a line. `line` counts from 1, as `first_line` does."""

    path: str  # in the working tree
    line: int
    text: str
    first_line: int = 1
    sha256: str | None = None  # of the whole text, when `text` is a part

    @property
    def place(self) -> int:
        return self.line - self.first_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """The commit that git says a line is from: no edit after it wrote the line."""

    hash: str
    at: str  # UTC, when it was committed
    part: Part | None = None  # the file as it was committed


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """A decision or candidate behind a line, and what it is to it."""

    basis: Basis
    record: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What is known of a line. Without a version no captured edit that the viewer may see is known to have written it.

    `prompt` and `task` are events: the words of the user, and what a sub-agent that wrote the line was told.
    """

    line: str
    confidence: Confidence | None = None
    asset: AssetRow | None = None
    version: Version | None = None
    prompt: int | None = None
    task: int | None = None
    records: tuple[Behind, ...] = ()
    notes: tuple[str, ...] = ()


def origin(db: Connection, viewer: Viewer, part: Part, commit: Commit | None) -> Origin:
    """Find where a line comes from."""
    line = lines.split(part.text)[part.place].rstrip("\r")
    search = _Search(db, viewer, commit)
    try:
        found = search.found(part)
        if found is not None:
            search.notes.clear()  # they told of where else it was looked for
    except _Bounded:
        found = None
        search.note(f"more than {LINES} lines of captured versions would have to be compared")
    if visibility.any_hidden(db, viewer):
        search.note(visibility.NOTE)
    if found is None:
        return Origin(line=line, notes=tuple(search.notes))
    prompt, task = _asked(db, viewer, found.version, search)
    [asset] = assets.by_key(db, viewer, found.version.asset)
    return Origin(
        line=line,
        confidence=found.confidence,
        asset=asset,
        version=found.version,
        prompt=prompt,
        task=task,
        records=tuple(_behind(db, viewer, found.version, prompt, task)),
        notes=tuple(search.notes),
    )


class _Bounded(Exception):
    """More would have to be read than one answer may."""


@dataclass(frozen=True, slots=True)
class _Found:
    version: Version
    confidence: Confidence


@dataclass(slots=True)
class _Search:
    """One search: what it has read, and what it has to tell."""

    db: Connection
    viewer: Viewer
    commit: Commit | None
    notes: list[str] = field(default_factory=list)
    left: int = LINES
    exact: bool = True  # what a file held before an edit was always known
    by_others: bool = False  # it was put in between two captured edits
    texts: dict[int, str] = field(default_factory=dict)
    keys: dict[int, list[str]] = field(default_factory=dict)

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def found(self, part: Part) -> _Found | None:
        """Look a line up where the memory has the text as it is, then as it was committed; then in other files."""
        committed = self.commit.part if self.commit is not None else None
        found = self.here(part, None)
        # Git sees commits, the memory each edit: where it knows them all, it knows better.
        if committed is None or (found is not None and found.confidence is Confidence.CONTENT and self.exact):
            return found or self.elsewhere(part)
        if self.by_others and self.exact:
            return self.elsewhere(committed)
        doubt = self._doubt(committed, part)
        if doubt is not None:
            self.note(doubt)
            return None
        return self.here(committed, self._until()) or found or self.elsewhere(committed)

    def here(self, part: Part, until: str | None) -> _Found | None:
        """Look a line up in the versions of the file that it stands in, those until a time."""
        found = []
        for asset in assets.of_path(self.db, self.viewer, part.path):
            versions = assets.versions(self.db, self.viewer, asset.key)
            usable = [one for one in versions if until is None or one.at <= until]
            one = self._in(part, versions, usable) if usable else None
            found += [one] if one is not None else []
        return self._best(found)

    def elsewhere(self, part: Part) -> _Found | None:
        """Look a line up in other files: the lines around it must be the same, and enough of them."""
        own = {asset.key for asset in assets.of_path(self.db, self.viewer, part.path)}
        wanted = lines.keys(part.text)
        text = lines.split(part.text)[_telling(wanted, part.place)].strip()
        if not text:
            return None
        held, more = assets.holding(self.db, self.viewer, text, self._until(), VERSIONS)
        newest: dict[int, Version] = {}
        for version in held:
            if version.asset not in own:
                newest.setdefault(version.asset, version)
        alike = [(*self._alike(wanted, part.place, self._keys(one), set()), one) for one in newest.values()]
        most = max((weight for weight, _, _ in alike), default=0)
        found = [
            self._followed(one, place, Confidence.MOVED) if place is not None else None
            for weight, place, one in alike
            if weight == most >= _FAR
        ]
        # Where one of them leads nowhere, the others prove nothing.
        best = self._best(one for one in found if one is not None) if all(found) else None
        if best is None and more:
            self.note(f"of other files only the newest {VERSIONS} versions were looked into")
        return best

    def _best(self, found: Iterable[_Found]) -> _Found | None:
        """Choose what was found best; where that is several edits it is none of them."""
        ranked = sorted(found, key=lambda one: list(Confidence).index(one.confidence))
        best = {one.version.event: one for one in ranked if one.confidence is ranked[0].confidence}
        if len(best) > 1:
            self.note(f"it may be from any of {', '.join(f'event-{number}' for number in [*best][:5])}")
        return ranked[0] if len(best) == 1 else None

    def _in(self, part: Part, versions: Sequence[Version], usable: Sequence[Version]) -> _Found | None:
        """Look a line up in the versions of one file: in the usable one that is the text, or nearest before it."""
        whole = [one for one in usable if one.hash is not None]
        same = {part.sha256} if part.sha256 is not None else lines.hashes(part.text)
        equal = next((one for one in reversed(whole) if one.hash in same), None)
        if equal is not None and part.line <= len(self._keys(equal)):
            return self._followed(equal, part.line - 1, Confidence.CONTENT, versions)
        wanted, newest, used = lines.keys(part.text), None, set[int]()
        if whole:
            newest = next((one for one in reversed(whole) if self._covers(one)), whole[-1])
            places = self._matched(self._keys(newest), wanted)
            place = places[part.place]
            if place == UNSURE:
                self._unsure(newest)
                return None
            if place is not None:
                return self._followed(newest, place, Confidence.TEXT, versions)
            used = {place for place in places if place is not None}
        found = self._inserted(wanted, part.place, usable[usable.index(newest) + 1 :] if newest else usable)
        if found is not None or newest is None:
            return found
        weight, moved = self._alike(wanted, part.place, self._keys(newest), used)
        if moved is not None and weight >= _NEAR:
            return self._followed(newest, moved, Confidence.MOVED, versions)
        return None

    def _followed(
        self, version: Version, place: int, confidence: Confidence, versions: Sequence[Version] | None = None
    ) -> _Found | None:
        """Follow a line of a version back to the one that wrote it; None when none of them did, or none may have."""
        while True:
            if versions is None:
                versions = assets.versions(self.db, self.viewer, version.asset)
            at = next(number for number, one in enumerate(versions) if one.event == version.event)
            whole = [number for number in range(at) if versions[number].hash is not None]
            earlier = versions[whole[-1]] if whole else None
            between = versions[whole[-1] + 1 if whole else 0 : at]
            base, places = self._change(version, earlier)
            self.exact = self.exact and (base is not None or earlier is None)
            step = places[place]
            if step == UNSURE:
                self._unsure(version)
                return None
            if step is None:
                # What the file held before is known, or else an edit between the two that is known in part has it.
                found = None if base is not None else self._inserted(self._keys(version), place, between)
                return found or self._written(version, place, base, confidence)
            if base is not None and (earlier is None or base != self._text(earlier)):
                wanted = lines.keys(base)
                there = self._matched(self._keys(earlier), wanted)[step] if earlier is not None else None
                if there == UNSURE:
                    self._unsure(version)
                    return None
                if there is None:
                    if (found := self._inserted(wanted, step, between)) is not None:
                        return found
                    renamed = self._of_text(version, base)
                    if renamed is None:
                        self.by_others = confidence is Confidence.CONTENT
                        self.note(f"it stood in the file before event-{version.event}, and no captured edit wrote it")
                        return None
                    version, place, versions = renamed, step, None
                    continue
                step = there
            if earlier is None:
                raise AssertionError("a line that was there before has a text that it was in")
            version, place = earlier, step

    def _change(self, version: Version, earlier: Version | None) -> tuple[str | None, lines.Map]:
        """Return what the file held before a version, None when that is not known, and where its lines were then.

        Where it is not known, the lines' places are those in the version before.
        """
        call, result = self._call(version)
        text, own = self._text(version), self._keys(version)
        edits = tools.edits(call) if call is not None else None
        original = result.meta.get("original_file") if result is not None else None
        before = self._text(earlier) if earlier is not None else None
        base = original if isinstance(original, str) else before
        if base is None:
            return None, [None] * len(own)
        made = lines.edited(base, edits) if edits is not None else None
        if made is not None and made[0] == text:
            self._spend(len(own))
            return base, made[1]
        places = self._matched(lines.keys(base), own)
        return (base if isinstance(original, str) else None), places

    def _written(self, version: Version, place: int, base: str | None, confidence: Confidence) -> _Found | None:
        """Return the edit that a line was followed to, unless it cannot be the one."""
        call, result = self._call(version)
        if call is not None and result is not None and isinstance(result.meta.get("new_file"), str):
            # The user changed what the agent wrote before it was written.
            plain = replace(result, meta={name: one for name, one in result.meta.items() if name != "new_file"})
            asked = tools.content(self._path(version), call, plain, base)
            if asked is None or self._keys(version)[place] not in lines.keys(asked):
                self.note(f"the user changed what event-{call.id} was to write, and this line is not the agent's")
                return None
        if base is not None and confidence is Confidence.CONTENT:
            return _Found(version, confidence)  # the edit put it in, whether or not it was there before
        return self._until_commit(version, confidence)

    def _until_commit(self, version: Version, confidence: Confidence) -> _Found | None:
        until = self._until()
        if until is not None and version.at > until:
            event = events.get(self.db, version.event)
            timed = event is not None and event.ts is not None
            after = "later than it was committed" if timed else "and its host does not tell when"
            self.note(f"event-{version.event} wrote the same, {after}")
            return None
        if confidence is Confidence.TEXT and self._covers(version):
            confidence = Confidence.COMMIT
        return _Found(version, confidence)

    def _inserted(self, wanted: Sequence[str], place: int, versions: Sequence[Version]) -> _Found | None:
        """Find the one of the versions that are known in part whose call put a line in, with the lines around it."""
        best: list[Version] = []
        most = _NEAR
        for version in versions:
            call, _ = self._call(version)
            if version.hash is not None or call is None:
                continue
            for old, new in tools.changes(self._path(version), call):
                own = lines.keys(new)
                self._spend(len(own))
                places = lines.matched(lines.keys(old), own)
                kept = {number for number, one in enumerate(places) if one is not None}
                weight, found = self._alike(wanted, place, own, kept)
                if found is None or weight < most:
                    continue
                best, most = [*(best if weight == most else []), version], weight
        if len({one.event for one in best}) > 1:
            self.note(f"it may be from any of {', '.join(f'event-{one.event}' for one in best[:5])}")
            return None
        return self._until_commit(best[0], Confidence.TEXT) if best else None

    def _doubt(self, committed: Part, part: Part) -> str | None:
        """Say why git may have taken a line for another one: for one beside it, one it is a copy of, any bracket."""
        then, now = lines.keys(committed.text), lines.keys(part.text)
        self._spend(len(now))
        if now[part.place] != then[committed.place]:
            return "the line of the commit is another one"
        places = lines.matched(then, now)
        if part.place in lines.sliding(places, now):
            return "the same stands beside it, so git cannot tell which of the two is from which commit"
        if committed.place in places and places[part.place] != committed.place:
            return f"it is a copy: the line that git found is line {places.index(committed.place) + part.first_line}"
        if lines.weighty([now[part.place]]) or lines.surely(then, now)[part.place] == committed.place:
            return None
        if lines.framed(now, part.place, then, committed.place):
            return None
        return "it says too little for git to tell it from others like it"

    def _alike(self, wanted: Sequence[str], place: int, own: Sequence[str], used: set[int]) -> tuple[int, int | None]:
        """Find the place in a text around which most is the same as around a line, and how much; None for several."""
        self._spend(len(own))
        most, best = 0, list[int]()
        for there, key in enumerate(own):
            if key != wanted[place] or there in used:
                continue
            begin, end = lines.around(wanted, place, own, there)
            self._spend(end - begin)
            if not lines.framed(wanted, place, own, there):
                continue
            weight = lines.weight(wanted[begin:end])
            if weight >= most:
                most, best = weight, [*(best if weight == most else []), there]
        return most, best[0] if len(best) == 1 else None

    def _matched(self, old: Sequence[str], new: Sequence[str]) -> lines.Map:
        """Return which line of a text is which of another; what may be the same by chance is none."""
        self._spend(len(new))
        return lines.surely(old, new)

    def _of_text(self, version: Version, text: str) -> Version | None:
        """Return the newest version before one that has this text: its file was renamed, or edited elsewhere."""
        same = assets.of_hash(self.db, self.viewer, version.project, lines.digest(text))
        before = [one for one in same if (one.at, one.event) < (version.at, version.event)]
        return before[-1] if before and lines.weight([text]) >= _FAR else None

    def _covers(self, version: Version) -> bool:
        """Say whether a host told that the commit took a version."""
        ref = version.ref
        return self.commit is not None and ref is not None and len(ref) >= _SHORT and self.commit.hash.startswith(ref)

    def _until(self) -> str | None:
        """Return the last moment that what was committed can have been written; git counts seconds."""
        if self.commit is None:
            return None
        return clock.from_micros(clock.to_micros(self.commit.at) + 1_000_000)

    def _call(self, version: Version) -> tuple[Stored | None, Stored | None]:
        found = events.many(self.db, [one for one in (version.call, version.result) if one is not None])
        return found.get(version.call or 0), found.get(version.result or 0)

    def _path(self, version: Version) -> str:
        """Return the path of a version as its call says it."""
        event = events.get(self.db, version.event)
        path = event.meta.get("path") if event is not None else None
        return path if isinstance(path, str) else event.body if event is not None else ""

    def _text(self, version: Version) -> str:
        if version.event not in self.texts:
            self.texts = {**dict([*self.texts.items()][-4:]), **assets.texts(self.db, [version.event])}
        return self.texts[version.event]

    def _keys(self, version: Version) -> list[str]:
        if version.event not in self.keys:
            found = lines.keys(self._text(version))
            self._spend(len(found))
            self.keys = {**dict([*self.keys.items()][-4:]), version.event: found}
        return self.keys[version.event]

    def _unsure(self, version: Version) -> None:
        self.note(
            f"the same stands beside it, or too much differs, so event-{version.event} does not tell which line it is"
        )

    def _spend(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise _Bounded


def _telling(wanted: Sequence[str], place: int) -> int:
    """Return the place of a line that is looked for: this one, or the one near it that says most."""
    if lines.weight([wanted[place]]) >= _NEAR:
        return place
    near = range(max(0, place - 3), min(len(wanted), place + 4))
    return max(near, key=lambda one: lines.weight([wanted[one]]))


def _asked(db: Connection, viewer: Viewer, version: Version, search: _Search) -> tuple[int | None, int | None]:
    """Return the words of the user that led to a version, and what a sub-agent was told that wrote it."""
    call = events.get(db, version.call if version.call is not None else version.event)
    if call is None:
        return None, None
    session, at, number, task = call.session, call.at, call.id, None
    if call.actor is not None:
        task = _told(db, viewer, session, call.actor, at, number)
        if task is not None:
            at, number = task.at, task.id
    for _ in range(_DEPTH):
        words = _told(db, viewer, session, None, at, number)
        row = sessions.by_number(db, session)
        if row is None or row.relation != "delegation":
            break
        parent = sessions.by_host_id(db, viewer, row.parent) if row.parent else None
        task = task or words
        if parent is None or words is None:
            search.note("a sub-agent wrote it, and the session that it worked for is not captured")
            return None, task.id if task else None
        session, at, number = parent.number, words.at, 2**62
    else:
        return None, task.id if task else None
    if words is None:
        search.note("what the user said before it is not known")
    return words.id if words else None, task.id if task else None


def _told(db: Connection, viewer: Viewer, session: int, actor: str | None, at: str, number: int) -> Stored | None:
    """Return the last words to an actor before a place in time; a switch of isolation asks for nothing."""
    while (found := events.told_before(db, viewer, session, actor, at, number)) is not None:
        words = events.get(db, found)
        if words is None or toggle(words) is None:
            return words
        at, number = words.at, words.id
    return None


def _behind(db: Connection, viewer: Viewer, version: Version, prompt: int | None, task: int | None) -> Iterator[Behind]:
    """Yield the decisions and candidates that stand on the words and the edit, then what the session decided before."""
    seen: set[int] = set()
    for basis, numbers in (
        (Basis.PROMPT, (prompt, task)),
        (Basis.EDIT, (version.call, version.result, version.event)),
    ):
        for number in numbers:
            for record in records.standing_on(db, viewer, number, version.project) if number is not None else ():
                if record.id not in seen:
                    seen.add(record.id)
                    yield Behind(basis=basis, record=record)
    for record in records.decided_until(db, viewer, version.session, version.at, RECORDS):
        if record.id not in seen:
            yield Behind(basis=Basis.SESSION, record=record)
