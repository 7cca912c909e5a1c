// Which parts of the graph does no edge connect to its largest part?
// 图中哪些部分与最大的部分之间没有任何联系？
//
// All standing edges, whichever way: Kuzu has no connected components without an extension that is not shipped, and
// paths between all pairs of nodes are too many. Kuzu answers which edges stand, and Python finds the parts by one pass
// over them: lineage/insights.py. A node without a standing edge is in no part; `orphans` lists it. Of two parts of one
// size the one that has the older node is the larger.
//
// Parameters: project (its key; empty: all), most (edges that are read).
// Columns: edges: a list of pairs of ids, a share of all of them.
MATCH (a:Node)-[e]->(b:Node)
WHERE e.end_event IS NULL AND ($project = '' OR (a.project = $project AND b.project = $project))
WITH DISTINCT a.number % 1000 AS share, a.id AS source, b.id AS target LIMIT $most
RETURN share, collect([source, target]) AS edges ORDER BY share
