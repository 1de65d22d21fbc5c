-- Version 2.

-- Grants: an offer until the receiving space accepts it.

-- Hits and uses: what was returned, and what proved useful.

-- Sign-in sessions.

-- Replies: who owns a key that is under way.

-- Sources: long ones have a place in the index.

-- Text indexes: built in the background.

-- Vectors: which of them are a space's sample.
CREATE FUNCTION text_digest(title text, body text) RETURNS bytea LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN substring(sha256(convert_to(title || E'\n' || body, 'UTF8')) FOR 8);
END
$$;

CREATE INDEX memories_by_digest ON memories (space, text_digest(title, text));
