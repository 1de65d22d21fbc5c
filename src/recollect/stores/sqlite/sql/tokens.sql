-- The tokens that servers are called with.

-- name: add_token
-- A new token.
INSERT INTO tokens (id, digest, name, spaces, scope, created_at, expires_at, revoked_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)

-- name: token
-- One of them, with the digest of its secret.
SELECT digest, id, name, spaces, scope, created_at, expires_at, revoked_at FROM tokens WHERE id = ?1

-- name: tokens
-- All of them, oldest first. There are few, so they are sorted.
SELECT id, name, spaces, scope, created_at, expires_at, revoked_at FROM tokens ORDER BY created_at, id

-- name: revoke_token
-- The first time counts.
UPDATE tokens SET revoked_at = ?2 WHERE id = ?1 AND revoked_at IS NULL

-- name: any_token
-- Whether there is one, revoked or not.
SELECT EXISTS (SELECT 1 FROM tokens)

-- name: end_sessions_of
-- Those that were begun with a token.
DELETE FROM sessions WHERE token = ?1

-- name: end_expired_sessions
-- Those whose time is over.
DELETE FROM sessions WHERE expires_at <= ?1

-- name: end_oldest_sessions
-- Those of a token beyond its newest.
DELETE FROM sessions
WHERE digest IN (SELECT digest FROM sessions WHERE token = ?1 ORDER BY created_at DESC, digest LIMIT -1 OFFSET ?2)

-- name: add_session
-- A new session.
INSERT INTO sessions (digest, token, created_at, expires_at) VALUES (?1, ?2, ?3, ?4)

-- name: session
-- The token that a session was begun with, and when the session ends.
SELECT s.expires_at, t.id, t.name, t.spaces, t.scope, t.created_at, t.expires_at, t.revoked_at
FROM sessions s JOIN tokens t ON t.id = s.token
WHERE s.digest = ?1

-- name: end_session
-- One of them.
DELETE FROM sessions WHERE digest = ?1
