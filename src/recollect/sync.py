"""The client without `await`: each call runs that of its asynchronous twin on an event loop of its own.

Written by scripts/make_sync.py: change the asynchronous classes, and run it again.
"""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Unpack

from recollect.backups import Backup
from recollect.client import AsyncRecollect
from recollect.engine.copying import Copied, CopyProgress
from recollect.engine.doctor import Diagnosis
from recollect.engine.quality import Rated
from recollect.engine.recall import RecallListener
from recollect.engine.reembed import Reembedded, ReembedProgress
from recollect.engine.remember import Ingested
from recollect.engine.tokens import AsyncTokens
from recollect.engine.transfer import Imported
from recollect.options import Changes, ListOptions, MemoryFields, RecallOptions
from recollect.portal import Opened, Portal
from recollect.ports import Embedder, GenerationState, Lag, Reranker, Store
from recollect.settings import Settings
from recollect.space import AsyncNamespace, AsyncSpace
from recollect.types import (
    Access,
    Draft,
    Generation,
    Grant,
    Issued,
    Memory,
    Migration,
    Neighbor,
    Page,
    Recall,
    Remembered,
    Scope,
    SpaceStats,
    SpaceUsage,
    Token,
    Use,
)


class Namespace:
    """A namespace that another space has granted. Get one from `Space.shared`; every call looks up the grant."""

    _async: AsyncNamespace

    def __init__(self, behind: AsyncNamespace, portal: Portal) -> None:
        self._async = behind
        self._portal = portal
        self._run = portal.run
        self.space = self._async.space
        self.namespace = self._async.namespace

    def remember(self, text: str, **fields: Unpack[MemoryFields]) -> Remembered:
        """Store a text and what is known about it; an exact copy is not stored twice (`created` is False then)."""
        return self._run(self._async.remember(text, **fields))

    def recall(self, query: str, **options: Unpack[RecallOptions]) -> Recall:
        """The memories that answer a question, best first, each with its reasons."""
        return self._run(self._async.recall(query, **options))

    def get(self, id: str) -> Memory:
        """One memory. Raises NotFound."""
        return self._run(self._async.get(id))

    def list(self, *, limit: int = 50, after: str | None = None, **options: Unpack[ListOptions]) -> Page:
        """Memories in id order (oldest first), a page at a time."""
        return self._run(self._async.list(limit=limit, after=after, **options))

    def update(self, id: str, **changes: Unpack[Changes]) -> Memory:
        """Change some fields of a memory; a new text is embedded anew."""
        return self._run(self._async.update(id, **changes))

    def forget(self, *ids: str) -> int:
        """Delete memories for good; how many there were."""
        return self._run(self._async.forget(*ids))

    def supersede(
        self, old: str, text: str | None = None, *, by: str | None = None, **fields: Unpack[MemoryFields]
    ) -> Memory:
        """Replace a memory by a new text, or `by` another memory; the old one stays, and is no longer recalled.

        A new text takes over the old one's namespace, kind and tags, unless others are given.
        """
        return self._run(self._async.supersede(old, text, by=by, **fields))

    def link(self, source: str, target: str, relation: str = "related", strength: float = 1.0) -> None:
        """Link two memories; linking them again by the same relation changes the strength."""
        self._run(self._async.link(source, target, relation, strength))

    def unlink(self, source: str, target: str, relation: str | None = None) -> int:
        """Remove a link (by every relation, if none is named); how many there were."""
        return self._run(self._async.unlink(source, target, relation))

    def neighbors(self, id: str, *, depth: int = 1, limit: int = 20) -> builtins.list[Neighbor]:
        """What is linked to a memory within 1 to 3 steps, strongest first. In a granted namespace it is one step, and
        only by links that somebody made.
        """
        return self._run(self._async.neighbors(id, depth=depth, limit=limit))


