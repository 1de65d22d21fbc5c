-- Memories by id, by hash, by thread, and what is kept about them.
--
-- `space = +?1`: a bare parameter beside an index makes SQLite look at its value and so prepare the statement anew at
-- every execution, which costs more than most of these statements do. The plus hides the parameter, not the index.
-- `json_each(…) CROSS JOIN memories`: begin at the ids, whatever other indexes could be used.

-- name: space_number
-- The number of a space, if it holds anything.
SELECT number FROM spaces WHERE name = ?1

-- name: add_space
-- A space begins with its first memory.
INSERT INTO spaces (name, scored_at) VALUES (?1, CAST(unixepoch('subsec') * 1000000 AS INTEGER)) RETURNING number

-- name: spaces
-- All spaces by name.
SELECT name FROM spaces ORDER BY name

-- name: tick
-- The number of this writing transaction.
UPDATE clock SET seq = seq + 1 RETURNING seq

-- name: memories
-- Memories by id, in the order asked for.
SELECT m.id, m.text, m.namespace, m.kind, m.title, m.tags, m.source, m.thread, m.place, m.metadata,
       m.created_at, m.updated_at, m.occurred_at, m.expires_at, m.superseded_by, m.quality, m.embedding,
       m.hits, m.last_hit_at, m.used, m.last_used_at
FROM json_each(?2) AS wanted
CROSS JOIN memories AS m ON m.space = +?1 AND m.id = wanted.value
ORDER BY wanted.key

-- name: row_numbers
-- Ids and row numbers of those ids that are in this space.
SELECT m.id, m.row
FROM json_each(?2) AS wanted
CROSS JOIN memories AS m ON m.space = +?1 AND m.id = wanted.value

-- name: ids_by_hash
-- Which exact copies are here already. Hashes come as hexadecimal, for JSON has no bytes.
SELECT m.hash, m.id
FROM json_each(?2) AS wanted
CROSS JOIN memories AS m ON m.space = +?1 AND m.hash = unhex(wanted.value)

-- name: release_expired
-- Memories that have expired are nobody's original any more: the same may be remembered again.
UPDATE memories SET hash = CAST(id AS BLOB)
WHERE space = +?1 AND hash IN (SELECT unhex(value) FROM json_each(?2)) AND expires_at <= ?3

-- name: last_row
-- The highest row number ever given out.
SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'memories'

-- name: last_place
-- The place of a thread's last memory.
SELECT max(place) FROM memories WHERE space = +?1 AND namespace = ?2 AND thread = ?3

