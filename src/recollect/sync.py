"""The facade without `await`: `Recollect` and its spaces run the calls of `AsyncRecollect` on an event loop of their
own, in a thread of its own.
"""

from __future__ import annotations

import asyncio
import builtins
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from recollect.backups import Backup
from recollect.client import AsyncRecollect
from recollect.engine import tokens
from recollect.engine.asking import RecallListener
from recollect.engine.copying import Copied, CopyProgress
from recollect.engine.doctor import Diagnosis
from recollect.engine.quality import Rated
from recollect.engine.remember import Ingested
from recollect.engine.transfer import Imported
from recollect.errors import InvalidRequest
from recollect.options import Changes, ListOptions, MemoryFields, RecallOptions
from recollect.ports import Embedder, Lag
from recollect.settings import Settings
from recollect.space import AsyncNamespace, AsyncSpace
from recollect.types import (
    Access,
    Draft,
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
)

T = TypeVar("T")
HEEDLESS = 2.0
"""Seconds that closing waits for work that goes on although it was cancelled."""


class Recollect:
    """A memory, opened: `with Recollect(url) as r`. The same as `AsyncRecollect`, without `await`.

    >>> with Recollect("sqlite:///:memory:", embedder="hashing") as r:
    ...     work = r.space("work")
    ...     _ = work.remember("Invoice 12345 was paid on 3 May", tags=["billing"])
    ...     work.recall("invoice 12345")[0].memory.text
    'Invoice 12345 was paid on 3 May'
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        embedder: str | Embedder | None = None,
        settings: Settings | None = None,
        create: bool = True,
    ) -> None:
        self._async = AsyncRecollect(url, embedder=embedder, settings=settings, create=create)
        self.settings, self.url = self._async.settings, self._async.url
        self._portal = _Portal()
        self.tokens = Tokens(self._async.tokens, self._portal)
        try:
            self._portal.run(self._async.__aenter__())
        except BaseException:
            self._portal.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @staticmethod
    def migrate(
        url: str | None = None, *, dry_run: bool = False, row_security: bool = False, words: Sequence[str] = ()
    ) -> Migration:
        """Make a store, or bring it to this version of Recollect; what was done, or would be. On Postgres also with
        row security, and with text-search configurations beside `simple` and `english`.
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
        """Copy all that one store holds, or some of its spaces, into another, and compare the two. What the other holds
        already stays as it is, so a copy that was cut off is run again.
        """
        return asyncio.run(AsyncRecollect.copy(source, target, spaces=spaces, on_progress=on_progress))

    def backup(
        self, file: str | Path, *, force: bool = False, on_progress: Callable[[CopyProgress], None] = lambda _: None
    ) -> Backup:
        """Write all that the store holds at this moment to a new file, which is checked and can be opened as a store.
        Others may write meanwhile. A file that is there is replaced only with `force`.
        """
        return self._portal.run(self._async.backup(file, force=force, on_progress=on_progress))

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
        refused, unless `force` says to add to them. A restore that was cut off is run again.
        """
        return asyncio.run(AsyncRecollect.restore(file, url, spaces=spaces, force=force, on_progress=on_progress))

    def close(self) -> None:
        """Finish what is under way and let go of the store. A second call does nothing."""
        if self._portal.open:
            try:
                self._portal.run(self._async.close())
            finally:
                self._portal.close()

    def warm_up(self) -> None:
        """Load an embedder that runs inside this process, so that the first question need not wait for it."""
        self._portal.run(self._async.warm_up())

    def space(self, name: str) -> Space:
        """One tenant's memories: no call on it reads or changes another's."""
        return Space(self._async.space(name), self._portal)

    def spaces(self) -> list[str]:
        """The names of the spaces that hold something."""
        return self._portal.run(self._async.spaces())

    def lag(self) -> dict[str, Lag]:
        """What each external index has still to be told."""
        return self._portal.run(self._async.lag())

    def sync(self) -> dict[str, int]:
        """Tell each external index now what it has still to be told; how much that was."""
        return self._portal.run(self._async.sync())

    def rebuild(self, index: str, *, on_progress: Callable[[int], None] | None = None) -> int:
        """Make an external index anew from the store, while reads go on; how many memories it holds then."""
        return self._portal.run(self._async.rebuild(index, on_progress=on_progress))

    def doctor(self) -> Diagnosis:
        """Whether everything a recall needs is there and works."""
        return self._portal.run(self._async.doctor())

    def ready(self) -> Diagnosis:
        """Whether each engine answers now, in a second or two at most: the store, external indexes, the embedder."""
        return self._portal.run(self._async.ready())

    def keep_scores(self) -> None:
        """Bring the qualities of every space up to date each hour, in the background, until this is closed."""
        self._portal.run(self._async.keep_scores())

    def on_recall(self, listener: RecallListener) -> None:
        """Tell a listener of each recall from now on: its space, its recipe's name, and the answer or the RecallFailed.
        It is called in the client's own thread before the answer goes out, so it must be quick, and must not raise.
        """
        self._async.on_recall(listener)


class Space:
    """The memories of one space, without `await`. Each call is `AsyncSpace`'s."""

    def __init__(self, space: AsyncSpace, portal: _Portal) -> None:
        self._space = space
        self._portal = portal
        self._run = portal.run
        self.name = space.name

    def remember(self, text: str, **fields: Unpack[MemoryFields]) -> Remembered:
        """Store a text and what is known about it; an exact copy is not stored twice (`created` is False then)."""
        return self._run(self._space.remember(text, **fields))

    def remember_many(self, drafts: Iterable[Draft], *, on_progress: Callable[[int], None] | None = None) -> Ingested:
        """Store many, batch by batch; what was reported as done is durable. Run it again after a crash."""
        return self._run(self._space.remember_many(drafts, on_progress=on_progress))

    def settle(self) -> None:
        """Wait until every memory has its vector and its links."""
        self._run(self._space.settle())

    def recall(self, query: str, **options: Unpack[RecallOptions]) -> Recall:
        """The memories that answer a question, best first, each with its reasons."""
        return self._run(self._space.recall(query, **options))

    def get(self, id: str) -> Memory:
        """One memory. Raises NotFound."""
        return self._run(self._space.get(id))

    def history(self, id: str) -> builtins.list[Memory]:
        """The versions of a memory, oldest first: what it replaced, itself, and what replaced it. Raises NotFound."""
        return self._run(self._space.history(id))

    def list(self, *, limit: int = 50, after: str | None = None, **options: Unpack[ListOptions]) -> Page:
        """Memories in id order (oldest first), a page at a time."""
        return self._run(self._space.list(limit=limit, after=after, **options))

    def update(self, id: str, **changes: Unpack[Changes]) -> Memory:
        """Change some fields of a memory; a new text is embedded anew."""
        return self._run(self._space.update(id, **changes))

    def forget(self, *ids: str) -> int:
        """Delete memories for good; how many there were."""
        return self._run(self._space.forget(*ids))

    def used(self, *ids: str) -> int:
        """Say that memories were of use, each of them once; how many there are. Being returned counts a tenth of it."""
        return self._run(self._space.used(*ids))

    def supersede(
        self, old: str, text: str | None = None, *, by: str | None = None, **fields: Unpack[MemoryFields]
    ) -> Memory:
        """Replace a memory by a new text, or `by` another memory; the old one stays, and is no longer recalled."""
        return self._run(self._space.supersede(old, text, by=by, **fields))

    def link(self, source: str, target: str, relation: str = "related", strength: float = 1.0) -> None:
        """Link two memories; linking them again by the same relation changes the strength."""
        self._run(self._space.link(source, target, relation, strength))

    def unlink(self, source: str, target: str, relation: str | None = None) -> int:
        """Remove a link (by every relation, if none is named); how many there were."""
        return self._run(self._space.unlink(source, target, relation))

    def neighbors(self, id: str, *, depth: int = 1, limit: int = 20) -> builtins.list[Neighbor]:
        """What is linked to a memory, strongest first."""
        return self._run(self._space.neighbors(id, depth=depth, limit=limit))

    def grant(self, namespace: str, to: str, access: Access = "read") -> Grant:
        """Offer another space to see a namespace of this one, or with `write` to change it, too: it does from when it
        accepts until either side ends it. Granting again changes the access.
        """
        return self._run(self._space.grant(namespace, to, access))

    def revoke(self, namespace: str, from_: str) -> bool:
        """Take a grant back: the next call of the other space finds nothing there. Whether there was one."""
        return self._run(self._space.revoke(namespace, from_))

    def accept(self, space: str, namespace: str) -> bool:
        """See what another space offers to this one: from now on recalls look there. Whether there is such an offer."""
        return self._run(self._space.accept(space, namespace))

    def refuse(self, space: str, namespace: str) -> bool:
        """End a grant or an offer to this space: the next recall no longer looks there. Whether there was one."""
        return self._run(self._space.refuse(space, namespace))

    def grants(self) -> builtins.list[Grant]:
        """What this space lets others see, and what others let it see; offers too, which are not `accepted`."""
        return self._run(self._space.grants())

    def shared(self, space: str, namespace: str) -> Namespace:
        """A namespace that another space has granted to this one, and this one has accepted."""
        return Namespace(self._space.shared(space, namespace), self._portal)

    def stats(self) -> SpaceStats:
        """What the space holds."""
        return self._run(self._space.stats())

    def usage(self, since: datetime | str | None = None) -> SpaceUsage:
        """How the space was used since a time, or over a span such as `7d`: recalls, and what legs did, by hours."""
        return self._run(self._space.usage(since))

    def score(self, *, on_progress: Callable[[int], None] | None = None) -> Rated:
        """Give every memory its quality, by how often and how recently it proved useful. It is done in the background
        once a day; this does it now.
        """
        return self._run(self._space.score(on_progress=on_progress))

    def export(self) -> Iterator[dict[str, Any]]:
        """Everything as JSON-ready lines: the memories, then their links."""
        lines = self._space.export()

        async def next_line() -> dict[str, Any] | None:
            return await anext(lines, None)

        while (line := self._run(next_line())) is not None:
            yield line

    def import_lines(self, lines: Iterable[str], *, on_progress: Callable[[Imported], None] | None = None) -> Imported:
        """Take in JSON Lines; broken ones are named and left out. Running it again makes no copies."""
        return self._run(self._space.import_lines(lines, on_progress=on_progress))


