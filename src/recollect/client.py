"""The facade people import: `AsyncRecollect` and its spaces. Without `await` it is in `sync.py`, and what it is made of
is chosen in `composition.py`.
"""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

from recollect import backups, composition
from recollect.backups import Backup
from recollect.engine import copying
from recollect.engine.copying import Copied, CopyProgress
from recollect.engine.doctor import Diagnosis, answering, examine
from recollect.engine.drafts import draft_of, replacement
from recollect.engine.engine import Engine, RecallListener
from recollect.engine.guarded import GuardedEmbedder
from recollect.engine.guards import Guards
from recollect.engine.guest import Guest
from recollect.engine.quality import Rated
from recollect.engine.remember import Ingested
from recollect.engine.replies import Replies
from recollect.engine.tokens import Tokens
from recollect.engine.transfer import Imported
from recollect.errors import ConfigError, SchemaOutdated
from recollect.limits import check_name
from recollect.options import Changes, ListOptions, MemoryFields, RecallOptions
from recollect.ports import Embedder, Lag
from recollect.recipes import recipe
from recollect.settings import Settings, with_store
from recollect.shared import AsyncShared
from recollect.types import (
    Access,
    Draft,
    Edge,
    Grant,
    Memory,
    Migration,
    Neighbor,
    Page,
    Recall,
    Remembered,
    SpaceStats,
    SpaceUsage,
)

if TYPE_CHECKING:
    from recollect.types import Vector

T = TypeVar("T")


