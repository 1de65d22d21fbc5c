-- Tokens, grants, usage, replies and the outbox: what a store holds beside its memories. The statements that both
-- stores have bear the same names and parameters.

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

-- name: grant
-- Offer another space to see a namespace; where it is offered or accepted already, change the access alone.
INSERT INTO grants (space, namespace, grantee, access) VALUES (%(space)s, %(namespace)s, %(to)s, %(access)s)
ON CONFLICT (space, namespace, grantee) DO UPDATE SET access = excluded.access

-- name: revoke
-- Take it back.
DELETE FROM grants WHERE space = %(space)s AND namespace = %(namespace)s AND grantee = %(to)s

-- name: accept
-- The other space wants to see it.
UPDATE grants SET accepted = true WHERE space = %(space)s AND namespace = %(namespace)s AND grantee = %(to)s

-- name: granted_by
-- What a space lets others see, or offers them.
SELECT s.name, g.namespace, g.grantee, g.access, g.accepted
FROM grants AS g JOIN spaces AS s ON s.number = g.space
WHERE g.space = %(space)s
ORDER BY g.namespace, g.grantee

-- name: granted_to
-- What others let a space see and it has accepted, or what they offer it.
SELECT s.name, g.namespace, g.grantee, g.access, g.accepted
FROM grants AS g JOIN spaces AS s ON s.number = g.space
WHERE g.grantee = %(to)s AND g.accepted = %(accepted)s
ORDER BY s.name COLLATE "C", g.namespace

-- name: count
-- Add to the recalls of some hours and to what the legs did in them: one statement, in the order of hours and legs, so
-- that those who count at the same time wait for each other as shortly as can be, and never in a circle. A space without
-- a memory has no number, and counts nothing.
WITH recalled AS (
    INSERT INTO usage (space, hour, recalls, degraded, failed)
    SELECT s.number, given.*
    FROM spaces AS s
    CROSS JOIN unnest(
        %(hours)s::timestamptz[], %(recalls)s::bigint[], %(degraded)s::bigint[], %(failed)s::bigint[]
    ) AS given (hour, recalls, degraded, failed)
    WHERE s.number = %(space)s
    ORDER BY given.hour
    ON CONFLICT (space, hour) DO UPDATE
    SET recalls = usage.recalls + excluded.recalls, degraded = usage.degraded + excluded.degraded,
        failed = usage.failed + excluded.failed
)
INSERT INTO leg_usage (space, hour, leg, hits, searches, ms, late, failed, skipped)
SELECT s.number, given.*
FROM spaces AS s
CROSS JOIN unnest(
    %(leg_hours)s::timestamptz[], %(legs)s::text[], %(hits)s::bigint[], %(searches)s::bigint[],
    %(ms)s::double precision[], %(late)s::bigint[], %(leg_failed)s::bigint[], %(skipped)s::bigint[]
) AS given (hour, leg, hits, searches, ms, late, failed, skipped)
WHERE s.number = %(space)s
ORDER BY given.hour, given.leg
ON CONFLICT (space, hour, leg) DO UPDATE
SET hits = leg_usage.hits + excluded.hits, searches = leg_usage.searches + excluded.searches,
    ms = leg_usage.ms + excluded.ms, late = leg_usage.late + excluded.late,
    failed = leg_usage.failed + excluded.failed, skipped = leg_usage.skipped + excluded.skipped

-- name: usage
-- The hours from some time on, each with its legs.
SELECT u.hour, u.recalls, u.degraded, u.failed,
       l.leg, l.hits, l.searches, l.ms, l.late, l.failed, l.skipped
FROM usage AS u LEFT JOIN leg_usage AS l ON l.space = u.space AND l.hour = u.hour
WHERE u.space = %(space)s AND u.hour >= %(since)s
ORDER BY u.hour, l.leg

-- name: note_use
-- A question that led to the use of a memory, if that is there.
INSERT INTO uses (space, row, question, used_at)
SELECT space, row, %(question)s, %(at)s FROM memories WHERE space = %(space)s AND id = %(id)s

-- name: drop_oldest_uses
-- Those of a space beyond its newest.
DELETE FROM uses WHERE space = %(space)s AND number <= (
    SELECT number FROM uses WHERE space = %(space)s ORDER BY number DESC LIMIT 1 OFFSET %(kept)s
)

-- name: uses
-- Which questions led to which memories, in the order of their use.
SELECT u.question, m.id, u.used_at FROM uses AS u JOIN memories AS m ON m.space = u.space AND m.row = u.row
WHERE u.space = %(space)s
ORDER BY u.number

