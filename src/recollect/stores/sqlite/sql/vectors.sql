-- Vectors as rows, and what a cache needs to catch up with them.

-- name: put_vector
-- Store one vector; a row's earlier one is replaced.
INSERT OR REPLACE INTO vectors (key, space, generation, seq, vector, digest)
VALUES ((?3 - 1) << 40 | ?1, ?2, ?3, ?4, ?5, ?6)

-- name: delete_vectors
-- Delete the vectors of these rows, of every generation.
DELETE FROM vectors WHERE key IN (
    SELECT (g.number - 1) << 40 | value FROM json_each(?) CROSS JOIN generations AS g WHERE g.state <> 'gone'
)

-- name: log_removed
-- Tell the caches that these rows have no vector any more.
INSERT OR REPLACE INTO removed_vectors (space, seq, row) SELECT ?, ?, value FROM json_each(?)

-- name: clock
-- The number of the last writing transaction that this snapshot sees.
SELECT seq FROM clock

-- name: count_since
-- How many vectors of a space and generation were written after a transaction.
SELECT count(*) FROM vectors WHERE space = ? AND seq > ? AND generation = ?

-- name: vectors_since
-- The vectors of a space and generation that were written after a transaction.
SELECT row, vector FROM vectors WHERE space = ? AND seq > ? AND generation = ?

-- name: removed_since
-- Rows of a space whose vector went after a transaction.
SELECT row FROM removed_vectors WHERE space = ? AND seq > ?

-- name: vectors_by_id
-- The vectors that some memories of a space have of a generation.
SELECT m.id, v.vector
FROM json_each(?1) AS wanted
CROSS JOIN memories AS m ON m.space = ?2 AND m.id = wanted.value
CROSS JOIN vectors AS v ON v.key = (?3 - 1) << 40 | m.row

-- name: ids_by_row
-- The ids of some rows of a space.
SELECT m.row, m.id FROM json_each(?) AS wanted CROSS JOIN memories AS m ON m.row = wanted.value WHERE m.space = +?

-- name: rows
-- The rows of a space that have a vector of a generation.
SELECT row FROM vectors WHERE space = ? AND generation = ?

-- name: vectors_by_row
-- The vectors of some rows of a space and generation that were written up to a transaction, by row.
SELECT row, vector FROM vectors
WHERE key IN (SELECT (?3 - 1) << 40 | value FROM json_each(?1)) AND space = +?2 AND seq <= ?4
ORDER BY key

-- name: space_size
-- How many memories a space holds.
SELECT memories FROM spaces WHERE number = ?1

-- name: sample
-- The vectors of a space and generation whose texts have the lowest digests.
SELECT row, digest, vector FROM vectors WHERE space = +?1 AND generation = +?2 ORDER BY digest, row LIMIT ?3

-- name: sample_of_many
-- The same by their index, which holds one in sixteen: too few of them in a small space.
SELECT row, digest, vector FROM vectors
WHERE space = +?1 AND generation = +?2 AND digest < x'10'
ORDER BY digest, row LIMIT ?3

-- name: sample_has_changed
-- Whether any of some rows was written or removed after a transaction, or one whose digest is as low as theirs.
SELECT EXISTS (
    SELECT 1 FROM vectors
    WHERE space = +?1 AND seq > ?3 AND generation = ?2
          AND (digest <= ?4 OR row IN (SELECT value FROM json_each(?5)))
) OR EXISTS (
    SELECT 1 FROM removed_vectors WHERE space = +?1 AND seq > ?3 AND row IN (SELECT value FROM json_each(?5))
)

-- name: scan
-- The vectors of a space and generation whose memories pass a filter.
SELECT v.row, v.vector FROM vectors AS v JOIN memories AS m ON m.row = v.key & 1099511627775
WHERE v.space = ? AND v.generation = ? AND {where}

-- name: written_since
-- Rows of a space whose vector of a generation was written after a transaction.
SELECT row FROM vectors WHERE space = ? AND seq > ? AND generation = ?
