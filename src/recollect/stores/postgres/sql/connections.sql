-- name: read
-- Begin a read: all of its statements see one snapshot.
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY

-- name: write
-- Begin a write: each of its statements sees what others have committed.
BEGIN ISOLATION LEVEL READ COMMITTED

-- name: local
-- What holds until the transaction ends: the search path, how long a statement may take, and the space whose rows row
-- security lets through. Plans are not compiled: that takes longer than these statements do.
SET LOCAL search_path = {path};
SET LOCAL statement_timeout = {timeout};
SET LOCAL recollect.space = '{space}';
SET LOCAL jit = off

-- name: freeze
-- Begin a transaction whose snapshot others may use as long as it lasts, however long nothing happens in it.
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
SET LOCAL idle_in_transaction_session_timeout = 0;
LOCK TABLE memories IN ACCESS SHARE MODE

-- name: export_snapshot
-- The name of that snapshot.
SELECT pg_export_snapshot()

-- name: use_snapshot
-- See what another transaction sees. Nothing may have been read before.
SET TRANSACTION SNAPSHOT '{snapshot}'

-- name: before_snapshot
-- What a read does before it takes its snapshot: to one from before, a table that was written anew meanwhile for another
-- column looks empty.
LOCK TABLE memories IN ACCESS SHARE MODE

-- name: session
-- The same for a connection that is nobody else's, where a statement may take as long as it needs.
SET search_path = {path};
SET statement_timeout = 0

-- name: surroundings
-- The types of the extension, the schema that holds them, wherever that is, and the search path of the role.
SELECT t.typname, t.oid, t.typarray, quote_ident(n.nspname), current_setting('search_path')
FROM pg_extension e
JOIN pg_namespace n ON n.oid = e.extnamespace
JOIN pg_type t ON t.typnamespace = n.oid AND t.typname IN ('vector', 'halfvec')
WHERE e.extname = 'vector'
