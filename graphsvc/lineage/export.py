"""A lineage answer as text for other programs.

Each format holds the nodes and edges with their ids, types, labels, statuses, rules, beginnings and ends, and says so
when the answer is not all there is. How long the answer took stays out: the same graph is the same text. JSON and
OpenLineage keep labels to the character; the others replace what nobody sees but a terminal or an editor obeys, such as
controls and marks of direction, by U+FFFD.
"""

from __future__ import annotations

import csv
import importlib
import io
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from enum import StrEnum
from typing import Final

import strawberry

from graphsvc.errors import InvalidInput
from graphsvc.lineage import openlineage
from graphsvc.lineage.answer import Lineage, Link, Vertex
from graphsvc.lineage.escape import json_line, plain


@strawberry.enum(graphql_name_from="value", description="What a lineage can be written as.")
class ExportFormat(StrEnum):
    MERMAID = "mermaid"
    DOT = "dot"
    GRAPHML = "graphml"
    OPENLINEAGE = "openlineage"
    CSV = "csv"
    JSON = "json"


def write(lineage: Lineage, format: ExportFormat) -> str:  # noqa: A002 # what everybody calls it
    """Write an answer in a format; the same answer gives the same text.

    Raise InvalidInput when it goes on with an earlier answer, whose nodes are not in it.
    """
    here = {node.id for node in lineage.nodes}
    if any(end not in here for edge in lineage.edges for end in (edge.source, edge.target)):
        raise InvalidInput("export", "the answer goes on with an earlier one", "one answer, with a larger max_nodes")
    return _WRITERS[format](lineage)


def mermaid(lineage: Lineage) -> str:
    """Write a Mermaid flowchart. A node is its id, its label, its type and status, a line each; ended edges are dotted.

    Mermaid draws 500 edges and 50,000 characters unless its page allows more (`maxEdges`, `maxTextSize`): a comment
    says what this one needs. Times of nodes stay out, and line breaks in labels become spaces.
    """
    numbers = _numbers(lineage)
    nodes = [
        f"{numbers[node.id]}[{_mermaid_text(node.id, node.label, ' '.join(filter(None, (node.type, node.status))))}]"
        for node in lineage.nodes
    ]
    edges = [
        f"{numbers[edge.source]} {'-->' if edge.end_event is None else '-.->'}|{_mermaid_text(*_about(edge))}|"
        f" {numbers[edge.target]}"
        for edge in lineage.edges
    ]
    lines = ["flowchart LR", *(f"  {line}" for line in (*nodes, *edges))]
    if len(edges) >= _MERMAID_EDGES or sum(map(len, lines)) > _MERMAID_TEXT - 2_000:
        need = f"maxEdges {len(edges) + 1} and maxTextSize {sum(map(len, lines)) + 2_000}"
        lines.insert(0, f"%% to be drawn, this needs {need} in the configuration of the page")
    lines.insert(0, f"%% {_mermaid_escaped(_heading(lineage))}")
    if lineage.truncation.truncated:
        lines.insert(0, f"---\ntitle: {_notice(lineage)}\n---")
    return "\n".join(lines) + "\n"


def dot(lineage: Lineage) -> str:
    """Write a DOT digraph. Nodes are numbered, their `id` is an attribute; ended edges are dashed."""
    numbers = _numbers(lineage)
    cut = lineage.truncation
    about = {"comment": _heading(lineage), "truncated": str(cut.truncated).lower()}
    title = {"truncated_by": " ".join(cut.reasons), "label": _notice(lineage)} if cut.truncated else {}
    lines = [f"graph [{_dot_attributes({**about, **title, 'rankdir': 'LR'})}];", 'node [shape="box"];']
    lines += [f"{numbers[node.id]} [{_dot_attributes(_values(node))}];" for node in lineage.nodes]
    for edge in lineage.edges:
        shown = {**_values(edge), "label": "\n".join(_about(edge))}
        if edge.end_event is not None:
            shown["style"] = "dashed"
        del shown["source"], shown["target"]
        lines.append(f"{numbers[edge.source]} -> {numbers[edge.target]} [{_dot_attributes(shown)}];")
    return "digraph lineage {\n" + "".join(f"  {line}\n" for line in lines) + "}\n"


def graphml(lineage: Lineage) -> str:
    """Write GraphML. Nodes are numbered, their `id` is an attribute; what is not known is left out."""
    networkx = importlib.import_module("networkx")  # it takes 0.2 s, and only this format needs it
    numbers = _numbers(lineage)
    cut = lineage.truncation
    graph = networkx.MultiDiGraph(
        root=plain(lineage.root),
        direction=str(lineage.direction),
        ledger=lineage.freshness.graph,
        truncated=cut.truncated,
        truncated_by=" ".join(cut.reasons),
        reached_at_least=cut.seen,
    )
    for node in lineage.nodes:
        graph.add_node(numbers[node.id], **_typed(node))
    for number, edge in enumerate(lineage.edges):
        about = _typed(edge)
        del about["source"], about["target"]
        graph.add_edge(numbers[edge.source], numbers[edge.target], key=f"e{number}", **about)
    return "\n".join(networkx.generate_graphml(graph)) + "\n"


