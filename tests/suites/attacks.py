"""What attacks cost: how soon each is refused, and what another client and /health notice of it.

python attacks.py URL TOKEN prints a table, and ends with 1 when something takes longer than promised.
"""

from __future__ import annotations

import json
import multiprocessing
import random
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import attacks

REFUSED_MS = 200
TIMES = 3  # what the second client's p95 during the attacks may be of its quiet one
HEALTH_MS = 100
HEAVY = 50
MOST_BYTES = 65_536
QUIET_S = 3
ROUNDS = 3
ORDINARY = attacks.body(
    "{ sessions(first: 20) { edges { node { id title events(first: 5) { edges { node { kind ts } } } } } } }"
)
DEEP = attacks.body("""{
  search(query: "the harbour opens at nine 付款", limit: 50, project: "all") { ... on SearchResult { results { id } } }
  nav(verb: grep, query: "nine|开门", limit: 50, project: "all") { ... on NavResult { items { id } } }
  events(first: 100) { edges { node { id body(length: 9000) { text } lineage(first: 3) { edges { cursor } } } } }
  aggregate(measure: bytes, by: [day, kind, session]) { total }
}""")
WORDS = [
    "the",
    "harbour",
    "opens",
    "at",
    "nine",
    "and",
    "the",
    "kiosk",
    "sells",
    "tea,",
    "付款之后才有取餐码",
    "on",
    "weekdays",
    "counter",
    "receipt",
    "order",
]
EVENTS = 4_000


class Client:
    """A connection that stays open, as an asker of its own."""

    def __init__(self, url: str, token: str, viewer: str | None = None) -> None:
        parts = urlsplit(url)
        self.connection = HTTPConnection(parts.hostname, parts.port, timeout=60)
        self.headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        if viewer:
            self.headers["Graphsvc-Viewer"] = viewer

    def post(self, body: bytes) -> tuple[float, int, bytes]:
        begun = time.perf_counter()
        self.connection.request("POST", "/graphql", body, self.headers)
        answer = self.connection.getresponse()
        read = answer.read()
        return 1000 * (time.perf_counter() - begun), answer.status, read

    def health(self) -> float:
        begun = time.perf_counter()
        self.connection.request("GET", "/health")
        assert self.connection.getresponse().read()
        return 1000 * (time.perf_counter() - begun)


def fill(client: Client) -> None:
    """Store enough that a heavy query has something to do."""
    client.headers["Graphsvc-Capture"] = "1"
    chosen = random.Random(7)  # noqa: S311 # what is said is no secret
    document = "mutation ($events: [EventInput!]!) { capture(events: $events) { accepted } }"
    for start in range(0, EVENTS, 1_000):
        events = [
            {
                "session_id": f"fill-{number % 7}",
                "kind": "assistant_message",
                "origin": f"fill-{number}",
                "body": " ".join(chosen.choices(WORDS, k=300)),
                "project": "/srv/fill",
            }
            for number in range(start, start + 1_000)
        ]
        _, _, read = client.post(attacks.body(document, {"events": events}))
        assert json.loads(read)["data"]["capture"]["accepted"] == 1_000, read[:300]
    while True:
        stats = json.loads(client.post(attacks.body("{ stats { indexed position } }"))[2])["data"]["stats"]
        if stats["indexed"] == stats["position"]:
            return
        time.sleep(0.1)


def p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]


def second_client(url: str, token: str, pipe, ask: str) -> None:
    """Ask an ordinary query, or /health, or nobody, again and again until told to stop; send how long each took."""
    client = Client(url, token, "harbor-cafe-2026-11-05")
    taken = []
    pipe.send("ready")
    while not pipe.poll():
        if ask == "nobody":
            begun = time.perf_counter()
            time.sleep(0.001)
            sum(range(20_000))  # about as much work as asking is
            taken.append(1000 * (time.perf_counter() - begun))
        elif ask == "health":
            taken.append(client.health())
        else:
            ms, status, read = client.post(ORDINARY)
            assert status == 200, read
            assert b'"errors"' not in read, read
            taken.append(ms)
        time.sleep(0.01)
    pipe.send(taken)


