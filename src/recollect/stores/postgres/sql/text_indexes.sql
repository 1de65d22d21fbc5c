-- The seeds' words: Postgres' own text search over columns of `memories`.

-- name: text_matches
-- Memories whose words answer the question.
SELECT m.id, {rank}(m.{column}, query)::float8 AS score
FROM memories AS m, {reading}('{configuration}', %(text)s) AS query
WHERE m.{column} @@ query AND {where}

-- name: title_matches
-- Memories whose title contains the whole question.
SELECT m.id, %(boost)s::float8 AS score
FROM memories AS m
WHERE m.title <> '' AND m.title ILIKE %(title)s AND {where}

-- name: best_matches
-- All matches together, best first.
SELECT found.id, sum(found.score) AS score
FROM ({matches}) AS found
GROUP BY found.id
ORDER BY score DESC, found.id
LIMIT %(limit)s

-- name: state
-- Whether the server knows a text-search configuration, how far its index is, how many memories there are, about, and
-- how many bytes they take.
SELECT EXISTS (SELECT FROM pg_ts_config WHERE cfgname = %(name)s AND pg_ts_config_is_visible(oid)),
       (SELECT value FROM facts WHERE name = %(column)s),
       (SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = 'memories'::regclass),
       pg_table_size('memories')

-- name: configurations
-- The text-search configurations that the server knows.
SELECT cfgname FROM pg_ts_config WHERE pg_ts_config_is_visible(oid) ORDER BY cfgname

-- name: set_state
-- How far the index of a configuration is.
INSERT INTO facts (name, value) VALUES (%(column)s, %(state)s) ON CONFLICT (name) DO UPDATE SET value = excluded.value

-- name: try_lock
-- Whether nobody else builds this index. Held until this connection ends, at the latest.
SELECT pg_try_advisory_lock(hashtextextended(current_schema() || ' ' || %(column)s, 0))

-- name: unlock
-- Let others.
SELECT pg_advisory_unlock(hashtextextended(current_schema() || ' ' || %(column)s, 0))

-- name: not_long
-- Others wait behind whoever waits for a table of its own: rather try again later.
SET LOCAL lock_timeout = '2s'

-- name: add_column
-- A column for the words of a configuration, which is empty, and so there at once; what is written from now on fills it.
ALTER TABLE memories ADD COLUMN IF NOT EXISTS {column} tsvector;
CREATE OR REPLACE FUNCTION fill_{column}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.{column} := text_words('{configuration}', NEW.text);
    RETURN NEW;
END
$$;
CREATE OR REPLACE TRIGGER fill_{column} BEFORE INSERT OR UPDATE OF text ON memories
    FOR EACH ROW EXECUTE FUNCTION fill_{column}()

-- name: fill_quietly
-- A transaction that fills memories of one space in: external indexes have nothing to learn from it, and it gives way to
-- others before Postgres looks for who waits for whom.
SELECT set_config('recollect.space', %(space)s::text, true), set_config('recollect.filling', 'on', true),
       set_config('lock_timeout', '500ms', true)

-- name: next_rows
-- The next memories of a space.
SELECT row FROM memories WHERE space = %(space)s AND row > %(row)s ORDER BY row LIMIT %(most)s

-- name: next_space
-- The space after one.
SELECT number FROM spaces WHERE number > %(space)s ORDER BY number LIMIT 1

-- name: fill
-- The words of some memories that have none yet.
UPDATE memories SET {column} = text_words('{configuration}', text)
WHERE space = %(space)s AND row = ANY(%(rows)s) AND {column} IS NULL

-- name: has_index
-- Whether an index is there and complete.
SELECT EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass(%(index)s) AND indisvalid)

-- name: drop_index
-- What somebody left unfinished.
DROP INDEX CONCURRENTLY IF EXISTS memories_{column}

-- name: add_index
-- The index of those words, while others read and write.
CREATE INDEX CONCURRENTLY memories_{column} ON memories USING gin ({column})
