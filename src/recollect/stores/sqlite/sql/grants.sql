-- Which namespaces of a space others may see. About `+?1` and CROSS JOIN see records.sql.

-- name: grant
-- Offer another space to see a namespace; where it is offered or accepted already, change the access alone.
INSERT INTO grants (space, namespace, grantee, access) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT DO UPDATE SET access = excluded.access

-- name: revoke
-- Take it back.
DELETE FROM grants WHERE space = +?1 AND namespace = ?2 AND grantee = ?3

-- name: accept
-- The other space wants to see it.
UPDATE grants SET accepted = 1 WHERE space = +?1 AND namespace = ?2 AND grantee = ?3

-- name: granted_by
-- What a space lets others see, or offers them.
SELECT s.name, g.namespace, g.grantee, g.access, g.accepted
FROM grants AS g CROSS JOIN spaces AS s ON s.number = g.space
WHERE g.space = +?1
ORDER BY g.namespace, g.grantee

-- name: granted_to
-- What others let a space see and it has accepted, or what they offer it.
SELECT s.name, g.namespace, g.grantee, g.access, g.accepted
FROM grants AS g CROSS JOIN spaces AS s ON s.number = g.space
WHERE g.grantee = ?1 AND g.accepted = ?2
ORDER BY s.name, g.namespace
