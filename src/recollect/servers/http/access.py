"""What a route asks before it does anything: who calls, and may it do this in that space?"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated
from urllib.parse import quote, unquote

from fastapi import Depends, Path, Request
from starlette.convertors import Convertor, register_url_convertor

from recollect.client import AsyncRecollect
from recollect.servers.caller import Caller, caller_in
from recollect.servers.empty import note_for
from recollect.space import AsyncSpace
from recollect.types import Scope


class Name(Convertor[str]):
    """A name in a path, which may hold any character: what is escaped there belongs to the name, slashes too."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        return unquote(value, errors="surrogateescape")  # which the library refuses, in words

    def to_string(self, value: str) -> str:
        return quote(value, safe="")


register_url_convertor("name", Name())


SpaceName = Annotated[str, Path(description="Whose memories: the tenant.", examples=["work"])]
Id = Annotated[str, Path(description="The memory's id.")]


async def client_of(request: Request) -> AsyncRecollect:
    client: AsyncRecollect = request.app.state.client
    return client


async def caller_of(request: Request) -> Caller:
    """The caller that the gate has let in."""
    return caller_in(request.state)


async def enter(request: Request, scope: Scope, name: str) -> AsyncSpace:
    """A space, for a caller that has this scope there; the same refusal whether or not there is such a space."""
    (await caller_of(request)).must(scope, name)
    return (await client_of(request)).space(name)


async def _note(request: Request, space: SpaceName) -> Callable[[], Awaitable[str]]:
    """Says, when it is asked, that the space is empty, if it is."""
    return partial(note_for, await caller_of(request), await client_of(request), space)


async def _reading(request: Request, space: SpaceName) -> AsyncSpace:
    return await enter(request, "read", space)


async def _writing(request: Request, space: SpaceName) -> AsyncSpace:
    return await enter(request, "write", space)


async def _administering(request: Request, space: SpaceName) -> AsyncSpace:
    return await enter(request, "admin", space)


Reading = Annotated[AsyncSpace, Depends(_reading)]
Writing = Annotated[AsyncSpace, Depends(_writing)]
Administering = Annotated[AsyncSpace, Depends(_administering)]
EmptyNote = Annotated[Callable[[], Awaitable[str]], Depends(_note)]
Client = Annotated[AsyncRecollect, Depends(client_of)]
Calling = Annotated[Caller, Depends(caller_of)]
