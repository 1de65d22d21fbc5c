-- Version 3.

-- Grants: an offer until the receiving space accepts it.

-- Hits and uses: what was returned, and what proved useful.

-- Sign-in sessions.

-- Replies: who owns a key that is under way.

-- Vectors: which of them are a space's sample. `text_digest` is registered by migrations.py.
ALTER TABLE vectors ADD COLUMN digest BLOB NOT NULL DEFAULT x'';

UPDATE vectors SET digest = text_digest(m.title, m.text) FROM memories AS m WHERE m.row = vectors.row;

CREATE INDEX vectors_by_digest ON vectors (space, generation, digest);
