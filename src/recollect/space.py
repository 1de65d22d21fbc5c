"""The verbs, each written once: `AsyncNamespace` has those of a granted namespace, `AsyncSpace` those and the ones of a
space of one's own. What a call may touch is its reach's to say (`engine/reach.py`).
"""

from __future__ import annotations

import builtins
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from operator import length_hint
from typing import Any, Unpack, get_args

from recollect.engine import quality, transfer
from recollect.engine.drafts import check_changes, draft_of, replacement
from recollect.engine.engine import Engine
from recollect.engine.quality import Rated
from recollect.engine.query import check_settings, parse_filter, parse_query
from recollect.engine.reach import Granted, Reach
from recollect.engine.remember import Ingested
from recollect.engine.sharing import check_acceptable, check_offer
from recollect.engine.sizes import read_all, read_nearest, read_page
from recollect.engine.transfer import Imported
from recollect.engine.usage import usage_since
from recollect.errors import InvalidRequest
from recollect.limits import (
    QUERY_BYTES,
    check_choice,
    check_flag,
    check_iterable,
    check_name,
    check_supersedable,
    check_text,
    check_time,
)
from recollect.options import Changes, Link, ListOptions, MemoryFields, PageOptions, RecallOptions, Walk, declared
from recollect.types import (
    Access,
    Draft,
    Edge,
    Grant,
    Memory,
    Neighbor,
    Page,
    Recall,
    Remembered,
    SpaceStats,
    SpaceUsage,
    Use,
)

PAGE, WALK, LINK = declared(PageOptions), declared(Walk), declared(Link)
HISTORY_MOST = 1000
"""How many versions before a memory, and how many after it, its history has at most: those nearest to it."""


