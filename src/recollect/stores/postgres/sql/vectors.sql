-- Vectors, one table and one index for each generation. {table} and {index} are their names, {storage} is the type of
-- the vectors there, {where} and {rows} are a filter's.

-- name: delete_vectors
-- Vectors of these rows.
DELETE FROM {table} WHERE space = %(space)s AND row = ANY(%(rows)s)

-- name: note_changes
-- So many vectors of a space are others now.
INSERT INTO sizes (space, memories, length, changes) VALUES (%(space)s, 0, 0, %(changes)s)

-- name: size
-- How many memories a space holds, and how often anything in it was ever changed.
SELECT coalesce(sum(memories), 0)::bigint, coalesce(sum(changes), 0)::bigint FROM sizes WHERE space = %(space)s

-- name: vectors_by_id
-- The vectors of some memories.
SELECT m.id, vector_send(v.vector::vector)
FROM memories AS m JOIN {table} AS v ON v.space = m.space AND v.row = m.row
WHERE m.space = %(space)s AND m.id = ANY(%(ids)s)

-- name: ids_by_row
-- The ids of some rows.
SELECT row, id FROM memories WHERE space = %(space)s AND row = ANY(%(rows)s)

-- name: vectors_by_row
-- The vectors of some rows.
SELECT row, vector_send(vector::vector) FROM {table} WHERE space = %(space)s AND row = ANY(%(rows)s)

-- name: sample
-- The rows of a space that have a vector and whose texts have the lowest digests, and which transaction wrote each
-- vector. The memories come in the order of their index, and each is looked up in turn (LIMIT 1 keeps it so).
SELECT m.row, v.written_by
FROM memories AS m CROSS JOIN LATERAL (
    SELECT xmin::text::bigint AS written_by FROM {table} WHERE space = %(space)s AND row = m.row LIMIT 1
) AS v
WHERE m.space = %(space)s
ORDER BY text_digest(m.title, m.text)
LIMIT %(limit)s

-- name: count_passing
-- How many of some rows pass a filter.
SELECT count(*) FROM memories AS m WHERE m.row = ANY(%(sample)s) AND {where}

-- name: part
-- Some vectors of a space, in the order of its rows.
SELECT row, vector_send(vector::vector) FROM {table}
WHERE space = %(space)s AND row > %(after)s
ORDER BY row
LIMIT %(limit)s

-- name: compare
-- The nearest of all that pass. The vectors are fetched row by row (OFFSET 0 keeps it so), and those that tie with the
-- last one are kept until their ids are known, for ids decide.
WITH passing AS MATERIALIZED ({rows}),
nearest AS (
    SELECT passing.row, round((1 - compared.distance) * 1e6) / 1e6 AS score
    FROM passing CROSS JOIN LATERAL (
        SELECT vector <=> %(vector)s::{storage} AS distance FROM {table}
        WHERE space = %(space)s AND row = passing.row
        OFFSET 0
    ) AS compared
    ORDER BY score DESC
    FETCH FIRST %(limit)s ROWS WITH TIES
)
SELECT m.id, nearest.score, m.thread IS NOT NULL
FROM nearest JOIN memories AS m ON m.space = %(space)s AND m.row = nearest.row
ORDER BY nearest.score DESC, m.id
LIMIT %(limit)s

-- name: walk
-- Begins to walk the index: about the nearest first.
DECLARE walk NO SCROLL CURSOR FOR
SELECT round((1 - (v.vector <=> %(vector)s::{storage})) * 1e6) / 1e6, v.row
FROM {table} AS v{among}
WHERE v.space = %(space)s
ORDER BY v.vector <=> %(vector)s::{storage}

-- name: among
-- Only those that pass. Each memory is looked up by its row before it is filtered (OFFSET 0 keeps it so), for the filter's
-- own index would be read as a whole for each of them.
 CROSS JOIN LATERAL (
    SELECT FROM (SELECT * FROM memories WHERE space = v.space AND row = v.row OFFSET 0) AS m WHERE {where}
) AS passing

-- name: next_part
-- The next that a walk comes by.
FETCH {part} FROM walk

-- name: walked
-- Those of some rows that pass, looked up one by one in the same way.
SELECT m.row, m.id, m.thread IS NOT NULL
FROM unnest(%(rows)s::bigint[]) AS walked (row) CROSS JOIN LATERAL (
    SELECT * FROM memories WHERE space = %(space)s AND row = walked.row OFFSET 0
) AS m
WHERE {where}

-- name: walk_from_each
-- About the nearest to each of some memories, itself among them, by the index.
WITH own AS MATERIALIZED (
    SELECT m.id, v.vector
    FROM memories AS m JOIN {table} AS v ON v.space = m.space AND v.row = m.row
    WHERE m.space = %(space)s AND m.id = ANY(%(ids)s)
)
SELECT own.id, nearest.row, m.id, round((1 - nearest.distance) * 1e6) / 1e6
FROM own
CROSS JOIN LATERAL (
    SELECT v.row, v.vector <=> own.vector AS distance
    FROM {table} AS v
    WHERE v.space = %(space)s
    ORDER BY v.vector <=> own.vector
    LIMIT %(limit)s
) AS nearest
JOIN memories AS m ON m.space = %(space)s AND m.row = nearest.row

-- name: index_state
-- How many pages a table has, and whether its index is there: valid, not valid (being built, or left by a builder that
-- died), or none.
SELECT pg_relation_size(t.oid) / current_setting('block_size')::integer, i.indisvalid, i.indexrelid::regclass::text
FROM (SELECT %(table)s::regclass AS oid) AS t
LEFT JOIN (pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid AND c.relname = %(index)s) ON i.indrelid = t.oid

-- name: lock_building
-- Whether nobody else builds this index. Held by a transaction that does nothing else. Without parameters, for the
-- snapshot of a statement that has some is kept until the next, and the build would wait for its end.
SELECT pg_try_advisory_xact_lock(hashtextextended(current_schema() || ' {index}', 0))

-- name: never_idle
-- A transaction that waits for another connection's work is not forgotten.
SET LOCAL idle_in_transaction_session_timeout = 0

-- name: lock_table
-- Fails at once while anybody builds an index here, even one whose client is gone.
LOCK TABLE {table} IN SHARE UPDATE EXCLUSIVE MODE NOWAIT

-- name: drop_index
-- Without keeping anybody from reading or writing meanwhile.
DROP INDEX CONCURRENTLY IF EXISTS {index}

-- name: give_memory
-- Room for the whole graph, unless that is too much, and never less than the server gives by itself.
SELECT set_config(name, greatest(setting::bigint, %(kilobytes)s)::text, false)
FROM pg_settings WHERE name = 'maintenance_work_mem'

-- name: create_index
-- Without keeping anybody from reading or writing meanwhile.
CREATE INDEX CONCURRENTLY IF NOT EXISTS {index} ON {table}
USING hnsw (vector {storage}_cosine_ops) WITH (m = 16, ef_construction = 64)

-- name: analyze
-- What Postgres should know about the tables after a large load. Not about the vectors: that takes long, and no plan
-- asks for it.
ANALYZE memories, tags, words, edges, {table} (space, row)
