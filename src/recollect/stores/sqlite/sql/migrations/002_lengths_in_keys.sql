-- Rows of the word index are keyed by their number and their length; before, by their number alone. The terms of each row
-- are put together again from where they stand.
CREATE VIRTUAL TABLE temp.old_places USING fts5vocab (main, words, instance);

CREATE TEMP TABLE old_words (row INTEGER PRIMARY KEY, title TEXT, text TEXT, context TEXT) STRICT;

INSERT INTO temp.old_words (row, title, text, context)
SELECT doc,
       group_concat(term, ' ' ORDER BY offset) FILTER (WHERE col = 'title') AS title,
       group_concat(term, ' ' ORDER BY offset) FILTER (WHERE col = 'text') AS text,
       group_concat(term, ' ' ORDER BY offset) FILTER (WHERE col = 'context') AS context
FROM temp.old_places
GROUP BY doc;

INSERT INTO words (words) VALUES ('delete-all');

INSERT INTO words (rowid, title, text, context)
SELECT l.row << 16 | min(l.terms, 65535), coalesce(o.title, ''), coalesce(o.text, ''), coalesce(o.context, '')
FROM lengths AS l LEFT JOIN temp.old_words AS o ON o.row = l.row
ORDER BY l.row;

DROP TABLE temp.old_words;

DROP TABLE temp.old_places;
