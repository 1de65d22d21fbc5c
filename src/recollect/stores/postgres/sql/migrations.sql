-- name: state
-- What stands in the database: the server, the extension, the role and the schema.
SELECT current_setting('server_version_num')::integer AS server,
       current_setting('server_version') AS server_name,
       e.extversion AS installed,
       CASE WHEN e.oid IS NULL THEN
           (SELECT default_version FROM pg_available_extensions WHERE name = 'vector')
       END AS available,
       current_user AS role,
       current_setting('is_superuser')::boolean AS superuser,
       (SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user) AS bypasses,
       (SELECT proleakproof FROM pg_proc WHERE oid = 'pg_catalog.ts_match_vq(tsvector, tsquery)'::regprocedure) AS free,
       n.oid IS NOT NULL AS there,
       EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = n.oid) AS occupied,
       EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = n.oid AND c.relname = 'facts') AS described
FROM (SELECT) one
LEFT JOIN pg_namespace n ON n.nspname = %(schema)s
LEFT JOIN pg_extension e ON e.extname = 'vector'

-- name: lock
-- One process at a time makes or migrates a store, to the end of the transaction and as long as that takes.
SET LOCAL statement_timeout = 0;
SELECT pg_advisory_xact_lock(hashtextextended('recollect migrations', 0))

-- name: facts
-- What a schema says about itself.
SELECT name, value FROM {schema}.facts

-- name: set_fact
-- Remember a fact about the schema.
INSERT INTO facts (name, value) VALUES (%(name)s, %(value)s) ON CONFLICT (name) DO UPDATE SET value = excluded.value

-- name: use_schema
-- For the rest of the transaction names without a schema mean this one's.
SELECT set_config('search_path', quote_ident(%(schema)s) || ', ' || current_setting('search_path'), true)
