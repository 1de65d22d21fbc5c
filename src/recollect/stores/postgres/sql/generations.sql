-- The models that made the vectors: one answers, another may be filled beside it, old ones are kept for a while.

-- name: lock
-- Whoever changes which generation answers waits for all that write vectors, and they for it.
SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ' generation', 0))

-- name: lock_shared
-- Which generation answers stays as it is until this transaction ends.
SELECT pg_advisory_xact_lock_shared(hashtextextended(current_schema() || ' generation', 0))

-- name: lock_filling
-- Of two processes that fill a generation at once, the second replaces what the first has put.
SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ' filling', 0))

-- name: all
-- Every generation that has vectors or gets them, in the order in which they began.
SELECT number, model, dimensions, storage, state, since FROM generations WHERE state <> 'gone' ORDER BY number

-- name: add
-- A model begins.
INSERT INTO generations (model, dimensions, storage, state)
VALUES (%(model)s, %(dimensions)s, %(storage)s, %(state)s)
RETURNING number

-- name: set_state
-- A generation comes to another state.
UPDATE generations SET state = %(state)s, since = now() WHERE number = %(number)s

-- name: create_table
-- The vectors of a generation, each within its row: comparing many of them is twice as slow where they lie apart.
CREATE TABLE {table} (
    space  integer NOT NULL,
    row    bigint NOT NULL,
    vector {storage}({dimensions}) NOT NULL,
    PRIMARY KEY (space, row),
    FOREIGN KEY (space, row) REFERENCES memories (space, row) ON DELETE CASCADE
);
ALTER TABLE {table} ALTER COLUMN vector SET STORAGE PLAIN

-- name: drop_table
-- All vectors of a generation.
DROP TABLE IF EXISTS {table}

-- name: enter_space
-- Under row security: which space is looked at now.
SELECT set_config('recollect.space', %(space)s::text, true)

-- name: spaces
-- The numbers of all spaces, by their names.
SELECT name, number FROM spaces ORDER BY number

-- name: count
-- How many vectors of a generation a space has.
SELECT count(*) FROM {table} WHERE space = %(space)s

-- name: unembedded
-- Memories of a space after an id that have a vector, but none of this generation.
SELECT m.id FROM memories AS m
WHERE m.space = %(space)s AND m.id > %(after)s AND m.embedding = 'ready'
      AND NOT EXISTS (SELECT FROM {table} AS v WHERE v.space = m.space AND v.row = m.row)
ORDER BY m.id
LIMIT %(limit)s

-- name: lacking
-- Memories of a space that have a vector of the generation that answers ({current}) and none of another.
SELECT m.id, m.row FROM {current} AS c JOIN memories AS m ON m.space = c.space AND m.row = c.row
WHERE c.space = %(space)s AND NOT EXISTS (SELECT FROM {table} AS v WHERE v.space = c.space AND v.row = c.row)
LIMIT %(limit)s

-- name: wait_again
-- Memories that wait for their vectors.
UPDATE memories SET embedding = 'pending' WHERE space = %(space)s AND row = ANY(%(rows)s)

-- name: watch_vectors
-- The triggers of a generation's vectors.
CREATE TRIGGER note_embedded AFTER INSERT ON {table} REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION note_vectors();
CREATE TRIGGER note_unembedded AFTER DELETE ON {table} REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION note_vectors()

-- name: rest
-- No index is to be told.
ALTER TABLE {table} DISABLE TRIGGER note_embedded, DISABLE TRIGGER note_unembedded

-- name: is_fed
-- Whether any index is told of changes.
SELECT FROM indexes LIMIT 1

-- name: note_old_links
-- Every space has links to be made anew.
INSERT INTO facts (name, value) SELECT 'old_links', json_agg(number) FROM spaces HAVING count(*) > 0
ON CONFLICT (name) DO UPDATE SET value = excluded.value

-- name: old_links
-- A space whose links are still those of an earlier generation.
SELECT e.space::integer FROM facts AS f CROSS JOIN json_array_elements_text(f.value::json) AS e (space)
WHERE f.name = 'old_links'
LIMIT 1

-- name: wait_for_links
-- All memories of a space wait for links to their nearest.
INSERT INTO unlinked (space, row) SELECT space, row FROM memories WHERE space = %(space)s ORDER BY row
ON CONFLICT (space, row) DO NOTHING

-- name: drop_links
-- All links of one relation in a space.
DELETE FROM edges WHERE space = %(space)s AND relation = %(relation)s

-- name: note_links_dropped
-- A space is done.
UPDATE facts
SET value = (
    SELECT coalesce(json_agg(e.space::integer), '[]')
    FROM json_array_elements_text(facts.value::json) AS e (space) WHERE e.space::integer <> %(space)s
)
WHERE name = 'old_links'