class AsyncNamespace:
    """A namespace that another space has granted. Get one from `AsyncSpace.shared`; every call looks up the grant."""

    space: str
    """The space that the memories belong to."""
    namespace: str | None
    """The only namespace in reach; None: all of them."""

    def __init__(self, engine: Engine, reach: Reach) -> None:
        self._engine = engine
        self._store = engine.store
        self._ledger = engine.store.ledger
        self._reach = reach
        self.space = reach.space
        self.namespace = reach.namespace

    async def remember(self, text: str, **fields: Unpack[MemoryFields]) -> Remembered:
        """Store a text and what is known about it; an exact copy is not stored twice (`created` is False then)."""
        draft = draft_of(text, fields)
        await self._reach.allow("write")
        self._engine.first_use(self.space)
        remembered = await self._engine.rememberer.remember(self.space, self._reach.draft(draft))
        self._engine.wrote()
        self._engine.upkeep.catch_up(self.space)
        return remembered

    async def recall(self, query: str, **options: Unpack[RecallOptions]) -> Recall:
        """The memories that answer a question, best first, each with its reasons."""
        asked = parse_query(query, self._reach.recalling(options), self._engine.recipes)
        self._engine.first_use(self._reach.caller)
        return await self._engine.recaller.recall(self._reach.caller, asked, options.get("vector"))

    async def get(self, id: str) -> Memory:
        """One memory. Raises NotFound."""
        await self._reach.allow("read", id)
        return await self._row(id)

    async def list(self, *, limit: int = 50, after: str | None = None, **options: Unpack[ListOptions]) -> Page:
        """Memories in id order (oldest first), a page at a time."""
        await self._reach.allow("read")
        check_settings("list", options, ListOptions.__annotations__)
        PAGE["limit"].number(limit)
        after = None if after is None else check_name("after", after)
        newest_first = check_flag("newest_first", options.get("newest_first", False))
        where = parse_filter(self._reach.listing(options))
        listed = partial(self._store.list, self.space, where, newest_first=newest_first)
        return await read_page(lambda most, start: listed(limit=most, after=start), limit, after)

    async def update(self, id: str, **changes: Unpack[Changes]) -> Memory:
        """Change some fields of a memory; a new text is embedded anew."""
        checked = check_changes(changes, datetime.now(UTC))
        self._reach.check_changes(changes)
        await self._reach.allow("write", id)
        revised = await self._engine.rememberer.revise(self.space, check_name("id", id), checked)
        self._engine.wrote()
        self._engine.upkeep.catch_up(self.space)
        return revised

    async def forget(self, *ids: str) -> int:
        """Delete memories for good; how many there were."""
        wanted = [check_name("id", id) for id in ids]
        await self._reach.allow("write")
        gone = await self._store.forget(self.space, await self._reach.among(wanted))
        self._engine.wrote()
        self._engine.upkeep.catch_up(self.space)
        return gone

    async def supersede(
        self, old: str, text: str | None = None, *, by: str | None = None, **fields: Unpack[MemoryFields]
    ) -> Memory:
        """Replace a memory by a new text, or `by` another memory; the old one stays, and is no longer recalled.

        A new text takes over the old one's namespace, kind and tags, unless others are given.
        """
        await self._reach.allow("write", old, *([] if by is None else [by]))
        known = await self._row(old)
        new = replacement(known, text, by, fields)
        self._engine.first_use(self.space)
        check_supersedable(known, new)
        if isinstance(new, Draft):
            new = self._reach.draft(new)
        elif (await self._row(new)).superseded_by is not None:
            raise InvalidRequest(f"memory {new!r} is itself superseded: name the one that holds now")
        successor = await self._engine.rememberer.supersede(self.space, old, new)
        self._engine.wrote()
        self._engine.upkeep.catch_up(self.space)
        return successor

    async def link(self, source: str, target: str, relation: str = "related", strength: float = 1.0) -> None:
        """Link two memories; linking them again by the same relation changes the strength."""
        ends = check_name("id", source), check_name("id", target)
        edge = Edge(*ends, check_name("relation", relation), LINK["strength"].number(strength))
        await self._reach.allow("write", source, target)
        if source == target:
            raise InvalidRequest(f"memory {source!r} cannot be linked to itself")
        await self._store.link(self.space, [edge])
        self._engine.wrote()

    async def unlink(self, source: str, target: str, relation: str | None = None) -> int:
        """Remove a link (by every relation, if none is named); how many there were."""
        relation = None if relation is None else check_name("relation", relation)
        await self._reach.allow("write", source, target)
        unlinked = await self._store.unlink(self.space, check_name("id", source), check_name("id", target), relation)
        self._engine.wrote()
        return unlinked

    async def neighbors(self, id: str, *, depth: int = 1, limit: int = 20) -> builtins.list[Neighbor]:
        """What is linked to a memory within 1 to 3 steps, strongest first. In a granted namespace it is one step, and
        only by links that somebody made.
        """
        WALK["depth"].number(depth)
        WALK["limit"].number(limit)
        await self.get(id)
        reached = await self._reach.walk(id, depth=depth, limit=limit)
        rows = await read_all([one.id for one in reached], self._rows)
        return [Neighbor(rows[r.id], r.strength, r.steps, r.relation) for r in reached if r.id in rows]

    async def _rows(self, ids: Sequence[str]) -> dict[str, Memory]:
        return await self._store.get(self.space, ids)

    async def _row(self, id: str) -> Memory:
        found = await self._rows([check_name("id", id)])
        if id not in found:
            raise self._reach.missing(id)
        return found[id]


