-- Memories by id, by hash, by thread, and what is kept about them. `{memory}` stands for the statement of that name,
-- `{ids}` and the like for a list that is given: see rows.py.

-- name: space_number
-- The number of a space, if it holds anything.
SELECT number FROM spaces WHERE name = %(name)s

-- name: add_space
-- A space begins with its first memory. Nothing comes back where another transaction was first.
INSERT INTO spaces (name) VALUES (%(name)s) ON CONFLICT (name) DO NOTHING RETURNING number

-- name: enter_space
-- For a transaction that began before its space had a number: the rows that row security lets through.
SELECT set_config('recollect.space', %(space)s::text, true)

-- name: spaces
-- All spaces by name.
SELECT name FROM spaces ORDER BY name

-- name: memory
-- Memories as they are read.
SELECT m.row, m.hash, m.id, m.text, m.namespace, m.kind, m.title, m.tags, m.source, m.thread, m.place,
       m.metadata::text, m.created_at, m.updated_at, m.occurred_at, m.expires_at, m.superseded_by, m.quality,
       m.embedding, coalesce(h.hits, 0), h.last_hit_at, coalesce(h.used, 0), h.last_used_at
FROM memories AS m
LEFT JOIN LATERAL (SELECT * FROM hits WHERE space = m.space AND row = m.row LIMIT 1) AS h ON true

-- name: memories
-- Memories by id.
{memory}
WHERE m.space = %(space)s AND m.id = ANY({ids})

-- name: changing
-- One memory by id, which nobody else changes until the transaction ends.
{memory}
WHERE m.space = %(space)s AND m.id = %(id)s
FOR NO KEY UPDATE OF m

-- name: copies
-- Memories by id or by hash.
{memory}
WHERE m.space = %(space)s AND (m.id = ANY({ids}) OR m.hash = ANY({hashes}))

-- name: page
-- Memories that pass a filter, after the given id.
{memory}
WHERE {where} AND m.id > %(after)s
ORDER BY m.id
LIMIT %(limit)s

-- name: newest_page
-- Memories that pass a filter, the highest ids first.
{memory}
WHERE {where}
ORDER BY m.id DESC
LIMIT %(limit)s

-- name: newest_page_after
-- The same, below the given id.
{memory}
WHERE {where} AND m.id < %(after)s
ORDER BY m.id DESC
LIMIT %(limit)s

-- name: pending
-- Memories that still need a vector, oldest first.
{memory}
WHERE m.space = %(space)s AND m.embedding = 'pending'
ORDER BY m.row
LIMIT %(limit)s

-- name: row_numbers
-- Ids and row numbers of those ids that are in this space.
SELECT id, row FROM memories WHERE space = %(space)s AND id = ANY({ids})

-- name: originals
-- Ids and hashes of the memories with some ids or hashes, and whether they have expired.
SELECT id, hash, coalesce(expires_at <= %(now)s, false)
FROM memories
WHERE space = %(space)s AND (id = ANY({ids}) OR hash = ANY({hashes}))

-- name: hold_originals
-- Those of these memories that are still here, and their hashes, which nobody forgets or changes until the transaction
-- ends.
SELECT id, hash FROM memories
WHERE space = %(space)s AND id = ANY({ids})
ORDER BY row
FOR KEY SHARE

-- name: ids_by_hash
-- The exact copy of a memory, if there is one.
SELECT id FROM memories WHERE space = %(space)s AND hash = %(hash)s

-- name: release_expired
-- Memories that have expired are nobody's original any more: the same may be remembered again.
UPDATE memories SET hash = convert_to(id, 'UTF8')
WHERE space = %(space)s AND hash = ANY({hashes}) AND expires_at <= %(now)s

-- name: new_rows
-- Row numbers that nobody had yet.
SELECT nextval('row_numbers') FROM generate_series(1, %(count)s)

-- name: lock_threads
-- Let nobody else write into these threads until the transaction ends. One lock for many threads, all taken in one
-- order: a batch of a thousand threads would need more locks than a server has.
SELECT pg_advisory_xact_lock(key)
FROM (
    SELECT DISTINCT hashtextextended(current_schema() || ' thread ' || (hashtext(thread) & 255), %(space)s) AS key
    FROM unnest(%(threads)b::text[]) AS thread
    ORDER BY key
) AS keys

-- name: lock_successions
-- Let nobody else supersede a memory of this space until the transaction ends: two at once could close a circle.
SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ' supersede', %(space)s))

-- name: last_places
-- The place of the last memory of each of these threads.
SELECT t.namespace, t.thread,
       (SELECT max(m.place) FROM memories AS m
        WHERE m.space = %(space)s AND m.thread = t.thread AND m.namespace = t.namespace)
FROM unnest(%(namespaces)b::text[], %(threads)b::text[]) AS t (namespace, thread)

