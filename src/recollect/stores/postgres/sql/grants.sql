-- Which namespaces of a space others may see.

-- name: grant
-- Let another space see a namespace, from now on with this access.
INSERT INTO grants (space, namespace, grantee, access) VALUES (%(space)s, %(namespace)s, %(to)s, %(access)s)
ON CONFLICT (space, namespace, grantee) DO UPDATE SET access = excluded.access

-- name: revoke
-- Take it back.
DELETE FROM grants WHERE space = %(space)s AND namespace = %(namespace)s AND grantee = %(to)s

-- name: granted_by
-- What a space lets others see.
SELECT s.name, g.namespace, g.grantee, g.access
FROM grants AS g JOIN spaces AS s ON s.number = g.space
WHERE g.space = %(space)s
ORDER BY g.namespace, g.grantee

-- name: granted_to
-- What others let a space see.
SELECT s.name, g.namespace, g.grantee, g.access
FROM grants AS g JOIN spaces AS s ON s.number = g.space
WHERE g.grantee = %(to)s
ORDER BY s.name COLLATE "C", g.namespace
