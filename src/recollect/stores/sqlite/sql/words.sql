-- The word index: the analyzer's terms with BM25, and the text indexes that the seeds' recipes ask for.

-- name: put_words
-- Index one row, in place of what was indexed for it.
INSERT OR REPLACE INTO words (rowid, title, text, context) VALUES (?, ?, ?, ?);

-- name: put_length
-- How many terms were indexed for one row.
INSERT INTO lengths (row, space, terms) VALUES (?, ?, ?) ON CONFLICT (row) DO UPDATE SET terms = excluded.terms

-- name: remove_words
-- Take rows out of the index.
DELETE FROM words WHERE rowid IN (SELECT value FROM json_each(?));

-- name: remove_lengths
-- And their lengths.
DELETE FROM lengths WHERE row IN (SELECT value FROM json_each(?));

-- name: texts
-- What other rows say, to index them again.
SELECT row, title, text FROM memories WHERE row IN (SELECT value FROM json_each(?));

-- name: places
-- Where rows stand in their threads.
SELECT row, namespace, thread, place FROM memories
WHERE thread IS NOT NULL AND place IS NOT NULL AND row IN (SELECT value FROM json_each(?));

-- name: stretch
-- The rows of a thread from :low to :high and :reach more at each end, in the thread's order.
SELECT row FROM (
    SELECT * FROM (
        SELECT place, row FROM memories
        WHERE space = :space AND namespace = :namespace AND thread = :thread AND place < :low
        ORDER BY place DESC, row DESC LIMIT :reach
    )
    UNION ALL
    SELECT place, row FROM memories
    WHERE space = :space AND namespace = :namespace AND thread = :thread AND place BETWEEN :low AND :high
    UNION ALL
    SELECT * FROM (
        SELECT place, row FROM memories
        WHERE space = :space AND namespace = :namespace AND thread = :thread AND place > :high
        ORDER BY place, row LIMIT :reach
    )
)
ORDER BY place, row;

-- name: seq
-- The number of the last writing transaction.
SELECT coalesce(max(seq), 0) FROM clock;

-- name: space_size
-- How many memories a space holds.
SELECT coalesce((SELECT memories FROM spaces WHERE number = ?), 0);

-- name: space_terms
-- How many terms a space holds.
SELECT coalesce((SELECT terms FROM spaces WHERE number = ?), 0);

-- name: indexed_terms
-- How many terms all spaces hold.
SELECT coalesce(sum(terms), 0) FROM spaces;

-- name: matching
-- How many rows match each expression, counted no further than a number: the document frequencies that bm25() uses.
SELECT json_group_array((SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH asked.value LIMIT ?2)))
FROM json_each(?1) AS asked;

-- name: indexed_rows
-- How many rows the whole table holds, asked of FTS5 itself, on any row that matches.
SELECT row_count(words) FROM words WHERE words MATCH ? LIMIT 1;

-- name: score_part
-- One term or phrase: its share of the score, where this space's average length is the table's.
SELECT rowid AS row, -bm25(words, ?, ?, ?) * ? AS score FROM words WHERE words MATCH ?{among}

-- name: score_part_anew
-- The same where it is not: r, the saturated frequency by the table's average, becomes that by the space's own. `norm`
-- and `own` are what a row's length does, by either. The inner limit keeps bm25() inside its own SELECT.
SELECT row, r * norm * ? / (r * norm + own * (? - r)) AS score
FROM (
    SELECT words.rowid AS row, -bm25(words, ?, ?, ?) * ? AS r, ? + ? * l.terms AS norm, ? + ? * l.terms AS own
    FROM words CROSS JOIN lengths AS l ON l.row = words.rowid
    WHERE words MATCH ?{among}
    LIMIT -1
)

-- name: among
-- Only rows of `allowed`; the plus makes SQLite walk the matches instead of looking each row up.
 AND +words.rowid IN (SELECT row FROM allowed)

-- name: score_apart
-- Parts with a factor each. The inner limit keeps bm25() inside its own SELECT, the only place where it works.
SELECT row, sum(score) AS score FROM ({parts} LIMIT -1) GROUP BY row

-- name: score_together
-- Parts with one factor for all, as one expression.
SELECT rowid AS row, -bm25(words, ?, ?, ?) * ? AS score FROM words WHERE words MATCH ?{among}

-- name: score_rows
-- All parts together: how many of the best rows were looked at, the score of the last of them, and those that pass the
-- filter, best first, as JSON: one row, because every row that crosses into Python has to wait for its turn there.
{allowed}
SELECT count(*), min(score), json_group_array(json_array(id, score)) FILTER (WHERE id IS NOT NULL)
FROM (
    SELECT m.id, best.score
    FROM ({scored} ORDER BY score DESC, row LIMIT ?) AS best
    LEFT JOIN memories AS m ON m.row = best.row AND {where}
    ORDER BY best.score DESC
);

-- name: holders
-- The memories that match, in the order of their rows.
SELECT m.id FROM words CROSS JOIN memories AS m ON m.row = words.rowid WHERE words MATCH ? LIMIT ?;

-- name: holders_among
-- Which of these memories match, however many others do.
SELECT m.id
FROM json_each(?2) AS hit
CROSS JOIN memories AS m ON m.space = +?1 AND m.id = hit.value
CROSS JOIN words ON words.rowid = m.row
WHERE words MATCH ?3;

-- name: allowed
-- The rows that pass a filter, before the rest of a statement.
WITH allowed (row) AS MATERIALIZED ({rows})

-- name: count_allowed
-- How many rows a filter is looked for among, counted no further than a number.
SELECT count(*) FROM ({rows} LIMIT ?)

-- name: text_indexes
-- The text indexes that this file carries, and the last row that was indexed; 'ready' when all were.
SELECT name, value FROM facts WHERE name IN ('words_simple', 'words_english');

-- name: create_text_index
-- Words of the texts only, each prefixed by its space, in the positions that Postgres would give them.
CREATE VIRTUAL TABLE IF NOT EXISTS {name} USING fts5 (
    text,
    content = '', contentless_delete = 1,
    tokenize = "ascii tokenchars '!#$%&''*+,-./:;<=>?@[\]^_`{{|}}~'"
);

-- name: set_text_index
-- How far a text index is.
INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?);

-- name: next_texts
-- Texts that a new text index does not hold yet.
SELECT row, space, text FROM memories WHERE row > ? ORDER BY row LIMIT ?;

-- name: put_text
-- Index one text, in place of what was indexed for it.
INSERT OR REPLACE INTO {name} (rowid, text) VALUES (?, ?);

-- name: remove_texts
-- Take rows out of a text index.
DELETE FROM {name} WHERE rowid IN (SELECT value FROM json_each(?));

-- name: text_matches
-- Rows that match, pass the filter and are confirmed by their positions.
SELECT m.id, text_rank({name}, ?, ?, ?, ?) AS score
FROM {name} CROSS JOIN memories AS m ON m.row = {name}.rowid
WHERE {name} MATCH ? AND {where}

-- name: title_matches
-- Rows whose title contains the whole question.
SELECT m.id, ? AS score FROM memories AS m WHERE {where} AND m.title <> '' AND title_contains(m.title, ?)

-- name: best_matches
-- All matches together, best first. The inner limit keeps text_rank() inside its own SELECT.
SELECT id, sum(score) AS score FROM ({matches} LIMIT -1) WHERE score IS NOT NULL
GROUP BY id ORDER BY score DESC, id LIMIT ?;
