-- The tokens that servers are called with.

-- name: add_token
-- A new token.
INSERT INTO tokens (id, digest, name, spaces, scope, created_at, expires_at, revoked_at)
VALUES (%(id)s, %(digest)s, %(name)s, %(spaces)s, %(scope)s, %(created_at)s, %(expires_at)s, %(revoked_at)s)

-- name: token
-- One of them, with the digest of its secret.
SELECT digest, id, name, spaces, scope, created_at, expires_at, revoked_at FROM tokens WHERE id = %(id)s

-- name: tokens
-- All of them, oldest first. There are few, so they are sorted.
SELECT id, name, spaces, scope, created_at, expires_at, revoked_at FROM tokens ORDER BY created_at, id

-- name: revoke_token
-- The first time counts.
UPDATE tokens SET revoked_at = %(now)s WHERE id = %(id)s AND revoked_at IS NULL

-- name: any_token
-- Whether there is one, revoked or not.
SELECT EXISTS (SELECT FROM tokens)

-- name: end_sessions_of
-- Those that were begun with a token.
DELETE FROM sessions WHERE token = %(id)s

-- name: end_expired_sessions
-- Those whose time is over.
DELETE FROM sessions WHERE expires_at <= %(now)s

-- name: end_oldest_sessions
-- Those of a token beyond its newest.
DELETE FROM sessions
WHERE digest IN (
    SELECT digest FROM sessions WHERE token = %(token)s ORDER BY created_at DESC, digest OFFSET %(kept)s
)

-- name: add_session
-- A new session.
INSERT INTO sessions (digest, token, created_at, expires_at) VALUES (%(digest)s, %(token)s, %(now)s, %(expires)s)

-- name: session
-- The token that a session was begun with, and when the session ends.
SELECT s.expires_at, t.id, t.name, t.spaces, t.scope, t.created_at, t.expires_at, t.revoked_at
FROM sessions s JOIN tokens t ON t.id = s.token
WHERE s.digest = %(digest)s

-- name: end_session
-- One of them.
DELETE FROM sessions WHERE digest = %(digest)s