class AsyncSpace(AsyncNamespace):
    """The memories of one space. Get one from `AsyncRecollect.space`."""

    name: str

    def __init__(self, engine: Engine, name: str) -> None:
        super().__init__(engine, Reach(engine.store, name))
        self.name = self.space

    async def remember_many(
        self, drafts: Iterable[Draft], *, on_progress: Callable[[int], None] | None = None
    ) -> Ingested:
        """Store many, batch by batch; what was reported as done is durable. Run it again after a crash."""
        check_iterable("drafts", drafts)
        created = seen = 0
        try:
            async with self._store.bulk(length_hint(drafts)):
                async for remembered in self._engine.rememberer.remember_many(self.name, drafts):
                    seen += len(remembered)
                    created += sum(one.created for one in remembered)
                    if on_progress is not None:
                        on_progress(seen)
        finally:
            self._engine.upkeep.catch_up(self.name)
        return Ingested(created=created, copies=seen - created)

    async def settle(self) -> None:
        """Wait until every memory has its vector and its links."""
        await self._engine.upkeep.settle(self.name)

    async def history(self, id: str) -> builtins.list[Memory]:
        """The versions of a memory, oldest first: what it replaced, itself, and what replaced it. Raises NotFound."""
        found = await self._store.history(self.name, check_name("id", id), limit=HISTORY_MOST)
        if not found:
            raise self._reach.missing(id)
        return await read_nearest(found, id, self._rows)

    async def used(self, *ids: str, query: str | None = None) -> int:
        """Say that memories were useful, each once; how many of them exist. Being returned counts a tenth of that. The
        question that led to them is kept with the newest 10,000 uses, until the memory is forgotten: see `uses`.
        """
        wanted, now = [*dict.fromkeys(check_name("id", id) for id in ids)], datetime.now(UTC)
        if query is not None:
            check_text("the query", query, most_bytes=QUERY_BYTES)
        there = await self._store.mark_used(self.name, wanted, now=now)
        if query is not None and there:
            await self._ledger.note_uses(self.name, [Use(query, id, now) for id in wanted])
        return there

    async def uses(self) -> builtins.list[Use]:
        """Which questions led to the use of which memories, as far as `used` was told, in the order of their use."""
        return [*await self._ledger.uses(self.name)]

    async def grant(self, namespace: str, to: str, access: Access = "read") -> Grant:
        """Offer a namespace to another space, to see it or, with `write`, to change it too. The grant holds from when
        that space accepts it until either side ends it. Granting again changes the access.
        """
        check_choice("access", access, get_args(Access))
        grant = Grant(self.name, check_name("namespace", namespace), check_name("space", to), access)
        offer = check_offer(grant, await self._ledger.granted_by(self.name))
        await self._ledger.grant(self.name, namespace, to, access)
        return offer

    async def revoke(self, namespace: str, from_: str) -> bool:
        """Take a grant back, from the other space's next call on. Whether there was one."""
        return await self._ledger.revoke(self.name, check_name("namespace", namespace), check_name("space", from_))

    async def accept(self, space: str, namespace: str) -> bool:
        """Accept what another space offers to this one: recalls now look there. Whether there is such an offer."""
        offered = Grant(check_name("space", space), check_name("namespace", namespace), self.name)
        check_acceptable(offered, await self._ledger.granted_to(self.name))
        accepted = await self._ledger.accept(space, namespace, self.name)
        self._engine.sharing.forget_no_grants(self.name)
        return accepted

    async def refuse(self, space: str, namespace: str) -> bool:
        """End a grant or an offer to this space, from the next recall on. Whether there was one."""
        return await self._ledger.revoke(check_name("space", space), check_name("namespace", namespace), self.name)

    async def grants(self) -> builtins.list[Grant]:
        """What this space shares with others, and what others share with it; offers are not `accepted` yet."""
        return [
            *await self._ledger.granted_by(self.name),
            *await self._ledger.granted_to(self.name),
            *await self._ledger.offered_to(self.name),
        ]

    def shared(self, space: str, namespace: str) -> AsyncNamespace:
        """A namespace that another space has granted to this one, and this one has accepted."""
        reach = Granted(self._store, self._engine.sharing, self.name, space, namespace)
        return AsyncNamespace(self._engine, reach)

    async def stats(self) -> SpaceStats:
        """What the space holds."""
        await self._engine.hits.flush()
        return await self._store.stats(self.name)

    async def usage(self, since: datetime | str | None = None) -> SpaceUsage:
        """How the space was used since a time, or over a span such as `7d`: recalls, and what legs did, by hours."""
        start = check_time("since", since, datetime.now(UTC))
        await self._engine.hits.flush()
        return await usage_since(self._store, self.name, start)

    async def score(self, *, on_progress: Callable[[int], None] | None = None) -> Rated:
        """Give every memory its quality, by how often and how recently it proved useful. It is done in the background
        once a day; this does it now.
        """
        await self._engine.hits.flush()
        return await quality.score(self._store, self.name, datetime.now(UTC), on_progress or (lambda _: None))

    async def export(self) -> AsyncGenerator[dict[str, Any], None]:
        """Everything as JSON-ready lines: the memories, then their links."""
        await self._engine.hits.flush()
        async for line in transfer.export(self._store, self.name):
            yield line

    async def import_lines(
        self, lines: Iterable[str] | AsyncIterable[str], *, on_progress: Callable[[Imported], None] | None = None
    ) -> Imported:
        """Take in JSON Lines; broken ones are named and left out. Running it again makes no copies."""
        check_iterable("lines", lines)
        try:
            async with self._store.bulk(length_hint(lines)):
                return await transfer.import_lines(self._store, self._engine.rememberer, self.name, lines, on_progress)
        finally:
            self._engine.upkeep.catch_up(self.name)
