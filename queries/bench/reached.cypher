// What is at most two edges away, and how many edges of each type does it have? `lineage` at depth 2 in Cypher.
// 两步之内有哪些节点？各有多少条每种类型的边？
//
// Parameters: id (of the node to begin with).
// Columns: id, type, label, status, at; depth; kind, edges: of that type so many.
MATCH (a:Node {id: $id})-[e* SHORTEST 1..2 (r, n | WHERE r.end_event IS NULL)]-(b:Node)
WITH b, length(e) AS depth
MATCH (b)-[x]-(c:Node) WHERE x.end_event IS NULL
RETURN b.id AS id, b.type AS type, b.title AS label, b.status AS status, b.at AS at, depth, label(x) AS kind,
  count(x) AS edges
