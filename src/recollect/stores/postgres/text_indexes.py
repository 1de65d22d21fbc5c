"""The seeds' words: a text-search configuration of Postgres, its readings of a question and its scores.

The memories have a generated column for each configuration that was ever asked for. It is added by `migrate`, or by the
first question that needs it where the table is soon written anew: who only asks by the default recipe does not pay for
words that nobody looks up, which would make storing a memory half as fast again.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Final

from recollect.errors import InvalidRequest
from recollect.limits import CONFIGURATION
from recollect.ports import KeywordScore, Match, WordHits, WordSearch
from recollect.stores.named_sql import load
from recollect.stores.postgres.bulk import Aside, Database
from recollect.stores.postgres.filters import where_clause
from recollect.stores.postgres.rows import firsts, rows_of
from recollect.types import Filter, Scored

SOON_WRITTEN: Final = 64 << 20
"""Bytes of the table up to which a question may have a column added: for some seconds nobody can use the table."""

Q = load(__name__, "text_indexes.sql")
_READINGS: Final[dict[Match, str]] = {"plain": "plainto_tsquery", "websearch": "websearch_to_tsquery"}
_SCORES: Final[dict[KeywordScore, str]] = {"ts_rank": "ts_rank", "ts_rank_cd": "ts_rank_cd"}
_WILDCARD: Final = re.compile(r"[\\%_]")


async def search(db: Database, space: int, search: WordSearch, where: Filter, limit: int) -> WordHits:
    """The memories that hold every word of the question, or whose title contains it if that is worth something."""
    condition, values = where_clause(space, where)
    matches = [
        Q["text_matches"].format(
            where=condition,
            column=column_of(search.words),
            configuration=search.words,
            reading=_READINGS[search.match],
            rank=_SCORES[search.score],
        )
    ]
    values |= {"text": search.text, "limit": limit}
    if search.title_boost and search.text.strip():
        matches.append(Q["title_matches"].format(where=condition))
        values |= {"boost": search.title_boost, "title": f"%{escaped(search.text)}%"}
    statement = Q["best_matches"].format(matches=" UNION ALL ".join(matches))
    return WordHits([Scored(id, score) for id, score in await rows_of(db, statement, **values)])


async def lacks_column(db: Database, configuration: str) -> bool:
    """Whether a configuration must be added before it can be searched. Raises InvalidRequest for one that the server
    does not know.
    """
    if not CONFIGURATION.fullmatch(configuration):
        raise InvalidRequest(f"{configuration!r:.80} is no name of a text-search configuration")
    column = column_of(configuration)
    ((installed, there),) = await rows_of(db, Q["configuration"], name=configuration, column=column)
    if not installed:
        known = ", ".join(await firsts(db, Q["configurations"]))
        raise InvalidRequest(f"this server has no text-search configuration {configuration!r}; it has: {known}")
    return not there


async def add_configuration(db: Database, configuration: str) -> None:
    """Index the words of all memories under a configuration, and keep them so. The table is written anew, and nobody
    can use it meanwhile. Adding one that is there does nothing.
    """
    if await lacks_column(db, configuration):
        names = {"column": column_of(configuration), "configuration": configuration}
        await db.execute(Q["add_column"].format(**names))
        await db.execute(Q["add_index"].format(**names))


async def add_lacking(db: Database, configurations: Sequence[str], *, dry_run: bool) -> list[str]:
    """Index texts under those of these configurations that the store lacks; which they were, or are."""
    lacking = [name for name in configurations if await lacks_column(db, name)]
    for name in () if dry_run else lacking:
        async with db.transaction():
            await add_configuration(db, name)
    return lacking


class Configurations:
    """The configurations that a store has columns for, seen to before a question is asked under one of them."""

    def __init__(self, aside: Aside) -> None:
        """`aside` gives connections beside the pool, on which columns are added."""
        self._aside = aside
        self._there: set[str] = set()
        self._adding: dict[str, asyncio.Task[None]] = {}

    async def ensure(self, configuration: str) -> None:
        """Have a column for a configuration. Who stops waiting does not stop it: the next question finds it there."""
        if configuration in self._there:
            return
        if configuration not in self._adding:
            task = asyncio.create_task(self._add(configuration))
            self._adding[configuration] = task
            task.add_done_callback(lambda _: self._adding.pop(configuration))
        await asyncio.shield(self._adding[configuration])

    async def close(self) -> None:
        await asyncio.gather(*self._adding.values(), return_exceptions=True)

    async def _add(self, configuration: str) -> None:
        async with self._aside() as db:
            if await lacks_column(db, configuration):
                ((size,),) = await rows_of(db, Q["table_size"])
                if size > SOON_WRITTEN:
                    raise InvalidRequest(
                        f"this store has no index of {configuration!r} words yet, and is too large to make one while "
                        f"others use it: run `recollect migrate --words {configuration}` when that may take a while"
                    )
                async with db.transaction():
                    await db.execute(Q["not_long"])
                    await add_configuration(db, configuration)
        self._there.add(configuration)


def escaped(text: str) -> str:
    """A text in which no character is a wildcard of LIKE."""
    return _WILDCARD.sub(r"\\\g<0>", text)


def column_of(configuration: str) -> str:
    return f"words_{configuration}"
