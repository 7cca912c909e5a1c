"""Kuzu, and nothing else knows it: one file, one Database object, one connection.

What it cannot be trusted with, all of it seen: two Database objects of one file in a process ruin the file; a refused
BEGIN makes the next statement end the process; COPY together with a position is torn by a kill; a damaged file can take
all memory when it is opened. So COPY goes into a new file only, whoever catches Failed closes the graph, and all of it
happens in a process of its own whose memory is limited.
"""

from __future__ import annotations

import importlib.util  # kuzu uses it and does not import it
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # its own takes a gigabyte of address space

import kuzu
import pyarrow as pa  # type: ignore[import-untyped]  # it ships none

from graphsvc import resources
from graphsvc.model import EdgeType
from graphsvc.store.edges.intervals import Interval
from graphsvc.store.edges.shared import Changes, Node, Tally

POOL: Final = 256 << 20  # bytes of pages in memory
FILLING: Final = 512 << 20  # while a new file is filled: a COPY of so many rows needs it
_TOGETHER: Final = 1_000_000  # rows of a table that are copied at once; half as many each take twice as long in all
LARGEST: Final = 2 << 30  # bytes of a database; as much address space is taken
LOG: Final = (
    512 << 10
)  # bytes that are written before they go into the file; till then each write keeps pages in memory
THREADS: Final = 2
LONGEST_PATH: Final = 10_000  # edges; Kuzu itself stops at 30
_WRITE_MS: Final = 600_000
DDL: Final = "schema/kuzu/graph.cypher"
_NODE: Final = Node._fields
_ABOUT_EDGE: Final = [name for name in Interval._fields if name not in {"type", "source", "target"}]
_NUMBERS: Final = frozenset({"number", "begin_event", "end_event"})
_LOCKED: Final = "Could not set lock on file"
_REFUSED: Final = re.compile(r"(Binder|Parser|Catalog|Conversion|Overflow|Function) exception|Interrupted")

assert importlib.util  # noqa: S101 # imported for kuzu


At = Callable[[str], None]  # told the name of each step when it is done


def nowhere(step: str) -> None:
    """Take no notice."""
    del step


class Failed(Exception):  # carries what Kuzu said
    """Kuzu refused something, or broke: the graph must be closed, its file may be damaged."""

    @property
    def kind(self) -> str:
        """What kind of failure it is, without what Kuzu says further: that may quote people."""
        return str(self).partition(":")[0][:80]


class Locked(Failed):
    """Another process has the file open."""


