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

-- Sign-in sessions.

-- Replies: who owns a key that is under way.

-- Sources: long ones have a place in the index.
DROP INDEX memories_by_source;
CREATE INDEX memories_by_source ON memories (space, (left(source, 200)));

-- Text indexes: built in the background.