class Space(Namespace):
    """The memories of one space. Get one from `Recollect.space`."""

    _async: AsyncSpace

    def __init__(self, behind: AsyncSpace, portal: Portal) -> None:
        super().__init__(behind, portal)
        self._async = behind
        self.name = self._async.name

    def remember_many(self, drafts: Iterable[Draft], *, on_progress: Callable[[int], None] | None = None) -> Ingested:
        """Store many, batch by batch; what was reported as done is durable. Run it again after a crash."""
        return self._run(self._async.remember_many(drafts, on_progress=on_progress))

    def settle(self) -> None:
        """Wait until every memory has its vector and its links."""
        self._run(self._async.settle())

    def history(self, id: str) -> builtins.list[Memory]:
        """The versions of a memory, oldest first: what it replaced, itself, and what replaced it. Raises NotFound."""
        return self._run(self._async.history(id))

    def used(self, *ids: str, query: str | None = None) -> int:
        """Say that memories were useful, each once; how many of them exist. Being returned counts a tenth of that. The
        question that led to them is kept with the newest 10,000 uses, until the memory is forgotten: see `uses`.
        """
        return self._run(self._async.used(*ids, query=query))

    def uses(self) -> builtins.list[Use]:
        """Which questions led to the use of which memories, as far as `used` was told, in the order of their use."""
        return self._run(self._async.uses())

    def grant(self, namespace: str, to: str, access: Access = "read") -> Grant:
        """Offer a namespace to another space, to see it or, with `write`, to change it too. The grant holds from when
        that space accepts it until either side ends it. Granting again changes the access.
        """
        return self._run(self._async.grant(namespace, to, access))

    def revoke(self, namespace: str, from_: str) -> bool:
        """Take a grant back, from the other space's next call on. Whether there was one."""
        return self._run(self._async.revoke(namespace, from_))

    def accept(self, space: str, namespace: str) -> bool:
        """Accept what another space offers to this one: recalls now look there. Whether there is such an offer."""
        return self._run(self._async.accept(space, namespace))

    def refuse(self, space: str, namespace: str) -> bool:
        """End a grant or an offer to this space, from the next recall on. Whether there was one."""
        return self._run(self._async.refuse(space, namespace))

    def grants(self) -> builtins.list[Grant]:
        """What this space shares with others, and what others share with it; offers are not `accepted` yet."""
        return self._run(self._async.grants())

    def shared(self, space: str, namespace: str) -> Namespace:
        """A namespace that another space has granted to this one, and this one has accepted."""
        return Namespace(self._async.shared(space, namespace), self._portal)

    def stats(self) -> SpaceStats:
        """What the space holds."""
        return self._run(self._async.stats())

    def usage(self, since: datetime | str | None = None) -> SpaceUsage:
        """How the space was used since a time, or over a span such as `7d`: recalls, and what legs did, by hours."""
        return self._run(self._async.usage(since))

    def score(self, *, on_progress: Callable[[int], None] | None = None) -> Rated:
        """Give every memory its quality, by how often and how recently it proved useful. It is done in the background
        once a day; this does it now.
        """
        return self._run(self._async.score(on_progress=on_progress))

    def export(self) -> Iterator[dict[str, Any]]:
        """Everything as JSON-ready lines: the memories, then their links."""
        return self._portal.each(self._async.export())

    def import_lines(self, lines: Iterable[str], *, on_progress: Callable[[Imported], None] | None = None) -> Imported:
        """Take in JSON Lines; broken ones are named and left out. Running it again makes no copies."""
        return self._run(self._async.import_lines(lines, on_progress=on_progress))


class Tokens:
    """The tokens of a store: `Recollect.tokens`. Every check reads the token from the store, so a token that any
    process revokes is refused from the next call.
    """

    _async: AsyncTokens

    def __init__(self, behind: AsyncTokens, portal: Portal) -> None:
        self._async = behind
        self._portal = portal
        self._run = portal.run

    def create(
        self,
        *,
        spaces: Sequence[str] = (),
        scope: Scope = "read",
        name: str = "",
        expires: datetime | str | None = None,
    ) -> Issued:
        """Make a token for some spaces, or for all. Only this answer contains its secret. It `expires` at a time, after
        a span such as 90d, or never.
        """
        return self._run(self._async.create(spaces=spaces, scope=scope, name=name, expires=expires))

    def check(self, secret: str) -> Token:
        """The token of a secret. Raises NotAllowed if there is none, or if it has expired or was revoked. The error
        says which only if the secret is right.
        """
        return self._run(self._async.check(secret))

    def list(self, space: str | None = None) -> builtins.list[Token]:
        """All tokens, or those limited to a space, oldest first, including expired and revoked ones."""
        return self._run(self._async.list(space))

    def revoke(self, id: str) -> bool:
        """Revoke a token for good. Returns whether there was one. An error never quotes the id, which may be a secret
        given by mistake.
        """
        return self._run(self._async.revoke(id))

    def required(self) -> bool:
        """Whether a token was ever made. Servers then require one, even after all were revoked."""
        return self._run(self._async.required())


