// Which edges stand between these nodes?
// 这些节点之间有哪些有效的边？
//
// Parameters: ids, most (edges that are wanted).
// Columns: type, source, target, rule, confidence, begin_event, begin_at.
MATCH (a:Node)-[e]->(b:Node) WHERE a.id IN $ids AND b.id IN $ids AND e.end_event IS NULL
RETURN label(e) AS type, a.id AS source, b.id AS target, e.rule AS rule, e.confidence AS confidence,
  e.begin_event AS begin_event, e.begin_at AS begin_at LIMIT $most
