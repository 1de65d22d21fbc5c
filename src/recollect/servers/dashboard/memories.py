"""*Memories*: browse and filter them, open one, and walk from it to its neighbours."""

from __future__ import annotations

import asyncio
from shlex import quote
from typing import Any

from starlette.responses import Response

from recollect.errors import InvalidRequest, NotFound
from recollect.limits import check_name
from recollect.servers.dashboard.graph import Drawing, draw
from recollect.servers.dashboard.shell import Visit, go, local
from recollect.settings import with_store
from recollect.space import AsyncSpace
from recollect.types import Memory

PAGE = 25
AROUND = 8
"""How many neighbours a memory is drawn with, and how many more each of these brings along."""
BEYOND = 3
NARROWING = {"kind": "kinds", "namespace": "namespaces", "tag": "tags"}
"""The fields of the form that hold one of many, and what the library calls the many."""


async def browse(visit: Visit) -> Response:
    """Memories in the order in which they came, a page at a time."""
    where = await visit.where()
    space = visit.client.space(where.space)
    chosen, after = asked_filter(visit), visit.asked("after")
    held = await space.stats()
    page = await space.list(limit=PAGE, after=after or None, **options(chosen))
    command = first_command(visit.client.url, where.space) if visit.caller.may("admin") else ""
    return visit.page("memories.html", where=where, held=held, page=page, after=after, chosen=chosen, command=command)


def first_command(url: str, space: str) -> str:
    """How to remember something in this space by the command line, for those who run the server."""
    command = f"recollect remember 'Invoice 12345 was paid on 3 May' --space {quote(space)}"
    return with_store(f"`{command}`", url).strip("`")


def asked_filter(visit: Visit) -> dict[str, str]:
    """The fields of the filter, as they were asked for."""
    names = (*NARROWING, "source", "thread", "since", "until", "superseded", "newest")
    return {name: visit.asked(name) for name in names}


def options(chosen: dict[str, str]) -> Any:
    """The filter as keywords of `list`; fields that are empty do not narrow."""
    narrowed: dict[str, object] = {many: [chosen[one]] for one, many in NARROWING.items() if chosen[one]}
    narrowed |= {name: chosen[name] for name in ("thread", "since", "until") if chosen[name]}
    flags = {"include_superseded": bool(chosen["superseded"]), "newest_first": bool(chosen["newest"])}
    return narrowed | {"source_prefix": chosen["source"]} | flags


async def one(visit: Visit) -> Response:
    """A memory: its fields, its history, and what is around it."""
    where = await visit.where()
    id = visit.asked("id")
    if not id:
        raise InvalidRequest("no memory was named: open one from the list of memories")
    space = visit.client.space(where.space)
    memory = await space.get(id)
    versions = await space.history(id)
    drawing = await surroundings(space, memory)
    return visit.page("memory.html", where=where, memory=memory, versions=versions, drawing=drawing)


async def used(visit: Visit) -> Response:
    """Note that a memory was of use, and go back to where that was said."""
    form = await visit.form()
    space, id, query, back = (form.get(name, [""])[0] for name in ("space", "id", "query", "back"))
    visit.caller.must("write", check_name("space", space))
    if not await visit.client.space(space).used(id, query=query or None):
        raise NotFound(f"space {space!r} holds no memory {id!r}")
    return go(local(back))


async def surroundings(space: AsyncSpace, memory: Memory) -> Drawing:
    """The strongest neighbours of a memory, and the strongest of each of these."""
    around = await space.neighbors(memory.id, limit=AROUND)
    reached = await asyncio.gather(*(space.neighbors(one.memory.id, limit=BEYOND) for one in around))
    return draw(memory, around, {one.memory.id: further for one, further in zip(around, reached, strict=True)})
