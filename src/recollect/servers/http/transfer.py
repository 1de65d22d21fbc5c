"""Routes that move a whole space, as streams of JSON Lines: neither way is more held than a few lines."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response, StreamingResponse

from recollect.engine.transfer import Imported
from recollect.limits import check_line
from recollect.servers.http.access import Reading, Writing
from recollect.servers.http.answers import HEADERS, answer, ok
from recollect.space import AsyncSpace

router = APIRouter(tags=["the whole space"])

JSON_LINES = "application/x-ndjson"
CHUNK_BYTES = 64 * 1024
LINES: dict[str, Any] = {"schema": {"type": "string"}, "example": '{"text":"Invoice 12345 was paid on 3 May"}\n'}


@router.post(
    "/import",
    summary="Take in JSON Lines",
    responses=ok(Imported, "What was done."),
    openapi_extra={"requestBody": {"content": {JSON_LINES: LINES, "text/plain": LINES}}},
)
async def import_(request: Request, space: Writing) -> Response:
    """Lines as `export` writes them, or plain `{"text": …}` ones, any number of them. A broken line is named and left
    out. One that was cut off is simply sent again: what is there is not stored twice.
    """
    return answer(await space.import_lines(lines_of(request.stream())))


@router.get(
    "/export",
    summary="Everything as JSON Lines",
    responses={200: {"description": "The memories, then their links.", "content": {JSON_LINES: LINES}}},
)
async def export(space: Reading) -> Response:
    parts = chunks_of(space)
    first = await anext(parts, b"")  # what fails at once is still an answer of its own
    return StreamingResponse(_together(first, parts), headers=HEADERS, media_type=JSON_LINES)


async def lines_of(chunks: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """The lines of a stream. Bytes that are not UTF-8 become lone surrogates, which the library refuses by the line."""
    rest, encoding, number = b"", "utf-8-sig", 0
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.decode(encoding, "surrogateescape")
            encoding, number = "utf-8", number + 1
        check_line(number + 1, len(rest))
    if rest:
        yield rest.decode(encoding, "surrogateescape")


async def chunks_of(space: AsyncSpace) -> AsyncIterator[bytes]:
    """An export as pieces of a size that is worth sending."""
    piece = bytearray()
    async with aclosing(space.export()) as lines:
        async for line in lines:
            piece += json.dumps(line, ensure_ascii=False).encode() + b"\n"
            if len(piece) >= CHUNK_BYTES:
                yield bytes(piece)
                piece.clear()
                await asyncio.sleep(0)  # for others, and to notice that the client has left
    if piece:
        yield bytes(piece)


async def _together(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in rest:
        yield piece
