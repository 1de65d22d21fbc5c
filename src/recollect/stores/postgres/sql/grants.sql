-- Which namespaces of a space others may see.

-- name: grant
-- Offer another space to see a namespace; where it is offered or accepted already, change the access alone.
INSERT INTO grants (space, namespace, grantee, access) VALUES (%(space)s, %(namespace)s, %(to)s, %(access)s)
ON CONFLICT (space, namespace, grantee) DO UPDATE SET access = excluded.access

-- name: revoke
-- Take it back.
DELETE FROM grants WHERE space = %(space)s AND namespace = %(namespace)s AND grantee = %(to)s

-- name: accept
-- The other space wants to see it.
UPDATE grants SET accepted = true WHERE space = %(space)s AND namespace = %(namespace)s AND grantee = %(to)s

-- name: granted_by
-- What a space lets others see, or offers them.
SELECT s.name, g.namespace, g.grantee, g.access, g.accepted
FROM grants AS g JOIN spaces AS s ON s.number = g.space
WHERE g.space = %(space)s
ORDER BY g.namespace, g.grantee

-- name: granted_to
-- What others let a space see and it has accepted, or what they offer it.
SELECT s.name, g.namespace, g.grantee, g.access, g.accepted
FROM grants AS g JOIN spaces AS s ON s.number = g.space
WHERE g.grantee = %(to)s AND g.accepted = %(accepted)s
ORDER BY s.name COLLATE "C", g.namespace
