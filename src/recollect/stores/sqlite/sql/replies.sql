-- What requests with an idempotency key were answered with. About `+?1` see records.sql.

-- name: claim
-- Take a key that nobody has, or whose time is over; nothing comes back where another request has it.
INSERT INTO replies (space, key, fingerprint, body, expires_at, owner) VALUES (?1, ?2, ?3, x'', ?5, ?6)
ON CONFLICT (space, key) DO UPDATE
SET fingerprint = excluded.fingerprint, status = NULL, body = x'', expires_at = excluded.expires_at,
    owner = excluded.owner
WHERE replies.expires_at <= ?4
RETURNING 1

-- name: reply
-- What a key stands for.
SELECT fingerprint, status, body FROM replies WHERE space = +?1 AND key = ?2

-- name: under_way
-- Who has a key that is under way. One that was claimed before owners were noted has none.
SELECT owner FROM replies WHERE space = +?1 AND key = ?2 AND status IS NULL AND owner IS NOT NULL

-- name: prune
-- The oldest of those whose time is over: more than a claim adds, and too few to be felt.
DELETE FROM replies
WHERE rowid IN (SELECT rowid FROM replies WHERE space = +?1 AND expires_at <= ?2 ORDER BY expires_at LIMIT 100)

-- name: answer
-- The answer to a request that is under way.
UPDATE replies SET status = ?3, body = ?4, expires_at = ?5
WHERE space = +?1 AND key = ?2 AND status IS NULL AND owner = ?6

-- name: disclaim
-- A request that came to nothing.
DELETE FROM replies WHERE space = +?1 AND key = ?2 AND status IS NULL AND owner = ?3