class Recollect(Opened):
    """A memory, opened: `with Recollect(url) as r`.

    `url` says where it lives (`sqlite:///memory.db`); without one, `RECOLLECT_URL`, else one file in the user's data
    folder. A store that is not there is made, unless `create` is False. `store` is a store that you made yourself, in
    place of a URL; it is opened and closed with the client. `embedder` is a name (`local`, `openai:MODEL`, `hashing`)
    or an object that embeds, which you close. `reranker` serves recipes that rerank, likewise: a name (`local`,
    `http:URL`) or an object.
    """

    _async: AsyncRecollect

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
        self._async = AsyncRecollect(
            url, store=store, embedder=embedder, reranker=reranker, settings=settings, create=create
        )
        super().__init__(self._async)
        self.settings = self._async.settings
        self.url = self._async.url
        self.tokens = Tokens(self._async.tokens, self._portal)

    @staticmethod
    def migrate(
        url: str | None = None, *, dry_run: bool = False, row_security: bool = False, words: Sequence[str] = ()
    ) -> Migration:
        """Make a store, or bring it to this version of Recollect; what was done, or would be. It gets the text indexes
        of the recipes that the settings name, and of these configurations; on Postgres also row security.
        """
        return asyncio.run(AsyncRecollect.migrate(url, dry_run=dry_run, row_security=row_security, words=words))

    @staticmethod
    def copy(
        source: str,
        target: str,
        *,
        spaces: Sequence[str] | None = None,
        on_progress: Callable[[CopyProgress], None] = lambda _: None,
    ) -> Copied:
        """Copy all that one store holds, or some of its spaces, into another, and compare the two. What the other
        already holds stays as it is, so a copy that was cut off can be run again.
        """
        return asyncio.run(AsyncRecollect.copy(source, target, spaces=spaces, on_progress=on_progress))

    def backup(
        self, file: str | Path, *, force: bool = False, on_progress: Callable[[CopyProgress], None] = lambda _: None
    ) -> Backup:
        """Write all that the store holds at this moment to a new file, checked, which can be opened as a store. Others
        may write meanwhile. An existing file is replaced only with `force`.
        """
        return self._run(self._async.backup(file, force=force, on_progress=on_progress))

    @staticmethod
    def restore(
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
        return asyncio.run(AsyncRecollect.restore(file, url, spaces=spaces, force=force, on_progress=on_progress))

    def reembed(
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
        return self._run(self._async.reembed(embedder, back=back, rate=rate, on_progress=on_progress))

    def generations(self) -> Sequence[GenerationState]:
        """The models that made the store's vectors: the current one, a next one that is being filled, old ones."""
        return self._run(self._async.generations())

    def drop_vectors(self, state: Literal["old", "next"]) -> builtins.list[Generation]:
        """Delete the vectors of models that answered before (`old`), or of one that the store was being changed to
        (`next`); which models these were.
        """
        return self._run(self._async.drop_vectors(state))

    def warm_up(self, recipe_name: str = "balanced") -> None:
        """Load the models of a recipe that run inside this process, so that the first question need not wait for them.
        A failure is left to whoever asks; the store need not be open.
        """
        self._run(self._async.warm_up(recipe_name))

    def space(self, name: str) -> Space:
        """One tenant's memories: no call on it reads or changes another's."""
        return Space(self._async.space(name), self._portal)

    def spaces(self) -> list[str]:
        """The names of the spaces that hold something."""
        return self._run(self._async.spaces())

    def lag(self) -> dict[str, Lag]:
        """How far each external index is behind the store."""
        return self._run(self._async.lag())

    def sync(self) -> dict[str, int]:
        """Bring each external index up to date now; how many changes that took."""
        return self._run(self._async.sync())

    def rebuild(self, index: str, *, on_progress: Callable[[int], None] | None = None) -> int:
        """Rebuild an external index from the store, while reads go on; how many memories it then holds."""
        return self._run(self._async.rebuild(index, on_progress=on_progress))

    def doctor(self) -> Diagnosis:
        """Whether everything a recall needs is there and works."""
        return self._run(self._async.doctor())

    def ready(self) -> Diagnosis:
        """Whether each engine answers now, in a second or two at most: the store, external indexes, the embedder."""
        return self._run(self._async.ready())

    def keep_scores(self) -> None:
        """Bring the qualities of every space up to date each hour, in the background, until this is closed."""
        self._run(self._async.keep_scores())

    def on_recall(self, listener: RecallListener) -> None:
        """Tell a listener of each recall from now on: its space, its recipe's name, and the answer or the RecallFailed.
        It is called on the event loop before the answer goes out, so it must be quick, and must not raise.
        """
        self._async.on_recall(listener)
