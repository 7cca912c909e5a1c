"""Lines of texts: which line of one text is which line of another. White space makes no difference, as for `git -w`."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final

UNSURE: Final = -1  # in the place of a line: which one it is cannot be told
SAME: Final = 6  # letters and digits; with less, lines are the same by chance: a bracket, a blank line
_CELLS: Final = 40_000  # lines times lines without a unique one among them that are compared
_WIDE: Final = 3  # letters that one of a script without spaces counts as

Map = list[int | None]  # for each line of a text the one it is of another text, None when it is none


def split(text: str) -> list[str]:
    """Return the lines of a text as git counts them: a line feed ends one, and nothing else does."""
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def keys(text: str) -> list[str]:
    """Return the lines of a text without their white space."""
    return ["".join(line.split()) for line in split(text)]


def hashes(text: str) -> set[str]:
    """Return the SHA-256 that a text has with either kind of line ends."""
    unix = text.replace("\r\n", "\n")
    return {digest(one) for one in (text, unix, unix.replace("\n", "\r\n"))}


def digest(text: str) -> str:
    """Return the SHA-256 of a text as versions are stored with it."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def matched(old: Sequence[str], new: Sequence[str]) -> Map:
    """Return for each line of `new` the line of `old` that it is, by lines that both hold once (patience diff).

    What lies between such lines is compared as a whole when it is short, else it is UNSURE.
    """
    found: Map = [None] * len(new)
    waiting = [(0, len(old), 0, len(new))]
    while waiting:
        old_from, old_to, new_from, new_to = waiting.pop()
        while old_from < old_to and new_from < new_to and old[old_from] == new[new_from]:
            found[new_from] = old_from
            old_from, new_from = old_from + 1, new_from + 1
        while old_from < old_to and new_from < new_to and old[old_to - 1] == new[new_to - 1]:
            old_to, new_to = old_to - 1, new_to - 1
            found[new_to] = old_to
        if old_from == old_to or new_from == new_to:
            continue
        places = _unique(old, new, old_from, old_to, new_from, new_to)
        if places:
            for before, after in places:
                waiting.append((old_from, before, new_from, after))
                found[after] = before
                old_from, new_from = before + 1, after + 1
            waiting.append((old_from, old_to, new_from, new_to))
        elif (old_to - old_from) * (new_to - new_from) <= _CELLS:
            blocks = SequenceMatcher(None, old[old_from:old_to], new[new_from:new_to], autojunk=False)
            for block in blocks.get_matching_blocks():
                for step in range(block.size):
                    found[new_from + block.b + step] = old_from + block.a + step
        else:
            common = set(old[old_from:old_to])
            found[new_from:new_to] = [UNSURE if line in common else None for line in new[new_from:new_to]]
    return found


def surely(old: Sequence[str], new: Sequence[str]) -> Map:
    """Return what `matched` does, without what may be the same by chance; what may be another one is UNSURE."""
    places = matched(old, new)
    others = sliding(places, new)
    for begin, end in [*_rows(places)]:
        if weight(new[begin:end]) < SAME and end - begin < len(new):
            places[begin:end] = [None] * (end - begin)
    for number in others:
        places[number] = UNSURE
    return places


def sliding(places: Map, new: Sequence[str]) -> set[int]:
    """Return the lines of `new` that may be others: beside them, lines were put in that are the same.

    Of `a, b, a` it cannot be told whether `b, a` was put in behind an `a`, or `a, b` before one. A line that says
    little may be any of the same ones in what was put in.
    """
    found: set[int] = set()
    begin = 0
    while begin < len(new):
        end = begin
        while end < len(new) and places[end] is None:
            end += 1
        for beside, inside, step in ((begin - 1, end - 1, -1), (end, begin, 1)):
            while 0 <= beside < len(new) and begin <= inside < end and new[beside] == new[inside]:
                found |= {beside, inside}
                beside, inside = beside + step, inside + step
            same = [number for number in range(begin, end) if 0 <= beside < len(new) and new[number] == new[beside]]
            if same and weight([new[beside]]) < SAME:
                found |= {beside, *same}
        begin = end + 1
    return found


def edited(before: str, edits: Sequence[tuple[str, str, bool]]) -> tuple[str, Map] | None:
    """Replace as an edit tool does; return the text and its lines' places before. None when it would not."""
    text, places = before, list[int | None](range(len(split(before))))
    for old, new, everywhere in edits:
        at = [0] if not old and not text else list(_occurrences(text, old)) if old else []
        if not at or (len(at) > 1 and not everywhere):
            return None
        after = new.join(_pieces(text, at, len(old)))
        steps = _touched(text, after, at, len(old), new)
        places = [step if step is None or step < 0 else places[step] for step in steps]
        text = after
    return text, places


