-- Tokens, grants, usage, replies and the outbox: what a store holds beside its memories. The statements that both
-- stores have bear the same names and parameters. About `+:space` and CROSS JOIN see records.sql.

-- name: add_token
-- A new token.
INSERT INTO tokens (id, digest, name, spaces, scope, created_at, expires_at, revoked_at)
VALUES (:id, :digest, :name, :spaces, :scope, :created_at, :expires_at, :revoked_at)

-- name: token
-- One of them, with the digest of its secret.
SELECT digest, id, name, spaces, scope, created_at, expires_at, revoked_at FROM tokens WHERE id = :id

-- name: tokens
-- All of them, oldest first. There are few, so they are sorted.
SELECT id, name, spaces, scope, created_at, expires_at, revoked_at FROM tokens ORDER BY created_at, id

-- name: revoke_token
-- The first time counts.
UPDATE tokens SET revoked_at = :now WHERE id = :id AND revoked_at IS NULL

-- name: any_token
-- Whether there is one, revoked or not.
SELECT EXISTS (SELECT 1 FROM tokens)

-- name: end_sessions_of
-- Those that were begun with a token.
DELETE FROM sessions WHERE token = :id

-- name: end_expired_sessions
-- Those whose time is over.
DELETE FROM sessions WHERE expires_at <= :now

-- name: end_oldest_sessions
-- Those of a token beyond its newest.
DELETE FROM sessions
WHERE digest IN (SELECT digest FROM sessions WHERE token = :token ORDER BY created_at DESC, digest LIMIT -1 OFFSET :kept)

-- name: add_session
-- A new session.
INSERT INTO sessions (digest, token, created_at, expires_at) VALUES (:digest, :token, :now, :expires)

-- name: session
-- The token that a session was begun with, and when the session ends.
SELECT s.expires_at, t.id, t.name, t.spaces, t.scope, t.created_at, t.expires_at, t.revoked_at
FROM sessions s JOIN tokens t ON t.id = s.token
WHERE s.digest = :digest

-- name: end_session
-- One of them.
DELETE FROM sessions WHERE digest = :digest

-- name: grant
-- Offer another space to see a namespace; where it is offered or accepted already, change the access alone.
INSERT INTO grants (space, namespace, grantee, access) VALUES (:space, :namespace, :to, :access)
ON CONFLICT DO UPDATE SET access = excluded.access

-- name: revoke
-- Take it back.
DELETE FROM grants WHERE space = +:space AND namespace = :namespace AND grantee = :to

-- name: accept
-- The other space wants to see it.
UPDATE grants SET accepted = 1 WHERE space = +:space AND namespace = :namespace AND grantee = :to

-- name: granted_by
-- What a space lets others see, or offers them.
SELECT s.name, g.namespace, g.grantee, g.access, g.accepted
FROM grants AS g CROSS JOIN spaces AS s ON s.number = g.space
WHERE g.space = +:space
ORDER BY g.namespace, g.grantee

-- name: granted_to
-- What others let a space see and it has accepted, or what they offer it.
SELECT s.name, g.namespace, g.grantee, g.access, g.accepted
FROM grants AS g CROSS JOIN spaces AS s ON s.number = g.space
WHERE g.grantee = :to AND g.accepted = :accepted
ORDER BY s.name, g.namespace

-- name: count_recalls
-- Add to the recalls of an hour; a space without a memory has no number, and counts nothing.
INSERT INTO usage (space, hour, recalls, degraded, failed)
SELECT number, ?2, ?3, ?4, ?5 FROM spaces WHERE number = ?1
ON CONFLICT (space, hour) DO UPDATE
SET recalls = recalls + excluded.recalls, degraded = degraded + excluded.degraded, failed = failed + excluded.failed

-- name: count_legs
-- Add to what a leg did in an hour.
INSERT INTO leg_usage (space, hour, leg, hits, searches, ms, late, failed, skipped)
SELECT number, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9 FROM spaces WHERE number = ?1
ON CONFLICT (space, hour, leg) DO UPDATE
SET hits = hits + excluded.hits, searches = searches + excluded.searches, ms = ms + excluded.ms,
    late = late + excluded.late, failed = failed + excluded.failed, skipped = skipped + excluded.skipped

-- name: usage
-- The hours from some time on, each with its legs.
SELECT u.hour, u.recalls, u.degraded, u.failed,
       l.leg, l.hits, l.searches, l.ms, l.late, l.failed, l.skipped
FROM usage AS u LEFT JOIN leg_usage AS l ON l.space = u.space AND l.hour = u.hour
WHERE u.space = :space AND u.hour >= :since
ORDER BY u.hour, l.leg

