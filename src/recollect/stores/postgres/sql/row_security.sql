-- name: secure
-- Only rows of the space that the transaction names can be read or written, by the tables' owner too.
ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
ALTER TABLE {table} FORCE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own_space ON {table};
CREATE POLICY own_space ON {table} USING (space = nullif(current_setting('recollect.space', true), '')::integer)

-- name: tables
-- Every table whose rows belong to a space; but not the outbox, which holds ids alone and is read for all spaces at once.
-- Tokens belong to no space: a server looks one up before it knows which spaces it is for.
SELECT c.relname
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'space' AND NOT a.attisdropped
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND c.relname <> 'outbox'
ORDER BY c.relname

-- name: is_on
-- Whether row security was asked for.
SELECT value FROM facts WHERE name = 'row_security'

-- name: free_words
-- A condition that might tell of the rows it looks at must wait until row security has let them through, and cannot use
-- an index then. `@@` tells nothing: it compares, and fails on no text.
ALTER FUNCTION pg_catalog.ts_match_vq(tsvector, tsquery) LEAKPROOF
