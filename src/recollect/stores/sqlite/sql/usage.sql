-- How a space is used, by the hour, and what its memories are worth by that.

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
WHERE u.space = ?1 AND u.hour >= ?2
ORDER BY u.hour, l.leg

-- name: most_useful
-- How often the memory proved useful that did so most; a hit counts ?2 of a use.
SELECT coalesce(max(used + ?2 * hits), 0.0) FROM memories WHERE space = +?1

-- name: is_scoring_due
-- Whether the qualities of a space were last brought up to date before then.
SELECT EXISTS (SELECT 1 FROM spaces WHERE number = ?1 AND coalesce(scored_at, ?2) <= ?2)

-- name: claim_scoring
-- Whoever gets a row brings them up to date; from there on, where it was cut off.
UPDATE spaces SET scored_at = ?3 WHERE number = ?1 AND coalesce(scored_at, ?2) <= ?2
RETURNING coalesce(scored_after, '')

-- name: note_scoring
-- How far that came.
UPDATE spaces SET scored_at = ?2, scored_after = ?3 WHERE number = ?1

-- name: set_quality
-- What has its quality already is left alone. One by one, as `mark_hits` does.
UPDATE memories SET quality = ?3 WHERE space = +?1 AND id = ?2 AND quality IS NOT ?3 RETURNING 1
