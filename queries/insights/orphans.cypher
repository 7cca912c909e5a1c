// Which goals, decisions, todos and assets is nothing connected to?
// 哪些目标、决定、待办和资产与任何东西都没有联系？
//
// Those without a standing edge of any type, in either direction: they never had one, or all of them have ended.
//
// Parameters: project (its key; empty: all), type (goal, decision, todo or asset; empty: all four), first, offset.
// Columns: id, type, title, status; ended: to how many nodes edges have ended; evidence: the event that recorded it, then
// those nodes, the first 49; total: how many there are of both.
MATCH (n:Node)
WHERE n.type IN ['goal', 'decision', 'todo', 'asset'] AND ($type = '' OR n.type = $type)
  AND ($project = '' OR n.project = $project)
OPTIONAL MATCH (n)-[e]-(o:Node) WHERE e.end_event IS NULL AND ($project = '' OR o.project = $project)
WITH n, count(e) AS standing WHERE standing = 0
OPTIONAL MATCH (n)-[e]-(o:Node) WHERE $project = '' OR o.project = $project
WITH n, coalesce(list_sort(collect(DISTINCT o.id)), CAST([] AS STRING[])) AS others
RETURN n.id AS id, n.type AS type, n.title AS title, n.status AS status, size(others) AS ended,
  list_concat([concat('event-', CAST(n.number AS STRING))], list_slice(others, 1, 49)) AS evidence,
  size(others) + 1 AS total
ORDER BY type, n.number SKIP $offset LIMIT $first