class Namespace:
    """The memories of a granted namespace, without `await`. Each call is `AsyncNamespace`'s."""

    def __init__(self, shared: AsyncNamespace, portal: _Portal) -> None:
        self._shared = shared
        self._run = portal.run
        self.space = shared.space
        self.namespace = shared.namespace

    def remember(self, text: str, **fields: Unpack[MemoryFields]) -> Remembered:
        """Store a text there; see `Space.remember`."""
        return self._run(self._shared.remember(text, **fields))

    def recall(self, query: str, **options: Unpack[RecallOptions]) -> Recall:
        """The memories there that answer a question, best first."""
        return self._run(self._shared.recall(query, **options))

    def get(self, id: str) -> Memory:
        """One memory of it. Raises NotFound."""
        return self._run(self._shared.get(id))

    def list(self, *, limit: int = 50, after: str | None = None, **options: Unpack[ListOptions]) -> Page:
        """Its memories in id order, a page at a time."""
        return self._run(self._shared.list(limit=limit, after=after, **options))

    def update(self, id: str, **changes: Unpack[Changes]) -> Memory:
        """Change some fields of a memory of it."""
        return self._run(self._shared.update(id, **changes))

    def forget(self, *ids: str) -> int:
        """Delete memories of it for good; how many there were."""
        return self._run(self._shared.forget(*ids))

    def supersede(
        self, old: str, text: str | None = None, *, by: str | None = None, **fields: Unpack[MemoryFields]
    ) -> Memory:
        """Replace a memory of it by a new text, or `by` another memory of it."""
        return self._run(self._shared.supersede(old, text, by=by, **fields))

    def link(self, source: str, target: str, relation: str = "related", strength: float = 1.0) -> None:
        """Link two memories of it."""
        self._run(self._shared.link(source, target, relation, strength))

    def unlink(self, source: str, target: str, relation: str | None = None) -> int:
        """Remove a link between two memories of it; how many there were."""
        return self._run(self._shared.unlink(source, target, relation))

    def neighbors(self, id: str, *, depth: int = 1, limit: int = 20) -> builtins.list[Neighbor]:
        """What is linked to a memory directly, and is there itself."""
        return self._run(self._shared.neighbors(id, depth=depth, limit=limit))


