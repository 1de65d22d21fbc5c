"""Row security together with the text indexes of the five recipes."""

from __future__ import annotations

from urllib.parse import urlencode

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from recollect import AsyncRecollect
from recollect.settings import PostgresSettings
from recollect.stores.postgres.store import PostgresStore

pytestmark = pytest.mark.attack

RECIPES = {"polyant": "message", "sci": "semantic", "pgmemory": "fact", "drobek": "knowledge", "novamem": "fact"}
WORDS = ("simple", "english")


@pytest.fixture
async def dsn(pg_role: str, pg_database: str) -> str:
    """A store with row security, for a role that it holds back; one text was there before its indexes."""
    with psycopg.connect(pg_database, autocommit=True) as db:
        db.execute("CREATE EXTENSION vector")
        db.execute(f"CREATE SCHEMA recollect AUTHORIZATION {pg_role}")
    given = conninfo_to_dict(pg_database) | {"user": pg_role, "password": pg_role}
    url = f"postgresql://?{urlencode(given)}"
    store = PostgresStore(url, PostgresSettings())
    await store.migrate(dry_run=False, row_security=True)
    async with AsyncRecollect(url, embedder="hashing", create=False) as r:
        for space in ("ours", "theirs"):
            for kind in {*RECIPES.values()}:
                await r.space(space).remember(f"a zeppelin of {space}, before", kind=kind)
    await PostgresStore(url, PostgresSettings()).migrate(dry_run=False, words=WORDS)
    return url


@pytest.mark.parametrize("recipe", RECIPES)
async def test_a_recipe_finds_what_is_ours_alone(dsn: str, recipe: str) -> None:
    """By its words alone: what was stored before the index was made, and after it, and nothing of another space."""
    kind = RECIPES[recipe]
    async with AsyncRecollect(dsn, embedder="hashing", create=False) as r:
        for space in ("ours", "theirs"):
            await r.space(space).remember(f"a zeppelin of {space}, after", kind=kind)
        answer = await r.space("ours").recall("zeppelin", recipe=recipe, limit=50, kinds=[kind])
    keyword = [hit for hit in answer.hits if any("keyword" in part.lane for part in hit.why)]
    assert {hit.memory.text for hit in keyword} == {"a zeppelin of ours, before", "a zeppelin of ours, after"}
    assert all(hit.memory.space == "ours" for hit in answer.hits)
    assert not answer.degraded
