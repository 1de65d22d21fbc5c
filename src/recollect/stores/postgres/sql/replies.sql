-- What requests with an idempotency key were answered with.

-- name: claim
-- Take a key that nobody has, or whose time is over; nothing comes back where another request has it. Whoever comes second
-- waits for the first to commit, and holds the row from then on, so that it can be read next.
INSERT INTO replies (space, key, fingerprint, body, expires_at)
VALUES (%(space)s, %(key)s, %(fingerprint)s, '', %(expires)s)
ON CONFLICT (space, key) DO UPDATE
SET fingerprint = excluded.fingerprint, status = NULL, body = '', expires_at = excluded.expires_at
WHERE replies.expires_at <= %(now)s
RETURNING true

-- name: reply
-- What a key stands for.
SELECT fingerprint, status, body FROM replies WHERE space = %(space)s AND key = %(key)s

-- name: prune
-- The oldest of those whose time is over: more than a claim adds, and too few to be felt. Those that others are claiming
-- are left to them, so that nobody waits for anybody.
WITH over AS (
    SELECT key FROM replies
    WHERE space = %(space)s AND expires_at <= %(now)s
    ORDER BY expires_at
    LIMIT 100
    FOR UPDATE SKIP LOCKED
)
DELETE FROM replies AS r USING over WHERE r.space = %(space)s AND r.key = over.key

-- name: answer
-- The answer to a request that is under way.
UPDATE replies SET status = %(status)s, body = %(body)s, expires_at = %(expires)s
WHERE space = %(space)s AND key = %(key)s AND status IS NULL

-- name: disclaim
-- A request that came to nothing.
DELETE FROM replies WHERE space = %(space)s AND key = %(key)s AND status IS NULL
