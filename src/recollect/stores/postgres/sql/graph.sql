-- Links between memories, by their rows. `{ids}` and the like: a list that is given, see rows.py.
-- `LATERAL (… LIMIT 1)` and `LIMIT (SELECT …)`: where the planner has no statistics yet it takes a space for small, and
-- would rather read and sort all of it than go along an index.

-- name: hold_ends
-- Ids and rows of the memories that are here, which nobody forgets until the transaction ends.
SELECT id, row FROM memories
WHERE space = %(space)s AND id = ANY({ids})
ORDER BY row
FOR KEY SHARE

-- name: put_edges
-- Links; the same ends and relation again replace the strength.
INSERT INTO edges (space, source, target, relation, strength)
SELECT %(space)s, e.source, e.target, e.relation, e.strength
FROM unnest(%(sources)b::bigint[], %(targets)b::bigint[], %(relations)b::text[], %(strengths)b::float8[])
     AS e (source, target, relation, strength)
ON CONFLICT (space, source, target, relation) DO UPDATE SET strength = excluded.strength
WHERE edges.strength <> excluded.strength

-- name: mark_linked
-- These rows need no links to their nearest any more.
DELETE FROM unlinked WHERE space = %(space)s AND row = ANY({rows})

-- name: unlink
-- One link, or with no relation named all links from source to target.
DELETE FROM edges
WHERE space = %(space)s
      AND source = (SELECT row FROM memories WHERE space = %(space)s AND id = %(source)s)
      AND target = (SELECT row FROM memories WHERE space = %(space)s AND id = %(target)s)
      AND (%(relation)s::text IS NULL OR relation = %(relation)s)

-- name: lock_links
-- Whoever links memories of a space to their nearest waits here for the one before.
SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ' links', %(space)s))

-- name: waiting_among
-- Those of some rows that wait for links to their nearest.
SELECT row FROM unlinked WHERE space = %(space)s AND row = ANY({rows})

-- name: weakest
-- The weakest link of one relation of each of these rows that has so many of them.
SELECT own.row, weakest.strength
FROM unnest(%(rows)b::bigint[]) AS own (row)
CROSS JOIN LATERAL (
    SELECT strength FROM edges WHERE space = %(space)s AND source = own.row AND relation = %(relation)s
    ORDER BY strength DESC, target DESC OFFSET %(limit)s - 1 LIMIT 1
) AS weakest

-- name: nearest_of
-- The links of one relation that begin at these rows.
SELECT own.row, link.target, link.strength
FROM unnest(%(rows)b::bigint[]) AS own (row)
CROSS JOIN LATERAL (
    SELECT target, strength FROM edges WHERE space = %(space)s AND source = own.row AND relation = %(relation)s
    ORDER BY strength DESC, target DESC LIMIT (SELECT 1000)
) AS link

-- name: digests
-- What these rows say.
SELECT row, text_digest(title, text) FROM memories WHERE space = %(space)s AND row = ANY({rows})

-- name: delete_edges
-- Links of one relation between these ends.
DELETE FROM edges AS e
USING unnest(%(sources)b::bigint[], %(targets)b::bigint[]) AS gone (source, target)
WHERE e.space = %(space)s AND e.source = gone.source AND e.target = gone.target AND e.relation = %(relation)s

-- name: delete_relation
-- A row's links of one relation to others.
DELETE FROM edges WHERE space = %(space)s AND source = %(row)s AND relation = %(relation)s

-- name: unlink_others
-- Deletes the links of one relation from others to these rows. Whoever had one has to be linked to its nearest again,
-- unless somebody is about to forget it.
WITH pointing AS MATERIALIZED (
    SELECT link.place, link.source
    FROM unnest(%(rows)b::bigint[]) AS gone (row)
    CROSS JOIN LATERAL (
        SELECT ctid AS place, source FROM edges
        WHERE space = %(space)s AND target = gone.row AND relation = %(relation)s
        ORDER BY strength DESC, source DESC LIMIT (SELECT 1000000)
    ) AS link
    WHERE link.source <> ALL({rows})
),
deleted AS (
    DELETE FROM edges WHERE ctid = ANY(ARRAY(SELECT place FROM pointing))
),
left_over AS (
    SELECT row FROM memories
    WHERE space = %(space)s AND row = ANY(ARRAY(SELECT source FROM pointing))
    ORDER BY row
    FOR KEY SHARE SKIP LOCKED
)
INSERT INTO unlinked (space, row) SELECT %(space)s, row FROM left_over ON CONFLICT (space, row) DO NOTHING

-- name: neighbours
-- What is one strong link away from some memories and passes a filter. Of several links the strongest counts.
WITH links AS (
    SELECT link.other, link.strength, link.relation
    FROM memories AS seed
    CROSS JOIN LATERAL (
        (SELECT target AS other, relation, strength FROM edges
         WHERE space = %(space)s AND source = seed.row
         ORDER BY strength DESC, target DESC, relation DESC LIMIT (SELECT %(per_step)s))
        UNION ALL
        (SELECT source AS other, relation, strength FROM edges
         WHERE space = %(space)s AND target = seed.row
         ORDER BY strength DESC, source DESC, relation DESC LIMIT (SELECT %(per_step)s))
    ) AS link
    WHERE seed.space = %(space)s AND seed.id = ANY({seeds})
    ORDER BY link.strength DESC, link.other, link.relation
    LIMIT %(per_step)s
),
reached AS (
    SELECT DISTINCT ON (other) other AS row, strength, relation FROM links ORDER BY other, strength DESC, relation
)
SELECT m.id, best.strength, 1, best.relation
FROM (SELECT * FROM reached ORDER BY strength DESC) AS best
CROSS JOIN LATERAL (SELECT * FROM memories WHERE space = %(space)s AND row = best.row LIMIT 1) AS m
WHERE {where}
ORDER BY best.strength DESC, m.id
LIMIT %(limit)s

