-- Version 4: vectors of several models side by side. The rows of the first one keep their keys.
ALTER TABLE generations ADD COLUMN state TEXT NOT NULL DEFAULT 'current'
    CHECK (state IN ('current', 'next', 'old', 'gone'));
ALTER TABLE generations ADD COLUMN since INTEGER;

DROP TRIGGER note_vector;
DROP TRIGGER note_vector_gone;
DROP INDEX vectors_by_seq;
ALTER TABLE vectors RENAME COLUMN row TO key;
ALTER TABLE vectors ADD COLUMN row INTEGER GENERATED ALWAYS AS (key & 1099511627775) VIRTUAL;
CREATE INDEX vectors_by_seq ON vectors (space, generation, seq);

-- A vector index holds vectors, and beside them whatever a filter asks for.
CREATE TRIGGER note_vector AFTER INSERT ON vectors BEGIN
    INSERT OR REPLACE INTO outbox (space, index_name, id)
    SELECT new.space, i.name, m.id FROM indexes AS i CROSS JOIN memories AS m
    WHERE i.leg = 'vector' AND m.row = new.row;
END;

CREATE TRIGGER note_vector_gone AFTER DELETE ON vectors BEGIN
    INSERT OR REPLACE INTO outbox (space, index_name, id)
    SELECT old.space, i.name, m.id FROM indexes AS i CROSS JOIN memories AS m
    WHERE i.leg = 'vector' AND m.row = old.row;
END;
