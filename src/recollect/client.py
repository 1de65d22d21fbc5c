"""`AsyncRecollect`: opens a store and hands out its spaces (`space.py`). What it is made of is chosen in
`composition.py`; `sync.py` is the same without `await`.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from recollect import backups, composition
from recollect.backups import Backup
from recollect.calls.gate import Gates, gated
from recollect.embedders import configured
from recollect.engine import copying
from recollect.engine.copying import Copied, CopyProgress
from recollect.engine.doctor import Diagnosis, answering, examine
from recollect.engine.engine import Engine
from recollect.engine.query import with_own
from recollect.engine.recall import RecallListener
from recollect.engine.reembed import Reembedded, ReembedProgress, abandon, drop_old, old_one, reembed
from recollect.engine.replies import Replies
from recollect.engine.rerank import Rerankers
from recollect.engine.tokens import AsyncTokens
from recollect.errors import ConfigError, InvalidRequest, SchemaOutdated, embedder_of
from recollect.limits import check_number
from recollect.ports import Embedder, GenerationState, Lag, Reranker, Store
from recollect.recipes import recipe
from recollect.settings import Settings, with_store
from recollect.space import AsyncSpace
from recollect.types import Generation, Migration

STORE = ("open", "close", "add", "get", "location")
RERANKER = ("name", "in_process", "languages", "score", "close")
EMBEDDER = ("name", "in_process", "dimensions", "embed", "close")
"""What an object that is given as a store or an embedder has at least."""


class AsyncRecollect:
    """A memory, opened: `async with AsyncRecollect(url) as r`.

    `url` says where it lives (`sqlite:///memory.db`); without one, `RECOLLECT_URL`, else one file in the user's data
    folder. A store that is not there is made, unless `create` is False. `store` is a store that you made yourself, in
    place of a URL; it is opened and closed with the client. `embedder` is a name (`local`, `openai:MODEL`, `hashing`)
    or an object that embeds, which you close. `reranker` serves recipes that rerank, likewise: a name (`local`,
    `http:URL`) or an object.
    """

    settings: Settings
    url: str
    """The URL of the store, or where a store that was given lives."""
    tokens: AsyncTokens
    """Who may call a server on this store."""
    replies: Replies
    """What a server has answered to requests with an idempotency key."""

    def __init__(
        self,
        url: str | None = None,
        *,
        store: Store | None = None,
        embedder: str | Embedder | None = None,
        reranker: str | Reranker | None = None,
        settings: Settings | None = None,
        create: bool = True,
    ) -> None:
        if url is not None and store is not None:
            raise ConfigError("a URL and a store were given: give one of them")
        named = embedder if isinstance(embedder, str) else None
        known = settings or Settings.load(url=url, embedder=named)
        self.settings = replace(known, url=url) if url else known
        if reranker is not None and not isinstance(reranker, str):
            _check(reranker, "a reranker, nor as the name of one", RERANKER)
        rerankers, recipes = Rerankers(self.settings, reranker), with_own(self.settings.recipe)
        rerankers.check(recipes.values())
        self._own_embedders: list[Embedder] = []
        if embedder is None or isinstance(embedder, str):
            embedder = configured(self.settings, named)
            self._own_embedders.append(embedder)
        _check(embedder, "an embedder, nor as the name of one", EMBEDDER)
        if store is None:
            self._store, self.url = composition.store(self.settings, create=create), self.settings.url
        else:
            _check(store, "a store", STORE)
            self._store, self.url = store, store.location
        gates = Gates()
        asked = gated(self._store, gates.of_rows(self._store))  # so that an index answers for its own failures alone
        vectors = composition.external_vectors(self.settings, asked)
        links = composition.external_links(self.settings, asked)
        self._engine = Engine(self._store, embedder, vectors, links, gates, rerankers, recipes)
        self.tokens = AsyncTokens(self._store.ledger)
        self.replies = Replies(self._store.ledger)

    async def __aenter__(self) -> Self:
        try:
            await self._engine.open()
        except BaseException as error:
            await self.close()
            if isinstance(error, SchemaOutdated | ConfigError) and self.url == self.settings.url:
                # they say which command to run; it needs the URL
                error.args = (with_store(str(error), self.url), *error.args[1:])
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @staticmethod
    async def migrate(
        url: str | None = None, *, dry_run: bool = False, row_security: bool = False, words: Sequence[str] = ()
    ) -> Migration:
        """Make a store, or bring it to this version of Recollect; what was done, or would be. It gets the text indexes
        of the recipes that the settings name, and of these configurations; on Postgres also row security.
        """
        settings = Settings.load(url=url)
        known = with_own(settings.recipe)
        wanted = dict.fromkeys([*words, *(n for one in settings.recipes for n in recipe(one, known).configurations)])
        return await composition.store(settings).migrate(dry_run=dry_run, row_security=row_security, words=[*wanted])

    @staticmethod
    async def copy(
        source: str,
        target: str,
        *,
        spaces: Sequence[str] | None = None,
        on_progress: Callable[[CopyProgress], None] = lambda _: None,
    ) -> Copied:
        """Copy all that one store holds, or some of its spaces, into another, and compare the two. What the other
        already holds stays as it is, so a copy that was cut off can be run again.
        """
        there = composition.store(Settings.load(url=source), create=False)
        return await copying.copy(there, composition.store(Settings.load(url=target)), spaces, on_progress)

    async def backup(
        self, file: str | Path, *, force: bool = False, on_progress: Callable[[CopyProgress], None] = lambda _: None
    ) -> Backup:
        """Write all that the store holds at this moment to a new file, checked, which can be opened as a store. Others
        may write meanwhile. An existing file is replaced only with `force`.
        """
        return await backups.backup(self._store, file, force=force, on_progress=on_progress)

    @staticmethod
    async def restore(
        file: str | Path,
        url: str | None = None,
        *,
        spaces: Sequence[str] | None = None,
        force: bool = False,
        on_progress: Callable[[CopyProgress], None] = lambda _: None,
    ) -> Copied:
        """Copy a backup, or some of its spaces, into a store, and compare the two. A space that holds other memories is
        refused, unless `force` says to add to them. A restore that was cut off can be run again.
        """
        target = composition.store(Settings.load(url=url))
        return await backups.restore(file, target, spaces, force=force, on_progress=on_progress)

    async def close(self) -> None:
        """Finish what is under way and let go of the store."""
        try:
            await self._engine.close()
        finally:
            for embedder in self._own_embedders:
                await embedder.close()
            await self._store.close()

    async def reembed(
        self,
        embedder: str | Embedder | None = None,
        *,
        back: bool = False,
        rate: float | None = None,
        on_progress: Callable[[ReembedProgress], None] = lambda _: None,
    ) -> Reembedded:
        """Change the store to another embedder, while others read and write. Recalls use the old vectors until the new
        ones are complete, and switch in one step; so does this client. Cut off, it goes on when it is called again. At
        most `rate` memories a second are embedded; without one, it rests as long as it works. `back` returns to the
        model before, whose embedder is that of the settings unless you name it.
        """
        if back:
            old = await old_one(self._store)
        elif embedder is None:
            raise InvalidRequest("name the embedder to change to")
        if embedder is None or isinstance(embedder, str):
            embedder = configured(self.settings, embedder)
            self._own_embedders.append(embedder)
        _check(embedder, "an embedder, nor as the name of one", EMBEDDER)
        if rate is not None:
            check_number("rate", rate, 0.01, 1_000_000)
        if back and embedder.name != old.model:
            named = embedder_of(old.model) or f"that of {old.model}"
            raise InvalidRequest(
                f"the old vectors are of {old.model}, not of {embedder.name}: name the embedder {named}"
            )
        return await reembed(self._engine, embedder, rate=rate, on_progress=on_progress)

    async def generations(self) -> Sequence[GenerationState]:
        """The models that made the store's vectors: the current one, a next one that is being filled, old ones."""
        return await self._store.generations.all()

    async def drop_vectors(self, state: Literal["old", "next"]) -> builtins.list[Generation]:
        """Delete the vectors of models that answered before (`old`), or of one that the store was being changed to
        (`next`); which models these were.
        """
        return await (drop_old(self._engine) if state == "old" else abandon(self._engine))

    async def warm_up(self, recipe_name: str = "balanced") -> None:
        """Load the models of a recipe that run inside this process, so that the first question need not wait for them.
        A failure is left to whoever asks; the store need not be open.
        """
        embedding = self._engine.embedding
        with suppress(Exception):
            if embedding.embedder.in_process:
                await embedding.works("default")
            how = recipe(recipe_name, self._engine.recipes).rerank
            if how and (reader := self._engine.rerankers.of(how.model)).in_process:
                await reader.score("what is this?", ["a text to read"])

    def space(self, name: str) -> AsyncSpace:
        """One tenant's memories: no call on it reads or changes another's."""
        return AsyncSpace(self._engine, name)

    async def spaces(self) -> list[str]:
        """The names of the spaces that hold something."""
        return list(await self._store.spaces())

    async def lag(self) -> dict[str, Lag]:
        """How far each external index is behind the store."""
        return {name: await feeder.lag() for name, feeder in self._engine.feeders.items()}

    async def sync(self) -> dict[str, int]:
        """Bring each external index up to date now; how many changes that took."""
        return {name: await feeder.drain() for name, feeder in self._engine.feeders.items()}

    async def rebuild(self, index: str, *, on_progress: Callable[[int], None] | None = None) -> int:
        """Rebuild an external index from the store, while reads go on; how many memories it then holds."""
        return await self._engine.feeder(index).rebuild(on_progress)

    async def doctor(self) -> Diagnosis:
        """Whether everything a recall needs is there and works."""
        return await examine(self._engine)

    async def ready(self) -> Diagnosis:
        """Whether each engine answers now, in a second or two at most: the store, external indexes, the embedder."""
        return await answering(self._engine)

    async def keep_scores(self) -> None:
        """Bring the qualities of every space up to date each hour, in the background, until this is closed."""
        self._engine.keep_up()

    def on_recall(self, listener: RecallListener) -> None:
        """Tell a listener of each recall from now on: its space, its recipe's name, and the answer or the RecallFailed.
        It is called on the event loop before the answer goes out, so it must be quick, and must not raise.
        """
        self._engine.recaller.listeners.append(listener)


def _check(given: object, what: str, needed: Sequence[str]) -> None:
    """Raises ConfigError for an object that cannot be what it was given as."""
    if missing := [name for name in needed if not hasattr(given, name)]:
        raise ConfigError(f"{given!r:.80} cannot be used as {what}: it has no {missing[0]!r}")
