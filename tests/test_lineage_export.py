"""Exports of a lineage: each is read back by a library of its own, and holds the same nodes and edges."""

from __future__ import annotations

import csv
import html
import io
import itertools
import json
import re
from collections import Counter
from dataclasses import asdict, replace
from datetime import datetime
from uuid import UUID

import networkx
import pydot
import pytest
from lineages import AT, HOSTILE, in_mermaid, lineage, link, random_lineage, seen, vertex
from openlineage.client.serde import Serde
from runevents import built, check_facets

from graphsvc.lineage.answer import Freshness, Reason, Truncation
from graphsvc.lineage.export import ExportFormat, write
from graphsvc.model import EdgeType, NodeType

CASES = [random_lineage(seed) for seed in range(200)]
EACH = lineage([vertex(number, NodeType.ASSET, text) for number, text in enumerate(HOSTILE, 1)])


def known(what: object) -> dict[str, object]:
    return {name: seen(value) for name, value in asdict(what).items() if value is not None}


def texts(what: object) -> dict[str, str]:
    """Return the same as a format without types holds it."""
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in known(what).items()}


def bag(rows) -> Counter:
    return Counter(tuple(sorted(row.items())) for row in rows)


# GraphML


def read_graphml(text: str):
    graph = networkx.parse_graphml(text, force_multigraph=True)
    names = {number: about["id"] for number, about in graph.nodes.items()}
    edges = [{"source": names[one], "target": names[other], **about} for one, other, about in graph.edges(data=True)]
    return list(graph.nodes.values()), edges, graph.graph


def test_graphml_is_read_back_by_networkx():
    for told in (EACH, *CASES):
        nodes, edges, about = read_graphml(write(told, ExportFormat.GRAPHML))

        assert bag(nodes) == bag(map(known, told.nodes))
        assert bag(edges) == bag(map(known, told.edges))
        assert about["truncated"] is told.truncation.truncated
        assert about.get("truncated_by", "").split() == list(told.truncation.reasons)


# DOT


def undotted(text: str) -> str:
    """Read a quoted string as Graphviz does: its escapes, then HTML entities."""
    assert text[0] == text[-1] == '"', text
    plain = re.sub(r"\\(.)", lambda found: {"n": "\n", "\\": "\\", '"': '"'}[found[1]], text[1:-1], flags=re.DOTALL)
    return re.sub(r"&(\w+);", lambda found: html.unescape(found[0]), plain)


def read_dot(text: str):
    [graph] = pydot.graph_from_dot_data(text)
    nodes, names = [], {}
    about = {}
    for node in graph.get_nodes():
        values = {name: undotted(value) for name, value in node.get_attributes().items()}
        if node.get_name() == "graph":
            about = values
        elif node.get_name() != "node":
            names[node.get_name()] = values["id"]
            nodes.append(values)
    edges = []
    for edge in graph.get_edges():
        values = {name: undotted(value) for name, value in edge.get_attributes().items() if name != "label"}
        assert (values.pop("style", None) == "dashed") is ("end_event" in values)
        edges.append({"source": names[edge.get_source()], "target": names[edge.get_destination()], **values})
    return nodes, edges, about


@pytest.mark.filterwarnings("ignore:.* deprecated - use:DeprecationWarning")  # pydot's own use of pyparsing
def test_dot_is_read_back_by_pydot():
    for told in (EACH, *CASES[:40]):  # pydot takes its time
        nodes, edges, about = read_dot(write(told, ExportFormat.DOT))

        assert bag(nodes) == bag(map(texts, told.nodes))
        assert bag(edges) == bag(map(texts, told.edges))
        assert about["truncated"] == str(told.truncation.truncated).lower()
        assert about.get("truncated_by", "").split() == list(told.truncation.reasons)


# CSV


def uncelled(text: str) -> str:
    assert not text.startswith(("=", "+", "-", "@", "\t", "\n", "＝", "＋", "－", "＠")), text
    return text.removeprefix("'")


def read_csv(text: str):
    assert "\n" not in re.sub(r'"(?:[^"]|"")*"', "", text).replace("\r\n", "")
    head, *rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    nodes, edges, cut = {}, [], set()
    for row in rows:
        assert len(row) == len(head)
        cells = {name: uncelled(cell) for name, cell in zip(head, row, strict=True) if cell}
        cut.add(cells.pop("truncated", ""))
        for end in ("source", "target"):
            about = {
                name.removeprefix(f"{end}_"): cells.pop(name) for name in list(cells) if name.startswith(f"{end}_")
            }
            if about:
                nodes[cells[end]] = {"id": cells[end], **about}
        if "type" in cells:
            edges.append(cells)
    [reasons] = cut
    return list(nodes.values()), edges, reasons


