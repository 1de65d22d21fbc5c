-- Version 2.

-- Grants: an offer until the receiving space accepts it. Those that are in use stay in use: the rows that are there get
-- the first default, and row security, which hides them from an UPDATE, does not hide them from that.
ALTER TABLE grants ADD COLUMN accepted boolean NOT NULL DEFAULT true;
ALTER TABLE grants ALTER COLUMN accepted SET DEFAULT false;
DROP INDEX grants_by_grantee;
CREATE INDEX grants_by_grantee ON grants (grantee, accepted);

-- What stands for a namespace is found by its lowest hashes.
DROP INDEX memories_by_namespace;
CREATE INDEX memories_by_namespace ON memories (space, namespace, (substr(hash, 1, 8)));

-- Hits and uses: what was returned, and what proved useful.
ALTER TABLE hits ADD COLUMN used bigint NOT NULL DEFAULT 0, ADD COLUMN last_used_at timestamptz;
ALTER TABLE spaces ADD COLUMN scored_at timestamptz DEFAULT now(), ADD COLUMN scored_after text;

-- Sign-in sessions.

-- Who is signed in to the dashboard: the SHA-256 of what the browser's cookie holds, and the token it stands for. Without
-- row security, as tokens are.
CREATE TABLE sessions (
    digest     bytea PRIMARY KEY,
    token      text COLLATE "C" NOT NULL REFERENCES tokens (id),
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);

CREATE INDEX sessions_by_token ON sessions (token, created_at);

-- Replies: who owns a key that is under way.
ALTER TABLE replies ADD COLUMN owner bigint;

-- Sources: long ones have a place in the index.
DROP INDEX memories_by_source;
CREATE INDEX memories_by_source ON memories (space, (left(source, 200)));

-- Text indexes: built in the background.
-- The words of a text under a text-search configuration. A tsvector holds at most 1 MiB: of a text with more words than
-- that, the beginning.
CREATE FUNCTION text_words(configuration regconfig, whole text) RETURNS tsvector LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    characters integer := length(whole);
BEGIN
    IF octet_length(whole) <= 200000 THEN
        RETURN to_tsvector(configuration, whole);
    END IF;
    LOOP
        BEGIN
            RETURN to_tsvector(configuration, left(whole, characters));
        EXCEPTION WHEN program_limit_exceeded THEN
            characters := characters / 10 * 9;
        END;
    END LOOP;
END
$$;

CREATE OR REPLACE FUNCTION note_memories() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('recollect.filling', true) = 'on' THEN  -- words that no external index holds
        RETURN NULL;
    END IF;
    INSERT INTO outbox (space, index_name, id)
    SELECT changed.space, i.name, changed.id FROM changed CROSS JOIN indexes AS i WHERE i.leg = ANY (TG_ARGV)
    ON CONFLICT (space, index_name, id) DO UPDATE SET number = excluded.number, noted_at = excluded.noted_at;
    RETURN NULL;
END
$$;

-- Columns that Postgres kept by itself are filled by triggers from now on, as new ones are. Of longer texts they held the
-- first 200,000 characters.
DO $do$
DECLARE
    name text;
    forced boolean := (SELECT relforcerowsecurity FROM pg_class WHERE oid = 'memories'::regclass);
BEGIN
    ALTER TABLE memories NO FORCE ROW LEVEL SECURITY;
    FOR name IN
        SELECT substr(attname, length('words_') + 1) FROM pg_attribute
        WHERE attrelid = 'memories'::regclass AND attgenerated = 's' AND starts_with(attname, 'words_')
    LOOP
        EXECUTE format('ALTER TABLE memories ALTER COLUMN %I DROP EXPRESSION', 'words_' || name);
        EXECUTE format(
            'CREATE FUNCTION %1$I() RETURNS trigger LANGUAGE plpgsql AS $$ '
            'BEGIN NEW.%2$I := text_words(%3$L, NEW.text); RETURN NEW; END $$',
            'fill_words_' || name, 'words_' || name, name);
        EXECUTE format(
            'CREATE TRIGGER %1$I BEFORE INSERT OR UPDATE OF text ON memories FOR EACH ROW EXECUTE FUNCTION %1$I()',
            'fill_words_' || name);
        PERFORM set_config('recollect.filling', 'on', true);
        EXECUTE format(
            'UPDATE memories SET %1$I = text_words(%2$L, text) WHERE octet_length(text) > 200000',
            'words_' || name, name);
        INSERT INTO facts (name, value) VALUES ('words_' || name, 'ready');
    END LOOP;
    IF forced THEN
        ALTER TABLE memories FORCE ROW LEVEL SECURITY;
    END IF;
END
$do$;

-- Vectors: which of them are a space's sample.
CREATE FUNCTION text_digest(title text, body text) RETURNS bytea LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN substring(sha256(convert_to(title || E'\n' || body, 'UTF8')) FOR 8);
END
$$;

CREATE INDEX memories_by_digest ON memories (space, text_digest(title, text));
