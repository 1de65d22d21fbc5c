-- The whole schema of a store file, version 4. Times are whole microseconds since 1970, UTC.
-- Every key, unique index and join starts with the space.

-- Facts about the file itself: which extra text indexes it carries, and how far they are.
CREATE TABLE facts (
    name  TEXT PRIMARY KEY,
    value ANY NOT NULL
) STRICT, WITHOUT ROWID;

-- One row: the number of the last writing transaction. Caches catch up from it.
CREATE TABLE clock (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    seq INTEGER NOT NULL
) STRICT;

INSERT INTO clock (one, seq) VALUES (1, 0);

CREATE TABLE spaces (
    number       INTEGER PRIMARY KEY,
    name         TEXT NOT NULL UNIQUE,
    memories     INTEGER NOT NULL DEFAULT 0,  -- how many, kept by two triggers on `memories`
    terms        INTEGER NOT NULL DEFAULT 0,  -- their lengths together, kept by three triggers on `lengths`
    scored_at    INTEGER,                     -- when the qualities were last brought up to date, or the space began
    scored_after TEXT                         -- up to which id that came, if it was cut off
) STRICT;

-- Which models made the vectors. One generation answers; a next one is filled while it does, and an old one is kept for
-- some time in case it is wanted back. One whose vectors were dropped stays as `gone`, for its number must not come back.
CREATE TABLE generations (
    number     INTEGER PRIMARY KEY,
    model      TEXT NOT NULL,
    dimensions INTEGER NOT NULL,
    state      TEXT NOT NULL DEFAULT 'current' CHECK (state IN ('current', 'next', 'old', 'gone')),
    since      INTEGER,                       -- when it came to this state
    UNIQUE (model, dimensions)
) STRICT;

-- AUTOINCREMENT, because row numbers are keys in the word index and in the vector index and must not come back.
CREATE TABLE memories (
    row           INTEGER PRIMARY KEY AUTOINCREMENT,
    space         INTEGER NOT NULL REFERENCES spaces (number),
    id            TEXT NOT NULL,
    hash          BLOB NOT NULL,
    namespace     TEXT NOT NULL,
    kind          TEXT NOT NULL,
    text          TEXT NOT NULL,
    title         TEXT NOT NULL,
    tags          TEXT NOT NULL,              -- JSON array, in the caller's order
    source        TEXT NOT NULL,
    thread        TEXT,
    place         INTEGER,
    metadata      TEXT NOT NULL,              -- JSON object
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    occurred_at   INTEGER,
    expires_at    INTEGER,
    superseded_by TEXT,
    quality       REAL,
    hits          INTEGER NOT NULL DEFAULT 0,
    last_hit_at   INTEGER,
    embedding     TEXT NOT NULL CHECK (embedding IN ('ready', 'pending', 'failed')),
    linked        INTEGER NOT NULL DEFAULT 0, -- 1 once linked to its three nearest
    used          INTEGER NOT NULL DEFAULT 0, -- how often a caller said that it was of use
    last_used_at  INTEGER,
    UNIQUE (space, id),
    UNIQUE (space, hash)
) STRICT;

