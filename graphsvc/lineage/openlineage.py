"""OpenLineage 2-0-2: what its events look like, and a lineage told by them.

Sessions, events and decisions are runs of jobs, assets are datasets. What a run produced or wrote is among its outputs,
what it read or rests on is among its inputs. All else stands in facets of ours: `schema/openlineage.json`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Final
from uuid import UUID, uuid5

from graphsvc import __version__
from graphsvc.lineage.answer import Lineage, Link, Vertex
from graphsvc.model import EdgeType, NodeType

SPEC: Final = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
NAMESPACE: Final = "graphsvc"  # of jobs, and of the datasets of an export, which go by their ids
PRODUCER: Final = f"urn:graphsvc:{__version__}"
_OURS: Final = "urn:graphsvc:schema:openlineage:1#/$defs/"
_RUNS: Final = frozenset({NodeType.SESSION, NodeType.EVENT, NodeType.DECISION})
_UUIDS: Final = UUID("7b0c1f0e-0a53-5c8e-9d0a-6d2f0f6d9a11")  # of our run ids; any constant would do

Facet = dict[str, object]


def run_id(*names: str) -> str:
    """Return the id of a run: the same names give the same one, whenever and wherever it is asked for."""
    return str(uuid5(_UUIDS, "\n".join(names).encode("utf-8", "backslashreplace").decode()))


def facet(schema: str, **values: object) -> Facet:
    """Return a facet: of ours when `schema` is a name in `schema/openlineage.json`, else the URL of a standard one."""
    url = schema if schema.startswith("https:") else _OURS + schema
    return {"_producer": PRODUCER, "_schemaURL": url, **values}


def run_event(
    *,
    type: str,  # noqa: A002 # the field is called so
    at: str,
    run: str,
    job: str,
    namespace: str = NAMESPACE,
    facets: Mapping[str, Facet],
    inputs: Iterable[Mapping[str, object]] = (),
    outputs: Iterable[Mapping[str, object]] = (),
) -> dict[str, object]:
    """Return a RunEvent. `type` is COMPLETE or OTHER, `run` the id of the run, `at` a time in UTC."""
    return {
        "eventType": type,
        "eventTime": at,
        "run": {"runId": run, "facets": dict(facets)},
        "job": {"namespace": namespace, "name": job, "facets": {}},
        "inputs": list(inputs),
        "outputs": list(outputs),
        "producer": PRODUCER,
        "schemaURL": SPEC,
    }


def told(lineage: Lineage) -> Iterator[dict[str, object]]:
    """Tell a lineage by RunEvents. The first is about the answer itself, and holds what is no run, input or output.

    One more follows for each session, event and decision. Nothing is left out: a dataset is told wherever it is used,
    all else once.
    """
    nodes: dict[str, Vertex] = {node.id: node for node in lineage.nodes}
    used: dict[str, list[tuple[str, str, Link]]] = {}  # by run: inputs or outputs, the dataset, the edge
    rest = []
    for edge in lineage.edges:
        if use := _use(nodes, edge):
            run, side, asset = use
            used.setdefault(run, []).append((side, asset, edge))
        else:
            rest.append(edge)
    datasets = {asset for uses in used.values() for _, asset, _ in uses}
    others = [node for node in lineage.nodes if node.type not in _RUNS and node.id not in datasets]
    yield _answer(lineage, others, rest)
    for node in lineage.nodes:
        if node.type in _RUNS:
            yield run_event(
                type="OTHER" if node.type is NodeType.SESSION else "COMPLETE",  # a session may go on
                at=node.at,
                run=run_id(node.id),
                job=node.id if node.type is NodeType.SESSION else node.type,
                facets={"graphsvc_node": facet("Node", **asdict(node))},
                inputs=_datasets(nodes, used.get(node.id, ()), "inputs"),
                outputs=_datasets(nodes, used.get(node.id, ()), "outputs"),
            )


def _use(nodes: Mapping[str, Vertex], edge: Link) -> tuple[str, str, str] | None:
    """Return the run, whether it used an asset as one of its inputs or outputs, and the asset; None for other edges."""
    if edge.type not in {EdgeType.PRODUCES, EdgeType.REFERENCES, EdgeType.EVIDENCE}:
        return None
    source, target = nodes[edge.source], nodes[edge.target]
    if source.type in _RUNS and target.type is NodeType.ASSET:
        return source.id, "outputs" if edge.type is EdgeType.PRODUCES else "inputs", target.id
    # A version refers to the call that wrote it.
    if source.type is NodeType.ASSET and target.type in _RUNS and edge.type is EdgeType.REFERENCES:
        return target.id, "outputs", source.id
    return None


def _datasets(
    nodes: Mapping[str, Vertex], uses: Iterable[tuple[str, str, Link]], side: str
) -> Iterator[dict[str, object]]:
    edges: dict[str, list[Link]] = {}
    for used, asset, edge in uses:
        if used == side:
            edges.setdefault(asset, []).append(edge)
    for asset, drawn in edges.items():
        yield {
            "namespace": NAMESPACE,
            "name": asset,
            "facets": {"graphsvc_node": facet("Node", **asdict(nodes[asset]))},
            f"{side.removesuffix('s')}Facets": {"graphsvc_edges": facet("Edges", edges=list(map(asdict, drawn)))},
        }


def _answer(lineage: Lineage, nodes: Iterable[Vertex], edges: Iterable[Link]) -> dict[str, object]:
    fresh, cut = lineage.freshness, lineage.truncation
    about = facet(
        "Lineage",
        root=lineage.root,
        direction=lineage.direction,
        truncated=cut.truncated,
        truncation={name: value for name, value in asdict(cut).items() if name != "truncated"},
        cycles=lineage.cycles,
        engine=fresh.engine,
        ledger=fresh.ledger,
        graph=fresh.graph,
        as_of=fresh.as_of,
        nodes=list(map(asdict, nodes)),
        edges=list(map(asdict, edges)),
    )
    return run_event(
        type="OTHER",
        at=max((node.at for node in lineage.nodes), default="0001-01-01T00:00:00.000000Z"),
        run=run_id("lineage", lineage.root, lineage.direction, str(fresh.graph), fresh.as_of or ""),
        job="lineage",
        facets={"graphsvc_lineage": about},
    )
