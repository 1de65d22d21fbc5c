-- The models that made the vectors: one answers, another may be filled beside it, old ones are kept for a while.

-- name: current
-- The generation that answers.
SELECT number, model, dimensions FROM generations WHERE state = 'current'

-- name: all
-- Every generation that has vectors or gets them, and how many it has; in the order in which they began.
SELECT number, model, dimensions, state, since, (SELECT count(*) FROM vectors AS v WHERE v.generation = g.number)
FROM generations AS g WHERE state <> 'gone' ORDER BY number

-- name: find
-- A generation by its model, whatever became of it.
SELECT number, state FROM generations WHERE model = ?1 AND dimensions = ?2

-- name: add
-- A model that this store has not met.
INSERT INTO generations (model, dimensions, state, since) VALUES (?1, ?2, ?3, ?4)

-- name: renew
-- A model whose vectors were dropped begins anew, under another number: caches may still hold what it had.
UPDATE generations SET number = (SELECT max(number) + 1 FROM generations), state = 'next', since = ?2 WHERE number = ?1

-- name: set_state
-- A generation comes to another state.
UPDATE generations SET state = ?2, since = ?3 WHERE number = ?1

-- name: unembedded
-- Memories of a space after an id that have a vector, but none of this generation.
SELECT m.id FROM memories AS m
WHERE m.space = ?1 AND m.id > ?2 AND m.embedding = 'ready'
      AND NOT EXISTS (SELECT 1 FROM vectors AS v WHERE v.key = (?3 - 1) << 40 | m.row)
ORDER BY m.id
LIMIT ?4

-- name: rows_without
-- Rows that have a vector of the generation that answers (first) and none of another.
SELECT c.space, c.key & 1099511627775 FROM vectors AS c
WHERE c.generation = ?1 AND NOT EXISTS (
    SELECT 1 FROM vectors AS n WHERE n.key = (?2 - 1) << 40 | (c.key & 1099511627775)
)
LIMIT ?3

-- name: row_of
-- The row of a memory, by the name of its space.
SELECT m.row FROM memories AS m JOIN spaces AS s ON s.number = m.space WHERE s.name = ?1 AND m.id = ?2

-- name: wait_again
-- A memory that waits for its vector.
UPDATE memories SET embedding = 'pending' WHERE row = ?1

-- name: drop_some
-- Some vectors of a generation, by their keys.
DELETE FROM vectors WHERE key IN (
    SELECT key FROM vectors WHERE key BETWEEN (?1 - 1) << 40 AND (?1 << 40) - 1 LIMIT ?2
)

-- name: note_old_links
-- Every space has links to be made anew.
INSERT OR REPLACE INTO facts (name, value) SELECT 'old_links', json_group_array(number) FROM spaces

-- name: old_links
-- A space whose links are still those of an earlier generation.
SELECT e.value FROM facts AS f CROSS JOIN json_each(f.value) AS e WHERE f.name = 'old_links' LIMIT 1

-- name: wait_for_links
-- All memories of a space wait for links to their nearest.
UPDATE memories SET linked = 0 WHERE space = ?1 AND linked = 1

-- name: drop_links
-- All links of one relation in a space.
DELETE FROM edges WHERE space = ?1 AND relation = ?2

-- name: note_links_dropped
-- A space is done.
UPDATE facts SET value = (SELECT json_group_array(e.value) FROM json_each(facts.value) AS e WHERE e.value <> ?1)
WHERE name = 'old_links'
