-- Version 3.

-- Grants: an offer until the receiving space accepts it. Those that are in use stay in use.
ALTER TABLE grants ADD COLUMN accepted INTEGER NOT NULL DEFAULT 0 CHECK (accepted IN (0, 1));
UPDATE grants SET accepted = 1;
DROP INDEX grants_by_grantee;
CREATE INDEX grants_by_grantee ON grants (grantee, accepted);

-- What stands for a namespace is found by its lowest hashes.
DROP INDEX memories_by_namespace;
CREATE INDEX memories_by_namespace ON memories (space, namespace, substr(hash, 1, 8));

-- Hits and uses: what was returned, and what proved useful.
ALTER TABLE memories ADD COLUMN used INTEGER NOT NULL DEFAULT 0;
ALTER TABLE memories ADD COLUMN last_used_at INTEGER;
ALTER TABLE spaces ADD COLUMN scored_at INTEGER;
ALTER TABLE spaces ADD COLUMN scored_after TEXT;
UPDATE spaces SET scored_at = CAST(unixepoch('subsec') * 1000000 AS INTEGER);

-- Sign-in sessions.

-- Who is signed in to the dashboard: the SHA-256 of what the browser's cookie holds, and the token it stands for.
CREATE TABLE sessions (
    digest     BLOB PRIMARY KEY,
    token      TEXT NOT NULL REFERENCES tokens (id),
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX sessions_by_token ON sessions (token, created_at);

-- Replies: who owns a key that is under way.
ALTER TABLE replies ADD COLUMN owner TEXT;

-- Vectors: which of them are a space's sample. `text_digest` is registered by migrations.py.
ALTER TABLE vectors ADD COLUMN digest BLOB NOT NULL DEFAULT x'';

UPDATE vectors SET digest = text_digest(m.title, m.text) FROM memories AS m WHERE m.row = vectors.row;

-- Of one digest in sixteen: in a large space the lowest are among them, and a small one is read as a whole.
CREATE INDEX vectors_by_digest ON vectors (space, generation, digest) WHERE digest < x'10';
