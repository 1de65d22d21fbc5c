-- The whole schema, version 3, in the schema that comes first in the search path.
-- Every key, unique index and join starts with the space, so that the tables can be distributed by it.
-- Names and ids sort by their code points (collation "C"), as they do in Python and in SQLite.

-- Facts about the schema itself: its version, whether row security is on.
CREATE TABLE facts (
    name  text PRIMARY KEY,
    value text NOT NULL
);

CREATE TABLE spaces (
    number       integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name         text COLLATE "C" NOT NULL UNIQUE,
    scored_at    timestamptz DEFAULT now(),    -- when the qualities were last brought up to date, or the space began
    scored_after text                          -- up to which id that came, if it was cut off
);

-- Which models made the vectors, and how they are stored. The vectors of generation n are in the table `vectors_n`,
-- which begins with the generation: see generations.sql. One generation answers; a next one is filled while it does, and
-- an old one is kept for some time in case it is wanted back. One whose vectors were dropped is `gone`.
CREATE TABLE generations (
    number     integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    model      text NOT NULL,
    dimensions integer NOT NULL,
    storage    text NOT NULL CHECK (storage IN ('vector', 'halfvec')),
    state      text NOT NULL DEFAULT 'current' CHECK (state IN ('current', 'next', 'old', 'gone')),
    since      timestamptz DEFAULT now()      -- when it came to this state
);

CREATE SEQUENCE row_numbers AS bigint;

CREATE TABLE memories (
    space         integer NOT NULL REFERENCES spaces (number),
    row           bigint NOT NULL DEFAULT nextval('row_numbers'),
    id            text COLLATE "C" NOT NULL,
    hash          bytea NOT NULL,
    namespace     text COLLATE "C" NOT NULL,
    kind          text COLLATE "C" NOT NULL,
    text          text NOT NULL,
    title         text NOT NULL,
    tags          text[] NOT NULL,             -- in the caller's order; the table `tags` is for searching
    source        text COLLATE "C" NOT NULL,
    thread        text COLLATE "C",
    place         bigint,
    metadata      json NOT NULL,               -- json, not jsonb: it comes back as it was given
    created_at    timestamptz NOT NULL,
    updated_at    timestamptz NOT NULL,
    occurred_at   timestamptz,
    expires_at    timestamptz,
    superseded_by text COLLATE "C",
    quality       double precision,
    embedding     text NOT NULL CHECK (embedding IN ('ready', 'pending', 'failed')),
    -- The seeds' words have columns behind these, where they are wanted: see text_indexes.sql.
    PRIMARY KEY (space, row),
    UNIQUE (space, id),
    UNIQUE (space, hash)
);

-- What decides whether a memory's vector is in its space's sample, against which scores are measured: see nearest.py.
CREATE FUNCTION text_digest(title text, body text) RETURNS bytea LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN substring(sha256(convert_to(title || E'\n' || body, 'UTF8')) FOR 8);
END
$$;

CREATE INDEX memories_by_digest ON memories (space, text_digest(title, text));

-- The words of a text under a text-search configuration. A tsvector holds at most 1 MiB: of a text with more words than
-- that, the beginning.
CREATE FUNCTION text_words(configuration regconfig, whole text) RETURNS tsvector LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    characters integer := length(whole);
BEGIN
    IF octet_length(whole) <= 200000 THEN
        RETURN to_tsvector(configuration, whole);
    END IF;
    LOOP
        BEGIN
            RETURN to_tsvector(configuration, left(whole, characters));
        EXCEPTION WHEN program_limit_exceeded THEN
            characters := characters / 10 * 9;
        END;
    END LOOP;
END
$$;

