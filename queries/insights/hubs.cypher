// Which nodes have the most standing edges, towards causes and towards results?
// 哪些节点的有效联系最多（分别朝向原因和结果）？
//
// Upstream are the edges that lead to causes, downstream those that lead to results: PRODUCES, PRECEDES and NEXT_STEP run
// from cause to result, REFERENCES and EVIDENCE from what depends to what it depends on. `hub_ends` has the evidence.
//
// Parameters: project (its key; empty: all), type (of the node; empty: any), side (upstream, downstream or both: which
// edges count), first, offset.
// Columns: id, type, title, status; upstream, downstream: how many edges.
MATCH (a:Node)-[e]->(b:Node)
WHERE e.end_event IS NULL AND ($project = '' OR (a.project = $project AND b.project = $project))
WITH DISTINCT a.id AS source, b.id AS target, label(e) AS kind
UNWIND [1, 0] AS out
WITH CASE WHEN out = 1 THEN source ELSE target END AS id,
  CASE WHEN (out = 1) = (kind IN ['REFERENCES', 'EVIDENCE']) THEN 1 ELSE 0 END AS up
WITH id, CAST(sum(up) AS INT64) AS upstream, count(*) - CAST(sum(up) AS INT64) AS downstream
MATCH (n:Node) WHERE n.id = id AND ($type = '' OR n.type = $type)
WITH n, upstream, downstream,
  CASE $side WHEN 'upstream' THEN upstream WHEN 'downstream' THEN downstream ELSE upstream + downstream END AS edges
WHERE edges > 0
RETURN n.id AS id, n.type AS type, n.title AS title, n.status AS status, upstream, downstream
ORDER BY edges DESC, type, n.number SKIP $offset LIMIT $first