-- A thread belongs to its namespace; its name comes first, because a filter may name a thread in all of them.
CREATE INDEX memories_by_thread ON memories (space, thread, namespace, place) WHERE thread IS NOT NULL;
CREATE INDEX memories_by_kind ON memories (space, kind);
CREATE INDEX memories_by_namespace ON memories (space, namespace, substr(hash, 1, 8));
CREATE INDEX memories_by_time ON memories (space, coalesce(occurred_at, created_at));
CREATE INDEX memories_by_source ON memories (space, source);
CREATE INDEX memories_by_successor ON memories (space, superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX memories_pending ON memories (space) WHERE embedding = 'pending';
CREATE INDEX memories_unlinked ON memories (space) WHERE linked = 0;

CREATE TRIGGER count_remembered AFTER INSERT ON memories BEGIN
    UPDATE spaces SET memories = memories + 1 WHERE number = new.space;
END;

CREATE TRIGGER count_forgotten AFTER DELETE ON memories BEGIN
    UPDATE spaces SET memories = memories - 1 WHERE number = old.space;
END;

CREATE TABLE tags (
    space INTEGER NOT NULL,
    tag   TEXT NOT NULL,
    row   INTEGER NOT NULL,
    PRIMARY KEY (space, tag, row)
) STRICT, WITHOUT ROWID;

-- float32, little endian, length 1. `seq` is the clock of the transaction that wrote it, `digest` that of the title and
-- the text: the vectors with the lowest digests are the sample that scores are measured against. The key is the row, with
-- the generation less one above its lowest 40 bits, so that a memory can have a vector of each.
CREATE TABLE vectors (
    key        INTEGER PRIMARY KEY,
    space      INTEGER NOT NULL,
    generation INTEGER NOT NULL REFERENCES generations (number),
    seq        INTEGER NOT NULL,
    vector     BLOB NOT NULL,
    digest     BLOB NOT NULL DEFAULT x'',
    row        INTEGER GENERATED ALWAYS AS (key & 1099511627775) VIRTUAL
) STRICT;

CREATE INDEX vectors_by_seq ON vectors (space, generation, seq);
-- Of one digest in sixteen: in a large space the lowest are among them, and a small one is read as a whole.
CREATE INDEX vectors_by_digest ON vectors (space, generation, digest) WHERE digest < x'10';

-- Rows whose vector is gone, so that a vector index can drop them when it catches up. A row's last removal stands for
-- its earlier ones. Nothing is pruned beyond that: nobody knows how old the state is that another process holds.
CREATE TABLE removed_vectors (
    row   INTEGER PRIMARY KEY,
    space INTEGER NOT NULL,
    seq   INTEGER NOT NULL
) STRICT;

CREATE INDEX removed_vectors_by_seq ON removed_vectors (space, seq);

CREATE TABLE edges (
    space    INTEGER NOT NULL,
    source   INTEGER NOT NULL,
    target   INTEGER NOT NULL,
    relation TEXT NOT NULL,
    strength REAL NOT NULL CHECK (strength > 0 AND strength <= 1),
    PRIMARY KEY (space, source, target, relation)
) STRICT, WITHOUT ROWID;

-- Strongest first from either end, so that a walk reads no more links of a hub than it follows.
CREATE INDEX edges_by_source ON edges (space, source, strength);
CREATE INDEX edges_by_target ON edges (space, target, strength);

-- The analyzer's terms, each prefixed by its space ("7:invoice"), so that a term's postings, and with them its
-- document frequency, never mix two spaces. `context` holds the terms of the thread neighbours. The rowid is a key that
-- holds the row and its length, 16 bits of it: see postings.py.
CREATE VIRTUAL TABLE words USING fts5 (
    title, text, context,
    content = '', contentless_delete = 1,
    tokenize = "ascii tokenchars '!#$%&''*+,-./:;<=>?@[\]^_`{|}~'"
);

-- How many terms the word index holds of a memory, its context included.
CREATE TABLE lengths (
    row   INTEGER PRIMARY KEY,
    space INTEGER NOT NULL,
    terms INTEGER NOT NULL
) STRICT;

CREATE TRIGGER add_length AFTER INSERT ON lengths BEGIN
    UPDATE spaces SET terms = terms + new.terms WHERE number = new.space;
END;

CREATE TRIGGER change_length AFTER UPDATE ON lengths BEGIN
    UPDATE spaces SET terms = terms + new.terms - old.terms WHERE number = new.space;
END;

CREATE TRIGGER remove_length AFTER DELETE ON lengths BEGIN
    UPDATE spaces SET terms = terms - old.terms WHERE number = old.space;
END;

-- How often a space was asked, by the hour (times as everywhere), and what each leg had to do with it.
CREATE TABLE usage (
    space    INTEGER NOT NULL REFERENCES spaces (number),
    hour     INTEGER NOT NULL,
    recalls  INTEGER NOT NULL,
    degraded INTEGER NOT NULL,
    failed   INTEGER NOT NULL,
    PRIMARY KEY (space, hour)
) STRICT, WITHOUT ROWID;

CREATE TABLE leg_usage (
    space    INTEGER NOT NULL REFERENCES spaces (number),
    hour     INTEGER NOT NULL,
    leg      TEXT NOT NULL,
    hits     INTEGER NOT NULL,
    searches INTEGER NOT NULL,
    ms       REAL NOT NULL,
    late     INTEGER NOT NULL,
    failed   INTEGER NOT NULL,
    skipped  INTEGER NOT NULL,
    PRIMARY KEY (space, hour, leg)
) STRICT, WITHOUT ROWID;

-- Which namespaces of a space another one may see, or also change: an offer until that one accepts it. It stands here by
-- its name, because it may have no memory yet.
CREATE TABLE grants (
    space     INTEGER NOT NULL REFERENCES spaces (number),
    namespace TEXT NOT NULL,
    grantee   TEXT NOT NULL,
    access    TEXT NOT NULL CHECK (access IN ('read', 'write')),
    accepted  INTEGER NOT NULL DEFAULT 0 CHECK (accepted IN (0, 1)),
    PRIMARY KEY (space, namespace, grantee)
) STRICT, WITHOUT ROWID;

CREATE INDEX grants_by_grantee ON grants (grantee, accepted);

-- The tokens that servers are called with, each with the SHA-256 of its secret. Not by space: they are the operators',
-- and a token is looked up before it is known which spaces it is for.
CREATE TABLE tokens (
    id         TEXT PRIMARY KEY,
    digest     BLOB NOT NULL,
    name       TEXT NOT NULL,
    spaces     TEXT NOT NULL,                 -- JSON array; an empty one stands for all spaces
    scope      TEXT NOT NULL CHECK (scope IN ('read', 'write', 'admin')),
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
) STRICT, WITHOUT ROWID;

-- Who is signed in to the dashboard: the SHA-256 of what the browser's cookie holds, and the token it stands for.
CREATE TABLE sessions (
    digest     BLOB PRIMARY KEY,
    token      TEXT NOT NULL REFERENCES tokens (id),
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX sessions_by_token ON sessions (token, created_at);

-- What requests with an idempotency key were answered with; no status while one is under way. The owner is the open store
-- that claimed the key: see owners.py.
CREATE TABLE replies (
    space       INTEGER NOT NULL REFERENCES spaces (number),
    key         TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    status      INTEGER,
    body        BLOB NOT NULL,
    expires_at  INTEGER NOT NULL,
    owner       TEXT,
    PRIMARY KEY (space, key)
) STRICT;

CREATE INDEX replies_by_expiry ON replies (space, expires_at);

-- External indexes that are told of changes, which leg each of them answers, and who feeds it until when.
CREATE TABLE indexes (
    name       TEXT PRIMARY KEY,
    leg        TEXT NOT NULL CHECK (leg IN ('vector', 'graph')),
    holder     TEXT,
    held_until INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- Memories that an index has still to look at, whatever became of them. AUTOINCREMENT: a number stands for one change
-- and must not come back, for an entry is only taken out under the number that was delivered.
CREATE TABLE outbox (
    number     INTEGER PRIMARY KEY AUTOINCREMENT,
    space      INTEGER NOT NULL,
    index_name TEXT NOT NULL,
    id         TEXT NOT NULL,
    noted_at   INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    UNIQUE (space, index_name, id)
) STRICT;

CREATE INDEX outbox_by_index ON outbox (index_name, number);

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

CREATE TRIGGER note_changed
AFTER UPDATE OF namespace, kind, tags, source, thread, occurred_at, expires_at, superseded_by, quality ON memories BEGIN
    INSERT OR REPLACE INTO outbox (space, index_name, id)
    SELECT new.space, i.name, new.id FROM indexes AS i WHERE i.leg = 'vector';
END;

-- A graph index holds memories and links; a link belongs to the memory at which it begins.
CREATE TRIGGER note_remembered AFTER INSERT ON memories BEGIN
    INSERT OR REPLACE INTO outbox (space, index_name, id)
    SELECT new.space, i.name, new.id FROM indexes AS i WHERE i.leg = 'graph';
END;

CREATE TRIGGER note_link AFTER INSERT ON edges BEGIN
    INSERT OR REPLACE INTO outbox (space, index_name, id)
    SELECT new.space, i.name, m.id FROM indexes AS i CROSS JOIN memories AS m
    WHERE i.leg = 'graph' AND m.row = new.source;
END;

CREATE TRIGGER note_link_changed AFTER UPDATE ON edges BEGIN
    INSERT OR REPLACE INTO outbox (space, index_name, id)
    SELECT new.space, i.name, m.id FROM indexes AS i CROSS JOIN memories AS m
    WHERE i.leg = 'graph' AND m.row = new.source;
END;

CREATE TRIGGER note_link_gone AFTER DELETE ON edges BEGIN
    INSERT OR REPLACE INTO outbox (space, index_name, id)
    SELECT old.space, i.name, m.id FROM indexes AS i CROSS JOIN memories AS m
    WHERE i.leg = 'graph' AND m.row = old.source;
END;

CREATE TRIGGER note_forgotten AFTER DELETE ON memories BEGIN
    INSERT OR REPLACE INTO outbox (space, index_name, id) SELECT old.space, i.name, old.id FROM indexes AS i;
END;
