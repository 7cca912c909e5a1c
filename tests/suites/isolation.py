"""Many stories, told twice, over every transport: what others get must be the same.

python isolation.py STORIES SEED prints a table of what was compared, and ends with 1 when something leaks.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import stories
import transports
from forks import Forks

from graphsvc.audit import proof, reads

VIEWERS = 3  # of a story
IDS = 24


def main(count: int, first: int) -> int:
    begun, compared, leaks = time.monotonic(), Counter(), []
    with closing(Forks()) as forks:
        for seed in range(first, first + count):
            found = list(leaked(seed, forks, compared))
            for one in found:
                print(f"story {seed}: {one}", flush=True)
            leaks += found
    ways = [way.name for way in transports.WAYS]
    print(f"{'':32}" + "".join(f"{name:>16}" for name in ways))
    for viewer in stories.VIEWERS:
        print(f"{viewer:32}" + "".join(f"{compared[viewer, name]:16}" for name in ways))
    fields = {field for _, _, field in (key for key in compared if len(key) == 3)}
    missing = {name for _, name in reads.fields()} - fields
    print(f"{count} stories, {len(fields)} fields, {len(leaks)} leaks, {time.monotonic() - begun:.0f} s")
    if missing:
        print(f"not compared: {', '.join(sorted(missing))}")
    return 1 if leaks or missing else 0


def leaked(seed, forks, compared):
    """Compare the answers of a story, and yield what leaks."""
    steps = stories.tell(seed)
    secrets = stories.secrets(steps)
    with tempfile.TemporaryDirectory() as folder, stories.worlds(steps, Path(folder)) as worlds:
        if worlds[0].rows != worlds[1].rows:
            yield "what is stored depends on what is isolated"
            return
        with transports.standing(worlds, Path(folder), forks) as (told, blank):
            names = list(stories.VIEWERS)
            for number in range(VIEWERS):
                name = names[(seed + number) % len(names)]
                asker, chance, pool = stories.VIEWERS[name], stories.dice(seed), stories.pool(told)
                pool = pool.some(tuple(chance.sample(pool.ids, min(len(pool.ids), IDS))))
                calls = [one for one in reads.calls(pool, chance) if proof.applies(one, asker, mirrored=True)]
                for way in transports.WAYS:
                    # In this process there is no mirror: the service has it.
                    here = told.mirror is not None or way in transports.SERVED
                    asked = [one for one in calls if here or one.field != "insight"]
                    with way.open(told, asker) as one, way.open(blank, asker) as other:
                        for call, leak, _ in proof.compare(asked, way, name, one, other, secrets):
                            compared[name, way.name] += 1
                            compared[name, way.name, call.field] += 1
                            if leak:
                                yield f"{leak} {dict(call.variables)}"


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
