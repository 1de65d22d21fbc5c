"""What is asked of FalkorDB, in Cypher. Values come only as parameters.

A memory is a node `(:Memory {id, held})`, its id made plain by `key_of`. `held` is missing where only a link is known
that leads to it; it is no label of its own, because FalkorDB takes two milliseconds to give a node a second one. A link
is an edge `[:LINK {relation, strength}]`. One more node in each graph, the fence, remembers the last change in its
`ticket` and is linked to itself.
"""

from __future__ import annotations

from typing import Final

INDEX: Final = "CREATE INDEX FOR (m:Memory) ON (m.id)"

FENCE: Final = "MERGE (fence:Memory {id: ':fence'}) MERGE (fence)-[:LINK]->(fence)"
"""FalkorDB may plan a query before the first `LINK` of a graph is there and run it afterwards, and then it finds none.
Whoever asks for the fence by its link knows that the plan knows links."""

APPLY: Final = """
MATCH (fence:Memory {id: ':fence'})-[:LINK]->(fence)
WITH DISTINCT fence WHERE coalesce(fence.ticket, 0) < $ticket
SET fence.ticket = $ticket
WITH fence
UNWIND $gone + [null] AS id
OPTIONAL MATCH (m:Memory {id: id})
DETACH DELETE m
WITH DISTINCT fence
UNWIND $kept AS memory
MERGE (m:Memory {id: memory.id})
SET m.held = true
WITH memory, m
OPTIONAL MATCH (m)-[old:LINK]->()
DELETE old
WITH DISTINCT memory, m
UNWIND memory.links AS link
MERGE (o:Memory {id: link[0]})
CREATE (m)-[:LINK {relation: link[1], strength: link[2]}]->(o)
WITH count(*) AS links
OPTIONAL MATCH (fence:Memory {id: ':fence'})
RETURN fence.ticket = $ticket
"""
"""Some memories go with all their links; others are there from now on, with these links that begin at them. Nothing
changes where there is no fence, or a later ticket was here before; it returns whether it was done."""

NEIGHBOURS: Final = """
UNWIND $ids AS id
MATCH (:Memory {id: id})-[link:LINK]-(o)
WITH id, o, link ORDER BY link.strength DESC LIMIT $per_step
RETURN id, o.id, link.relation, link.strength
"""
"""The strongest links of some memories, whichever way they point."""

LINKS: Final = """
UNWIND $ids AS id
MATCH (m:Memory {id: id})
CALL {
    WITH m MATCH (m)-[link:LINK]->(o) WITH o, link ORDER BY link.strength DESC LIMIT $per_memory RETURN o, link
    UNION ALL
    WITH m MATCH (m)<-[link:LINK]-(o) WITH o, link ORDER BY link.strength DESC LIMIT $per_memory RETURN o, link
}
RETURN id, o.id, link.relation, link.strength LIMIT $per_step
"""
"""The strongest links of each memory in either direction, those of the first memories first. Not a pattern of variable
length, which would follow every link of a hub. What is beyond the limit is not read; but to find the strongest links
of a memory FalkorDB reads all it has, some 40 ms for 100,000."""

COUNT: Final = "MATCH (m:Memory) WHERE m.held RETURN count(m)"

LAST: Final = "MATCH (m:Memory) RETURN max(ID(m))"
"""The highest number that FalkorDB gave a node."""

IDS: Final = "MATCH (m:Memory) WHERE ID(m) >= $first AND ID(m) < $end AND m.held RETURN m.id"
"""A page of ids, by numbers: in the order of ids it would have to sort all of them for each page."""
