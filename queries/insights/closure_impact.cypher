// What came of a node, directly or by way of anything else: everything downstream of it?
// 一个节点直接或间接导致了什么：它下游的全部内容？
//
// All standing edges from cause to result. PRODUCES, PRECEDES and NEXT_STEP are written that way, REFERENCES and EVIDENCE
// the other way round, and a path of Kuzu goes one way only; besides, it needs 6 s for a chain of 5,000 edges. Kuzu
// answers which edges stand, and Python goes from the node to the last of them: lineage/insights.py. No depth cuts it.
//
// Parameters: project (its key; empty: all), most (edges that are read).
// Columns: edges: a list of pairs of ids, cause and result, a share of all of them.
MATCH (a:Node)-[e]->(b:Node)
WHERE e.end_event IS NULL AND ($project = '' OR (a.project = $project AND b.project = $project))
WITH a.number % 1000 AS share, label(e) IN ['REFERENCES', 'EVIDENCE'] AS back, a.id AS source, b.id AS target
WITH DISTINCT share, CASE WHEN back THEN target ELSE source END AS cause,
  CASE WHEN back THEN source ELSE target END AS result LIMIT $most
RETURN share, collect([cause, result]) AS edges ORDER BY share
