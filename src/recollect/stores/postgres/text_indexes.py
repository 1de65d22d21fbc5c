"""The seeds' words: a text-search configuration of Postgres, its readings of a question and its scores.

The memories have a generated column for each configuration: `simple` and `english` from the start, others once they
are added.
"""

from __future__ import annotations

import re
from typing import Final

from recollect.errors import InvalidRequest
from recollect.limits import CONFIGURATION
from recollect.ports import KeywordScore, Match, WordHits, WordSearch
from recollect.stores.named_sql import load
from recollect.stores.postgres.bulk import Database
from recollect.stores.postgres.filters import where_clause
from recollect.stores.postgres.rows import firsts, rows_of
from recollect.types import Filter, Scored

BUILT_IN: Final = ("simple", "english")
"""Configurations that every store has a column for."""

Q = load(__name__, "text_indexes.sql")
_READINGS: Final[dict[Match, str]] = {"plain": "plainto_tsquery", "websearch": "websearch_to_tsquery"}
_SCORES: Final[dict[KeywordScore, str]] = {"ts_rank": "ts_rank", "ts_rank_cd": "ts_rank_cd"}
_WILDCARD: Final = re.compile(r"[\\%_]")


async def search(db: Database, space: int, search: WordSearch, where: Filter, limit: int) -> WordHits:
    """The memories that hold every word of the question, or whose title contains it if that is worth something."""
    if search.words not in BUILT_IN and await lacks_column(db, search.words):
        raise InvalidRequest(
            f"this store has no index of {search.words!r} words yet: run `recollect migrate --words {search.words}`"
        )
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


def escaped(text: str) -> str:
    """A text in which no character is a wildcard of LIKE."""
    return _WILDCARD.sub(r"\\\g<0>", text)


def column_of(configuration: str) -> str:
    return f"words_{configuration}"
