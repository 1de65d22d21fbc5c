-- Version 2.

-- Grants: an offer until the receiving space accepts it.

-- Hits and uses: what was returned, and what proved useful.

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

-- Sources: long ones have a place in the index.

-- Text indexes: built in the background.
