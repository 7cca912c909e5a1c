// Which assets do active decisions of different sessions touch, and may disagree about?
// 哪些资产同时被不同会话的有效决定涉及，因而可能互相冲突？
//
// A decision touches an asset when its EVIDENCE edge to it stands: it names the file, or the file is its evidence.
//
// Parameters: project (its key; empty: all), first, offset.
// Columns: id, type, title, status: the asset; sessions: how many; evidence: the decisions, the first 50 of them; total:
// how many decisions.
MATCH (d:Node {type: 'decision', status: 'active'})-[e:EVIDENCE]->(a:Node {type: 'asset'})
WHERE e.end_event IS NULL AND ($project = '' OR (d.project = $project AND a.project = $project))
WITH a, count(DISTINCT d.session) AS sessions, list_sort(collect(DISTINCT d.number)) AS decisions
WHERE sessions > 1
RETURN a.id AS id, a.type AS type, a.title AS title, a.status AS status, sessions,
  list_transform(list_slice(decisions, 1, 50), n -> concat('decision-', CAST(n AS STRING))) AS evidence,
  size(decisions) AS total
ORDER BY total DESC, a.number SKIP $offset LIMIT $first
