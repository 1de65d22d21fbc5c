"""The queries for FalkorDB, in Cypher. Values are always parameters.

A memory is a node `(:Memory {id, held})`, its id quoted by `key_of`. `held` is missing if only a link to the memory is
known; it is not a label, because adding a second label takes FalkorDB two milliseconds. A link is an edge
`[:LINK {relation, strength}]`. One more node in each graph, the fence, keeps the number of the last change in `ticket`
and is linked to itself.
"""

from __future__ import annotations

from typing import Final

INDEX: Final = "CREATE INDEX FOR (m:Memory) ON (m.id)"

FENCE: Final = "MERGE (fence:Memory {id: ':fence'}) MERGE (fence)-[:LINK]->(fence)"
"""A query planned before a graph has its first `LINK` finds no links when it runs later. Matching the fence by its link
ensures that the plan knows links."""

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
"""Deletes the memories in `gone` with all their links, and stores those in `kept` with the links that begin at them.
Does nothing without a fence or after a later ticket; returns whether it was applied."""

NEIGHBOURS: Final = """
UNWIND $ids AS id
MATCH (:Memory {id: id})-[link:LINK]-(o)
WITH id, o, link ORDER BY link.strength DESC LIMIT $per_step
RETURN id, o.id, link.relation, link.strength
"""
"""The strongest links of some memories, in either direction."""

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
"""The strongest links of each memory in either direction, in the order of `ids`. A pattern of variable length would
follow every link of a hub. To find the strongest, FalkorDB reads all links of a memory: 40 ms for 100,000."""

COUNT: Final = "MATCH (m:Memory) WHERE m.held RETURN count(m)"

LAST: Final = "MATCH (m:Memory) RETURN max(ID(m))"
"""The highest node number."""

IDS: Final = "MATCH (m:Memory) WHERE ID(m) >= $first AND ID(m) < $end AND m.held RETURN m.id"
"""A page of ids by node number: ordering by id would sort all of them for each page."""
