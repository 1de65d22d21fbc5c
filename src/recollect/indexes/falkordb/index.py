"""An index of links in FalkorDB, and walks along them."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from copy import copy
from itertools import islice
from typing import Any, Final, TypeAlias, TypeVar

from recollect.errors import BackendError, BackendUnavailable
from recollect.indexes.falkordb.address import Address, key_of, name_of
from recollect.indexes.falkordb.cypher import APPLY, COUNT, IDS, LAST, LINKS, NEIGHBOURS
from recollect.indexes.falkordb.failures import BACKEND
from recollect.indexes.falkordb.server import NoGraph, Server
from recollect.ports import Change, ExternalIndex, Reached, Store
from recollect.ranking.paths import LINKS_PER_MEMORY, LINKS_PER_STEP, Link, Paths, check_depth
from recollect.settings import Settings
from recollect.types import Edge, Filter, Generation

CHANGES_PER_QUERY: Final = 1_000
NODES_PER_PAGE: Final = 10_000
SWITCH: Final = """
local mine = tonumber(ARGV[1])
if tonumber(redis.call('GET', KEYS[1]) or 0) < mine then return 'lost' end
if tonumber(redis.call('GET', KEYS[2]) or 0) > mine then return 'late' end
redis.call('SET', KEYS[2], mine)
return 'done'
"""
"""Switches to a generation, unless the server has lost it or already answers from a later one. In Lua, to be
atomic."""
_REFUSED: Final = {
    "lost": "{address} lost the new graphs because it was emptied: rebuild it again",
    "late": "{address} already answers from a rebuild that began later: this one is discarded",
}

Visible: TypeAlias = Callable[[str, Sequence[str], Filter], Awaitable[set[str]]]
Found = TypeVar("Found")


class FalkorIndex:
    """A graph of links per space, on a server that other stores and processes may share.

    Each graph has the number of a generation in its name. A rebuild fills the graphs of the next one and then switches
    a key of the server to it. Every read and write looks up that key first, and again if the graph is gone. (Renamed
    graphs go missing from FalkorDB's list, and later versions lose them.)

    Writes are as durable as the server is configured: with `appendonly yes` and `appendfsync always`, on return.
    """

    def __init__(self, url: str, *, visible: Visible, timeout: float = 5.0) -> None:
        """`visible` is the store's; `timeout` is in seconds per call to the server. Raises ConfigError."""
        self._address = Address.parse(url)
        self._server = Server(self._address, timeout)
        self._visible = visible
        self._shadow: int | None = None
        """The generation that a shadow uses, instead of the current one."""

    @classmethod
    def from_url(cls, url: str, settings: Settings, store: Store) -> FalkorIndex:  # noqa: ARG003 (every index's)
        """The index beside a store, which applies the filters."""
        return cls(url, visible=store.visible)

    in_process = False

    @property
    def name(self) -> str:
        return BACKEND

    async def open(self) -> None:
        """Raises BackendError if the server answers but cannot be used."""
        with suppress(BackendUnavailable):
            await self.check()

    async def close(self) -> None:
        """Close the connections, unless this is a shadow, which borrows them."""
        if self._shadow is None:
            await self._server.close()

    async def check(self) -> None:
        with suppress(NoGraph):
            await self._server.read(self._address.graph(0, ""), COUNT)

    async def use(self, generation: Generation) -> None:
        """It holds no vectors."""

    async def apply(self, space: str, changes: Sequence[Change]) -> None:
        """See `ExternalIndex.apply`. A link may lead to a memory whose own change has not arrived yet."""
        states = iter({change.id: change for change in changes}.values())
        while batch := list(islice(states, CHANGES_PER_QUERY)):
            gone = [key_of(change.id) for change in batch if change.memory is None]
            kept = [_node(change) for change in batch if change.memory is not None]
            await self._write(space, gone=gone, kept=kept)

    async def _write(self, space: str, **values: object) -> None:
        """Change the current graph. Repeat if a rebuild switched meanwhile, if the graph is new, or after a later
        ticket.
        A cancelled change may still be on its way to the server. Its ticket is older than those of later changes, so it
        has no effect when it arrives.
        """
        while True:
            generation = await self._generation()
            ticket = await self._server.command("INCR", self._address.tickets)
            graph = self._address.graph(generation, space)
            [[done]] = await self._server.write(graph, APPLY, ticket=ticket, **values)
            if await self._generation() != generation:
                await self._drop(graph)
            elif done:
                return
            else:
                await self._server.prepare(graph)

    async def walk(
        self, space: str, seeds: Sequence[str], where: Filter, *, depth: int, limit: int
    ) -> Sequence[Reached]:
        """See `GraphIndex.walk`."""
        check_depth(depth)
        keys = [key_of(seed) for seed in seeds]
        paths = await self._reading(space, lambda graph: self._paths(graph, keys, depth))
        best = {name_of(key): label for key, label in paths.best.items()} if paths else {}
        shown = await self._visible(space, list(best), where) if best else set()
        hits = [Reached(id, -best[id].weakness, best[id].steps, best[id].relation) for id in shown & best.keys()]
        return sorted(hits, key=lambda hit: (-hit.strength, hit.id))[:limit]

    async def _paths(self, graph: str, keys: Sequence[str], depth: int) -> Paths[str]:
        """Follow the links of some seeds, one query per step."""
        paths = Paths(keys)
        query = NEIGHBOURS if depth == 1 else LINKS
        for most in (LINKS_PER_STEP, *[LINKS_PER_MEMORY] * (depth - 1)):
            if not (frontier := paths.frontier):
                break
            rows = await self._server.read(graph, query, ids=frontier, per_memory=most, per_step=LINKS_PER_STEP)
            paths.follow(Link(*row) for row in rows)
        return paths

    async def count(self, space: str) -> int:
        rows = await self._reading(space, lambda graph: self._server.read(graph, COUNT))
        return int(rows[0][0]) if rows else 0

    async def ids(self, space: str) -> AsyncIterator[str]:
        """See `ExternalIndex.ids`. Raises BackendUnavailable if a rebuild removes the graph meanwhile."""
        graph = self._address.graph(await self._generation(), space)
        try:
            [[last]] = await self._server.read(graph, LAST)
        except NoGraph:
            return
        for first in range(0, (last or 0) + 1, NODES_PER_PAGE):
            try:
                rows = await self._server.read(graph, IDS, first=first, end=first + NODES_PER_PAGE)
            except NoGraph:
                raise BackendUnavailable(f"{self._address} was rebuilt meanwhile: try again", backend=BACKEND) from None
            for [key] in rows:
                yield name_of(key)

    async def spaces(self) -> Sequence[str]:
        """See `ExternalIndex.spaces`. Empty graphs are not deleted, so each is counted."""
        generation = await self._generation()
        names = [space async for number, space in self._graphs() if number == generation]
        return [space for space in sorted(names) if await self.count(space)]

    async def shadow(self) -> FalkorIndex:
        """See `ExternalIndex.shadow`. An unpublished one is deleted when a later one is published."""
        shadow = copy(self)
        shadow._shadow = int(await self._server.command("INCR", self._address.begun))
        return shadow

    async def publish(self, shadow: ExternalIndex) -> None:
        """See `ExternalIndex.publish`. Raises BackendError if a rebuild that began later was published already."""
        if not isinstance(shadow, FalkorIndex) or shadow._shadow is None:
            raise TypeError("only a shadow of this index can be published")
        keys = (self._address.begun, self._address.current)
        done = await self._server.command("EVAL", SWITCH, len(keys), *keys, shadow._shadow)
        if done in _REFUSED:
            raise BackendError(_REFUSED[done].format(address=self._address), backend=BACKEND)
        async for generation, space in self._graphs():
            if generation < shadow._shadow:
                await self._drop(self._address.graph(generation, space))

    async def _generation(self) -> int:
        """Which generation to read and write."""
        if self._shadow is not None:
            return self._shadow
        return int(await self._server.command("GET", self._address.current) or 0)

    async def _reading(self, space: str, read: Callable[[str], Awaitable[Found]]) -> Found | None:
        """What `read` finds in the graph of a space; None if there is no graph. If a rebuild removed the graph, read
        the one that replaced it.
        """
        while True:
            generation = await self._generation()
            try:
                return await read(self._address.graph(generation, space))
            except NoGraph:
                if await self._generation() == generation:
                    return None

    async def _graphs(self) -> AsyncIterator[tuple[int, str]]:
        """Generation and space of every graph of this index."""
        async for name in self._server.graphs(f"{self._address.prefix}:*"):
            if found := self._address.graph_name(name):
                yield found

    async def _drop(self, graph: str) -> None:
        with suppress(NoGraph):
            await self._server.command("GRAPH.DELETE", graph)


def _node(change: Change) -> dict[str, Any]:
    return {"id": key_of(change.id), "links": _links(change.edges)}


def _links(edges: Iterable[Edge]) -> list[tuple[str, str, float]]:
    """Target, relation and strength of each link; the last of duplicates. FalkorDB rejects strengths below the smallest
    normal number as an overflow.
    """
    strengths = {(key_of(edge.target), edge.relation): max(float(edge.strength), sys.float_info.min) for edge in edges}
    return [(target, relation, strength) for (target, relation), strength in strengths.items()]
