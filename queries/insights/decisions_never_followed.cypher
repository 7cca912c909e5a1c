// Which active decisions has nothing come of?
// 哪些有效的决定没有任何下文？
//
// Nothing: no standing NEXT_STEP to a todo; no standing PRECEDES to another decision; no other decision and no asset with
// a standing edge EVIDENCE or REFERENCES to the event that recorded it; and behind it in the ledger no call of its session
// that wrote an asset, and none that the session made and had not made before.
//
// Parameters: project (its key; empty: all), first, offset.
// Columns: id, type, title, status; at: when it was recorded; evidence: the event that recorded it, then what it stands
// on, the first 49; total: how many there are of both.
MATCH (d:Node {type: 'decision', status: 'active'}) WHERE $project = '' OR d.project = $project
OPTIONAL MATCH (d)-[e:NEXT_STEP|PRECEDES]->(:Node) WHERE e.end_event IS NULL
WITH d, count(e) AS followed WHERE followed = 0
OPTIONAL MATCH (x:Node {type: 'event', kind: 'decision'})<-[e:EVIDENCE|REFERENCES]-(y:Node)
WHERE x.number = d.number AND e.end_event IS NULL AND y.id <> d.id AND y.type IN ['decision', 'asset']
WITH d, count(e) AS followed WHERE followed = 0
OPTIONAL MATCH (a:Node {type: 'asset'})-[w:REFERENCES]->(c:Node {type: 'event'})
WHERE c.session = d.session AND c.number > d.number AND w.rule = 'written by'
WITH d, count(w) AS followed WHERE followed = 0
OPTIONAL MATCH (s:Node {type: 'session'})-[p:PRODUCES]->(:Node)
WHERE s.session = d.session AND p.begin_event > d.number
WITH d, count(p) AS followed WHERE followed = 0
OPTIONAL MATCH (d)-[e:EVIDENCE]->(o:Node)
WHERE e.end_event IS NULL AND o.number <> d.number AND ($project = '' OR o.project = $project)
WITH d, coalesce(list_sort(collect(DISTINCT o.id)), CAST([] AS STRING[])) AS premises
RETURN d.id AS id, d.type AS type, d.title AS title, d.status AS status, d.at AS at,
  list_concat([concat('event-', CAST(d.number AS STRING))], list_slice(premises, 1, 49)) AS evidence,
  size(premises) + 1 AS total
ORDER BY d.number SKIP $offset LIMIT $first
