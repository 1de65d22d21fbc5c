-- Version 3.

-- Grants: an offer until the receiving space accepts it.

-- Hits and uses: what was returned, and what proved useful.

-- Sign-in sessions.

-- Replies: who owns a key that is under way.
ALTER TABLE replies ADD COLUMN owner TEXT;