def test_csv_is_read_back_by_csv():
    for told in (EACH, *CASES):
        nodes, edges, reasons = read_csv(write(told, ExportFormat.CSV))

        filled = [{name: value for name, value in texts(node).items() if value} for node in told.nodes]
        assert bag(nodes) == bag(filled)
        assert bag(edges) == bag(map(texts, told.edges))
        assert reasons.split() == list(told.truncation.reasons)


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "＝", "'"])
def test_no_cell_is_a_formula_and_none_loses_its_apostrophe(start):
    told = lineage([vertex(1, NodeType.ASSET, f"{start}HYPERLINK(1)")])

    [_, row] = csv.reader(io.StringIO(write(told, ExportFormat.CSV), newline=""))

    assert f"'{start}HYPERLINK(1)" in row


# JSON


def test_json_is_the_answer_to_the_character():
    for told in (EACH, *CASES):
        text = write(told, ExportFormat.JSON)

        about = json.loads(text)
        assert about["nodes"] == list(map(asdict, told.nodes))
        assert about["edges"] == list(map(asdict, told.edges))
        assert about["truncation"]["truncated"] is told.truncation.truncated
        assert about["truncation"]["reasons"] == list(told.truncation.reasons)
        assert (about["root"], about["direction"]) == (told.root, told.direction)
        assert text.count("\n") == 1
        assert not set("<>&\u2028\u202e") & set(text)


# OpenLineage


def read_openlineage(text: str):
    events = [json.loads(line) for line in text.splitlines()]
    nodes, edges = {}, []

    def node(facet: dict) -> None:
        about = {name: value for name, value in facet.items() if not name.startswith("_")}
        assert nodes.setdefault(about["id"], about) == about

    head, *runs = events
    for event in events:
        made = Serde.to_dict(built(event))
        assert (made["run"]["runId"], made["job"]["name"]) == (event["run"]["runId"], event["job"]["name"])
        assert datetime.fromisoformat(event["eventTime"]).tzinfo is not None
        check_facets(event["run"]["facets"])
        for side in ("inputs", "outputs"):
            for dataset in event[side]:
                own = dataset[f"{side[:-1]}Facets"]
                check_facets({**dataset["facets"], **own})
                assert dataset["name"] == dataset["facets"]["graphsvc_node"]["id"]
                node(dataset["facets"]["graphsvc_node"])
                edges += own["graphsvc_edges"]["edges"]
    for run in runs:
        node(run["run"]["facets"]["graphsvc_node"])
    about = head["run"]["facets"]["graphsvc_lineage"]
    assert len(about["nodes"]) == len({one["id"] for one in about["nodes"]} - nodes.keys())
    return [*nodes.values(), *about["nodes"]], edges + about["edges"], about


def test_openlineage_is_read_back_by_its_client():
    for told in (EACH, *CASES):
        nodes, edges, about = read_openlineage(write(told, ExportFormat.OPENLINEAGE))

        assert bag(nodes) == bag(map(asdict, told.nodes))
        assert bag(edges) == bag(map(asdict, told.edges))
        assert about["truncated"] is told.truncation.truncated
        assert about["truncation"]["reasons"] == list(told.truncation.reasons)


def test_what_a_run_wrote_is_an_output_and_what_it_read_an_input():
    session, call = vertex(1, NodeType.SESSION, "morning"), vertex(4, NodeType.EVENT, "Write")
    reader, decision = vertex(6, NodeType.EVENT, "Read"), vertex(7, NodeType.DECISION, "tea is free")
    menu = vertex(5, NodeType.ASSET, "menu.md")
    edges = [
        link(EdgeType.PRODUCES, session, menu),
        link(EdgeType.REFERENCES, menu, call),
        link(EdgeType.REFERENCES, reader, menu),
        link(EdgeType.EVIDENCE, decision, menu),
        link(EdgeType.EVIDENCE, decision, call),
    ]

    events = map(json.loads, write(lineage([session, call, menu, reader, decision], edges), "openlineage").splitlines())

    head, *runs = events
    uses = {
        event["run"]["facets"]["graphsvc_node"]["id"]: (
            [dataset["name"] for dataset in event["inputs"]], [dataset["name"] for dataset in event["outputs"]]
        )
        for event in runs
    }  # fmt: skip
    assert uses == {
        "session-1": ([], ["asset-5"]), "event-4": ([], ["asset-5"]), "event-6": (["asset-5"], []),
        "decision-7": (["asset-5"], []),
    }  # fmt: skip
    assert [edge["target"] for edge in head["run"]["facets"]["graphsvc_lineage"]["edges"]] == ["event-4"]


