-- The word index: the analyzer's terms with BM25, and the text indexes that the seeds' recipes ask for.

-- name: put_words
-- Index one row under its key; see postings.py.
INSERT INTO words (rowid, title, text, context) VALUES (?, ?, ?, ?);

-- name: put_length
-- How many terms were indexed for one row.
INSERT INTO lengths (row, space, terms) VALUES (?, ?, ?) ON CONFLICT (row) DO UPDATE SET terms = excluded.terms

-- name: remove_words
-- Take rows out of the index, while their lengths are still there: 16 bits of a row's key are its length.
DELETE FROM words
WHERE rowid IN (
    SELECT l.row << 16 | min(l.terms, 65535) FROM json_each(?) AS gone CROSS JOIN lengths AS l ON l.row = gone.value
);

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

-- name: rows_within
-- The rows of some namespaces.
SELECT row FROM memories WHERE space = +? AND namespace IN (SELECT value FROM json_each(?))

-- name: size_within
-- How many memories some namespaces hold.
SELECT count(*) FROM memories WHERE space = +? AND namespace IN (SELECT value FROM json_each(?));

-- name: terms_within
-- How many terms they hold.
SELECT coalesce(sum(l.terms), 0)
FROM memories AS m CROSS JOIN lengths AS l ON l.row = m.row
WHERE m.space = +? AND m.namespace IN (SELECT value FROM json_each(?));

-- name: matching
-- How many rows match each expression, counted no further than a number: its document frequency.
SELECT json_group_array((SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH asked.value{among} LIMIT ?)))
FROM json_each(?) AS asked;

-- name: make_places
-- FTS5's postings as a table: a row for each occurrence of a term.
CREATE VIRTUAL TABLE temp.word_places USING fts5vocab (main, words, instance);

-- name: term_places
-- Where each token stands, as one text of numbers: for each occurrence twice the key, and one more in the context. One
-- row for all, because every row that crosses into Python has to wait for its turn there.
SELECT json_group_array((
    SELECT group_concat(place)
    FROM (
        SELECT p.doc << 1 | (p.col = 'context') AS place FROM temp.word_places AS p WHERE p.term = asked.value LIMIT ?2
    )
))
FROM json_each(?1) AS asked;

-- name: matches
-- For each expression the keys that match it, and how often. The inner limit keeps the function inside its own SELECT.
SELECT json_group_array(json_array(number, place, times))
FROM (
    SELECT asked.key AS number, words.rowid AS place, occurrences(words) AS times
    FROM json_each(?) AS asked CROSS JOIN words
    WHERE words MATCH asked.value{among}
    LIMIT -1
);

-- name: among
-- Only keys of some rows; the plus makes SQLite walk the matches instead of looking each row up.
 AND +words.rowid >> 16 IN ({rows})

-- name: holders
-- The memories that match, in the order of their rows.
SELECT m.id FROM words CROSS JOIN memories AS m ON m.row = words.rowid >> 16 WHERE words MATCH ?{among} LIMIT ?;

-- name: holders_among
-- Which of these memories match, however many others do.
SELECT m.id
FROM json_each(?2) AS hit
CROSS JOIN memories AS m ON m.space = +?1 AND m.id = hit.value
CROSS JOIN lengths AS l ON l.row = m.row
CROSS JOIN words ON words.rowid = l.row << 16 | min(l.terms, 65535)
WHERE words MATCH ?3;

-- name: allowed
-- The rows that a filter is looked for among, as one text of numbers.
SELECT group_concat(row) FROM ({rows});

-- name: count_allowed
-- How many rows a filter is looked for among, counted no further than a number.
SELECT count(*) FROM ({rows} LIMIT ?)

-- name: text_indexes
-- The text indexes that this file carries, and the last row that was indexed; 'ready' when all were.
SELECT name, value FROM facts WHERE name IN ('words_simple', 'words_english');

-- name: last_row
-- The last memory's row; about as many as there are.
SELECT coalesce(max(row), 0) FROM memories;

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
