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
