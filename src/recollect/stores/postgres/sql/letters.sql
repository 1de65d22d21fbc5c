-- name: are_known
-- Whether the parser of this session tells letters from signs: a word in curly quotes is found without them.
SELECT to_tsvector('simple', chr(8220) || 'word' || chr(8221)) @@ 'word'::tsquery

-- name: try
-- Fails where the system lacks the locale.
CREATE COLLATION pg_temp.recollect_letters (provider = libc, locale = {locale})

-- name: change
-- The LC_CTYPE of all databases, for connections to come.
UPDATE pg_database SET datctype = %(locale)s WHERE datctype IN ('C', 'POSIX')

-- name: stores
-- The schemas that hold a store.
SELECT n.nspname
FROM pg_namespace AS n
WHERE EXISTS (SELECT FROM pg_class AS c WHERE c.relnamespace = n.oid AND c.relname = 'facts')
  AND EXISTS (SELECT FROM pg_class AS c WHERE c.relnamespace = n.oid AND c.relname = 'memories')

-- name: note
-- Have the words of a store read again when it is next opened.
INSERT INTO {schema}.facts (name, value) VALUES ('words', 'outdated')
ON CONFLICT (name) DO UPDATE SET value = excluded.value

-- name: read_again
-- Every column of words is made anew, in one pass over the table. External indexes have nothing to learn from it.
DO $$
DECLARE
    changes text;
BEGIN
    SELECT string_agg(format('%1$I = text_words(%2$L, text)', attname, substr(attname, length('words_') + 1)), ', ')
    INTO changes
    FROM pg_attribute
    WHERE attrelid = 'memories'::regclass AND atttypid = 'tsvector'::regtype AND starts_with(attname, 'words_');
    IF changes IS NOT NULL THEN
        PERFORM set_config('recollect.filling', 'on', true);
        EXECUTE 'UPDATE memories SET ' || changes;
    END IF;
END
$$

-- name: forget_note
-- The words of this store are right again.
DELETE FROM facts WHERE name = 'words'
