// Which active goals has nothing been done about since a moment?
// 从某个时刻起，哪些有效的目标毫无进展？
//
// Progress is what stands behind the goal in the ledger and happened at the moment or later: a todo that is a NEXT_STEP
// of the goal was done; a decision was recorded in the session of the goal; a call of that session wrote an asset, or the
// session made one that it had not made before.
//
// Parameters: project (its key; empty: all), since (UTC, as the ledger writes it; empty: since the goal itself), first,
// offset.
// Columns: id, type, title, status; at: when it was recorded; pending: how many of its todos are; evidence: the event
// that recorded it, then those todos, the first 49; total: how many there are of both.
MATCH (g:Node {type: 'goal', status: 'active'}) WHERE $project = '' OR g.project = $project
OPTIONAL MATCH (g)-[e:NEXT_STEP]->(t:Node {type: 'todo'}) WHERE e.end_event IS NULL
WITH g, max(CASE WHEN t.status = 'done' THEN t.updated_at END) AS done,
  coalesce(list_sort(collect(DISTINCT CASE WHEN t.status = 'pending' THEN t.number END)), CAST([] AS INT64[])) AS pending
WHERE done IS NULL OR done < $since
OPTIONAL MATCH (d:Node {type: 'decision'}) WHERE d.session = g.session AND d.number > g.number AND d.at >= $since
WITH g, pending, count(d) AS decided WHERE decided = 0
OPTIONAL MATCH (a:Node {type: 'asset'})-[w:REFERENCES]->(c:Node {type: 'event'})
WHERE c.session = g.session AND c.number > g.number AND c.at >= $since AND w.rule = 'written by'
WITH g, pending, count(w) AS written WHERE written = 0
OPTIONAL MATCH (s:Node {type: 'session'})-[p:PRODUCES]->(:Node)
WHERE s.session = g.session AND p.begin_event > g.number AND p.begin_at >= $since
WITH g, pending, count(p) AS made WHERE made = 0
RETURN g.id AS id, g.type AS type, g.title AS title, g.status AS status, g.at AS at, size(pending) AS pending,
  list_concat([concat('event-', CAST(g.number AS STRING))],
    list_transform(list_slice(pending, 1, 49), n -> concat('todo-', CAST(n AS STRING)))) AS evidence,
  size(pending) + 1 AS total
ORDER BY g.number SKIP $offset LIMIT $first
