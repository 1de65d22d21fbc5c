-- Version 3.

-- Grants: an offer until the receiving space accepts it.

-- Hits and uses: what was returned, and what proved useful.
ALTER TABLE memories ADD COLUMN used INTEGER NOT NULL DEFAULT 0;
ALTER TABLE memories ADD COLUMN last_used_at INTEGER;
ALTER TABLE spaces ADD COLUMN scored_at INTEGER;
ALTER TABLE spaces ADD COLUMN scored_after TEXT;
UPDATE spaces SET scored_at = CAST(unixepoch('subsec') * 1000000 AS INTEGER);

-- Sign-in sessions.

-- Replies: who owns a key that is under way.
