"""Postgres' own text search: its configurations, query syntaxes and scores.

Each configuration in use has a column in `memories`. The default recipe needs none, and storing a memory is half again
as fast without them. `migrate` adds any configuration; a search adds only the two that the built-in recipes need.

Nothing is blocked meanwhile. First comes an empty column with a trigger that fills it for new writes. Then the existing
memories are filled in, batch by batch, and the index is built concurrently. `facts` records the progress, so the next
process continues where one stopped. A lock lets one process at a time do it.
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
"""The configurations of the built-in recipes: a search may add these."""
WAITED_FOR_BYTES: Final = 64 << 20
"""Size of the table up to which a search waits for its index. Beyond it, the search raises IndexBuilding."""
BATCH: Final = 500
"""Memories filled in per transaction."""
POLL_SECONDS: Final = 0.1
"""Pause between checks of an index that another process builds."""
REST_SECONDS: Final = 60.0
"""Pause after a failed build."""
READY: Final = "ready"

Q = load(__name__, "text_indexes.sql")
_log = logging.getLogger(__name__)
_READINGS: Final[dict[Match, str]] = {"plain": "plainto_tsquery", "websearch": "websearch_to_tsquery"}
_SCORES: Final[dict[KeywordScore, str]] = {"ts_rank": "ts_rank", "ts_rank_cd": "ts_rank_cd"}
_WILDCARD: Final = re.compile(r"[\\%_]")


async def search(db: Database, space: int, search: WordSearch, where: Filter, limit: int) -> WordHits:
    """The memories that hold every word of the question, or whose title contains it if titles have a boost."""
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
    """The progress of an index: the last space and row filled in, and how many memories are done."""

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
"""Runs a read on a connection of the pool."""


async def look(db: Database, configuration: str) -> IndexState:
    """The state of a configuration's index. Raises InvalidRequest if the server lacks the configuration."""
    if not CONFIGURATION.fullmatch(configuration):
        raise InvalidRequest(
            f"{configuration!r:.80} is not the name of a text-search configuration: write one such as english"
        )
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
    """Ensure the index of a configuration: build it on this autocommit connection, or wait for the process that already
    does.
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
    """Fill in the next memories; None when all are done. Waits for locked rows only briefly, to avoid a deadlock."""
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
    """Build the missing indexes among these configurations; which they were, or are."""
    lacking = [name for name in configurations if not (await look(db, name)).ready]
    for name in () if dry_run else lacking:
        await build(db, name)
    return lacking


class Configurations:
    """Ensures that a configuration's index exists before it is searched."""

    def __init__(self, aside: Aside, read: Reading) -> None:
        """`aside` gives connections outside the pool, on which indexes are built."""
        self._aside = aside
        self._read = read
        self._ready: set[str] = set()
        self._building: dict[str, asyncio.Task[None]] = {}
        self._failed: dict[str, tuple[float, RecollectError]] = {}

    async def ensure(self, configuration: str) -> None:
        """Return when the configuration can be searched. A missing built-in index is built: for a small table this
        waits, and cancelling the wait does not stop the build; for a large one it raises IndexBuilding. Raises
        InvalidRequest for other configurations without an index.
        """
        if configuration in self._ready:
            return
        state = await self._read(lambda db: look(db, configuration))
        if state.ready:
            self._ready.add(configuration)
            return
        if configuration not in BUILT_IN and state.progress is None:
            raise InvalidRequest(
                f"this store has no index of {configuration!r} words: run `recollect migrate --words {configuration}`, "
                "which does not interrupt other users"
            )
        building = self._build(configuration) if configuration in BUILT_IN else None
        if building is None or state.size > WAITED_FOR_BYTES:
            done = state.progress.done if state.progress else 0
            raise IndexBuilding(
                f"the index of {configuration!r} words is being built: {done:,} of about {state.memories:,} memories "
                "are in it",
                backend="postgres",
            )
        await asyncio.shield(building)

    async def close(self) -> None:
        """Stop the builds. Another process continues them."""
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
            _log.warning("the index of %r words could not be built: %s", task.get_name(), error)


def escaped(text: str) -> str:
    """A text with the wildcards of LIKE escaped."""
    return _WILDCARD.sub(r"\\\g<0>", text)


def column_of(configuration: str) -> str:
    return f"words_{configuration}"