class AsyncRecollect:
    """A memory, opened: `async with AsyncRecollect(url) as r`.

    `url` says where it lives (`sqlite:///memory.db`); without one, `RECOLLECT_URL`, else one file in the user's data
    folder. A store that is not there is made, unless `create` is False. `embedder` is a name (`local`, `openai:MODEL`,
    `hashing`) or an object that embeds. `tokens` say who may call a server on it, `replies` what a server has answered
    to requests with an idempotency key.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        embedder: str | Embedder | None = None,
        settings: Settings | None = None,
        create: bool = True,
    ) -> None:
        from recollect.embedders import QueryCache, configured  # late: numpy is not needed to read `--help`

        given = embedder
        named = embedder if isinstance(embedder, str) else None
        given_settings = settings or Settings.load(url=url, embedder=named)
        self.settings = replace(given_settings, url=url) if url else given_settings
        self.url = self.settings.url
        if embedder is None or isinstance(embedder, str):
            embedder = configured(self.settings, named)
        guards = Guards()
        self._questions = QueryCache(GuardedEmbedder(embedder, guards.of("embedder", embedder)))

        async def question_vector(text: str, space: str) -> Vector:
            return await self._questions.embed_query(text, space=space)

        self._store = composition.store(self.settings, create=create)
        vectors = composition.external_vectors(self.settings, self._store)
        links = composition.external_links(self.settings, self._store)
        self._engine = Engine(self._store, embedder, question_vector, guards, vectors, links)
        self._own_embedder = embedder if embedder is not given else None
        self.tokens = Tokens(self._store)
        self.replies = Replies(self._store)

    async def __aenter__(self) -> Self:
        try:
            await self._engine.open()
        except BaseException as error:
            await self.close()
            if isinstance(error, SchemaOutdated | ConfigError):  # which say what to run
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
        wanted = dict.fromkeys([*words, *(name for one in settings.recipes for name in recipe(one).configurations)])
        return await composition.store(settings).migrate(dry_run=dry_run, row_security=row_security, words=[*wanted])

    @staticmethod
    async def copy(
        source: str,
        target: str,
        *,
        spaces: Sequence[str] | None = None,
        on_progress: Callable[[CopyProgress], None] = lambda _: None,
    ) -> Copied:
        """Copy all that one store holds, or some of its spaces, into another, and compare the two. What the other holds
        already stays as it is, so a copy that was cut off is run again.
        """
        there = composition.store(Settings.load(url=source), create=False)
        return await copying.copy(there, composition.store(Settings.load(url=target)), spaces, on_progress)

    async def backup(
        self, file: str | Path, *, force: bool = False, on_progress: Callable[[CopyProgress], None] = lambda _: None
    ) -> Backup:
        """Write all that the store holds at this moment to a new file, which is checked and can be opened as a store.
        Others may write meanwhile. A file that is there is replaced only with `force`.
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
        refused, unless `force` says to add to them. A restore that was cut off is run again.
        """
        target = composition.store(Settings.load(url=url))
        return await backups.restore(file, target, spaces, force=force, on_progress=on_progress)

    async def close(self) -> None:
        """Finish what is under way and let go of the store."""
        try:
            await self._questions.close()
            await self._engine.close()
        finally:
            if self._own_embedder is not None:
                await self._own_embedder.close()
            await self._store.close()

    async def warm_up(self) -> None:
        """Load an embedder that runs inside this process, so that the first question need not wait for it. A failure is
        left to whoever embeds; the store need not be open.
        """
        embedding = self._engine.embedding
        with suppress(Exception):
            if embedding.embedder.in_process:
                await embedding.works("default")

    def space(self, name: str) -> AsyncSpace:
        """One tenant's memories: no call on it reads or changes another's."""
        return AsyncSpace(self._engine, check_name("space", name))

    async def spaces(self) -> list[str]:
        """The names of the spaces that hold something."""
        return list(await self._store.spaces())

    async def lag(self) -> dict[str, Lag]:
        """What each external index has still to be told."""
        return {name: await feeder.lag() for name, feeder in self._engine.feeders.items()}

    async def sync(self) -> dict[str, int]:
        """Tell each external index now what it has still to be told; how much that was."""
        return {name: await feeder.drain() for name, feeder in self._engine.feeders.items()}

    async def rebuild(self, index: str, *, on_progress: Callable[[int], None] | None = None) -> int:
        """Make an external index anew from the store, while reads go on; how many memories it holds then."""
        return await self._engine.feeder(index).rebuild(on_progress)

    async def doctor(self) -> Diagnosis:
        """Whether everything a recall needs is there and works."""
        return await examine(self._engine)

    async def ready(self) -> Diagnosis:
        """Whether each engine answers now, in a second or two at most: the store, external indexes, the embedder."""
        return await answering(self._engine)

    async def keep_scores(self) -> None:
        """Bring the qualities of every space up to date each hour, in the background, until this is closed."""
        self._engine.scoring.keep_up()

    def on_recall(self, listener: RecallListener) -> None:
        """Tell a listener of each recall from now on: its space, its recipe's name, and the answer or the RecallFailed.
        It is called before the answer goes out, so it must be quick, and must not raise.
        """
        self._engine.on_recall(listener)


class AsyncSpace:
    """The memories of one space. Get one from `AsyncRecollect.space`."""

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine = engine
        self.name = name

    async def remember(self, text: str, **fields: Unpack[MemoryFields]) -> Remembered:
        """Store a text and what is known about it; an exact copy is not stored twice (`created` is False then)."""
        return await self._engine.remember(self.name, draft_of(text, fields))

    async def remember_many(
        self, drafts: Iterable[Draft], *, on_progress: Callable[[int], None] | None = None
    ) -> Ingested:
        """Store many, batch by batch; what was reported as done is durable. Run it again after a crash."""
        return await self._engine.remember_many(self.name, drafts, on_progress=on_progress)

    async def settle(self) -> None:
        """Wait until every memory has its vector and its links."""
        await self._engine.settle(self.name)

    async def recall(self, query: str, **options: Unpack[RecallOptions]) -> Recall:
        """The memories that answer a question, best first, each with its reasons."""
        return await self._engine.recall(self.name, query, options)

    async def get(self, id: str) -> Memory:
        """One memory. Raises NotFound."""
        return await self._engine.get(self.name, id)

    async def history(self, id: str) -> builtins.list[Memory]:
        """The versions of a memory, oldest first: what it replaced, itself, and what replaced it. Raises NotFound."""
        return await self._engine.history(self.name, id)

    async def list(self, *, limit: int = 50, after: str | None = None, **options: Unpack[ListOptions]) -> Page:
        """Memories in id order (oldest first), a page at a time."""
        return await self._engine.list(self.name, options, limit=limit, after=after)

    async def update(self, id: str, **changes: Unpack[Changes]) -> Memory:
        """Change some fields of a memory; a new text is embedded anew."""
        return await self._engine.update(self.name, id, changes)

    async def forget(self, *ids: str) -> int:
        """Delete memories for good; how many there were."""
        return await self._engine.forget(self.name, ids)

    async def used(self, *ids: str) -> int:
        """Say that memories were of use, each of them once; how many there are. Being returned counts a tenth of it."""
        return await self._engine.used(self.name, ids)

    async def supersede(
        self, old: str, text: str | None = None, *, by: str | None = None, **fields: Unpack[MemoryFields]
    ) -> Memory:
        """Replace a memory by a new text, or `by` another memory; the old one stays, and is no longer recalled.

        A new text takes over the old one's namespace, kind and tags, unless others are given.
        """
        known = await self._engine.get(self.name, old)
        return await self._engine.supersede(self.name, old, replacement(known, text, by, fields))

    async def link(self, source: str, target: str, relation: str = "related", strength: float = 1.0) -> None:
        """Link two memories; linking them again by the same relation changes the strength."""
        await self._engine.link(self.name, Edge(source, target, relation, strength))

    async def unlink(self, source: str, target: str, relation: str | None = None) -> int:
        """Remove a link (by every relation, if none is named); how many there were."""
        return await self._engine.unlink(self.name, source, target, relation)

    async def neighbors(self, id: str, *, depth: int = 1, limit: int = 20) -> builtins.list[Neighbor]:
        """What is linked to a memory, strongest first."""
        return await self._engine.neighbors(self.name, id, depth=depth, limit=limit)

    async def grant(self, namespace: str, to: str, access: Access = "read") -> Grant:
        """Offer another space to see a namespace of this one, or with `write` to change it, too: it does from when it
        accepts until either side ends it. Granting again changes the access.
        """
        return await self._engine.sharing.grant(self.name, namespace, to, access)

    async def revoke(self, namespace: str, from_: str) -> bool:
        """Take a grant back: the next call of the other space finds nothing there. Whether there was one."""
        return await self._engine.sharing.revoke(self.name, namespace, from_)

    async def accept(self, space: str, namespace: str) -> bool:
        """See what another space offers to this one: from now on recalls look there. Whether there is such an offer."""
        return await self._engine.sharing.accept(self.name, space, namespace)

    async def refuse(self, space: str, namespace: str) -> bool:
        """End a grant or an offer to this space: the next recall no longer looks there. Whether there was one."""
        return await self._engine.sharing.refuse(self.name, space, namespace)

    async def grants(self) -> builtins.list[Grant]:
        """What this space lets others see, and what others let it see; offers too, which are not `accepted`."""
        return await self._engine.sharing.grants(self.name)

    def shared(self, space: str, namespace: str) -> AsyncShared:
        """A namespace that another space has granted to this one, and this one has accepted."""
        return AsyncShared(Guest(self._engine, self.name, space, namespace))

    async def stats(self) -> SpaceStats:
        """What the space holds."""
        return await self._engine.stats(self.name)

    async def usage(self, since: datetime | str | None = None) -> SpaceUsage:
        """How the space was used since a time, or over a span such as `7d`: recalls, and what legs did, by hours."""
        return await self._engine.usage(self.name, since)

    async def score(self, *, on_progress: Callable[[int], None] | None = None) -> Rated:
        """Give every memory its quality, by how often and how recently it proved useful. It is done in the background
        once a day; this does it now.
        """
        return await self._engine.score(self.name, on_progress)

    def export(self) -> AsyncIterator[dict[str, Any]]:
        """Everything as JSON-ready lines: the memories, then their links."""
        return self._engine.export(self.name)

    async def import_lines(
        self, lines: Iterable[str] | AsyncIterable[str], *, on_progress: Callable[[Imported], None] | None = None
    ) -> Imported:
        """Take in JSON Lines; broken ones are named and left out. Running it again makes no copies."""
        return await self._engine.import_lines(self.name, lines, on_progress)
