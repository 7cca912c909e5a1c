"""What a mirror must hold, computed from the tables one by one, and what a file holds, read by Kuzu alone."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import kuzu
import ledgers

from graphsvc.clock import utc_text

TABLES = ("PRODUCES", "REFERENCES", "EVIDENCE", "PRECEDES", "NEXT_STEP")
NODE = ("id", "type", "number", "project", "session", "kind", "status", "path", "superseded_by", "at", "updated_at")
EDGE = ("rule", "confidence", "begin_event", "begin_at", "end_event", "end_at")


class Story(ledgers.Story):
    """A story in which people draw edges too, end them, and draw them again: a few, again and again."""

    def tell(self, steps):
        for what, session, choice in steps:
            if what in EDGES:
                self.edge(session, choice, EDGES[what])
            else:
                ledgers.DOES[what](self, session, choice)
        return self.told

    def edge(self, session: int, choice: int, action: str) -> None:
        made = [event.origin for event in self.told if event.kind == "decision"][:3]
        if len(made) == 3:
            source, target = ({"type": "decision", "of": made[(choice + n) % 3]} for n in range(2))
            moment = utc_text(ledgers.START + timedelta(days=1, seconds=len(self.told)))
            self.add(session, "edge", "", action=action, type="precedes", source=source, target=target, ts=moment)


EDGES = {"drawn": "add", "ended": "retract"}
USUAL = ("user", "wrote", "edited", "decided", "superseded", "goal", "completed", "todos", "compacted", "read")
ALL = (*ledgers.DOES, *USUAL * 3, *EDGES, *EDGES)


def steps(chance: random.Random, many: int, names=ALL) -> list[ledgers.Step]:
    """Make up what happens."""
    return [(chance.choice(names), chance.randint(0, 2), chance.randint(0, 50)) for _ in range(many)]


def expected(database: Path) -> tuple[dict[str, tuple], Counter]:
    """Return the nodes by their ids and the edges, as a reader of the tables finds them."""
    tables = Tables(database)
    nodes = dict([*tables.record_nodes(), *tables.asset_nodes(), *tables.session_nodes()])
    edges = Counter()
    for edge, ends in tables.edges():
        edges[edge] += 1
        nodes.update(tables.event_node(number) for kind, number in ends if kind == "event")
    return nodes, edges


class Tables:
    """The tables of a store, read whole."""

    def __init__(self, database: Path) -> None:
        with closing(sqlite3.connect(database)) as db:
            db.row_factory = sqlite3.Row

            def read(query: str) -> list[dict]:
                return [dict(row) for row in db.execute(query)]

            self.hidden = {row["event"] for row in read("SELECT event FROM hidden")}
            self.projects = {row["id"]: row["key"] for row in read("SELECT * FROM projects")}
            self.sessions = {row["id"]: row for row in read("SELECT * FROM sessions")}
            self.events = {row["id"]: row for row in read("SELECT id, project, session, kind, at FROM events")}
            self.records = {row["id"]: row for row in read("SELECT * FROM records") if row["id"] not in self.hidden}
            self.paths = {row["id"]: row["path"] for row in read("SELECT * FROM knowledge_assets")}
            self.versions: dict[int, list[dict]] = {}
            for row in read("SELECT * FROM asset_versions ORDER BY event"):
                if row["event"] not in self.hidden:
                    self.versions.setdefault(row["asset"], []).append(row)
            self.states = read("SELECT * FROM session_state")
            self.drawn = read("SELECT * FROM lineage_edges") + read("SELECT * FROM past_edges")

    def about(self, row: dict, *told: object) -> tuple:
        return self.projects[row["project"]], self.sessions[row["session"]]["host_id"], *told

    def name(self, kind: str, number: int) -> str | None:
        """Return the id of a node; None when it is not shared."""
        if kind == "session":
            return f"session-{self.sessions[number]['host_id']}"
        if kind == "asset":
            return f"asset-{self.versions[number][0]['event']}" if number in self.versions else None
        if kind == "event":
            return None if number in self.hidden else f"event-{number}"
        return f"{self.records[number]['type']}-{number}" if number in self.records else None

    def record_nodes(self):
        for number, row in self.records.items():
            changed = row["at"] if row["changed_event"] in self.hidden else self.events[row["changed_event"]]["at"]
            successor = row["superseded_by"] and self.name("decision", row["superseded_by"])
            told = self.about(row, row["kind"], row["status"], None, successor, row["at"], changed)
            yield self.name(row["type"], number), (row["type"], number, *told)

    def asset_nodes(self):
        for key, known in self.versions.items():
            first, newest = known[0], max(known, key=lambda row: (row["at"], row["event"]))
            told = self.about(first, first["kind"], None, self.paths[key], None, first["at"], newest["at"])
            yield self.name("asset", key), ("asset", first["event"], *told)

    def session_nodes(self):
        for row in self.states:
            own = [event["at"] for event in self.events.values() if event["session"] == row["session"]]
            session = {**self.sessions[row["session"]], "session": row["session"]}
            times = row["started_at"] or min(own), row["last_at"] or max(own)
            told = self.about(session, None, None, None, None, *times)
            yield self.name("session", row["session"]), ("session", row["session"], *told)

    def event_node(self, number: int) -> tuple[str, tuple]:
        event = self.events[number]
        told = self.about(event, event["kind"], None, None, None, event["at"], event["at"])
        return f"event-{number}", ("event", number, *told)

    def edges(self):
        for row in self.drawn:
            ends = [(row["src_type"], row["src"]), (row["dst_type"], row["dst"])]
            source, target = (self.name(*end) for end in ends)
            if row["begin_event"] in self.hidden or source is None or target is None:
                continue
            ended = {} if row["end_event"] not in self.hidden else {"end_event": None, "end_at": None}
            yield (row["type"].upper(), source, target, *({**row, **ended}[column] for column in EDGE)), ends


def held(path: Path) -> tuple[dict[str, tuple], Counter, dict[str, str | None]]:
    """Return the nodes by their ids, the edges, and the titles that the file at this path holds."""
    with (
        closing(kuzu.Database(path, read_only=True, buffer_pool_size=64 << 20, max_db_size=1 << 30)) as database,
        closing(kuzu.Connection(database, num_threads=1)) as connection,
    ):

        def read(query: str) -> list[list]:
            with closing(connection.execute(query)) as result:
                return result.get_all()

        rows = read(f"MATCH (n:Node) RETURN {', '.join(f'n.{column}' for column in NODE)}")
        titles = dict(read("MATCH (n:Node) RETURN n.id, n.title"))
        about = ", ".join(f"e.{column}" for column in EDGE)
        edges = Counter(
            (kind, *row)
            for kind in TABLES
            for row in read(f"MATCH (a:Node)-[e:{kind}]->(b:Node) RETURN a.id, b.id, {about}")
        )
    assert len({row[0] for row in rows}) == len(rows)
    return {row[0]: tuple(row[1:]) for row in rows}, edges, titles


def assert_mirrors(path: Path, database: Path) -> None:
    """Assert that a closed graph file holds what the tables say, no more and no less."""
    nodes, edges = expected(database)
    found, drawn, _ = held(path)
    assert found == nodes
    assert drawn == edges
