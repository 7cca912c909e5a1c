// What do the standing edges of these nodes lead to?
// 这些节点的有效联系通向哪里？
//
// Parameters: project (its key; empty: all), ids (at most a page of them), side (upstream, downstream or both).
// Columns: id; evidence: the other ends of its edges on that side, the first 20; total: how many there are.
MATCH (a:Node)-[e]->(b:Node)
WHERE e.end_event IS NULL AND ($project = '' OR (a.project = $project AND b.project = $project))
  AND (a.id IN $ids OR b.id IN $ids)
WITH a.id AS source, b.id AS target, label(e) IN ['REFERENCES', 'EVIDENCE'] AS back
UNWIND [1, 0] AS out
WITH CASE WHEN out = 1 THEN source ELSE target END AS id, CASE WHEN out = 1 THEN target ELSE source END AS other,
  (out = 1) = back AS up
WHERE id IN $ids AND ($side = 'both' OR ($side = 'upstream') = up)
WITH id, list_sort(collect(DISTINCT other)) AS others
RETURN id, list_slice(others, 1, 20) AS evidence, size(others) AS total ORDER BY id