def around(one: Sequence[str], place: int, other: Sequence[str], there: int) -> tuple[int, int]:
    """Return from where to where two texts are the same around a line that both hold, as places in the first."""
    begin = end = 0
    while begin < min(place, there) and one[place - begin - 1] == other[there - begin - 1]:
        begin += 1
    while end < min(len(one) - place, len(other) - there) and one[place + end] == other[there + end]:
        end += 1
    return place - begin, place + end


def framed(one: Sequence[str], place: int, other: Sequence[str], there: int) -> bool:
    """Say whether what two texts share around a line says enough before and behind it.

    At an edge of what they share, a bracket or a blank line may stand by chance.
    """
    begin, end = around(one, place, other, there)
    return weighty(one[begin : place + 1]) and weighty(one[place:end])


def weight(lines: Sequence[str]) -> int:
    """Count the letters and digits of lines: how little of a chance it is that two texts both hold them."""
    return sum(1 if char.isascii() else _WIDE for line in lines for char in line if char.isalnum())


def weighty(several: Sequence[str]) -> bool:
    """Say whether one of these lines says enough to be no other by chance."""
    return any(weight([line]) >= SAME for line in several)


def _rows(places: Map) -> Iterator[tuple[int, int]]:
    """Yield from where to where lines follow each other in both texts."""
    begin = 0
    for number in range(1, len(places) + 1):
        before, one = places[number - 1], places[number] if number < len(places) else None
        if before is not None and before >= 0 and one == before + 1:
            continue
        if before is not None and before >= 0:
            yield begin, number
        begin = number


def _unique(
    old: Sequence[str], new: Sequence[str], old_from: int, old_to: int, new_from: int, new_to: int
) -> list[tuple[int, int]]:
    """Return the lines that both hold once, as (place in old, place in new), the most of them in the same order."""
    counted, there = Counter(old[old_from:old_to]), Counter(new[new_from:new_to])
    at = {old[place]: place for place in range(old_from, old_to)}
    pairs = [
        (at[new[place]], place)
        for place in range(new_from, new_to)
        if new[place] and counted[new[place]] == 1 and there[new[place]] == 1
    ]
    # The longest run of growing places, by patience sorting: the top of each pile, and what lay left of it.
    tops: list[int] = []
    piles: list[int] = []
    left: list[int | None] = []
    for number, (before, _) in enumerate(pairs):
        pile = bisect_left(tops, before)
        left.append(piles[pile - 1] if pile else None)
        tops[pile : pile + 1] = [before]
        piles[pile : pile + 1] = [number]
    chain: list[tuple[int, int]] = []
    last = piles[-1] if piles else None
    while last is not None:
        chain.append(pairs[last])
        last = left[last]
    return chain[::-1]


def _occurrences(text: str, part: str) -> Iterator[int]:
    place = text.find(part)
    while place >= 0:
        yield place
        place = text.find(part, place + len(part))


def _pieces(text: str, at: Sequence[int], size: int) -> list[str]:
    """Return what is left of a text around parts of that size."""
    ends = [0, *(place + size for place in at)]
    return [text[begin:end] for begin, end in zip(ends, [*at, len(text)], strict=True)]


def _touched(before: str, after: str, at: Sequence[int], size: int, new: str) -> Map:
    """Return the lines after replacements as lines before: what no replacement touches stays what it was."""
    old_keys, new_keys = keys(before), keys(after)
    regions: list[tuple[int, int, int]] = []  # lines of `before` from, to; lines by which what follows has moved
    grown = new.count("\n") - before[at[0] : at[0] + size].count("\n")
    line = begin = 0
    for place in at:
        line += before.count("\n", begin, place)
        first, fresh = line, place == 0 or before[place - 1] == "\n"
        begin, end = place, place + size
        line += before.count("\n", begin, end)
        begin = end
        whole = (before[:end].endswith("\n") or end == 0 if size else fresh) and (new.endswith("\n") or not new)
        last = line if whole and (new or fresh) else line + 1
        if regions and first < regions[-1][1]:
            first, _, moved = regions.pop()
            regions.append((first, last, moved + grown))
        else:
            regions.append((first, last, grown))
    found: Map = []
    done = 0
    for first, last, moved in regions:
        found += range(done, first)
        start, to = len(found), len(found) + (last - first) + moved
        found += [
            place if place is None or place < 0 else place + first
            for place in matched(old_keys[first:last], new_keys[start:to])
        ]
        done = last
    found += range(min(done, len(old_keys)), len(old_keys))
    return found[: len(new_keys)] + [UNSURE] * (len(new_keys) - len(found))
