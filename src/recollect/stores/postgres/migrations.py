"""Checks that a database can be opened as a store, and migrates it from older versions.

`sql/schema.sql` is the current schema, which an empty database gets. `sql/migrations/NNN_what.sql` leads from version
NNN - 1 to NNN, starting with 002; a test proves that both ways end in the same schema. The table `facts` holds the
version. A migration is one transaction under a lock, so a second process finds it done.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from psycopg import AsyncConnection, errors
from psycopg.rows import class_row
from psycopg.sql import SQL, Composed, Identifier

from recollect.errors import BackendError, ConfigError, SchemaOutdated
from recollect.stores.named_sql import load, newest, read, steps_beside
from recollect.stores.postgres import letters
from recollect.stores.postgres.failures import BACKEND, Place
from recollect.types import Migration

Database: TypeAlias = AsyncConnection[Any]

OLDEST_SERVER: Final = 15
OLDEST_VECTOR: Final = (0, 8)
Q = load(__name__, "migrations.sql")
SECURITY = load(__name__, "row_security.sql")
LEAKPROOF: Final = SECURITY["free_words"]


@dataclass(frozen=True, slots=True)
class State:
    """What a database holds.

    `installed` or `available` is the version of the extension `vector`. `bypasses`: this role bypasses row security.
    `free`: row security does not keep word searches from using their index. `version` is None without a store.
    `words_outdated`: the words were made under another locale (letters.py).
    """

    server: int
    server_name: str
    installed: str | None
    available: str | None
    role: str
    superuser: bool
    bypasses: bool
    free: bool
    there: bool
    occupied: bool
    described: bool
    version: int | None = None
    secured: bool = False
    words_outdated: bool = False


def shipped() -> Mapping[int, str]:
    return steps_beside(__name__)


async def prepare(db: Database, place: Place, schema: str, *, create: bool, private: bool = False) -> None:
    """Ensure a store of the newest version, and with `create` make one. An older store is migrated only on a private
    server; on another server its owner decides when.
    """
    state = await inspect(db, place, schema)
    target = newest(shipped())
    if state.version is None and not create:
        raise ConfigError(f"there is no store in {place} yet: `recollect migrate` makes one, or name another")
    if state.version is None or (private and (state.version < target or state.words_outdated)):
        await migrate(db, place, schema)
    elif state.version < target:
        raise SchemaOutdated(
            f"the store in {place} has schema version {state.version}, and this Recollect needs {target}: "
            "run `recollect migrate`",
            backend=BACKEND,
        )


async def plan(db: Database, place: Place, schema: str, *, row_security: bool = False) -> Migration:
    """What `migrate` would do, in words, and advice for the administrator. Raises what `inspect` raises."""
    state = await inspect(db, place, schema)
    target = newest(shipped())
    _refuse_missing_extension(state, place)
    if state.version is None:
        todo = [] if state.installed else [f"install the extension vector {state.available} in {place}"]
        todo.append(f"make a store with schema version {target} in schema {schema} of {place}")
    else:
        todo = [f"bring {place} from schema version {n} to {n + 1}" for n in range(state.version, target)]
        todo += [f"rebuild the words of {place}"] * state.words_outdated
    if not (row_security or state.secured):
        return Migration(tuple(todo))
    if not state.secured:
        todo.append(f"put row security on every table of {place}")
    if not state.free and state.superuser:
        todo.append(f"let word searches use their indexes under row security: {LEAKPROOF}")
    return Migration(tuple(todo), tuple(_security_advice(state)))


def _security_advice(state: State) -> Iterator[str]:
    if state.bypasses:
        yield f"connect as another role from now on: {state.role} bypasses row security"
    if not state.free and not state.superuser:
        yield f"word searches under row security read all rows of a space until a superuser runs: {LEAKPROOF}"


async def migrate(db: Database, place: Place, schema: str, *, row_security: bool = False) -> None:
    """Migrate a database to the newest version in one transaction."""
    async with db.transaction():
        await db.execute(Q["lock"])
        state = await inspect(db, place, schema)
        await _install_extension(db, place, state)
        await _make_schema(db, place, schema, state)
        await db.execute(Q["use_schema"], {"schema": schema})
        await bring(db, state.version, read(__name__, "schema.sql"), shipped())
        if state.words_outdated:
            await letters.read_again(db)
        if row_security or state.secured:
            await _secure_all(db, state)


async def bring(db: Database, version: int | None, schema: str, steps: Mapping[int, str]) -> None:
    """Apply the whole schema to an empty database, or the later steps to an older version."""
    target = newest(steps)
    if version == target:
        return
    for sql in [schema] if version is None else [steps[number] for number in range(version + 1, target + 1)]:
        await db.execute(sql)
    await _set_fact(db, "version", str(target))


async def secure(db: Database, table: str) -> None:
    """Put row security on a new table if the store uses it."""
    if await (await db.execute(SECURITY["is_on"])).fetchone():
        await db.execute(_named(SECURITY["secure"], table=table))


async def inspect(db: Database, place: Place, schema: str) -> State:
    """The state of a database. Raises BackendError if no store can be in it."""
    cursor = await db.cursor(row_factory=class_row(State)).execute(Q["state"], {"schema": schema})
    state = await cursor.fetchone()
    assert state  # noqa: S101 (the statement has one row)
    if state.server < OLDEST_SERVER * 10_000:
        raise _refused(f"{place} is Postgres {state.server_name}, and Recollect needs {OLDEST_SERVER} or newer")
    facts = await _facts(db, schema) if state.described else {}
    if state.occupied and "version" not in facts:
        raise _refused(
            f"schema {schema} of {place} holds something that is not a Recollect store, and was not changed: "
            "name another in [postgres] schema"
        )
    state = replace(
        state,
        version=int(facts["version"]) if facts else None,
        secured="row_security" in facts,
        words_outdated="words" in facts,
    )
    _refuse_newer(state, place, newest(shipped()))
    _refuse_extension(state, place)
    return state


async def _facts(db: Database, schema: str) -> dict[str, str]:
    """The table `facts`, unless it is another program's."""
    try:
        async with db.transaction():
            return dict(await (await db.execute(_named(Q["facts"], schema=schema))).fetchall())
    except errors.UndefinedColumn:
        return {}


