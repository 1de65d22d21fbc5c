-- Which namespaces of a space others may see. About `+?1` and CROSS JOIN see records.sql.

-- name: grant
-- Let another space see a namespace, from now on with this access.
INSERT INTO grants (space, namespace, grantee, access) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT DO UPDATE SET access = excluded.access

-- name: revoke
-- Take it back.
DELETE FROM grants WHERE space = +?1 AND namespace = ?2 AND grantee = ?3

-- name: granted_by
-- What a space lets others see.
SELECT s.name, g.namespace, g.grantee, g.access
FROM grants AS g CROSS JOIN spaces AS s ON s.number = g.space
WHERE g.space = +?1
ORDER BY g.namespace, g.grantee

-- name: granted_to
-- What others let a space see.
SELECT s.name, g.namespace, g.grantee, g.access
FROM grants AS g CROSS JOIN spaces AS s ON s.number = g.space
WHERE g.grantee = ?1
ORDER BY s.name, g.namespace