class Tokens:
    """Who may call a server: `Recollect.tokens`. Each call is that of `AsyncRecollect.tokens`, without `await`.

    >>> with Recollect("sqlite:///:memory:", embedder="hashing") as r:
    ...     token, secret = r.tokens.create(spaces=["work"], scope="write", expires="90d")
    ...     r.tokens.check(secret).may("read", "work"), r.tokens.revoke(token.id)
    (True, True)
    """

    def __init__(self, tokens: tokens.Tokens, portal: _Portal) -> None:
        self._tokens = tokens
        self._run = portal.run

    def create(
        self,
        *,
        spaces: Sequence[str] = (),
        scope: Scope = "read",
        name: str = "",
        expires: datetime | str | None = None,
    ) -> Issued:
        """Make a token for some spaces, or for all of them; the secret is in this answer and nowhere else."""
        return self._run(self._tokens.create(spaces=spaces, scope=scope, name=name, expires=expires))

    def check(self, secret: str) -> Token:
        """The token that a secret belongs to. Raises NotAllowed where there is none, or none in force."""
        return self._run(self._tokens.check(secret))

    def list(self, space: str | None = None) -> builtins.list[Token]:
        """All tokens, or those pinned to a space, oldest first; expired and revoked ones too."""
        return self._run(self._tokens.list(space))

    def revoke(self, id: str) -> bool:
        """End a token, at once and for good; whether there was one that had not been revoked."""
        return self._run(self._tokens.revoke(id))

    def required(self) -> bool:
        """Whether a token was ever made, for then a server asks for one."""
        return self._run(self._tokens.required())


class _Portal:
    """An event loop in a thread, and the way in from other threads."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="recollect", daemon=True)
        self._thread.start()
        self.open = True

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        if not self.open:
            work.close()
            raise InvalidRequest("this Recollect is closed: open a new one")
        if threading.current_thread() is self._thread:
            work.close()
            raise InvalidRequest(
                "a callback of this Recollect cannot call it and wait: note what to do, and do it after"
            )
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # Ctrl-C in the caller's thread must not leave the work running
            raise

    def close(self) -> None:
        self.open = False
        asyncio.run_coroutine_threadsafe(_end_others(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _end_others() -> None:
    """Cancel what is still running on this loop: nobody waits for it any more, and not for long for what does not heed
    it.
    """
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        done, _ = await asyncio.wait(others, timeout=HEEDLESS)
        for task in done:
            task.cancelled() or task.exception()  # retrieved, so that asyncio does not report it as forgotten