class Refused(Failed):
    """The question was at fault, or took too long; the file is none the worse for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    """What a mirror says of itself."""

    position: int  # of the ledger
    versions: str  # of the mirror's own schema, and of the rules that wrote the tables
    ledger: str  # which ledger it was read from


class Graph:
    """An open graph. There must be no other one of the same file in this process.

    The graph must be closed after Failed. Refused leaves it usable, on a new connection.
    """

    def __init__(self, path: Path, at: At = nowhere, pool: int = POOL) -> None:
        """Open a file, or begin one; raise Locked or Failed. `at` is told each step of what is written."""
        self._at = at
        self._prepared: dict[str, kuzu.PreparedStatement] = {}
        with _failing():
            self._database = kuzu.Database(
                path,
                buffer_pool_size=pool,
                max_db_size=LARGEST,
                max_num_threads=THREADS,
                checkpoint_threshold=LOG,
            )
        try:
            self._connect()
        except BaseException:
            self._database.close()
            raise

    def _connect(self) -> None:
        with _failing():
            self._connection = kuzu.Connection(self._database, num_threads=THREADS)
            self._connection.execute(f"CALL var_length_extend_max_depth={LONGEST_PATH}")

    def _disconnect(self) -> None:
        self._prepared.clear()
        with suppress(RuntimeError):
            self._connection.close()

    def close(self) -> None:
        """Let go of the file, and bring what was written into it. What Kuzu says about that no longer matters."""
        self._disconnect()
        with suppress(RuntimeError):
            self._database.close()

    def ask(
        self, text: str, parameters: Mapping[str, object], *, most: int, timeout_ms: int
    ) -> tuple[list[dict[str, Any]], bool]:
        """Return at most so many rows of a question, and whether there are more; nothing can be changed by it.

        Raise ValueError for parameters that are not those of the text: Kuzu takes a missing one for NULL.
        """
        named = set(re.findall(r"\$(\w+)", re.sub(r"//.*", "", text)))
        if named != parameters.keys():
            raise ValueError(f"the question takes {sorted(named)}, not {sorted(parameters)}")
        try:
            with _failing():
                return self._ask(text, parameters, most, timeout_ms)
        except Refused:
            self._disconnect()  # whatever it was in the middle of
            self._connect()
            raise

    def _ask(
        self, text: str, parameters: Mapping[str, object], most: int, timeout_ms: int
    ) -> tuple[list[dict[str, Any]], bool]:
        self._connection.set_query_timeout(timeout_ms)
        self._connection.execute("BEGIN TRANSACTION READ ONLY")
        result = self._connection.execute(text, dict(parameters))
        if isinstance(result, list):
            raise Refused("a question is one statement")
        names = result.get_column_names()
        rows: list[dict[str, Any]] = []
        while len(rows) < most and result.has_next():
            rows.append(dict(zip(names, result.get_next(), strict=True)))
        more = result.has_next()
        result.close()
        self._connection.execute("COMMIT")
        return rows, more

    def meta(self) -> Meta | None:
        """Return what the file says of itself."""
        found = self._rows("MATCH (m:Meta) RETURN m.position AS position, m.versions AS versions, m.ledger AS ledger")
        return Meta(**found[0]) if found else None

    def tallies(self) -> dict[str, Tally]:
        """Count what the file holds, as `shared.Everything.tallies` does. Every value of every row is read for it."""
        sizes = " + ".join(f"coalesce(size(n.{name}), 0)" for name in _NODE if name not in _NUMBERS)
        found = self._rows(
            "MATCH (n:Node) RETURN"
            " CASE WHEN n.status IS NULL THEN n.type ELSE concat(n.type, ' ', n.status) END AS type,"
            " count(*) AS rows, max(n.number) AS largest, sum(n.number) AS total,"
            f" 0 AS ended, sum({sizes}) AS size"
        )
        sizes = " + ".join(f"coalesce(size(e.{name}), 0)" for name in _ABOUT_EDGE if name not in _NUMBERS)
        found += self._rows(
            "MATCH (a:Node)-[e]->(b:Node) RETURN label(e) AS type, count(*) AS rows, max(e.begin_event) AS largest,"
            f" sum(e.begin_event) AS total, coalesce(sum(e.end_event), 0) AS ended, sum({sizes}) AS size"
        )
        return {row["type"]: Tally(row["rows"], row["largest"], int(row["total"]), int(row["ended"])) for row in found}

    def write(self, changes: Changes, meta: Meta) -> None:
        """Write what changed, and the position it leads to, in one transaction."""
        with _failing():
            self._connection.set_query_timeout(_WRITE_MS)
            self._connection.execute("BEGIN TRANSACTION")
            self._at("batch begun")
            if changes.nodes:
                self._connection.execute(_MERGE, {"rows": [node._asdict() for node in changes.nodes]})
            self._at("nodes written")
            for kind, source, target in changes.redrawn:
                self._connection.execute(self._statement(_DELETE[kind]), {"source": source, "target": target})
            self._at("edges removed")
            for one in changes.intervals:
                told = {name: value for name, value in one._asdict().items() if name != "type"}
                result = self._connection.execute(self._statement(_CREATE[one.type]), told)
                if isinstance(result, list) or not result.has_next():
                    raise Failed(f"an end of an edge is missing: of one {one.type}")
            self._at("edges written")
            self._connection.execute(_STAMP, asdict(meta))
            self._at("position written")
            self._connection.execute("COMMIT")
        self._at("batch committed")

    def load(self, intervals: Iterable[Sequence[Interval]], nodes: Iterable[Sequence[Node]]) -> Iterator[int]:
        """Fill a new file, page by page; yield how many rows each page had. Only a whole file is to be used.

        Edges are read before the nodes, held (about 150 bytes each), and copied behind them.
        """
        with _failing():
            self._connection.set_query_timeout(_WRITE_MS)
            self._connection.execute(resources.text(DDL))
        self._at("file begun")
        held: dict[str, list[pa.Table]] = {}
        for page in intervals:
            by_type: dict[EdgeType, list[Interval]] = {}
            for one in page:
                by_type.setdefault(one.type, []).append(one)
            for kind, edges in by_type.items():
                held.setdefault(kind.upper(), []).append(_table(Interval._fields, edges).drop_columns("type"))
            yield len(page)
        listed: list[pa.Table] = []
        for these in nodes:
            listed.append(_table(Node._fields, these))
            yield len(these)
        if listed:
            self._copy("Node", listed)
        self._at("nodes loaded")
        for table, rows in held.items():
            self._copy(table, rows)
        self._at("edges loaded")

    def stamp(self, meta: Meta) -> None:
        """Say what a file that was filled holds, and bring all of it into the file."""
        with _failing():
            self._connection.execute(_STAMP, asdict(meta))
            self._at("file stamped")
            self._connection.execute("CHECKPOINT")

    def _copy(self, table: str, held: Sequence[pa.Table]) -> None:
        rows = pa.concat_tables(held)
        with _failing():
            for start in range(0, len(rows), _TOGETHER):
                self._connection.execute(f"COPY {table} FROM $rows", {"rows": rows.slice(start, _TOGETHER)})

    def _rows(self, text: str) -> list[dict[str, Any]]:
        return self.ask(text, {}, most=1_000, timeout_ms=_WRITE_MS)[0]

    def _statement(self, text: str) -> kuzu.PreparedStatement:
        if text not in self._prepared:
            with warnings.catch_warnings():
                # Kuzu would rather have the text each time; to prepare it takes longer than to run it.
                warnings.simplefilter("ignore", DeprecationWarning)
                self._prepared[text] = self._connection.prepare(text)
        return self._prepared[text]


@contextmanager
def _failing() -> Iterator[None]:
    """Turn what Kuzu raises into Failed."""
    try:
        yield
    except (RuntimeError, IndexError, MemoryError, UnicodeDecodeError) as error:
        said = str(error)
        if _LOCKED in said:
            raise Locked(said) from error
        raise (Refused if _REFUSED.match(said) else Failed)(said or type(error).__name__) from error


def _table(names: Sequence[str], rows: Sequence[Node] | Sequence[Interval]) -> pa.Table:
    """Return rows as Kuzu copies them."""
    columns = zip(names, zip(*rows, strict=True), strict=True)
    return pa.table(
        {name: pa.array(values, pa.int64() if name in _NUMBERS else pa.string()) for name, values in columns}
    )


def _typed(name: str, value: str) -> str:
    """Kuzu guesses the type of a parameter by its value, and has none for NULL."""
    return f"{name}: CAST({value} AS {'INT64' if name in _NUMBERS else 'STRING'})"


_MERGE: Final = (
    "UNWIND $rows AS r MERGE (n:Node {id: r.id}) SET "
    + ", ".join(f"n.{_typed(name, f'r.{name}')}".replace(":", " =", 1) for name in _NODE if name != "id")
)  # fmt: skip
_PAIR: Final = "MATCH (a:Node {id: $source}), (b:Node {id: $target})"
_CREATE: Final = {
    kind: f"{_PAIR} CREATE (a)-[:{kind.upper()} {{{', '.join(_typed(name, f'${name}') for name in _ABOUT_EDGE)}}}]->(b)"
    " RETURN a.number"
    for kind in EdgeType
}
_DELETE: Final = {
    kind: f"MATCH (a:Node {{id: $source}})-[e:{kind.upper()}]->(b:Node {{id: $target}}) DELETE e" for kind in EdgeType
}
_STAMP: Final = "MERGE (m:Meta {id: 0}) SET m.position = $position, m.versions = $versions, m.ledger = $ledger"