-- name: threads
-- In which threads these memories are.
SELECT DISTINCT namespace, thread FROM memories
WHERE space = %(space)s AND id = ANY({ids}) AND thread IS NOT NULL

-- name: forgetting
-- The rows of these ids and their threads, which nobody else changes or links to until the transaction ends.
SELECT row, namespace, thread FROM memories
WHERE space = %(space)s AND id = ANY({ids})
ORDER BY row
FOR UPDATE

-- name: delete_memories
-- The rows themselves, and by cascade all that refers to them.
DELETE FROM memories WHERE space = %(space)s AND row = ANY({rows})

-- name: update_memory
-- A whole row anew.
UPDATE memories
SET hash = %(hash)s, text = %(text)s, namespace = %(namespace)s, kind = %(kind)s, title = %(title)s, tags = %(tags)s,
    source = %(source)s, thread = %(thread)s, place = %(place)s, metadata = %(metadata)s, updated_at = %(updated_at)s,
    occurred_at = %(occurred_at)s, expires_at = %(expires_at)s, quality = %(quality)s, embedding = %(embedding)s
WHERE space = %(space)s AND row = %(row)s

-- name: add_tags
-- The tags of rows, to be searched by. A tag given twice counts once.
INSERT INTO tags (space, tag, row)
SELECT DISTINCT m.space, tag, m.row
FROM memories AS m CROSS JOIN unnest(m.tags) AS tag
WHERE m.space = %(space)s AND m.row = ANY({rows})

-- name: delete_tags
-- The tags of a row.
DELETE FROM tags WHERE space = %(space)s AND row = %(row)s

-- name: add_unlinked
-- What says something new has to be linked to its nearest.
INSERT INTO unlinked (space, row) SELECT %(space)s, unnest(%(rows)b::bigint[]) ON CONFLICT (space, row) DO NOTHING

-- name: supersede
-- Mark a memory as replaced.
UPDATE memories
SET superseded_by = %(new)s, updated_at = %(now)s, hash = convert_to(id, 'UTF8')
WHERE space = %(space)s AND id = %(old)s

-- name: successors
-- The chain of memories that replaced this one, itself included. UNION ends it even if the chain bites its tail.
WITH RECURSIVE chain (id) AS (
    SELECT %(id)s::text COLLATE "C"
    UNION
    SELECT m.superseded_by
    FROM chain JOIN memories AS m ON m.space = %(space)s AND m.id = chain.id
    WHERE m.superseded_by IS NOT NULL
)
SELECT id FROM chain

-- name: history
-- A memory, what it replaced and what replaced it, each before what replaced it. A recursion goes step by step, and no
-- farther than somebody reads: the nearest of them are found first, and a limit each way ends even what bites its tail.
WITH RECURSIVE earlier (id, steps) AS (
    SELECT id, 0 FROM memories WHERE space = %(space)s AND id = %(id)s
    UNION ALL
    SELECT m.id, earlier.steps - 1
    FROM earlier JOIN memories AS m ON m.space = %(space)s AND m.superseded_by = earlier.id
), later (id, steps) AS (
    SELECT id, 0 FROM memories WHERE space = %(space)s AND id = %(id)s
    UNION ALL
    SELECT m.superseded_by, later.steps + 1
    FROM later JOIN memories AS m ON m.space = %(space)s AND m.id = later.id
    WHERE m.superseded_by IS NOT NULL
)
SELECT id
FROM ((SELECT * FROM earlier LIMIT %(limit)s + 1) UNION ALL (SELECT * FROM later LIMIT %(limit)s + 1)) AS found
WHERE EXISTS (SELECT FROM memories AS m WHERE m.space = %(space)s AND m.id = found.id)
GROUP BY id
ORDER BY min(steps), id

-- name: beside
-- The ids before and after each memory in its thread, nearest first.
SELECT m.id,
       ARRAY(SELECT n.id FROM memories AS n
             WHERE n.space = m.space AND n.thread = m.thread AND n.namespace = m.namespace
                   AND (n.place, n.row) < (m.place, m.row)
             ORDER BY n.place DESC, n.row DESC LIMIT %(reach)s),
       ARRAY(SELECT n.id FROM memories AS n
             WHERE n.space = m.space AND n.thread = m.thread AND n.namespace = m.namespace
                   AND (n.place, n.row) > (m.place, m.row)
             ORDER BY n.place, n.row LIMIT %(reach)s)
FROM memories AS m
WHERE m.space = %(space)s AND m.id = ANY({ids}) AND m.thread IS NOT NULL

-- name: visible
-- Which of these ids pass a filter.
SELECT m.id FROM memories AS m WHERE {where} AND m.id = ANY({ids})