-- name: claim_scoring
-- Whoever gets a row brings the qualities of a space up to date; from there on, where that was cut off.
UPDATE spaces SET scored_at = %(now)s
WHERE number = %(space)s AND coalesce(scored_at, %(before)s) <= %(before)s
RETURNING coalesce(scored_after, '')

-- name: note_scoring
-- How far that came.
UPDATE spaces SET scored_at = %(scored_at)s, scored_after = %(after)s WHERE number = %(space)s

-- name: own
-- Hold the lock that says that an owner lives. Taken twice on a connection, it is held once more, and goes with it.
SELECT pg_advisory_lock(%(owner)s)

-- name: claim
-- Take a key that nobody has, whose time is over, or whose owner is known to be dead. Nothing comes back where another
-- request has the key. Whoever comes second waits for the first to commit, and holds the row from then on, so that it can
-- be read next.
INSERT INTO replies (space, key, fingerprint, body, expires_at, owner)
VALUES (%(space)s, %(key)s, %(fingerprint)s, '', %(expires)s, %(owner)s)
ON CONFLICT (space, key) DO UPDATE
SET fingerprint = excluded.fingerprint, status = NULL, body = '', expires_at = excluded.expires_at,
    owner = excluded.owner
WHERE replies.expires_at <= %(now)s OR (replies.status IS NULL AND replies.owner = %(dead)s::bigint)
RETURNING true

-- name: missing_owner
-- The owner of a key that is under way, where nobody holds its lock. A number that is locked stands in pg_locks in two
-- halves.
SELECT r.owner FROM replies AS r
WHERE r.space = %(space)s AND r.key = %(key)s AND r.status IS NULL AND r.owner IS NOT NULL AND NOT EXISTS (
    SELECT FROM pg_locks AS l
    WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
          AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
          AND ((l.classid::bigint << 32) | l.objid::bigint) = r.owner)

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

-- name: feed
-- Tell an index of every change from now on; changes nothing where it is told already.
INSERT INTO indexes (name, leg) VALUES (%(index)s, %(leg)s) ON CONFLICT DO NOTHING

-- name: enable_triggers
-- From now on these triggers of a table work. Waits until nobody writes to it.
ALTER TABLE {table} {triggers}

-- name: vector_tables
-- The tables of all generations.
SELECT 'vectors_' || number FROM generations WHERE state <> 'gone'

-- name: space_numbers
-- All spaces, oldest first.
SELECT number FROM spaces ORDER BY number

-- name: enter_space
-- What row security lets through from now on.
SELECT set_config('recollect.space', %(space)s::text, true)

-- name: enter_all
-- Everything there is in a space, for an index to look at.
INSERT INTO outbox (space, index_name, id)
SELECT m.space, i.name, m.id FROM memories AS m CROSS JOIN indexes AS i
WHERE m.space = %(space)s AND i.name = %(index)s
ORDER BY m.row
ON CONFLICT (space, index_name, id) DO UPDATE SET number = excluded.number, noted_at = excluded.noted_at

-- name: enter
-- Some ids of a space, for an index to look at, whether they are still here or not.
INSERT INTO outbox (space, index_name, id)
SELECT s.number, i.name, id
FROM spaces AS s CROSS JOIN indexes AS i CROSS JOIN unnest(%(ids)s::text[]) AS id
WHERE s.number = %(space)s AND i.name = %(index)s
ON CONFLICT (space, index_name, id) DO UPDATE SET number = excluded.number, noted_at = excluded.noted_at

-- name: waiting
-- The entries of an index that have waited longest.
SELECT s.name, o.id, o.number
FROM outbox AS o JOIN spaces AS s ON s.number = o.space
WHERE o.index_name = %(index)s
ORDER BY o.number
LIMIT %(limit)s

-- name: delivered
-- Entries that were delivered; a memory that has changed since has another number.
DELETE FROM outbox WHERE index_name = %(index)s AND number = ANY(%(numbers)s)

-- name: lag
-- How many entries wait for an index, and since when.
SELECT count(*), min(noted_at) FROM outbox WHERE index_name = %(index)s

-- name: lease
-- Let a holder feed an index for some time, unless another one does.
UPDATE indexes SET holder = %(holder)s, held_until = clock_timestamp() + make_interval(secs => %(seconds)s)
WHERE name = %(index)s AND (holder IS NULL OR holder = %(holder)s OR held_until < clock_timestamp())

-- name: release
-- A holder that has done its part lets others.
UPDATE indexes SET holder = NULL WHERE name = %(index)s AND holder = %(holder)s
