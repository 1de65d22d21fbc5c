-- Version 2.

-- Grants: an offer until the receiving space accepts it. Those that are in use stay in use: the rows that are there get
-- the first default, and row security, which hides them from an UPDATE, does not hide them from that.
ALTER TABLE grants ADD COLUMN accepted boolean NOT NULL DEFAULT true;
ALTER TABLE grants ALTER COLUMN accepted SET DEFAULT false;
DROP INDEX grants_by_grantee;
CREATE INDEX grants_by_grantee ON grants (grantee, accepted);

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

-- Text indexes: built in the background.

-- Vectors: which of them are a space's sample.
CREATE FUNCTION text_digest(title text, body text) RETURNS bytea LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN substring(sha256(convert_to(title || E'\n' || body, 'UTF8')) FOR 8);
END
$$;

CREATE INDEX memories_by_digest ON memories (space, text_digest(title, text));
