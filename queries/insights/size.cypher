// How many nodes of each type there are.
MATCH (n:Node)
RETURN n.type AS type, count(*) AS nodes
ORDER BY type
