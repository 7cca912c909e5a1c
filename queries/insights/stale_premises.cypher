// Which active decisions and pending todos stand on a decision that was superseded or revoked?
// 哪些有效的决定和待办的事项，仍然建立在已被取代或撤销的决定之上？
//
// A decision stands on another when its evidence leads to the event that recorded the other, over at most 6 standing
// edges EVIDENCE and REFERENCES. A todo does when it is the NEXT_STEP of the other, or of a decision or an asset that
// leads to it so. What replaced the other does not stand on it, and neither do its todos. A row is a pair of the two.
//
// Parameters: project (its key; empty: all), first, offset.
// Columns: id, type, title, status; premise, premise_status: what it stands on; evidence: the chain from the one to the
// other, one of the shortest; total: how long it is.
MATCH (d:Node {type: 'decision'}), (x:Node {type: 'event', kind: 'decision'})<-[e:EVIDENCE|REFERENCES* SHORTEST 1..6
  (r, n | WHERE r.end_event IS NULL AND ($project = '' OR n.project = $project))]-(y:Node)
WHERE x.number = d.number AND d.status IN ['superseded', 'revoked'] AND y.id <> coalesce(d.superseded_by, '')
  AND y.type IN ['decision', 'asset'] AND ($project = '' OR (d.project = $project AND y.project = $project))
WITH collect({premise: d.id, status: d.status, near: y.id,
  chain: list_concat([y.id], list_concat(list_reverse(properties(nodes(e), 'id')), [x.id, d.id]))}) AS led
MATCH (d:Node {type: 'decision'})
WHERE d.status IN ['superseded', 'revoked'] AND ($project = '' OR d.project = $project)
WITH led, collect({premise: d.id, status: d.status, near: d.id, chain: [d.id]}) AS own
UNWIND list_concat(own, led) AS way
WITH way.premise AS premise, way.status AS premise_status, way.near AS near, way.chain AS chain
MATCH (y:Node {id: near})
OPTIONAL MATCH (y)-[f:NEXT_STEP]->(t:Node {type: 'todo', status: 'pending'})
WHERE f.end_event IS NULL AND ($project = '' OR t.project = $project)
WITH premise, premise_status, y, chain, collect(DISTINCT t.id) AS todos
UNWIND list_concat(CASE WHEN y.type = 'decision' AND y.status = 'active' THEN [''] ELSE CAST([] AS STRING[]) END,
  coalesce(todos, CAST([] AS STRING[]))) AS todo
WITH premise, premise_status, CASE WHEN todo = '' THEN chain ELSE list_concat([todo], chain) END AS chain
WITH premise, premise_status, chain[1] AS id,
  min(concat(CAST(size(chain) AS STRING), ' ', list_to_string(' ', chain))) AS least
MATCH (n:Node) WHERE n.id = id
WITH n, premise, premise_status, string_split(least, ' ') AS parts
RETURN n.id AS id, n.type AS type, n.title AS title, n.status AS status, premise, premise_status,
  list_slice(parts, 2, size(parts)) AS evidence, size(parts) - 1 AS total
ORDER BY type, n.number, size(premise), premise SKIP $offset LIMIT $first
