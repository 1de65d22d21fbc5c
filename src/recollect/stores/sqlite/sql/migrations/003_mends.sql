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

-- Sign-in sessions.

-- Replies: who owns a key that is under way.