async def _set_fact(db: Database, name: str, value: str) -> None:
    await db.execute(Q["set_fact"], {"name": name, "value": value})


async def _install_extension(db: Database, place: Place, state: State) -> None:
    """Install pgvector in the role's default schema, before ours comes first in the search path."""
    _refuse_missing_extension(state, place)
    if state.installed:
        return
    try:
        await db.execute("CREATE EXTENSION vector")
    except errors.InsufficientPrivilege as error:
        raise _refused(
            f"{place} lacks the extension vector, and role {state.role} may not create it: "
            "ask an administrator to run `CREATE EXTENSION vector` there, then try again"
        ) from error


async def _make_schema(db: Database, place: Place, schema: str, state: State) -> None:
    if state.there:
        return
    try:
        await db.execute(SQL("CREATE SCHEMA {}").format(Identifier(schema)))
    except errors.InsufficientPrivilege as error:
        raise _refused(
            f"role {state.role} may not create schema {schema} in {place}: ask an administrator to run "
            f"`CREATE SCHEMA {schema} AUTHORIZATION {state.role}` there, then try again"
        ) from error


async def _secure_all(db: Database, state: State) -> None:
    await _set_fact(db, "row_security", "on")
    if state.superuser:
        await db.execute(LEAKPROOF)
    for (table,) in await (await db.execute(SECURITY["tables"])).fetchall():
        await secure(db, table)


def _refuse_newer(state: State, place: Place, known: int) -> None:
    if state.version is not None and state.version > known:
        raise SchemaOutdated(
            f"the store in {place} has schema version {state.version}, and this Recollect knows versions up to "
            f"{known}: upgrade it with `python3 -m pip install --upgrade recollect`",
            backend=BACKEND,
        )


def _refuse_missing_extension(state: State, place: Place) -> None:
    if not state.installed and not state.available:
        raise _refused(
            f"the server of {place} lacks pgvector, which Recollect needs: install it there "
            "(https://github.com/pgvector/pgvector), then try again"
        )


def _refuse_extension(state: State, place: Place) -> None:
    if state.version is not None and not state.installed:
        raise _refused(
            f"the store in {place} lost its vectors when the extension vector was dropped: restore it from a copy or "
            "an export"
        )
    version = state.installed or state.available
    if version and tuple(int(number) for number in re.findall(r"\d+", version)[:2]) < OLDEST_VECTOR:
        raise _refused(
            f"{place} has pgvector {version}, and Recollect needs {'.'.join(map(str, OLDEST_VECTOR))} or newer: "
            "install a newer one on the server, then ask an administrator to run `ALTER EXTENSION vector UPDATE`"
        )


def _refused(message: str) -> BackendError:
    return BackendError(message, backend=BACKEND)


def _named(statement: str, **names: str) -> Composed:
    """A statement with quoted names put in."""
    quoted = {key: Identifier(name) for key, name in names.items()}
    return SQL(statement).format(**quoted)