-- name: note_use
-- A question that led to the use of a memory, if that is there.
INSERT INTO uses (space, row, question, used_at)
SELECT space, row, :question, :at FROM memories WHERE space = +:space AND id = :id

-- name: drop_oldest_uses
-- Those of a space beyond its newest.
DELETE FROM uses WHERE space = +:space AND number <= (
    SELECT number FROM uses WHERE space = +:space ORDER BY number DESC LIMIT 1 OFFSET :kept
)

-- name: uses
-- Which questions led to which memories, in the order of their use.
SELECT u.question, m.id, u.used_at FROM uses AS u CROSS JOIN memories AS m ON m.row = u.row
WHERE u.space = +:space
ORDER BY u.number

-- name: is_scoring_due
-- Whether the qualities of a space were last brought up to date before then.
SELECT EXISTS (SELECT 1 FROM spaces WHERE number = :space AND coalesce(scored_at, :before) <= :before)

-- name: claim_scoring
-- Whoever gets a row brings them up to date; from there on, where it was cut off.
UPDATE spaces SET scored_at = :now WHERE number = :space AND coalesce(scored_at, :before) <= :before
RETURNING coalesce(scored_after, '')

-- name: note_scoring
-- How far that came.
UPDATE spaces SET scored_at = :scored_at, scored_after = :after WHERE number = :space

-- name: claim
-- Take a key that nobody has, or whose time is over; nothing comes back where another request has it.
INSERT INTO replies (space, key, fingerprint, body, expires_at, owner) VALUES (:space, :key, :fingerprint, x'', :expires, :owner)
ON CONFLICT (space, key) DO UPDATE
SET fingerprint = excluded.fingerprint, status = NULL, body = x'', expires_at = excluded.expires_at,
    owner = excluded.owner
WHERE replies.expires_at <= :now
RETURNING 1

-- name: reply
-- What a key stands for.
SELECT fingerprint, status, body FROM replies WHERE space = +:space AND key = :key

-- name: under_way
-- Who has a key that is under way. One that was claimed before owners were noted has none.
SELECT owner FROM replies WHERE space = +:space AND key = :key AND status IS NULL AND owner IS NOT NULL

-- name: prune
-- The oldest of those whose time is over: more than a claim adds, and too few to be felt.
DELETE FROM replies
WHERE rowid IN (SELECT rowid FROM replies WHERE space = +:space AND expires_at <= :now ORDER BY expires_at LIMIT 100)

-- name: answer
-- The answer to a request that is under way.
UPDATE replies SET status = :status, body = :body, expires_at = :expires
WHERE space = +:space AND key = :key AND status IS NULL AND owner = :owner

-- name: disclaim
-- A request that came to nothing.
DELETE FROM replies WHERE space = +:space AND key = :key AND status IS NULL AND owner = :owner

-- name: feed
-- Tell an index of every change from now on; changes nothing where it is told already.
INSERT INTO indexes (name, leg) VALUES (:index, :leg) ON CONFLICT DO NOTHING

-- name: enter_all
-- Everything there is, for an index to look at.
INSERT OR REPLACE INTO outbox (space, index_name, id) SELECT m.space, i.name, m.id
FROM indexes AS i CROSS JOIN memories AS m WHERE i.name = :index ORDER BY m.row

-- name: enter
-- Some ids of a space, for an index to look at, whether they are still here or not.
INSERT OR REPLACE INTO outbox (space, index_name, id) SELECT :space, i.name, value
FROM indexes AS i CROSS JOIN json_each(:ids) WHERE i.name = :index

-- name: waiting
-- The entries of an index that have waited longest.
SELECT s.name, o.id, o.number
FROM outbox AS o CROSS JOIN spaces AS s ON s.number = o.space
WHERE o.index_name = :index
ORDER BY o.number
LIMIT :limit

-- name: delivered
-- Entries that were delivered; a memory that has changed since has another number.
DELETE FROM outbox WHERE index_name = :index AND number IN (SELECT value FROM json_each(:numbers))

-- name: lag
-- How many entries wait for an index, and since when.
SELECT count(*), min(noted_at) FROM outbox WHERE index_name = :index

-- name: lease
-- Let a holder feed an index for some seconds, unless another one does.
UPDATE indexes SET holder = :holder, held_until = CAST((unixepoch('subsec') + :seconds) * 1000000 AS INTEGER)
WHERE name = :index AND (holder IS NULL OR holder = :holder OR held_until < CAST(unixepoch('subsec') * 1000000 AS INTEGER))

-- name: release
-- A holder that has done its part lets others.
UPDATE indexes SET holder = NULL WHERE name = :index AND holder = :holder
