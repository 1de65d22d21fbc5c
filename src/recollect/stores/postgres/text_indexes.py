"""The seeds' words: a text-search configuration of Postgres, its readings of a question and its scores.

The memories have a column for each configuration that is wanted. Whoever asks by the default recipe alone does not pay
for words that nobody looks up, which would make storing a memory half as fast again. `migrate` adds any configuration;
a question may add the two that the built-in recipes need, and no other.

Neither keeps anybody from reading or writing. An empty column comes first, with a trigger that fills it for what is
written from then on. Then the memories that are there are filled in, batch by batch, and the index is built
concurrently. `facts` says how far that is, so that the next process goes on where one was stopped. A lock lets one
process at a time do it.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from psycopg import errors

from recollect.errors import IndexBuilding, InvalidRequest, RecollectError
from recollect.limits import CONFIGURATION
from recollect.ports import KeywordScore, Match, WordHits, WordSearch
from recollect.stores.named_sql import load
from recollect.stores.postgres.bulk import Aside, Database
from recollect.stores.postgres.filters import where_clause
from recollect.stores.postgres.rows import firsts, rows_of
from recollect.types import Filter, Scored

BUILT_IN: Final = ("simple", "english")
"""What the built-in recipes ask for: a question may have these added."""
SOON_WRITTEN: Final = 64 << 20
"""Bytes of the table up to which a question waits for its index; beyond that it is told how far the index is."""
BATCH: Final = 500
"""Memories that one transaction fills in."""
POLL_SECONDS: Final = 0.1
"""Between two looks at what another process builds."""
REST_SECONDS: Final = 60.0
"""Between a build that failed and the next."""
READY: Final = "ready"

Q = load(__name__, "text_indexes.sql")
_log = logging.getLogger(__name__)
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


class Progress(NamedTuple):
    """How far an index is: the last space and row that were filled in, and how many memories that makes."""

    space: int = 0
    row: int = 0
    done: int = 0


class IndexState(NamedTuple):
    """How far the index of a configuration is (None: nobody has begun it), how many memories there are, about, and how
    many bytes they take.
    """

    progress: Progress | None
    ready: bool
    memories: int
    size: int


Reading: TypeAlias = Callable[[Callable[[Database], Awaitable[IndexState]]], Awaitable[IndexState]]
"""Asks something of a connection of the pool."""


async def look(db: Database, configuration: str) -> IndexState:
    """What there is of a configuration. Raises InvalidRequest for one that the server does not know."""
    if not CONFIGURATION.fullmatch(configuration):
        raise InvalidRequest(f"{configuration!r:.80} is not the name of a text-search configuration")
    column = column_of(configuration)
    ((installed, said, memories, size),) = await rows_of(db, Q["state"], name=configuration, column=column)
    if not installed:
        known = ", ".join(await firsts(db, Q["configurations"]))
        raise InvalidRequest(f"this server has no text-search configuration {configuration!r}; it has: {known}")
    if said is None or said == READY:
        return IndexState(None, said == READY, memories, size)
    progress = Progress(*map(int, said.split()))
    return IndexState(progress, ready=False, memories=max(memories, progress.done), size=size)


async def build(db: Database, configuration: str) -> None:
    """Have an index of a configuration, whoever makes it: this connection, on which each statement is a transaction, or
    another process that has begun. One that is there is left as it is.
    """
    while not (await look(db, configuration)).ready:
        if (await firsts(db, Q["try_lock"], column=column_of(configuration)))[0]:
            try:
                state = await look(db, configuration)
                if not state.ready:
                    await _build_alone(db, configuration, state.progress)
            finally:
                await db.execute(Q["unlock"], {"column": column_of(configuration)})
        else:
            await asyncio.sleep(POLL_SECONDS)


async def _build_alone(db: Database, configuration: str, progress: Progress | None) -> None:
    names = {"column": column_of(configuration), "configuration": configuration}
    if progress is None:
        progress = Progress()
        async with db.transaction():
            await db.execute(Q["not_long"])
            await db.execute(Q["add_column"].format(**names))
            await _note(db, configuration, progress)
    while (further := await _fill_some(db, configuration, progress)) is not None:
        progress = further
    if not (await firsts(db, Q["has_index"], index=f"memories_{names['column']}"))[0]:
        await db.execute(Q["drop_index"].format(**names))
        await db.execute(Q["add_index"].format(**names))
    await db.execute(Q["set_state"], {"column": names["column"], "state": READY})


async def _fill_some(db: Database, configuration: str, progress: Progress) -> Progress | None:
    """Fill the next memories in; None when all are. A row that somebody else holds is waited for, but not for so long
    that the two could wait for each other.
    """
    space, row, done = progress
    try:
        async with db.transaction():
            await db.execute(Q["fill_quietly"], {"space": space})
            rows = await firsts(db, Q["next_rows"], space=space, row=row, most=BATCH)
            if not rows:
                following = await firsts(db, Q["next_space"], space=space)
                further = Progress(following[0], 0, done) if following else None
            else:
                statement = Q["fill"].format(column=column_of(configuration), configuration=configuration)
                await db.execute(statement, {"space": space, "rows": rows})
                further = Progress(space, rows[-1], done + len(rows))
            if further:
                await _note(db, configuration, further)
            return further
    except errors.LockNotAvailable:
        await asyncio.sleep(POLL_SECONDS)
        return progress


async def _note(db: Database, configuration: str, progress: Progress) -> None:
    state = " ".join(map(str, progress))
    await db.execute(Q["set_state"], {"column": column_of(configuration), "state": state})


async def add_lacking(db: Database, configurations: Sequence[str], *, dry_run: bool) -> list[str]:
    """Index texts under those of these configurations that the store lacks; which they were, or are."""
    lacking = [name for name in configurations if not (await look(db, name)).ready]
    for name in () if dry_run else lacking:
        await build(db, name)
    return lacking


class Configurations:
    """The configurations that a store has indexes of, seen to before a question is asked under one of them."""

    def __init__(self, aside: Aside, read: Reading) -> None:
        """`aside` gives connections beside the pool, on which indexes are built; `read` reads by one of the pool."""
        self._aside = aside
        self._read = read
        self._ready: set[str] = set()
        self._building: dict[str, asyncio.Task[None]] = {}
        self._failed: dict[str, tuple[float, RecollectError]] = {}

    async def ensure(self, configuration: str) -> None:
        """Return where a configuration can be searched. An index that the built-in recipes need is built where it is
        missing: in a small table whoever asks waits for it, and does not stop it by leaving. Raises IndexBuilding for a
        larger one, and InvalidRequest for any other configuration.
        """
        if configuration in self._ready:
            return
        state = await self._read(lambda db: look(db, configuration))
        if state.ready:
            self._ready.add(configuration)
            return
        if configuration not in BUILT_IN and state.progress is None:
            raise InvalidRequest(
                f"this store has no index of {configuration!r} words: `recollect migrate --words {configuration}` "
                "makes one, while others use the store"
            )
        building = self._build(configuration) if configuration in BUILT_IN else None
        if building is None or state.size > SOON_WRITTEN:
            done = state.progress.done if state.progress else 0
            raise IndexBuilding(
                f"the index of {configuration!r} words is being built: {done:,} of about {state.memories:,} memories "
                "are in it",
                backend="postgres",
            )
        await asyncio.shield(building)

    async def close(self) -> None:
        """Let go. Another process, or the next, goes on where this one ends."""
        for task in self._building.values():
            task.cancel()
        if self._building:
            await asyncio.wait(self._building.values())

    def _build(self, configuration: str) -> asyncio.Task[None]:
        failed_at, error = self._failed.get(configuration, (0.0, None))
        if error is not None and time.monotonic() < failed_at + REST_SECONDS:
            raise error
        if configuration not in self._building:
            self._building[configuration] = asyncio.create_task(self._run(configuration), name=configuration)
            self._building[configuration].add_done_callback(self._built)
        return self._building[configuration]

    async def _run(self, configuration: str) -> None:
        async with self._aside() as db:
            await build(db, configuration)
        self._ready.add(configuration)

    def _built(self, task: asyncio.Task[None]) -> None:
        del self._building[task.get_name()]
        error = None if task.cancelled() else task.exception()
        if isinstance(error, RecollectError):
            self._failed[task.get_name()] = (time.monotonic(), error)
            _log.warning("The index of %r words could not be built: %s", task.get_name(), error)


def escaped(text: str) -> str:
    """A text in which no character is a wildcard of LIKE."""
    return _WILDCARD.sub(r"\\\g<0>", text)


def column_of(configuration: str) -> str:
    return f"words_{configuration}"
