"""Print lineages as Mermaid, and what is in them, for `mermaid.mjs`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from lineages import HOSTILE, in_mermaid, lineage, random_lineage, vertex

from graphsvc.lineage.export import ExportFormat, write
from graphsvc.model import NodeType

one_each = lineage([vertex(number, NodeType.ASSET, text) for number, text in enumerate(HOSTILE, 1)])
cases = []
for told in (one_each, *map(random_lineage, range(200))):
    nodes, edges = in_mermaid(told)
    cases.append({"text": write(told, ExportFormat.MERMAID), "nodes": nodes, "edges": edges})
json.dump(cases, sys.stdout)