-- name: sample
-- How many memories some namespaces hold, and the ids of those with the lowest hashes, which an index lists.
SELECT (SELECT count(*) FROM memories WHERE space = %(space)s AND namespace = ANY(%(namespaces)s)),
       ARRAY(
           SELECT lowest.id
           FROM unnest(%(namespaces)s::text[]) AS one (namespace)
           CROSS JOIN LATERAL (
               SELECT id, hash FROM memories WHERE space = %(space)s AND namespace = one.namespace
               ORDER BY substr(hash, 1, 8) LIMIT %(limit)s
           ) AS lowest
           ORDER BY lowest.hash
           LIMIT %(limit)s
       )

-- name: rows
-- Every row that passes a filter.
SELECT m.row FROM memories AS m WHERE {where}

-- name: embedding
-- What these memories say, which nobody else changes until the transaction ends.
SELECT id, row, title, text FROM memories
WHERE space = %(space)s AND id = ANY({ids})
ORDER BY row
FOR NO KEY UPDATE

-- name: set_ready
-- Memories have their vector.
UPDATE memories SET embedding = 'ready' WHERE space = %(space)s AND row = ANY({rows}) AND embedding <> 'ready'

-- name: set_failed
-- Memories that wait for a vector in vain.
WITH waiting AS (
    SELECT row FROM memories
    WHERE space = %(space)s AND id = ANY({ids}) AND embedding = 'pending'
    ORDER BY row
    FOR NO KEY UPDATE
)
UPDATE memories AS m SET embedding = 'failed' FROM waiting AS w WHERE m.space = %(space)s AND m.row = w.row

-- name: unlinked
-- Memories with a vector that were not yet linked to their nearest, oldest first.
SELECT m.id
FROM (SELECT row FROM unlinked WHERE space = %(space)s ORDER BY row) AS u
CROSS JOIN LATERAL (
    SELECT id FROM memories WHERE space = %(space)s AND row = u.row AND embedding = 'ready' LIMIT 1
) AS m
ORDER BY u.row
LIMIT %(limit)s

-- name: marks
-- What a memory that goes to another store takes along beside its fields.
SELECT m.id, m.hash, NOT EXISTS (SELECT FROM unlinked AS u WHERE u.space = m.space AND u.row = m.row)
FROM memories AS m
WHERE m.space = %(space)s AND m.id = ANY({ids})

-- name: mark_hits
-- Count how often memories were recalled. Locked in one order, so that two who count do not wait for each other.
INSERT INTO hits (space, row, hits, last_hit_at)
SELECT m.space, m.row, counted.hits, %(now)s
FROM unnest(%(ids)b::text[], %(counts)b::bigint[]) AS counted (id, hits)
JOIN memories AS m ON m.space = %(space)s AND m.id = ANY({ids}) AND m.id = counted.id
ORDER BY m.row
FOR KEY SHARE OF m
ON CONFLICT (space, row) DO UPDATE
SET hits = hits.hits + excluded.hits, last_hit_at = greatest(hits.last_hit_at, excluded.last_hit_at)

-- name: mark_used
-- Count that memories were of use, in the same order.
INSERT INTO hits (space, row, hits, used, last_used_at)
SELECT m.space, m.row, 0, 1, %(now)s
FROM memories AS m
WHERE m.space = %(space)s AND m.id = ANY({ids})
ORDER BY m.row
FOR KEY SHARE OF m
ON CONFLICT (space, row) DO UPDATE
SET used = hits.used + 1, last_used_at = greatest(hits.last_used_at, excluded.last_used_at)

-- name: is_unanalyzed
-- Whether the memories were never analyzed.
SELECT reltuples < 0 FROM pg_class WHERE oid = 'memories'::regclass

-- name: analyze
-- So that the planner knows what there is.
ANALYZE memories, tags, words, unlinked, edges

-- name: counts
-- Memories per kind and namespace: how many, how many are superseded or wait for a vector; and the links of the space.
SELECT kind, namespace, count(*), count(superseded_by), count(*) FILTER (WHERE embedding = 'pending'),
       (SELECT count(*) FROM edges WHERE space = %(space)s)
FROM memories
WHERE space = %(space)s
GROUP BY kind, namespace
ORDER BY kind, namespace

-- name: most_useful
-- How often the memory proved useful that did so most; a hit counts `per_hit` of a use.
SELECT coalesce(max(used + %(per_hit)s::double precision * hits), 0) FROM hits WHERE space = %(space)s

-- name: set_qualities
-- What has its quality already is left alone: a row that changes is written anew. Locked in one order, as by all others.
WITH changing AS (
    SELECT m.row, given.quality
    FROM unnest(%(ids)b::text[], %(qualities)b::double precision[]) AS given (id, quality)
    JOIN memories AS m ON m.space = %(space)s AND m.id = ANY({ids}) AND m.id = given.id
    WHERE m.quality IS DISTINCT FROM given.quality
    ORDER BY m.row
    FOR NO KEY UPDATE OF m
)
UPDATE memories AS m SET quality = c.quality FROM changing AS c WHERE m.space = %(space)s AND m.row = c.row
