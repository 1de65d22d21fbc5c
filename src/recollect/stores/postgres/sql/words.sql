-- The word index: the analyzer's terms with BM25. A term carries its space, so no statement that looks for terms names
-- the space beside it: a second way in, through the primary key, would only mislead the planner.

-- name: places
-- Where rows stand in their threads.
SELECT row, namespace, thread, place FROM memories
WHERE space = %(space)s AND row = ANY(%(rows)s) AND thread IS NOT NULL AND place IS NOT NULL

-- name: stretches
-- The rows of each of some threads from its lowest place to its highest and `reach` more at each end, in its order.
SELECT ARRAY(
    SELECT near.row FROM (
        (SELECT m.place, m.row FROM memories AS m
         WHERE m.space = %(space)s AND m.thread = t.thread AND m.namespace = t.namespace AND m.place < t.lowest
         ORDER BY m.place DESC, m.row DESC LIMIT %(reach)s)
        UNION ALL
        (SELECT m.place, m.row FROM memories AS m
         WHERE m.space = %(space)s AND m.thread = t.thread AND m.namespace = t.namespace
               AND m.place BETWEEN t.lowest AND t.highest)
        UNION ALL
        (SELECT m.place, m.row FROM memories AS m
         WHERE m.space = %(space)s AND m.thread = t.thread AND m.namespace = t.namespace AND m.place > t.highest
         ORDER BY m.place, m.row LIMIT %(reach)s)
    ) AS near
    ORDER BY near.place, near.row
)
FROM unnest(%(namespaces)s::text[], %(threads)s::text[], %(lowest)s::bigint[], %(highest)s::bigint[])
     WITH ORDINALITY AS t (namespace, thread, lowest, highest, number)
ORDER BY t.number

-- name: texts
-- What other rows say, to index them again.
SELECT row, title, text FROM memories WHERE space = %(space)s AND row = ANY(%(rows)s)

-- name: write_words
-- Index some rows, each in place of what was indexed for it, take others out, and enter in the ledger what that changes;
-- then how many entries the space had there before.
WITH old AS (
    SELECT w.length FROM words AS w
    WHERE w.space = %(space)s AND w.row = ANY(%(rows)s::bigint[] || %(gone)s::bigint[])
), removed AS (
    DELETE FROM words WHERE space = %(space)s AND row = ANY(%(gone)s::bigint[])
), written AS (
    INSERT INTO words (space, row, words, length)
    SELECT %(space)s, given.row, given.words::tsvector, given.length
    FROM unnest(%(rows)s::bigint[], %(words)b::text[], %(lengths)s::integer[]) AS given (row, words, length)
    ON CONFLICT (space, row) DO UPDATE SET words = excluded.words, length = excluded.length
)
INSERT INTO sizes (space, memories, length, changes)
SELECT %(space)s, %(count)s - count(*), %(length)s - coalesce(sum(old.length), 0), %(changes)s
FROM old
RETURNING (SELECT count(*) FROM sizes WHERE space = %(space)s)

-- name: add_up
-- Replace the ledger's entries for a space by their sum, but for those that somebody else is just adding up.
WITH entries AS (
    DELETE FROM sizes
    WHERE space = %(space)s AND entry IN (
        SELECT entry FROM sizes WHERE space = %(space)s ORDER BY entry FOR UPDATE SKIP LOCKED
    )
    RETURNING memories, length, changes
)
INSERT INTO sizes (space, memories, length, changes)
SELECT %(space)s, sum(memories), sum(length), sum(changes) FROM entries HAVING count(*) > 0

-- name: count
-- How many memories a space holds, how long they are together and how often it was changed; and how many rows match
-- each of some questions, counted no further than a number.
SELECT coalesce(sum(s.memories), 0)::bigint, coalesce(sum(s.length), 0)::bigint, coalesce(sum(s.changes), 0)::bigint,
       ARRAY(
           SELECT (SELECT count(*) FROM (
               SELECT FROM words AS w WHERE w.words @@ asked.query LIMIT %(most)s
           ) AS matching)
           FROM unnest(%(queries)s::tsquery[]) WITH ORDINALITY AS asked (query, number)
           ORDER BY asked.number
       )
FROM sizes AS s
WHERE s.space = %(space)s

-- name: size_within
-- How many memories some namespaces of a space hold, and how long they are together.
SELECT count(*), coalesce(sum(w.length), 0)::bigint
FROM memories AS m JOIN words AS w ON w.space = m.space AND w.row = m.row
WHERE m.space = %(space)s AND m.namespace = ANY(%(namespaces)s)

