-- The seeds' words: Postgres' own text search over the generated columns of `memories`.

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

-- name: configuration
-- Whether the server knows a text-search configuration, and whether the memories have a column for its words.
SELECT EXISTS (SELECT FROM pg_ts_config WHERE cfgname = %(name)s AND pg_ts_config_is_visible(oid)),
       EXISTS (SELECT FROM pg_attribute
               WHERE attrelid = 'memories'::regclass AND attname = %(column)s AND NOT attisdropped)

-- name: configurations
-- The text-search configurations that the server knows.
SELECT cfgname FROM pg_ts_config WHERE pg_ts_config_is_visible(oid) ORDER BY cfgname

-- name: table_size
-- How much is written anew when a column is added.
SELECT pg_table_size('memories')

-- name: not_long
-- Others wait behind whoever waits for a table of its own: rather try again later.
SET LOCAL lock_timeout = '2s'

-- name: add_column
-- The words of a configuration, kept by Postgres itself. A tsvector holds at most 1 MiB, which a longer text could
-- exceed.
ALTER TABLE memories ADD COLUMN IF NOT EXISTS {column} tsvector
GENERATED ALWAYS AS (to_tsvector('{configuration}', left(text, 200000))) STORED

-- name: add_index
-- The index of those words.
CREATE INDEX IF NOT EXISTS memories_{column} ON memories USING gin ({column})
