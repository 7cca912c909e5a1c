// What are the nodes of these ids?
// 这些编号的节点是什么？
//
// Parameters: project (its key; empty: all), ids.
// Columns: id, type, title, status.
MATCH (n:Node) WHERE n.id IN $ids AND ($project = '' OR n.project = $project)
RETURN n.id AS id, n.type AS type, n.title AS title, n.status AS status ORDER BY type, n.number