def csv_table(lineage: Lineage) -> str:
    """Write one CSV table (RFC 4180): a row an edge, with what is known of both ends, and one a node without edges.

    `truncated` holds the reasons in each row. A spreadsheet would run a cell that begins with = + - @ or a tab, so an
    apostrophe is put before such a cell, and before one that begins with an apostrophe: taking one away gives the text.
    """
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\r\n")
    ends = [f"{end}_{name}" for end in ("source", "target") for name in _NODE if name != "id"]
    table.writerow([*_EDGE, *ends, "truncated"])
    nodes = {node.id: node for node in lineage.nodes}
    reasons = " ".join(lineage.truncation.reasons)
    for edge in lineage.edges:
        values = _values(edge)
        about = [*_end(nodes[edge.source]), *_end(nodes[edge.target])]
        table.writerow(map(_cell, [*(values.get(name, "") for name in _EDGE), *about, reasons]))
    drawn = {end for edge in lineage.edges for end in (edge.source, edge.target)}
    for node in lineage.nodes:
        if node.id not in drawn:
            own = [plain(node.id) if name == "source" else "" for name in _EDGE]
            table.writerow(map(_cell, [*own, *_end(node), *[""] * len(_end(node)), reasons]))
    return out.getvalue()


def json_document(lineage: Lineage) -> str:
    """Write the answer as it is, without how long it took."""
    about = asdict(lineage)
    del about["freshness"]["elapsed_ms"]
    return json_line(about) + "\n"


def openlineage_events(lineage: Lineage) -> str:
    """Write OpenLineage RunEvents, one JSON a line; the first tells the answer and whether it is all there is."""
    return "".join(f"{json_line(event)}\n" for event in openlineage.told(lineage))


_WRITERS: Final[Mapping[ExportFormat, Callable[[Lineage], str]]] = {
    ExportFormat.MERMAID: mermaid,
    ExportFormat.DOT: dot,
    ExportFormat.GRAPHML: graphml,
    ExportFormat.OPENLINEAGE: openlineage_events,
    ExportFormat.CSV: csv_table,
    ExportFormat.JSON: json_document,
}
_NODE: Final = tuple(item.name for item in fields(Vertex))
_EDGE: Final = tuple(item.name for item in fields(Link))
_MERMAID_EDGES: Final = 500
_MERMAID_TEXT: Final = 50_000
# What Mermaid's grammar, its Markdown, its entities or HTML could take for their own; ﬂ and ¶ are entities inside it.
_MERMAID_OWN: Final = re.compile(r"[\n\t]|(?<![^\W_])[-./_]|[-./_](?![^\W_])|[!-+:-@\[-^`{-~ﬂ¶]")
_RUNS_AS_FORMULA: Final = ("=", "+", "-", "@", "\t", "\n", "＝", "＋", "－", "＠", "'")


def _numbers(lineage: Lineage) -> dict[str, str]:
    """Return names that are words in every format: an id may hold whatever a host called its session."""
    return {node.id: f"n{number}" for number, node in enumerate(lineage.nodes)}


def _heading(lineage: Lineage) -> str:
    head = f"lineage of {lineage.root}, {lineage.direction}, at position {lineage.freshness.graph}"
    return f"{head}; {_notice(lineage)}" if lineage.truncation.truncated else head


def _notice(lineage: Lineage) -> str:
    cut = lineage.truncation
    return f"truncated ({', '.join(cut.reasons)}), at least {cut.seen} nodes were reached"


def _about(edge: Link) -> list[str]:
    """Return what is written at an edge, by lines."""
    since = f"since {edge.begin_at} event-{edge.begin_event}"
    until = [] if edge.end_event is None else [f"until {edge.end_at} event-{edge.end_event}"]
    return [edge.type, f"{edge.rule} {edge.confidence}", since, *until]


def _typed(what: Vertex | Link) -> dict[str, str | int | bool]:
    """Return what is known of a node or an edge; texts are plain."""
    known = {name: value for name, value in asdict(what).items() if value is not None}
    return {name: plain(str(value)) if isinstance(value, str) else value for name, value in known.items()}


def _values(what: Vertex | Link) -> dict[str, str]:
    """Return the same as texts."""
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in _typed(what).items()}


def _mermaid_text(*lines: str) -> str:
    return '"' + "<br/>".join(map(_mermaid_escaped, lines)) + '"'


def _mermaid_escaped(text: str) -> str:
    return _MERMAID_OWN.sub(lambda found: " " if found[0].isspace() else f"#{ord(found[0])};", plain(text))


def _dot_attributes(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={_dot_text(value)}" for name, value in values.items())


def _dot_text(text: str) -> str:
    """Quote a text: a backslash and an ampersand would begin what Graphviz reads as something else."""
    quoted = plain(text).replace("\\", "\\\\").replace("&", "&amp;").replace('"', '\\"')
    return '"' + quoted.replace("\n", "\\n") + '"'


def _end(node: Vertex) -> list[str]:
    values = _values(node)
    return [values.get(name, "") for name in _NODE if name != "id"]


def _cell(text: str) -> str:
    return f"'{text}" if text.startswith(_RUNS_AS_FORMULA) else text
