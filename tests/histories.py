"""Random conversations that draw edges of every kind, and what lineage is by the tables alone: an oracle on networkx.

The oracle reads whole tables and decides in plain Python what a viewer sees and how things stood.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import networkx

CAUSES = {"produces", "precedes", "next_step"}
PATHS = [f"docs/{name}.md" for name in ("plan", "menu", "取餐", "notes", "hours")]


def tell(talk, seed: int, steps: int = 60, sessions: int = 3) -> None:  # noqa: C901 # one line for each kind of step
    """Tell a random history. Each one is the same for the same seed."""
    chosen = random.Random(seed)  # noqa: S311 # no secret
    said: list[str] = []
    goals: list[str] = []
    decisions: list[str] = []
    written: dict[str, str] = {}
    drawn: list[dict] = []

    def some(pool: list[str], most: int) -> list[str]:
        return chosen.sample(pool, min(len(pool), chosen.randint(0, most)))

    def asset() -> dict:
        path = chosen.choice(list(written))
        return {"type": "asset", "of": written[path]}

    def write() -> None:
        path = chosen.choice(PATHS)
        linked = "\n".join(chosen.sample(PATHS, chosen.randint(0, 3)))
        talk.wrote(path, f"# {path}\n\n{linked}\n{talk.told}\n")
        written[path] = talk.db.execute(
            "SELECT origin FROM events WHERE kind = 'asset' ORDER BY id DESC LIMIT 1"
        ).fetchone()[0]

    def edge(action: str) -> None:
        if action == "retract" and drawn:
            talk.event("edge", "", action="retract", **drawn.pop(chosen.randrange(len(drawn))))
            return
        ends = {
            "evidence": (chosen.choice(decisions), chosen.choice(said)) if decisions and said else None,
            "precedes": tuple(chosen.sample(decisions, 2)) if len(decisions) > 1 else None,
            "next_step": None,
        }
        kind = chosen.choice(["evidence", "precedes", "precedes"])
        if not ends[kind]:
            return
        source, target = ends[kind]
        about = {
            "type": kind,
            "source": {"type": "decision", "of": source},
            "target": {"type": "event" if kind == "evidence" else "decision", "of": target},
        }
        drawn.append(about)
        talk.event("edge", "", action="add", **about)

    for _ in range(steps):
        step = chosen.random()
        if step < 0.08:
            talk.session(f"s{chosen.randint(1, sessions)}")
        elif step < 0.22:
            said.append(talk.user(f"see {chosen.choice(PATHS)}: number {talk.told}"))
        elif step < 0.40:
            write()
        elif step < 0.48:
            talk.read(chosen.choice(PATHS))
        elif step < 0.62:
            named = chosen.choice([*PATHS, "nothing"])
            decisions.append(talk.decided(f"{named} holds {talk.told}", evidence=some(said, 3)))
        elif step < 0.68:
            goals.append(talk.event("goal", f"goal {talk.told}", action="record"))
        elif step < 0.74:
            basis = [*goals, *decisions, *written.values()]
            if basis:
                talk.event("todo", f"todo {talk.told}", action="record", basis=chosen.choice(basis))
        elif step < 0.78 and decisions:
            decisions.append(talk.superseded(chosen.choice(decisions), f"better {talk.told}"))
        elif step < 0.81:
            talk.compacted(f"so far {talk.told}", replaces=some(said, 4))
        elif step < 0.93:
            edge("add")
        elif step < 0.96:
            edge("retract")
        elif step < 0.98:
            talk.isolated(chosen.random() < 0.5)
        elif said:
            talk.event("publish", "", of=some(said, 3))


@dataclass(frozen=True)
class Drawn:
    """An edge at a moment, by the ids that are printed."""

    type: str
    source: str
    target: str
    begin: int


class Oracle:
    """What one viewer sees of the graph at one moment: `position`, `at`, or now."""

    def __init__(self, db, viewer: str | None = None, position: int | None = None, at: str | None = None) -> None:
        read = lambda sql: [dict(row) for row in db.execute(sql).fetchall()]  # noqa: E731
        self.events = {row["id"]: row for row in read("SELECT id, session, at FROM events")}
        self.sessions = {row["id"]: row["host_id"] for row in read("SELECT * FROM sessions")}
        self.records = {row["id"]: row for row in read("SELECT * FROM records")}
        self.hidden = {row["event"] for row in read("SELECT * FROM hidden")}
        self.members = {(row["session"], row["event"]) for row in read("SELECT * FROM membership")}
        self.versions = read("SELECT event, asset, at FROM asset_versions")
        self.viewer = next((number for number, name in self.sessions.items() if name == viewer), None)
        self.position, self.at = position, at
        self.hiding: set[str] = set()
        self.edges: list[Drawn] = []
        rows = read("SELECT * FROM lineage_edges")
        if position is not None or at is not None:
            rows += read("SELECT * FROM past_edges")
        newest: dict[tuple, Drawn] = {}
        for row in rows:
            for one in self._drawn(row):
                key = one.type, one.source, one.target
                newest[key] = max(newest.get(key, one), one, key=lambda edge: edge.begin)
        self.edges = list(newest.values())

    def sees(self, event: int) -> bool:
        own = self.viewer is not None and (
            self.events[event]["session"] == self.viewer or (self.viewer, event) in self.members
        )
        return event not in self.hidden or own

    def name(self, kind: str, number: int) -> str | None:
        """Return the id of a node, None when the viewer may not see it at the moment."""
        if kind == "session":
            return f"session-{self.sessions[number]}"
        if kind == "asset":
            seen = [one for one in self.versions if one["asset"] == number and self.sees(one["event"])]
            known = any(self._within(one["event"], one["at"]) for one in seen)
            return f"asset-{min(one['event'] for one in seen)}" if known else None
        return f"{kind}-{number}" if self.sees(number) else None

    def was_there(self, kind: str, number: int) -> bool:
        if kind == "session":
            return any(self._within(row["id"], row["at"]) for row in self.events.values() if row["session"] == number)
        if kind == "asset":
            return any(self._within(one["event"], one["at"]) for one in self.versions if one["asset"] == number)
        return self._within(number, self.events[number]["at"])

    def _within(self, event: int, at: str) -> bool:
        return (self.position is None or event <= self.position) and (self.at is None or at <= self.at)

    def _drawn(self, row: dict) -> Iterator[Drawn]:
        # An end that the viewer may not see is none.
        ended = row["end_event"] is not None and self.sees(row["end_event"])
        if self.position is None and self.at is None and ended:
            return
        if self.position is not None and not (
            row["begin_event"] <= self.position and (not ended or row["end_event"] > self.position)
        ):
            return
        if self.at is not None and not (row["begin_at"] <= self.at and (not ended or row["end_at"] > self.at)):
            return
        if not self.sees(row["begin_event"]):
            return
        ends = [(row["src_type"], row["src"]), (row["dst_type"], row["dst"])]
        if any(kind not in {"session", "asset", "event"} and number not in self.records for kind, number in ends):
            return
        names = [self.name(*end) for end in ends]
        there = [self.was_there(*end) for end in ends]
        for own, other in ((0, 1), (1, 0)):
            if names[own] and not names[other] and all(there):
                self.hiding.add(names[own])
        if all(names) and all(there):
            yield Drawn(row["type"], names[0], names[1], row["begin_event"])

    def graph(self, edges: tuple[str, ...] = (), nodes: tuple[str, ...] = (), root: str = "") -> networkx.MultiDiGraph:
        """Return the edges from cause to result, of these types, between nodes of these types (and the root)."""
        graph = networkx.MultiDiGraph()
        graph.add_node(root)
        for one in self.edges:
            ends = (one.source, one.target) if one.type in CAUSES else (one.target, one.source)
            of_types = all(end == root or not nodes or end.partition("-")[0] in nodes for end in ends)
            if of_types and (not edges or one.type in edges):
                graph.add_edge(*ends, edge=one)
        return graph


def reach(graph: networkx.MultiDiGraph, root: str, direction: str, depth: int) -> dict[str, int]:
    """Return the distance of every node that a walk reaches."""
    ways = {"downstream": graph, "upstream": graph.reverse(copy=False), "both": graph.to_undirected(as_view=True)}
    return networkx.single_source_shortest_path_length(ways[direction], root, cutoff=depth)
