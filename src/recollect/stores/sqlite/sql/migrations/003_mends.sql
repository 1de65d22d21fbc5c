-- Version 3.

-- Grants: an offer until the receiving space accepts it.

-- Hits and uses: what was returned, and what proved useful.

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
