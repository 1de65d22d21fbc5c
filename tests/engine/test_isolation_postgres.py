"""Spaces on Postgres are apart: no public call reaches another one's rows, and with row security no statement does."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from recollect import AsyncRecollect, AsyncSpace, Draft, Grant, NotAllowed, NotFound, Rated
from recollect.stores.postgres.bulk import MANY

TABLES = """
SELECT c.relname FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'space'
WHERE c.relnamespace = 'recollect'::regnamespace AND c.relkind = 'r' ORDER BY c.relname
"""
ALL: dict[str, Any] = {"include_superseded": True, "include_expired": True}


SEEDS_WORDS = ("simple", "english")
"""Configurations that are there from the start, so that no question adds a column to the rows that are compared."""


@dataclass(frozen=True)
class Database:
    """Where the store is: as its administrator sees it, and as Recollect does."""

    administrator: str
    dsn: str
    secured: bool

    @property
    def url(self) -> str:
        return f"postgresql://?{urlencode(conninfo_to_dict(self.dsn))}"


@pytest.fixture
async def plain(pg_database: str) -> Database:
    """Without row security, for a superuser."""
    here = Database(pg_database, pg_database, secured=False)
    await AsyncRecollect.migrate(here.url, words=SEEDS_WORDS)
    return here


@pytest.fixture
async def secured(pg_role: str, pg_database: str) -> Database:
    """With row security, for an ordinary role that owns the tables."""
    with psycopg.connect(pg_database, autocommit=True) as db:
        db.execute("CREATE EXTENSION vector")
        db.execute(f"CREATE SCHEMA recollect AUTHORIZATION {pg_role}")
    here = Database(pg_database, make_conninfo(pg_database, user=pg_role, password=pg_role), secured=True)
    await AsyncRecollect.migrate(here.url, row_security=True, words=SEEDS_WORDS)
    return here


@pytest.fixture(params=["plain", "secured"])
def database(request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue(request.param)
    return found


@pytest.fixture
async def client(database: Database) -> AsyncIterator[AsyncRecollect]:
    async with AsyncRecollect(database.url, embedder="hashing") as opened:
        yield opened


@pytest.fixture
async def here(client: AsyncRecollect) -> AsyncSpace:
    """A space with three memories in a thread, linked, one of them superseded."""
    space = client.space("here")
    for id in "abc":
        await space.remember(f"a red umbrella {id}", id=id, thread="t", tags=["x"], title="Umbrella", source="s/1")
    await space.link("a", "b", "cause", 0.5)
    await space.supersede("c", by="a")
    await space.settle()
    return space


def rows(database: Database, space: str) -> dict[str, list[Any]]:
    """All rows of a space in all tables, as a superuser sees them."""
    own = "space = (SELECT number FROM spaces WHERE name = %s)"
    with psycopg.connect(database.administrator, autocommit=True) as db:
        db.execute("SET search_path = recollect, public")
        return {
            table: db.execute(f"SELECT t::text FROM {table} AS t WHERE {own} ORDER BY 1", [space]).fetchall()
            for (table,) in db.execute(TABLES).fetchall()
        }


async def refused(call: Awaitable[Any]) -> str:
    with pytest.raises(NotFound):
        await call
    return "refused"


async def not_allowed(call: Awaitable[Any]) -> str:
    with pytest.raises(NotAllowed):
        await call
    return "not allowed"


async def recalled(there: AsyncSpace) -> Any:
    answer = await there.recall("red umbrella", limit=100, window=5, expect="a", **ALL)
    assert answer.expected is not None
    return [hit.memory.id for hit in answer], answer.expected.stage


async def recalled_by_seeds(there: AsyncSpace) -> set[str]:
    recipes = ("polyant", "sci", "pgmemory", "drobek", "novamem")
    answers = [await there.recall("red umbrella", recipe=recipe, **ALL) for recipe in recipes]
    return {hit.memory.id for answer in answers for hit in answer}


async def superseded(there: AsyncSpace) -> list[str]:
    return [
        await refused(there.supersede("a", "stolen")),
        await refused(there.supersede("a", by="b")),
        await refused(there.supersede("own", by="a")),
    ]


async def linked(there: AsyncSpace) -> list[str]:
    ends = (("a", "b"), ("own", "a"), ("a", "own"))
    return [await refused(there.link(*pair)) for pair in ends]


async def unlinked(there: AsyncSpace) -> list[int]:
    return [await there.unlink("a", "b"), await there.unlink("own", "b")]


async def exported(there: AsyncSpace) -> list[str]:
    return [line.get("id", "a link") async for line in there.export()]


async def imported(there: AsyncSpace) -> Any:
    lines = [{"text": "a red umbrella b", "id": "b", "thread": "t"}, {"from": "own", "to": "a", "relation": "x"}]
    done = await there.import_lines([json.dumps(line) for line in lines])
    place = (await there.get("b")).place
    return done.created, len(done.broken), place, await there.neighbors("own", depth=3), await there.forget("b")


async def remembered(there: AsyncSpace) -> Any:
    """The same text, thread and id as in the other space are new here."""
    answer = await there.remember("a red umbrella a", id="a", thread="t")
    return answer.created, answer.memory.place, await there.neighbors("a"), await there.forget("a")


async def remembered_many(there: AsyncSpace) -> Any:
    drafts = [Draft(f"a red umbrella {id}", id=id, thread="t") for id in "abc"]
    return (await there.remember_many(drafts)).created, await there.forget(*"abc")


async def listed(there: AsyncSpace) -> list[str]:
    return [memory.id for memory in (await there.list(**ALL)).memories]


async def counted(there: AsyncSpace) -> tuple[int, int, int]:
    stats = await there.stats()
    return stats.memories, stats.edges, stats.superseded


async def usage(there: AsyncSpace) -> tuple[int, set[int]]:
    counted = await there.usage()
    return counted.total.recalls, {bucket.usage.recalls for bucket in counted.buckets}


CALLS: dict[str, tuple[Callable[[AsyncSpace], Awaitable[Any]], Any]] = {
    "get": (lambda there: refused(there.get("a")), "refused"),
    "history": (lambda there: refused(there.history("a")), "refused"),
    "list": (listed, ["own"]),
    "recall": (recalled, (["own"], "not stored")),
    "update": (lambda there: refused(there.update("a", text="stolen")), "refused"),
    "forget": (lambda there: there.forget("a", "b", "c"), 0),
    "supersede": (superseded, ["refused"] * 3),
    "link": (linked, ["refused"] * 3),
    "unlink": (unlinked, [0, 0]),
    "neighbors": (lambda there: refused(there.neighbors("a", depth=3)), "refused"),
    "stats": (counted, (1, 0, 0)),
    "usage": (usage, (1, {1})),
    "used": (lambda there: there.used("a", "b", "c", query="umbrella?"), 0),
    "uses": (lambda there: there.uses(), []),
    "score": (lambda there: there.score(), Rated(1, 1)),
    "export": (exported, ["own"]),
    "settle": (lambda there: there.settle(), None),
    "import_lines": (imported, (1, 1, 0, [], 1)),
    "grant": (lambda there: there.grant("default", to="friend"), Grant("there", "default", "friend")),
    "grants": (lambda there: there.grants(), [Grant("there", "default", "friend")]),
    "revoke": (lambda there: there.revoke("default", from_="here"), False),
    "accept": (lambda there: there.accept("here", "default"), False),
    "refuse": (lambda there: there.refuse("here", "default"), False),
    "shared": (lambda there: not_allowed(there.shared("here", "default").get("a")), "not allowed"),
    "remember": (remembered, (True, 0, [], 1)),
    "remember_many": (remembered_many, (3, 3)),
}
"""Every call of a space, made with the ids, texts and thread of another one, and what it must come to."""


def test_every_call_is_tried() -> None:
    """A call that is new to a space is tried from the wrong one as well."""
    assert {name for name in dir(AsyncSpace) if not name.startswith("_")} == CALLS.keys()


async def test_the_wrong_space_finds_and_changes_nothing(
    client: AsyncRecollect, here: AsyncSpace, database: Database
) -> None:
    """Whatever is called on another space, with whatever ids: it sees its own memory alone, and not one row of this
    space is another afterwards.
    """
    there = client.space("there")
    await there.remember("a walk in the park", id="own")
    before = rows(database, "here")
    assert all(before[table] for table in ("memories", "edges", "tags", "words", "vectors_1"))
    for name, (call, expected) in CALLS.items():
        assert await call(there) == expected, f"{name} reached another space"
        await there.settle()
        assert rows(database, "here") == before, f"{name} changed another space"
    assert await recalled_by_seeds(there) <= {"own"}
    assert rows(database, "here") == before


async def test_a_space_of_its_own_works(client: AsyncRecollect, here: AsyncSpace) -> None:
    """Behind both walls everything that is one's own can be stored, also in bulk, found, changed and forgotten."""
    assert (await here.remember_many(Draft(f"note number {n}") for n in range(3 * MANY))).created == 3 * MANY
    await here.settle()
    assert (await here.recall("note number 7"))[0].memory.text == "note number 7"
    assert {neighbor.memory.id for neighbor in await here.neighbors("a")} >= {"b"}
    assert (await here.update("b", text="a blue umbrella")).text == "a blue umbrella"
    assert await here.unlink("a", "b", "cause") == 1
    assert await here.forget("a", "b", "c") == 3
    assert (await here.stats()).memories == 3 * MANY