-- name: count_within
-- How many rows of some namespaces match each of some questions, counted no further than a number.
SELECT (SELECT count(*) FROM (
    SELECT FROM words AS w JOIN memories AS m ON m.space = %(space)s AND m.row = w.row
    WHERE w.words @@ asked.query AND m.namespace = ANY(%(namespaces)s) LIMIT %(most)s
) AS matching)
FROM unnest(%(queries)s::tsquery[]) WITH ORDINALITY AS asked (query, number)
ORDER BY asked.number

-- name: common
-- A space's words that are in more rows than a number, as Postgres estimated when it last analyzed the table.
SELECT substr(e.word, length(%(prefix)s) + 1), (e.share * t.reltuples)::bigint
FROM pg_class AS t
JOIN pg_namespace AS n ON n.oid = t.relnamespace
JOIN pg_stats AS s ON s.schemaname = n.nspname AND s.tablename = t.relname AND s.attname = 'words'
CROSS JOIN LATERAL unnest(s.most_common_elems::text::text[], s.most_common_elem_freqs) AS e (word, share)
WHERE t.oid = 'words'::regclass AND starts_with(e.word, %(prefix)s) AND e.share * t.reltuples > %(least)s

-- name: share
-- What a part of the question adds to the score of a row: worth x (k1 + 1) x tf / (tf + norm), written so that tf is
-- computed once. The cover density of one word, or of one phrase, is the sum of its occurrences' weights, which is tf.
part.worth * (1 - (%(base)s::float8 + %(slope)s::float8 * w.length) / (
    %(base)s::float8 + %(slope)s::float8 * w.length + ts_rank_cd(%(weights)s::real[], w.words, part.query)
))

-- name: best
-- The best memories that pass a filter. They are looked up one by one (OFFSET 0 keeps it so), the best first, so that
-- only as many are read as are needed.
SELECT passing.id, scored.score
FROM (
    SELECT found.row, sum(found.share) AS score
    FROM unnest(%(queries)s::tsquery[], %(worths)s::float8[]) AS part (query, worth)
    CROSS JOIN LATERAL (
        SELECT w.row, {share} AS share FROM words AS w WHERE w.words @@ part.query LIMIT %(part_rows)s
    ) AS found
    GROUP BY found.row
    ORDER BY score DESC
) AS scored
CROSS JOIN LATERAL (
    SELECT m.id FROM (SELECT * FROM memories WHERE space = %(space)s AND row = scored.row OFFSET 0) AS m WHERE {where}
) AS passing
ORDER BY scored.score DESC, passing.id
LIMIT %(limit)s

-- name: best_within
-- The best memories of some namespaces that pass a filter. All that match are scored, in one order, so that no score and
-- no hit depends on what other namespaces hold.
SELECT m.id, scored.score
FROM (
    SELECT w.row, sum({share} ORDER BY part.number) AS score
    FROM unnest(%(queries)s::tsquery[], %(worths)s::float8[]) WITH ORDINALITY AS part (query, worth, number)
    JOIN words AS w ON w.words @@ part.query
    JOIN memories AS inside ON inside.space = %(space)s AND inside.row = w.row
    WHERE inside.namespace = ANY(%(namespaces)s)
    GROUP BY w.row
) AS scored
JOIN memories AS m ON m.space = %(space)s AND m.row = scored.row
WHERE {where}
ORDER BY scored.score DESC, m.id
LIMIT %(limit)s

-- name: best_among
-- The best of some rows, whatever else matches: each is read once, and asked for every part of the question.
SELECT m.id, scored.score
FROM (
    SELECT w.row, sum({share}) AS score
    FROM (
        SELECT row, words, length FROM words WHERE space = %(space)s AND row = ANY(%(rows)s) OFFSET 0
    ) AS w
    JOIN unnest(%(queries)s::tsquery[], %(worths)s::float8[]) AS part (query, worth) ON w.words @@ part.query
    GROUP BY w.row
) AS scored
JOIN memories AS m ON m.space = %(space)s AND m.row = scored.row
ORDER BY scored.score DESC, m.id
LIMIT %(limit)s

-- name: passing
-- The rows that pass a filter, no more than a number.
{rows} LIMIT %(most)s

-- name: holders
-- Which of some questions the words of each of some memories answer.
SELECT m.id, ARRAY(
    SELECT w.words @@ asked.query
    FROM unnest(%(queries)s::tsquery[]) WITH ORDINALITY AS asked (query, number)
    ORDER BY asked.number
)
FROM memories AS m JOIN words AS w ON w.space = m.space AND w.row = m.row
WHERE m.space = %(space)s AND m.id = ANY(%(ids)s)
