-- Version 5: which questions led to the use of which memories.
CREATE TABLE uses (
    number   INTEGER PRIMARY KEY AUTOINCREMENT,
    space    INTEGER NOT NULL REFERENCES spaces (number),
    row      INTEGER NOT NULL,
    question TEXT NOT NULL,
    used_at  INTEGER NOT NULL
) STRICT;

CREATE INDEX uses_by_space ON uses (space, number);
CREATE INDEX uses_by_row ON uses (space, row);