-- name: insert_memory
-- A complete row; the order after `linked` is that of the memories query.
INSERT INTO memories (
    row, space, hash, linked,
    id, text, namespace, kind, title, tags, source, thread, place, metadata,
    created_at, updated_at, occurred_at, expires_at, superseded_by, quality, embedding,
    hits, last_hit_at, used, last_used_at
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: update_memory
-- A whole row anew, in the order of the memories query; what says something new has to be linked to its
-- nearest again.
UPDATE memories
SET hash = ?2, id = ?3, text = ?4, namespace = ?5, kind = ?6, title = ?7, tags = ?8, source = ?9, thread = ?10,
    place = ?11, metadata = ?12, created_at = ?13, updated_at = ?14, occurred_at = ?15, expires_at = ?16,
    superseded_by = ?17, quality = ?18, embedding = ?19, hits = ?20, last_hit_at = ?21, used = ?22, last_used_at = ?23,
    linked = CASE WHEN text = ?4 AND title = ?7 THEN linked ELSE 0 END
WHERE row = ?1

-- name: insert_tag
-- A tag given twice counts once.
INSERT OR IGNORE INTO tags (space, tag, row) VALUES (?, ?, ?)

-- name: delete_tags
-- The tags of these rows; to be run while the rows are still there.
DELETE FROM tags
WHERE (space, tag, row) IN (
    SELECT m.space, tag.value, m.row
    FROM json_each(?1) AS gone
    CROSS JOIN memories AS m ON m.row = gone.value
    CROSS JOIN json_each(m.tags) AS tag
)

-- name: delete_uses
-- The questions that led to these rows; to be run while the rows are still there.
DELETE FROM uses
WHERE (space, row) IN (SELECT m.space, m.row FROM json_each(?1) AS gone CROSS JOIN memories AS m ON m.row = gone.value)

-- name: delete_memories
-- The rows themselves.
DELETE FROM memories WHERE row IN (SELECT value FROM json_each(?1))

-- name: supersede
-- Mark a memory as replaced.
UPDATE memories SET superseded_by = ?3, updated_at = ?4, hash = CAST(id AS BLOB) WHERE space = +?1 AND id = ?2

-- name: successors
-- The chain of memories that replaced this one, itself included. UNION ends it even if the chain bites its tail.
WITH RECURSIVE chain (id) AS (
    VALUES (?2)
    UNION
    SELECT m.superseded_by
    FROM chain CROSS JOIN memories AS m ON m.space = +?1 AND m.id = chain.id
    WHERE m.superseded_by IS NOT NULL
)
SELECT id FROM chain

-- name: history
-- A memory, what it replaced and what replaced it, each before what replaced it. The nearest of them are found first,
-- and a limit each way ends even what bites its tail.
WITH RECURSIVE earlier (id, steps) AS (
    SELECT id, 0 FROM memories WHERE space = +?1 AND id = ?2
    UNION ALL
    SELECT m.id, earlier.steps - 1
    FROM earlier CROSS JOIN memories AS m ON m.space = +?1 AND m.superseded_by = earlier.id
    ORDER BY 2 DESC
    LIMIT ?3 + 1
), later (id, steps) AS (
    SELECT id, 0 FROM memories WHERE space = +?1 AND id = ?2
    UNION ALL
    SELECT m.superseded_by, later.steps + 1
    FROM later CROSS JOIN memories AS m ON m.space = +?1 AND m.id = later.id
    WHERE m.superseded_by IS NOT NULL
    LIMIT ?3 + 1
)
SELECT id FROM (SELECT * FROM earlier UNION ALL SELECT * FROM later) AS version
WHERE EXISTS (SELECT 1 FROM memories AS m WHERE m.space = +?1 AND m.id = version.id)
GROUP BY id
ORDER BY min(steps), id

-- name: beside
-- The ids before and after each memory in its thread, nearest first, as two JSON arrays.
SELECT m.id,
       (SELECT json_group_array(id) FROM (
            SELECT n.id FROM memories AS n
            WHERE n.space = m.space AND n.namespace = m.namespace AND n.thread = m.thread
                  AND (n.place, n.row) < (m.place, m.row)
            ORDER BY n.place DESC, n.row DESC LIMIT ?3)),
       (SELECT json_group_array(id) FROM (
            SELECT n.id FROM memories AS n
            WHERE n.space = m.space AND n.namespace = m.namespace AND n.thread = m.thread
                  AND (n.place, n.row) > (m.place, m.row)
            ORDER BY n.place, n.row LIMIT ?3))
FROM json_each(?2) AS wanted
CROSS JOIN memories AS m ON m.space = +?1 AND m.id = wanted.value
WHERE m.thread IS NOT NULL

-- name: visible
-- Which of these ids pass a filter.
SELECT m.id FROM json_each(?) AS wanted CROSS JOIN memories AS m ON m.id = wanted.value WHERE {where}

-- name: sample
-- How many memories some namespaces hold, and the ids of those with the lowest hashes, which an index lists.
SELECT (SELECT count(*) FROM memories WHERE space = +?1 AND namespace IN (SELECT value FROM json_each(?2))),
       (SELECT json_group_array(m.id ORDER BY lowest.hash)
        FROM (
            SELECT row, substr(hash, 1, 8) AS hash FROM memories INDEXED BY memories_by_namespace
            WHERE space = +?1 AND namespace IN (SELECT value FROM json_each(?2)) ORDER BY substr(hash, 1, 8) LIMIT ?3
        ) AS lowest
        CROSS JOIN memories AS m ON m.row = lowest.row);

-- name: rows
-- Every row that passes a filter.
SELECT m.row FROM memories AS m WHERE {where}

-- name: tagged_rows
-- Every row with a tag that passes a filter.
SELECT m.row
FROM tags AS t CROSS JOIN memories AS m ON m.row = t.row
WHERE t.space = ? AND t.tag = ? AND {where}

-- name: tagged
-- Every row with a tag.
SELECT t.row FROM tags AS t WHERE t.space = ? AND t.tag = ?

-- name: page
-- Ids that pass a filter, after the given one.
SELECT m.id FROM memories AS m WHERE {where} AND m.id > ? ORDER BY m.id LIMIT ?

-- name: newest_page
-- Ids that pass a filter, the highest first.
SELECT m.id FROM memories AS m WHERE {where} ORDER BY m.id DESC LIMIT ?

-- name: newest_page_after
-- The same, below the given one.
SELECT m.id FROM memories AS m WHERE {where} AND m.id < ? ORDER BY m.id DESC LIMIT ?

-- name: pending
-- Memories that still need a vector, oldest first.
SELECT id FROM memories WHERE space = +?1 AND embedding = 'pending' ORDER BY row LIMIT ?2

-- name: unlinked
-- Memories with a vector that were not yet linked to their nearest, oldest first.
SELECT id FROM memories WHERE space = +?1 AND linked = 0 AND embedding = 'ready' ORDER BY row LIMIT ?2

-- name: marks
-- What a memory that goes to another store takes along beside its fields.
SELECT m.id, m.hash, m.linked
FROM json_each(?2) AS wanted
CROSS JOIN memories AS m ON m.space = +?1 AND m.id = wanted.value

-- name: set_ready
-- A memory has its vector.
UPDATE memories SET embedding = 'ready' WHERE row = ?1

-- name: set_failed
-- Memories that wait for a vector in vain.
UPDATE memories SET embedding = 'failed'
WHERE space = +?1 AND id IN (SELECT value FROM json_each(?2)) AND embedding = 'pending'

-- name: mark_hits
-- Count how often a memory was recalled. One by one: with a list beside it, SQLite would rather read the whole space.
UPDATE memories SET hits = hits + ?3, last_hit_at = max(coalesce(last_hit_at, ?4), ?4)
WHERE space = +?1 AND id = ?2

-- name: mark_used
-- Count that a memory was of use.
UPDATE memories SET used = used + 1, last_used_at = max(coalesce(last_used_at, ?3), ?3)
WHERE space = +?1 AND id = ?2
RETURNING 1

-- name: counts
-- How many memories a space has, how many are superseded or wait for a vector, and how many links there are.
SELECT count(*), count(superseded_by), count(*) FILTER (WHERE embedding = 'pending'),
       (SELECT count(*) FROM edges WHERE space = +?1)
FROM memories WHERE space = +?1

-- name: count_kinds
-- Memories per kind.
SELECT kind, count(*) FROM memories WHERE space = +?1 GROUP BY kind ORDER BY kind

-- name: count_namespaces
-- Memories per namespace.
SELECT namespace, count(*) FROM memories WHERE space = +?1 GROUP BY namespace ORDER BY namespace

-- name: passing
-- Which of some rows pass a filter, their ids, and whether they stand in a thread: as JSON, for every row that crosses
-- into Python has to wait for its turn there.
SELECT json_group_array(json_array(m.row, m.id, m.thread IS NOT NULL))
FROM json_each(?) AS found CROSS JOIN memories AS m ON m.row = found.value WHERE {where}

-- name: most_useful
-- How often the memory proved useful that did so most; a hit counts ?2 of a use.
SELECT coalesce(max(used + ?2 * hits), 0.0) FROM memories WHERE space = +?1

-- name: set_quality
-- What has its quality already is left alone. One by one, as `mark_hits` does.
UPDATE memories SET quality = ?3 WHERE space = +?1 AND id = ?2 AND quality IS NOT ?3 RETURNING 1