@pytest.fixture
def raw(secured: Database) -> Iterator[psycopg.Connection]:
    """The role's own way in, past Recollect."""
    with psycopg.connect(secured.dsn, autocommit=True) as db:
        db.execute("SET search_path = recollect, public")
        yield db


@pytest.mark.parametrize("database", ["secured"], indirect=True)
async def test_a_statement_without_a_space_sees_no_row(here: AsyncSpace, raw: psycopg.Connection) -> None:
    """Whoever connects as the same role and names no space reads and changes nothing, in no table; whoever names one
    reaches its rows alone.
    """
    tables = [table for (table,) in raw.execute(TABLES).fetchall()]
    assert {"memories", "edges", "tags", "hits", "words", "sizes", "unlinked", "vectors_1"} <= set(tables)
    for table in tables:
        assert raw.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
        assert raw.execute(f"DELETE FROM {table}").rowcount == 0
        assert raw.execute(f"UPDATE {table} SET space = space").rowcount == 0
    for space, seen in (("1", 3), ("2", 0)):
        raw.execute("SELECT set_config('recollect.space', %s, false)", [space])
        assert raw.execute("SELECT count(*) FROM memories").fetchone() == (seen,)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        raw.execute("INSERT INTO unlinked (space, row) VALUES (1, 1)")
    assert (await here.stats()).memories == 3