class Beside:
    """A second client, in a process of its own, while a block runs."""

    def __init__(self, url: str, token: str, ask: str = "query") -> None:
        self.pipe, other = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=second_client, args=(url, token, other, ask))
        self.taken: list[float] = []

    def __enter__(self) -> Beside:
        self.process.start()
        assert self.pipe.recv() == "ready"
        return self

    def __exit__(self, *_: object) -> None:
        self.pipe.send("stop")
        self.taken = self.pipe.recv()
        self.process.join()


def fresh(body: bytes, number: int) -> bytes:
    """Return the same attack as a document that was never seen, so that no cache answers it."""
    try:
        asked = json.loads(body)
        asked["query"] += f"#{number}"
    except (ValueError, RecursionError, TypeError, KeyError):
        return body
    return json.dumps(asked).encode()


def attack(client: Client, took: dict[str, list[float]], number: int) -> list[str]:
    """Send every attack once; note how long each took, and return what was not refused."""
    wrong = []
    for name, body in attacks.BODIES.items():
        ms, status, read = client.post(fresh(body, number))
        took.setdefault(name, []).append(ms)
        answer = json.loads(read)
        if "data" in answer or not answer["errors"] or status >= 500 or len(read) > MOST_BYTES:
            wrong.append(f"{name}: not refused: {status} {read[:200]!r}")
        if number == 0:
            code = answer["errors"][0].get("extensions", {}).get("code", "")
            print(f"{name:44} {ms:7.1f} ms  {status}  {code}")
    return wrong


def heavy(url: str, token: str, number: int) -> tuple[float, int]:
    """Ask what takes long, as one of three askers: so the pool is full, and not only one asker's part of it."""
    ms, status, read = Client(url, token, f"fill-{number % 3}").post(fresh(DEEP, number))
    # No place, or no time: what is asked here is as much as the service is told to stand.
    assert status in {503, 504} or "errors" not in json.loads(read), read[:500]
    return ms, status


def main() -> int:
    url, token = sys.argv[1:]
    fill(Client(url, token))
    failed: list[str] = []
    took: dict[str, list[float]] = {}
    ratios, worst = [], []
    # Three rounds, and the best of each figure: who else uses this machine is not what is measured.
    for number in range(ROUNDS):
        with Beside(url, token) as quiet:
            time.sleep(QUIET_S)
        with Beside(url, token) as attacked:
            failed += attack(Client(url, token, "attacker"), took, number)
        before, during = p95(quiet.taken), p95(attacked.taken)
        ratios.append(during / before)
        print(f"a second client's p95: quiet {before:.1f} ms, attacked {during:.1f} ms, {during / before:.1f} times")

        with (
            Beside(url, token, "health") as health,
            Beside(url, token, "nobody") as machine,
            ThreadPoolExecutor(HEAVY) as threads,
        ):
            answered = list(threads.map(partial(heavy, url, token), range(HEAVY * number, HEAVY * (number + 1))))
        # A process that asks nobody is late as well on a busy machine.
        late = max(machine.taken)
        worst.append(max(health.taken) - late)
        longest, statuses = max(answered)[0], sorted(status for _, status in answered)
        if len(health.taken) < 20 or longest < 500 or statuses.count(200) < HEAVY // 5:
            failed.append("the heavy queries were not heavy")
        away = len(statuses) - statuses.count(200)
        print(
            f"/health beside {HEAVY} heavy queries, which took up to {longest:.0f} ms ({away} sent away):"
            f" worst of {len(health.taken)} was {max(health.taken):.0f} ms, of which the machine {late:.0f} ms"
        )

    best = {name: min(ms) for name, ms in took.items()}
    failed += [f"{name}: refused after {ms:.0f} ms" for name, ms in best.items() if ms >= REFUSED_MS]
    if min(ratios) > TIMES:
        failed.append(f"the second client waited {min(ratios):.1f} times as long")
    if min(worst) >= HEALTH_MS:
        failed.append(f"/health took {min(worst):.0f} ms")
    print(f"{len(best)} attacks, each refused within {max(best.values()):.0f} ms")
    print("\n".join(f"FAILED {one}" for one in failed) or "all as promised")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