-- name: walk
-- A walk of several steps. A label says how well one seed reaches one memory; `walk` holds all labels after each step,
-- as arrays, because a step has to see those of the steps before. A memory keeps the best two labels of different seeds:
-- a path back to a seed counts only when another seed began it, and of two different seeds one always is another.
WITH RECURSIVE walk (step, rows, seeds, strengths, steps, relations) AS (
    SELECT 0, array_agg(row), array_agg(row), array_agg(1::float8), array_agg(0), array_agg(''::text COLLATE "C")
    FROM memories
    WHERE space = %(space)s AND id = ANY({seeds})
    UNION ALL
    SELECT walk.step + 1, taken.*
    FROM walk CROSS JOIN LATERAL (
        WITH known AS (
            SELECT * FROM unnest(walk.rows, walk.seeds, walk.strengths, walk.steps, walk.relations)
                AS label (row, seed, strength, steps, relation)
        ),
        -- The links of what the last step improved, best memories first. What is beyond the limit is not even read.
        links AS (
            SELECT frontier.seeds, frontier.strengths, link.other, link.strength, link.relation
            FROM (
                SELECT row, array_agg(seed) AS seeds, array_agg(strength) AS strengths
                FROM known WHERE steps = walk.step
                GROUP BY row ORDER BY max(strength) DESC, row
            ) AS frontier
            CROSS JOIN LATERAL (
                (SELECT target AS other, relation, strength FROM edges
                 WHERE space = %(space)s AND source = frontier.row
                 ORDER BY strength DESC, target DESC, relation DESC
                 LIMIT CASE walk.step WHEN 0 THEN %(per_step)s ELSE %(per_memory)s END)
                UNION ALL
                (SELECT source AS other, relation, strength FROM edges
                 WHERE space = %(space)s AND target = frontier.row
                 ORDER BY strength DESC, source DESC, relation DESC
                 LIMIT CASE walk.step WHEN 0 THEN %(per_step)s ELSE %(per_memory)s END)
            ) AS link
            LIMIT %(per_step)s
        ),
        best AS (
            SELECT DISTINCT ON (row, seed) row, seed, strength, steps, relation
            FROM (
                SELECT * FROM known WHERE steps > 0
                UNION ALL
                SELECT links.other, began.seed, began.strength * links.strength, walk.step + 1, links.relation
                FROM links CROSS JOIN unnest(links.seeds, links.strengths) AS began (seed, strength)
                WHERE began.seed <> links.other
            ) AS label
            ORDER BY row, seed, strength DESC, steps, relation
        ),
        ranked AS (
            SELECT *, row_number() OVER (PARTITION BY row ORDER BY strength DESC, steps, seed, relation) AS place
            FROM best
        )
        SELECT array_agg(row), array_agg(seed), array_agg(strength), array_agg(steps), array_agg(relation)
        FROM ranked
        WHERE place <= 2
    ) AS taken
    WHERE walk.step < %(depth)s
),
reached AS (
    SELECT DISTINCT ON (label.row) label.row, label.strength, label.steps, label.relation
    FROM walk
    CROSS JOIN unnest(walk.rows, walk.seeds, walk.strengths, walk.steps, walk.relations)
        AS label (row, seed, strength, steps, relation)
    WHERE walk.step = %(depth)s
    ORDER BY label.row, label.strength DESC, label.steps, label.seed, label.relation
)
SELECT m.id, best.strength, best.steps, best.relation
FROM (SELECT * FROM reached ORDER BY strength DESC) AS best
CROSS JOIN LATERAL (SELECT * FROM memories WHERE space = %(space)s AND row = best.row LIMIT 1) AS m
WHERE {where}
ORDER BY best.strength DESC, m.id
LIMIT %(limit)s

-- name: edges_after
-- A page of the space's links, after the given one.
SELECT e.source, e.target, a.id, b.id, e.relation, e.strength
FROM (
    SELECT source, target, relation, strength FROM edges
    WHERE space = %(space)s AND (source, target, relation) > (%(source)s, %(target)s, %(relation)s)
    ORDER BY source, target, relation
    LIMIT (SELECT %(limit)s)
) AS e
CROSS JOIN LATERAL (SELECT id FROM memories WHERE space = %(space)s AND row = e.source LIMIT 1) AS a
CROSS JOIN LATERAL (SELECT id FROM memories WHERE space = %(space)s AND row = e.target LIMIT 1) AS b
ORDER BY e.source, e.target, e.relation

-- name: edges_of
-- The links that touch some memories.
SELECT a.id, b.id, e.relation, e.strength
FROM (
    SELECT o.source, o.target, o.relation, o.strength
    FROM memories AS m JOIN edges AS o ON o.space = m.space AND o.source = m.row
    WHERE m.space = %(space)s AND m.id = ANY({ids})
    UNION
    SELECT i.source, i.target, i.relation, i.strength
    FROM memories AS m JOIN edges AS i ON i.space = m.space AND i.target = m.row
    WHERE m.space = %(space)s AND m.id = ANY({ids})
) AS e
CROSS JOIN LATERAL (SELECT id FROM memories WHERE space = %(space)s AND row = e.source LIMIT 1) AS a
CROSS JOIN LATERAL (SELECT id FROM memories WHERE space = %(space)s AND row = e.target LIMIT 1) AS b
ORDER BY a.id, b.id, e.relation
