-- name: memories
-- How many memories each space holds.
SELECT s.name, count(*) FROM memories AS m JOIN spaces AS s ON s.number = m.space GROUP BY s.name ORDER BY s.name

-- name: tables
-- Every table with rows of its own, and which of its rows count.
SELECT name, iif(name = 'facts', 'name NOT IN (''backup'', ''closed'')', 'true')
FROM sqlite_schema
WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' AND name NOT LIKE 'sqlite_stat%'
ORDER BY name

-- name: rows
-- All rows of a table, in the order in which they are stored, which stays while nothing changes.
SELECT * FROM "{table}" NOT INDEXED WHERE {condition}

-- name: fact
-- What was written down about the file.
SELECT value FROM facts WHERE name = :name

-- name: set_fact
-- Write down a fact about the file.
INSERT INTO facts (name, value) VALUES (:name, :value) ON CONFLICT (name) DO UPDATE SET value = excluded.value

-- name: break_seal
-- The file is changed: it is no longer what was backed up, or what was closed.
DELETE FROM facts WHERE name IN ('backup', 'closed')
