-- Links between memories, by their rows. About `+?1` and CROSS JOIN see records.sql. `INDEXED BY`, because SQLite
-- would rather read all links of a space along the primary key.

-- name: put_edge
-- A link; the same ends and relation again replace its strength. OR REPLACE, because a trigger resolves conflicts as the
-- statement does that fires it, and those that note changes replace the note that is there.
INSERT OR REPLACE INTO edges (space, source, target, relation, strength) VALUES (?, ?, ?, ?, ?)

-- name: mark_linked
-- These rows need no links to their nearest any more.
UPDATE memories SET linked = 1 WHERE row IN (SELECT value FROM json_each(?1))

-- name: unlink
-- One link, or with no relation named all links from source to target.
DELETE FROM edges WHERE space = +?1 AND source = ?2 AND target = ?3 AND (?4 IS NULL OR relation = ?4)

-- name: waiting
-- The rows of a space that wait for links to their nearest.
SELECT row FROM memories WHERE space = +?1 AND linked = 0

-- name: waiting_among
-- Those of some rows.
SELECT row FROM memories WHERE row IN (SELECT value FROM json_each(?1)) AND linked = 0

-- name: weakest
-- The weakest link of one relation of each of these rows that has so many of them.
SELECT source, min(strength) FROM edges INDEXED BY edges_by_source
WHERE space = +?1 AND source IN (SELECT value FROM json_each(?2)) AND relation = ?3
GROUP BY source HAVING count(*) >= ?4

-- name: nearest_of
-- The links of one relation that begin at these rows.
SELECT source, target, strength FROM edges INDEXED BY edges_by_source
WHERE space = +?1 AND source IN (SELECT value FROM json_each(?2)) AND relation = ?3

-- name: digests
-- What these rows say, by the keys of the current vectors: the row alone has no index.
SELECT v.row, v.digest
FROM generations AS g CROSS JOIN json_each(?1) AS wanted
CROSS JOIN vectors AS v ON v.key = (g.number - 1) << 40 | wanted.value
WHERE g.state = 'current'

-- name: mark_unlinked
-- What is linked to these rows has to be linked to its nearest again.
UPDATE memories SET linked = 0
WHERE row IN (
    SELECT source FROM edges INDEXED BY edges_by_target
    WHERE space = +?1 AND target IN (SELECT value FROM json_each(?2)) AND relation = ?3
)

-- name: delete_nearest
-- Links of one relation that begin at these rows.
DELETE FROM edges WHERE space = +?1 AND source IN (SELECT value FROM json_each(?2)) AND relation = ?3

-- name: delete_as_nearest
-- And those that end there.
DELETE FROM edges INDEXED BY edges_by_target
WHERE space = +?1 AND target IN (SELECT value FROM json_each(?2)) AND relation = ?3

-- name: delete_from
-- Links that begin at these rows.
DELETE FROM edges WHERE space = +?1 AND source IN (SELECT value FROM json_each(?2))

-- name: delete_to
-- Links that end at these rows.
DELETE FROM edges INDEXED BY edges_by_target WHERE space = +?1 AND target IN (SELECT value FROM json_each(?2))

-- name: links_of
-- A row's strongest links in either direction.
SELECT ?2, other, relation, strength
FROM (
    SELECT * FROM (
        SELECT target AS other, relation, strength FROM edges INDEXED BY edges_by_source
        WHERE space = +?1 AND source = ?2
        ORDER BY strength DESC, target DESC LIMIT ?3)
    UNION ALL
    SELECT * FROM (
        SELECT source AS other, relation, strength FROM edges INDEXED BY edges_by_target
        WHERE space = +?1 AND target = ?2
        ORDER BY strength DESC, source DESC LIMIT ?3)
)

-- name: neighbours
-- What is one strong link away from some rows and passes a filter, as JSON, for every row that crosses into Python has to
-- wait for its turn there. Of several links the strongest counts: SQLite takes `relation` from the row of the max().
SELECT json_group_array(json_array(m.id, reached.strength, reached.relation))
FROM (
    SELECT other, max(strength) AS strength, relation
    FROM (
        SELECT target AS other, relation, strength FROM edges INDEXED BY edges_by_source
        WHERE space = +?1 AND source IN (SELECT value FROM json_each(?2))
        UNION ALL
        SELECT source AS other, relation, strength FROM edges INDEXED BY edges_by_target
        WHERE space = +?1 AND target IN (SELECT value FROM json_each(?2))
        ORDER BY strength DESC LIMIT ?3
    )
    GROUP BY other
) AS reached
CROSS JOIN memories AS m ON m.row = reached.other WHERE {where}

-- name: visible
-- Which of the rows that a walk reached pass a filter.
SELECT m.row, m.id FROM json_each(?) AS reached CROSS JOIN memories AS m ON m.row = reached.value WHERE {where}

-- name: edges_after
-- A page of the space's links, after the given one.
SELECT e.source, e.target, a.id, b.id, e.relation, e.strength
FROM edges AS e
CROSS JOIN memories AS a ON a.row = e.source
CROSS JOIN memories AS b ON b.row = e.target
WHERE e.space = +?1 AND (e.source, e.target, e.relation) > (?2, ?3, ?4)
ORDER BY e.source, e.target, e.relation
LIMIT ?5

-- name: edges_of
-- The links that touch these rows.
SELECT a.id, b.id, e.relation, e.strength
FROM (
    SELECT source, target, relation, strength FROM edges
    WHERE space = +?1 AND source IN (SELECT value FROM json_each(?2))
    UNION
    SELECT source, target, relation, strength FROM edges INDEXED BY edges_by_target
    WHERE space = +?1 AND target IN (SELECT value FROM json_each(?2))
) AS e
CROSS JOIN memories AS a ON a.row = e.source
CROSS JOIN memories AS b ON b.row = e.target
ORDER BY a.id, b.id, e.relation