-- A thread belongs to its namespace; its name comes first, because a filter may name a thread in all of them.
CREATE INDEX memories_by_thread ON memories (space, thread, namespace, place, row) WHERE thread IS NOT NULL;
CREATE INDEX memories_by_kind ON memories (space, kind);
-- Not by the whole hash: Postgres would take it for a way to find copies, and go through every namespace.
CREATE INDEX memories_by_namespace ON memories (space, namespace, (substr(hash, 1, 8)));
CREATE INDEX memories_by_time ON memories (space, (coalesce(occurred_at, created_at)));
CREATE INDEX memories_by_source ON memories (space, (left(source, 200)));  -- an entry holds 2,704 bytes at most
CREATE INDEX memories_by_successor ON memories (space, superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX memories_pending ON memories (space, row) WHERE embedding = 'pending';

CREATE TABLE tags (
    space integer NOT NULL,
    tag   text COLLATE "C" NOT NULL,
    row   bigint NOT NULL,
    PRIMARY KEY (space, tag, row),
    FOREIGN KEY (space, row) REFERENCES memories (space, row) ON DELETE CASCADE
);

CREATE INDEX tags_by_row ON tags (space, row);

-- How often a memory was recalled, and was of use: apart from it, because a row that changes is written anew with all its indexes.
CREATE TABLE hits (
    space        integer NOT NULL,
    row          bigint NOT NULL,
    hits         bigint NOT NULL,
    last_hit_at  timestamptz,
    used         bigint NOT NULL DEFAULT 0,    -- how often a caller said that it was of use
    last_used_at timestamptz,
    PRIMARY KEY (space, row),
    FOREIGN KEY (space, row) REFERENCES memories (space, row) ON DELETE CASCADE
);

-- Memories that were not linked to their three nearest yet: apart from them for the same reason.
CREATE TABLE unlinked (
    space integer NOT NULL,
    row   bigint NOT NULL,
    PRIMARY KEY (space, row),
    FOREIGN KEY (space, row) REFERENCES memories (space, row) ON DELETE CASCADE
);

-- The analyzer's terms, each prefixed by its space ("7:invoice"), so that a term's postings, and with them its document
-- frequency, never mix two spaces. Weight A: title, B: text, C: the texts beside it in its thread.
CREATE TABLE words (
    space  integer NOT NULL,
    row    bigint NOT NULL,
    words  tsvector NOT NULL,
    length integer NOT NULL,                   -- terms in all three
    PRIMARY KEY (space, row),
    FOREIGN KEY (space, row) REFERENCES memories (space, row) ON DELETE CASCADE
) WITH (toast_tuple_target = 8160);            -- in the row and as it is where it fits a page: searches read thousands

CREATE INDEX words_by_term ON words USING gin (words);

-- How many memories a space holds, how long they are together, and how many were ever written or removed. Each writing
-- transaction adds a row of its own, so that no writer waits for another; readers add them up, and now and then
-- somebody replaces them by their sum.
CREATE TABLE sizes (
    space    integer NOT NULL REFERENCES spaces (number),
    entry    bigint GENERATED ALWAYS AS IDENTITY,
    memories bigint NOT NULL,
    length   bigint NOT NULL,
    changes  bigint NOT NULL,
    PRIMARY KEY (space, entry)
);

CREATE TABLE edges (
    space    integer NOT NULL,
    source   bigint NOT NULL,
    target   bigint NOT NULL,
    relation text COLLATE "C" NOT NULL,
    strength double precision NOT NULL CHECK (strength > 0 AND strength <= 1),
    PRIMARY KEY (space, source, target, relation),
    FOREIGN KEY (space, source) REFERENCES memories (space, row) ON DELETE CASCADE,
    FOREIGN KEY (space, target) REFERENCES memories (space, row) ON DELETE CASCADE
);

-- By strength from either end, and whole, so that a walk reads no more links of a hub than it follows.
CREATE INDEX edges_by_source ON edges (space, source, strength, target, relation);
CREATE INDEX edges_by_target ON edges (space, target, strength, source, relation);

-- How often a space was asked, by the hour, and what each leg had to do with it.
CREATE TABLE usage (
    space    integer NOT NULL REFERENCES spaces (number),
    hour     timestamptz NOT NULL,
    recalls  bigint NOT NULL,
    degraded bigint NOT NULL,
    failed   bigint NOT NULL,
    PRIMARY KEY (space, hour)
);

CREATE TABLE leg_usage (
    space    integer NOT NULL REFERENCES spaces (number),
    hour     timestamptz NOT NULL,
    leg      text NOT NULL,
    hits     bigint NOT NULL,
    searches bigint NOT NULL,
    ms       double precision NOT NULL,
    late     bigint NOT NULL,
    failed   bigint NOT NULL,
    skipped  bigint NOT NULL,
    PRIMARY KEY (space, hour, leg)
);

-- Which namespaces of a space another one may see, or also change: an offer until that one accepts it. It stands here by
-- its name, because it may have no memory yet.
CREATE TABLE grants (
    space     integer NOT NULL REFERENCES spaces (number),
    namespace text COLLATE "C" NOT NULL,
    grantee   text COLLATE "C" NOT NULL,
    access    text NOT NULL CHECK (access IN ('read', 'write')),
    accepted  boolean NOT NULL DEFAULT false,
    PRIMARY KEY (space, namespace, grantee)
);

CREATE INDEX grants_by_grantee ON grants (grantee, accepted);

-- Under row security only the space itself can change its grants, as its other rows; but others look for theirs in it.
CREATE POLICY read_by_others ON grants FOR SELECT USING (true);

-- The tokens that servers are called with, each with the SHA-256 of its secret. Not by space, and so without row
-- security: they are the operators', and a token is looked up before it is known which spaces it is for.
CREATE TABLE tokens (
    id         text COLLATE "C" PRIMARY KEY,
    digest     bytea NOT NULL,
    name       text NOT NULL,
    spaces     text[] NOT NULL,                -- an empty one stands for all spaces
    scope      text NOT NULL CHECK (scope IN ('read', 'write', 'admin')),
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    revoked_at timestamptz
);

-- Who is signed in to the dashboard: the SHA-256 of what the browser's cookie holds, and the token it stands for. Without
-- row security, as tokens are.
CREATE TABLE sessions (
    digest     bytea PRIMARY KEY,
    token      text COLLATE "C" NOT NULL REFERENCES tokens (id),
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);

CREATE INDEX sessions_by_token ON sessions (token, created_at);

-- What requests with an idempotency key were answered with; no status while one is under way. The owner is the open store
-- that claimed the key: see owners.py.
CREATE TABLE replies (
    space       integer NOT NULL REFERENCES spaces (number),
    key         text COLLATE "C" NOT NULL,
    fingerprint text NOT NULL,
    status      integer,
    body        bytea NOT NULL,
    expires_at  timestamptz NOT NULL,
    owner       bigint,
    PRIMARY KEY (space, key)
);

CREATE INDEX replies_by_expiry ON replies (space, expires_at);

-- External indexes that are told of changes, which leg each of them answers, and who feeds it until when.
CREATE TABLE indexes (
    name       text PRIMARY KEY,
    leg        text NOT NULL CHECK (leg IN ('vector', 'graph')),
    holder     text,
    held_until timestamptz NOT NULL DEFAULT '-infinity'
);

-- Memories that an index has still to look at, whatever became of them. A number stands for one change and never comes
-- back, for an entry is only taken out under the number that was delivered.
CREATE SEQUENCE outbox_numbers AS bigint;

CREATE TABLE outbox (
    space      integer NOT NULL REFERENCES spaces (number),
    index_name text NOT NULL REFERENCES indexes (name),
    id         text COLLATE "C" NOT NULL,
    number     bigint NOT NULL DEFAULT nextval('outbox_numbers'),
    noted_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (space, index_name, id)
);

CREATE INDEX outbox_by_index ON outbox (index_name, number);

-- Enter changed rows for the indexes of the legs that the trigger names. A vector index holds vectors, and beside them
-- whatever a filter asks for; a graph index holds memories and links, each with the memory at which it begins.
CREATE FUNCTION note_memories() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('recollect.filling', true) = 'on' THEN  -- words that no external index holds
        RETURN NULL;
    END IF;
    INSERT INTO outbox (space, index_name, id)
    SELECT changed.space, i.name, changed.id FROM changed CROSS JOIN indexes AS i WHERE i.leg = ANY (TG_ARGV)
    ON CONFLICT (space, index_name, id) DO UPDATE SET number = excluded.number, noted_at = excluded.noted_at;
    RETURN NULL;
END
$$;

CREATE FUNCTION note_vectors() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO outbox (space, index_name, id)
    SELECT m.space, i.name, m.id
    FROM changed JOIN memories AS m ON m.space = changed.space AND m.row = changed.row CROSS JOIN indexes AS i
    WHERE i.leg = 'vector'
    ON CONFLICT (space, index_name, id) DO UPDATE SET number = excluded.number, noted_at = excluded.noted_at;
    RETURN NULL;
END
$$;

CREATE FUNCTION note_links() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO outbox (space, index_name, id)
    SELECT DISTINCT m.space, i.name, m.id
    FROM changed JOIN memories AS m ON m.space = changed.space AND m.row = changed.source CROSS JOIN indexes AS i
    WHERE i.leg = 'graph'
    ON CONFLICT (space, index_name, id) DO UPDATE SET number = excluded.number, noted_at = excluded.noted_at;
    RETURN NULL;
END
$$;

CREATE TRIGGER note_remembered AFTER INSERT ON memories REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION note_memories('graph');
CREATE TRIGGER note_changed AFTER UPDATE ON memories REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION note_memories('vector');
CREATE TRIGGER note_forgotten AFTER DELETE ON memories REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION note_memories('vector', 'graph');
CREATE TRIGGER note_linked AFTER INSERT ON edges REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION note_links();
CREATE TRIGGER note_link_changed AFTER UPDATE ON edges REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION note_links();
CREATE TRIGGER note_unlinked AFTER DELETE ON edges REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION note_links();

-- Until there is an index to be told, they cost nothing.
ALTER TABLE memories DISABLE TRIGGER note_remembered, DISABLE TRIGGER note_changed, DISABLE TRIGGER note_forgotten;
ALTER TABLE edges DISABLE TRIGGER note_linked, DISABLE TRIGGER note_link_changed, DISABLE TRIGGER note_unlinked;