def test_a_run_has_one_id_in_every_export():
    told = random_lineage(3)
    later = replace(told, freshness=replace(told.freshness, ledger=99, graph=99))

    ids = [
        [UUID(json.loads(line)["run"]["runId"]) for line in write(one, ExportFormat.OPENLINEAGE).splitlines()]
        for one in (told, later)
    ]

    assert ids[0][1:] == ids[1][1:]
    assert len(set(ids[0])) == len(ids[0])
    assert {one.version for one in ids[0]} == {5}
    assert ids[0][0] != ids[1][0]


# Mermaid

NODE = re.compile(r'  (n\d+)\["([^"]*)"\]')
EDGE = re.compile(r'  (n\d+) (-->|-\.->)\|"([^"]*)"\| (n\d+)')
TITLE = re.compile(r"---\ntitle: (truncated \([a-z_, ]+\), at least \d+ nodes were reached)\n---\n")


def unmermaid(text: str) -> list[str]:
    """Read the lines of a label; whatever Mermaid has a meaning for must stand there as an entity."""
    lines = text.split("<br/>")
    assert not [line for line in lines if re.search(r"[<>`*:\\(){}\[\]|]|#(?!\d+;)|(?<!\d);", line)], text
    return [re.sub(r"#(\d+);", lambda found: chr(int(found[1])), line) for line in lines]


def read_mermaid(text: str):
    """Read the subset that is written: a title when truncated, comments, `flowchart LR`, numbered nodes, edges."""
    title = TITLE.match(text)
    rest = text[title.end() :] if title else text
    head, *lines = [line for line in rest.splitlines() if not line.startswith("%% ")]
    assert head == "flowchart LR"
    nodes, edges = {}, []
    for line in lines:
        if found := NODE.fullmatch(line):
            nodes[found[1]] = unmermaid(found[2])
        else:
            found = EDGE.fullmatch(line)
            assert found, line
            edges.append((nodes[found[1]][0], found[2] == "-.->", unmermaid(found[3]), nodes[found[4]][0]))
    return list(nodes.values()), edges, title and title[1]


def test_mermaid_is_read_back():
    for told in (EACH, *CASES):
        nodes, edges, title = read_mermaid(write(told, ExportFormat.MERMAID))

        expected = in_mermaid(told)
        assert (sorted(nodes), sorted(edges)) == (sorted(expected[0]), sorted(expected[1]))
        assert bool(title) is told.truncation.truncated
        assert not title or all(reason in title for reason in told.truncation.reasons)


def test_ids_and_paths_stay_readable_in_mermaid():
    told = lineage([vertex(12, NodeType.ASSET, "docs/付款说明.md, v1.2")])

    assert '["asset-12<br/>docs/付款说明.md, v1.2<br/>asset"]' in write(told, ExportFormat.MERMAID)


def test_mermaid_says_what_a_large_one_needs():
    nodes = [vertex(number, NodeType.EVENT, "call") for number in range(502)]
    edges = [link(EdgeType.PRECEDES, one, other) for one, other in itertools.pairwise(nodes)]

    assert "%% to be drawn, this needs maxEdges 502 and maxTextSize" in write(lineage(nodes, edges), "mermaid")
    assert "maxEdges" not in write(lineage(nodes[:3], edges[:2]), "mermaid")


# All of them


@pytest.mark.parametrize("form", ExportFormat)
def test_the_same_graph_is_the_same_text_however_long_it_took(form):
    told = random_lineage(9)
    slower = replace(told, freshness=replace(told.freshness, elapsed_ms=700.0))

    assert write(told, form) == write(random_lineage(9), form) == write(slower, form)


@pytest.mark.parametrize("form", ExportFormat)
def test_every_text_can_be_stored_as_utf_8(form):
    for told in CASES[:20]:
        assert write(told, form).encode("utf-8")


@pytest.mark.parametrize("form", ExportFormat)
def test_every_format_says_whether_it_is_all_there_is(form):
    whole = lineage([vertex(1, NodeType.ASSET, "menu.md")])
    cut = replace(whole, truncation=Truncation(reasons=(Reason.FANOUT,), depth=2, seen=31, frontier=("asset-1",)))

    assert "fanout" in write(cut, form)
    assert "fanout" not in write(whole, form)


@pytest.mark.parametrize("form", ExportFormat)
def test_a_past_answer_of_one_node_is_written(form):
    fresh = Freshness(engine="kuzu", ledger=9, graph=9, elapsed_ms=0.1, as_of=AT)

    assert "asset-1" in write(lineage([vertex(1, NodeType.ASSET, "茶单.md")], freshness=fresh), form)
