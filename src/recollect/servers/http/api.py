"""The application of this door."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from starlette.types import Receive, Scope, Send

from recollect.client import AsyncRecollect
from recollect.servers.http import linking, memories, openapi, recalling, spaces, tokens, transfer
from recollect.servers.http.failures import handle_failures
from recollect.servers.http.health import watching

ABOUT = "The memory AI agents can trust: recall by meaning, words and links."
IN_SPACE = (
    recalling.in_space,  # first: it is asked for most
    memories.reads,
    memories.changes,
    linking.reads,
    linking.changes,
    spaces.in_space,
    transfer.router,
)
EVERYWHERE = (spaces.everywhere, recalling.everywhere, tokens.router)


def operation_id(route: APIRoute) -> str:
    """What a generated client calls the operation: the verb, as in the library."""
    name = route.name.strip("_")
    return f"token_{name}" if "tokens" in route.tags else name


class Api(FastAPI):
    """Routes by the path as it was sent, so that `%2F` in a name does not part it."""

    def __init__(self, client: AsyncRecollect) -> None:
        super().__init__(
            title="Recollect",
            version=version("recollect"),
            description=ABOUT,
            docs_url=None,  # these pages fetch scripts from elsewhere
            redoc_url=None,
            redirect_slashes=False,
            generate_unique_id_function=operation_id,
        )
        self.state.client = client
        handle_failures(self)
        in_space = APIRouter(prefix="/v1/spaces/{space:name}")
        for router in IN_SPACE:
            in_space.include_router(router)
        self.include_router(in_space)
        for router in EVERYWHERE:
            self.include_router(router, prefix="/v1")
        self.include_router(watching(client))

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            self.openapi_schema = openapi.document(self)
        return self.openapi_schema

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if raw := scope.get("raw_path"):
            scope = {**scope, "path": raw.decode("latin-1")}
        await super().__call__(scope, receive, send)
