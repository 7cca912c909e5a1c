"""Lineage answers made by hand and at random, with labels that try to leave the format they are written in."""

from __future__ import annotations

import random
import unicodedata

from graphsvc.lineage.answer import Freshness, Lineage, Link, Reason, Truncation, Vertex
from graphsvc.model import EDGES, Direction, EdgeType, NodeType

AT = "2026-11-30T09:26:36.611000Z"
STATUSES = {
    NodeType.GOAL: ("active", "completed"),
    NodeType.DECISION: ("proposed", "active", "superseded", "revoked"),
    NodeType.CANDIDATE: ("pending", "promoted"),
    NodeType.TODO: ("pending", "done"),
    NodeType.FEEDBACK: ("active", "revoked"),
}
STEERING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
HOSTILE = (
    '"', "'", "`", "\\", '\\"', "\\n", "\\N", "|", "[", "]", "(", ")", "{", "}", "<", ">", "&", "&amp;",
    "&#60;", "#", ";", ":", "%", "%%", "]]>", "<![CDATA[", "</script>", "<script>alert(1)</script>", "<br/>",
    "-->", "--", "---", "/*", "*/", "//", "#quot;", "#35;", "ﬂ°°35¶ß", "¶ß", "style x:y#z;", "classDef a:#b;",
    "%%{init: {}}%%", "end", "subgraph", "graph", "click", "digraph", "=1+1", "+1", "-1", "@SUM(A1)", "\t=1",
    "＝1", "1. one", "- one", "**bold**", "_x_", "$$x^2$$", "`code`", "https://example.com/a_b", "\n", "\r\n",
    "\r", "\t", "\x00", "\x07", "\x1b[31m", "\x7f", "\x85", "\u2028", "\u200f", "\u202e", "\u2066", "\ufeff",
    "\ufffe", "\ud800", "中文，标签", "订单。", "🙂", "👩‍👩‍👧", "שלום", "مرحبا", "é", "a\u0301", " ", "  ",
    ",", ".", "docs/ordering.md", "null", "true",
)  # fmt: skip


def label(dice: random.Random) -> str:
    """Return at most 120 characters, most of them hostile."""
    return "".join(dice.choice(HOSTILE) for _ in range(dice.randrange(8)))[:120]


def vertex(number: int, kind: NodeType, text: str, *, named: bool = False, **more: object) -> Vertex:
    """Return a node; a `named` session has the text in its id, as a host may have it."""
    name = f"session-{text}-{number}" if named and kind is NodeType.SESSION else f"{kind}-{number}"
    about = {
        "status": STATUSES.get(kind, (None,))[0], "at": AT, "depth": 0, "via": None, "upstream_total": 0,
        "downstream_total": 0, "hidden": False, "on_cycle": False, **more,
    }  # fmt: skip
    return Vertex(id=name, type=kind, label=text, **about)


def link(kind: EdgeType, source: Vertex, target: Vertex, **more: object) -> Link:
    about = {"rule": "writes", "confidence": "stated", "begin_event": 5, "begin_at": AT, "end_event": None, **more}
    return Link(type=kind, source=source.id, target=target.id, **{"end_at": about["end_event"] and AT, **about})


def lineage(nodes: list[Vertex], edges: list[Link] = (), **more: object) -> Lineage:
    about = {
        "direction": Direction.BOTH, "cycles": (), "truncation": Truncation(),
        "freshness": Freshness(engine="sqlite", ledger=70, graph=68, elapsed_ms=1.5), **more,
    }  # fmt: skip
    return Lineage(root=nodes[0].id, nodes=tuple(nodes), edges=tuple(edges), **about)


def random_lineage(seed: int) -> Lineage:
    """Return one of up to 13 nodes and 24 edges, also several between the same two; a third of them is truncated."""
    dice = random.Random(seed)  # noqa: S311 # no secret
    nodes = []
    for number in range(1, dice.randrange(2, 15)):
        kind = dice.choice(list(NodeType))
        status = dice.choice(STATUSES.get(kind, (None,)))
        via = dice.choice(nodes).id if nodes else None
        counts = {
            "upstream_total": dice.randrange(9),
            "downstream_total": dice.randrange(9),
            "depth": dice.randrange(4),
        }
        flags = {"hidden": dice.random() < 0.3, "on_cycle": dice.random() < 0.3, "named": dice.random() < 0.7}
        nodes.append(vertex(number, kind, label(dice), status=status, via=via, **counts, **flags))
    fits = [
        (kind, one, other)
        for kind, ends in EDGES.items()
        for one in nodes
        for other in nodes
        if one is not other and (one.type, other.type) in ends
    ]
    edges = []
    for number in range(min(24, 2 * len(fits))):
        kind, one, other = dice.choice(fits)
        ended = dice.random() < 0.4
        edges.append(
            link(
                kind, one, other, rule=dice.choice(["writes", "names", "written by"]), begin_event=number + 1,
                confidence=dice.choice(["stated", "inferred"]), end_event=number + 30 if ended else None,
            )
        )  # fmt: skip
    reasons = tuple(dice.sample(list(Reason), dice.randrange(1, 3))) if seed % 3 == 0 else ()
    cut = Truncation(
        reasons=reasons, depth=3, seen=len(nodes) + 5, frontier=(nodes[-1].id,), resume="r.1" if reasons else None
    )
    return lineage(nodes, edges, truncation=cut, direction=dice.choice(list(Direction)))


def seen(value: object) -> object:
    """Return what a format for people holds of a text: what nobody sees stands there as U+FFFD."""
    if not isinstance(value, str):
        return value

    def unseen(one: str) -> bool:
        return one not in "\n\t" and (
            unicodedata.category(one) in {"Cc", "Cs", "Zl", "Zp"}
            or unicodedata.bidirectional(one) in STEERING
            or one in "\u061c\u200e\u200f\ufeff\ufffe"
        )

    text = value.replace("\r\n", "\n").replace("\r", "\n")
    return "".join("\N{REPLACEMENT CHARACTER}" if unseen(one) else one for one in text)


def in_mermaid(told: Lineage) -> tuple[list, list]:
    """Return the lines of each node, and of each edge its ends, whether it is dotted, and its lines."""

    def flat(text: str) -> str:
        return str(seen(text)).replace("\n", " ").replace("\t", " ")

    nodes = [[flat(one.id), flat(one.label), one.type + (f" {one.status}" if one.status else "")] for one in told.nodes]
    edges = []
    for one in told.edges:
        about = [one.type, f"{one.rule} {one.confidence}", f"since {one.begin_at} event-{one.begin_event}"]
        about += [f"until {one.end_at} event-{one.end_event}"] if one.end_event else []
        edges.append((flat(one.source), one.end_event is not None, about, flat(one.target)))
    return nodes, edges
