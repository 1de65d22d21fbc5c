-- What external indexes have still to be told. The schema's triggers write the entries, in the transaction of the change
-- itself; one entry stands for all changes of a memory that an index has not seen.

-- name: feed
-- Tell an index of every change from now on; nothing comes back when it was told already.
INSERT INTO indexes (name, leg) VALUES (?1, ?2) ON CONFLICT DO NOTHING RETURNING 1

-- name: enter_all
-- Everything there is, for an index to look at.
INSERT OR REPLACE INTO outbox (space, index_name, id) SELECT m.space, i.name, m.id
FROM indexes AS i CROSS JOIN memories AS m WHERE i.name = ?1 ORDER BY m.row

-- name: enter
-- Some ids of a space, for an index to look at, whether they are still here or not.
INSERT OR REPLACE INTO outbox (space, index_name, id) SELECT ?2, i.name, value
FROM indexes AS i CROSS JOIN json_each(?3) WHERE i.name = ?1

-- name: waiting
-- The entries of an index that have waited longest.
SELECT s.name, o.id, o.number
FROM outbox AS o CROSS JOIN spaces AS s ON s.number = o.space
WHERE o.index_name = ?1
ORDER BY o.number
LIMIT ?2

-- name: delivered
-- Entries that were delivered; a memory that has changed since has another number.
DELETE FROM outbox WHERE index_name = ?1 AND number IN (SELECT value FROM json_each(?2))

-- name: lag
-- How many entries wait for an index, and since when.
SELECT count(*), min(noted_at) FROM outbox WHERE index_name = ?1

-- name: lease
-- Let a holder feed an index until some time, unless another one does.
UPDATE indexes SET holder = ?2, held_until = ?3
WHERE name = ?1 AND (holder IS NULL OR holder = ?2 OR held_until < ?4)
RETURNING 1

-- name: release
-- A holder that has done its part lets others.
UPDATE indexes SET holder = NULL WHERE name = ?1 AND holder = ?2
