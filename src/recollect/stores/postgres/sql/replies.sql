-- What requests with an idempotency key were answered with.

-- name: own
-- Hold the lock that says that an owner lives. Taken twice on a connection, it is held once more, and goes with it.
SELECT pg_advisory_lock(%(owner)s)

-- name: claim
-- Take a key that nobody has, whose time is over, or whose owner is dead: nobody holds its lock. Nothing comes back where
-- another request has the key. Whoever comes second waits for the first to commit, and holds the row from then on, so that
-- it can be read next. A number that is locked stands in pg_locks in two halves.
INSERT INTO replies (space, key, fingerprint, body, expires_at, owner)
VALUES (%(space)s, %(key)s, %(fingerprint)s, '', %(expires)s, %(owner)s)
ON CONFLICT (space, key) DO UPDATE
SET fingerprint = excluded.fingerprint, status = NULL, body = '', expires_at = excluded.expires_at,
    owner = excluded.owner
WHERE replies.expires_at <= %(now)s
   OR (replies.status IS NULL AND replies.owner IS NOT NULL AND NOT EXISTS (
        SELECT FROM pg_locks AS l
        WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
              AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
              AND ((l.classid::bigint << 32) | l.objid::bigint) = replies.owner))
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
WHERE space = %(space)s AND key = %(key)s AND status IS NULL AND owner = %(owner)s

-- name: disclaim
-- A request that came to nothing.
DELETE FROM replies WHERE space = %(space)s AND key = %(key)s AND status IS NULL AND owner = %(owner)s
