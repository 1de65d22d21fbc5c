-- Version 2.

-- Grants: an offer until the receiving space accepts it.

-- Hits and uses: what was returned, and what proved useful.

-- Sign-in sessions.

-- Replies: who owns a key that is under way.
ALTER TABLE replies ADD COLUMN owner bigint;

-- Sources: long ones have a place in the index.

-- Text indexes: built in the background.
