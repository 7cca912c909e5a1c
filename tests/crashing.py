"""Kills whoever writes the mirror, at each of its steps and at any time, and looks whether the next one heals it.

`python crashing.py FOLDER HITS [STEP …]` prints how often each step was hit, as JSON; it fails at the first mirror that
is not what the tables say. Processes are forked from this one, which has no graph open.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import ledgers
from mirrored import EDGES, USUAL, Story, assert_mirrors, steps

from graphsvc.graph.follow import Follower
from graphsvc.graph.place import place
from graphsvc.memory.apply import VERSION
from graphsvc.store import database, events

BATCH = ("batch begun", "nodes written", "edges removed", "edges written", "position written", "batch committed")
BUILD = (
    *("file begun", "nodes loaded", "edges loaded", "file stamped", "file filled"),
    *("old file removed", "file renamed", "new file opened"),
)
OPEN = ("opening", "opened", "proved", "closed")
ANY_TIME = "any time"
STEPS = (*OPEN, *BATCH, *BUILD, ANY_TIME)
TOLD = (*USUAL, *EDGES, *EDGES, "on", "off")  # nothing is published: that is no batch


class Crashes:
    """A home, and what happens to its mirror."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.home = ledgers.Home(folder / "home")
        self.chance = random.Random(seed)  # noqa: S311 # a made-up story, no secret
        self.story = Story()
        self.told = 0
        self.mirror = place(self.home.settings)

    def tell(self, many: int) -> None:
        """Store some more events."""
        self.story.tell(steps(self.chance, many, TOLD))
        more, self.told = self.story.told[self.told :], len(self.story.told)
        self.home.tell(more, history=False)

    def hit(self, step: str) -> bool:
        """Kill a process at a step; return whether it got there. What it leaves must heal."""
        self.tell(self.chance.randint(3, 8))
        if step in BUILD:
            self.spoil()
        elif step in BATCH and self.chance.random() < 0.5:
            self.tell(1)
        killed = self.killed_any_time() if step == ANY_TIME else self.killed_at(step)
        if self.chance.random() < 0.5:
            self.tell(2)
        self.within(self.heal)
        self.within(lambda: assert_mirrors(self.mirror.graph, self.home.settings.database))
        return killed

    def spoil(self) -> None:
        """Give a reason to make the file anew."""
        if self.chance.random() < 0.5:
            self.mirror.doubt.touch()
        else:
            self.mirror.graph.unlink()

    def killed_at(self, step: str) -> bool:
        left = self.chance.randint(1, 2) if step in BATCH else 1

        def at(reached: str) -> None:
            nonlocal left
            left -= reached == step
            if reached == step and left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)

        return self.forked(lambda: self.follow(at)) == -signal.SIGKILL

    def killed_any_time(self) -> bool:
        delay = self.chance.uniform(0, 0.25)
        return self.forked(lambda: self.follow(lambda _: None, turns=50), kill_after=delay) == -signal.SIGKILL

    def follow(self, at: Callable[[str], None], turns: int = 3) -> None:
        """Follow the store while events come in."""
        follower = self.follower(at)
        for _ in range(turns):
            follower.step()
            self.tell(2)
        follower.step()
        follower.close()

    def heal(self) -> None:
        """Bring the mirror to the end of the ledger and close it."""
        follower = self.follower(lambda _: None)
        with database.reader(self.home.settings.database) as db:
            newest = events.position(db)
        while follower.position < newest:
            follower.step()
        follower.close()

    def follower(self, at: Callable[[str], None]) -> Follower:
        return Follower(self.home.settings.database, self.mirror, VERSION, lambda **_: None, at)

    def within(self, work: Callable[[], None]) -> None:
        """Do something in a process of its own, which must succeed."""
        code = self.forked(work)
        assert code == 0, code

    def forked(self, work: Callable[[], None], kill_after: float | None = None) -> int:
        pid = os.fork()
        if pid == 0:
            try:
                work()
            except BaseException:  # noqa: BLE001 # told, and the process ends here whatever it was
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        if kill_after is not None:
            time.sleep(kill_after)
            os.kill(pid, signal.SIGKILL)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def crash(folder: Path, hits: int, points: tuple[str, ...]) -> dict[str, int]:
    """Hit each step so often; return how often each was."""
    crashes = Crashes(folder, seed=len(points))
    crashes.tell(60)
    crashes.within(crashes.heal)
    counted = dict.fromkeys(points, 0)
    for step in points:
        for _ in range(3 * hits):  # a step may not come in every round
            counted[step] += crashes.hit(step)
            if counted[step] == hits:
                break
    return counted


def main() -> None:
    folder, hits, *points = sys.argv[1:]
    print(json.dumps(crash(Path(folder), int(hits), tuple(points) or STEPS)))


if __name__ == "__main__":
    main()
