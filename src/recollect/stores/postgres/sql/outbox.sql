-- What external indexes have still to be told. Triggers write the entries, in the transaction of the change itself; one
-- entry stands for all changes of a memory that an index has not seen.

-- name: feed
-- Tell an index of every change from now on; nothing comes back when it was told already.
INSERT INTO indexes (name, leg) VALUES (%(index)s, %(leg)s) ON CONFLICT DO NOTHING RETURNING true

-- name: watch_vectors
-- The triggers of a generation's vectors.
CREATE TRIGGER note_embedded AFTER INSERT ON {table} REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION note_vectors();
CREATE TRIGGER note_unembedded AFTER DELETE ON {table} REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION note_vectors()

-- name: awaken
-- From now on these triggers of a table work. Waits until nobody writes to it.
ALTER TABLE {table} {triggers}

-- name: rest
-- No index is to be told.
ALTER TABLE {table} DISABLE TRIGGER note_embedded, DISABLE TRIGGER note_unembedded

-- name: vector_tables
-- The tables of all generations.
SELECT 'vectors_' || number FROM generations

-- name: is_fed
-- Whether any index is told of changes.
SELECT FROM indexes LIMIT 1

-- name: enter_all
-- Everything there is, for an index to look at.
INSERT INTO outbox (space, index_name, id)
SELECT m.space, i.name, m.id FROM memories AS m CROSS JOIN indexes AS i WHERE i.name = %(index)s
ORDER BY m.space, m.row
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
RETURNING true

-- name: release
-- A holder that has done its part lets others.
UPDATE indexes SET holder = NULL WHERE name = %(index)s AND holder = %(holder)s
