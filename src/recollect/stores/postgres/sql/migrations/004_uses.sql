-- Version 4: which questions led to the use of which memories.
CREATE TABLE uses (
    space    integer NOT NULL REFERENCES spaces (number),
    number   bigint GENERATED ALWAYS AS IDENTITY,
    row      bigint NOT NULL,
    question text NOT NULL,
    used_at  timestamptz NOT NULL,
    PRIMARY KEY (space, number),
    FOREIGN KEY (space, row) REFERENCES memories (space, row) ON DELETE CASCADE
);

CREATE INDEX uses_by_row ON uses (space, row);
