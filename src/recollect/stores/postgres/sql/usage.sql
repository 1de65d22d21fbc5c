-- How a space is used, by the hour, and what its memories are worth by that. `{ids}`: see rows.py.

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

-- name: most_useful
-- How often the memory proved useful that did so most; a hit counts `per_hit` of a use.
SELECT coalesce(max(used + %(per_hit)s::double precision * hits), 0) FROM hits WHERE space = %(space)s

-- name: claim_scoring
-- Whoever gets a row brings the qualities of a space up to date; from there on, where that was cut off.
UPDATE spaces SET scored_at = %(now)s
WHERE number = %(space)s AND coalesce(scored_at, %(before)s) <= %(before)s
RETURNING coalesce(scored_after, '')

-- name: note_scoring
-- How far that came.
UPDATE spaces SET scored_at = %(scored_at)s, scored_after = %(after)s WHERE number = %(space)s

-- name: set_qualities
-- What has its quality already is left alone: a row that changes is written anew. Locked in one order, as by all others.
WITH changing AS (
    SELECT m.row, given.quality
    FROM unnest(%(ids)b::text[], %(qualities)b::double precision[]) AS given (id, quality)
    JOIN memories AS m ON m.space = %(space)s AND m.id = ANY({ids}) AND m.id = given.id
    WHERE m.quality IS DISTINCT FROM given.quality
    ORDER BY m.row
    FOR NO KEY UPDATE OF m
)
UPDATE memories AS m SET quality = c.quality FROM changing AS c WHERE m.space = %(space)s AND m.row = c.row
