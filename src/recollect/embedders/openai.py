"""Any OpenAI-compatible endpoint: `POST {base_url}/embeddings`.

No error, repr or log contains a key, a text, or the provider's answer, which may quote either.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, TypeAlias

import httpx
import numpy as np

from recollect.batches import side_by_side
from recollect.embedders.openai_answer import parse_answer, retry_after
from recollect.embedders.roles import with_roles
from recollect.errors import ConfigError, EmbeddingError, EmbeddingRefused
from recollect.ports import Embedder, Role
from recollect.settings import Settings

if TYPE_CHECKING:
    from recollect.types import Vectors

Keys: TypeAlias = Mapping[str, str] | Callable[[str], str | None]

OPENAI = "https://api.openai.com/v1"
ADVICE = {
    400: "check the model's name and its dimensions",
    401: "check the key",
    403: "check the key and what it is allowed to do",
    404: "check the base URL and the model's name",
    429: "the provider's rate limit or quota is used up",
}
KEY_STATUSES = (401, 403)
"""Statuses that concern the key: other keys may still work."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Batching, retries and timeouts. `total_seconds` bounds one batch with all its retries."""

    batch: int = 128
    concurrency: int = 4
    attempts: int = 5
    connect_seconds: float = 5.0
    read_seconds: float = 30.0
    total_seconds: float = 60.0
    backoff_seconds: float = 0.5
    longest_wait_seconds: float = 20.0


class _TryAgain(Exception):
    """A temporary failure, and the wait that the provider asked for."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


class OpenAIEmbedder:
    """Vectors from a remote model.

    `keys` are the keys of single spaces, as a mapping or a function of the space; `key` is for all others. An empty key
    is not sent, for endpoints that need none. A missing key (None) raises EmbeddingError when a text arrives.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str = OPENAI,
        key: str | None = None,
        keys: Keys | None = None,
        dimensions: int | None = None,
        limits: Limits = Limits(),
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._model = model
        self._url = _endpoint(base_url)
        self._key = key
        self._keys = keys if callable(keys) else (keys or {}).get
        self._asked_dimensions = dimensions
        self._dimensions = dimensions
        self._limits = limits
        self._sleep = sleep
        self._chance = chance
        self._slots = asyncio.Semaphore(limits.concurrency)
        timeout = httpx.Timeout(limits.read_seconds, connect=limits.connect_seconds)
        self._client = httpx.AsyncClient(timeout=timeout)

    def __repr__(self) -> str:
        return f"OpenAIEmbedder({self.name!r} at {self._where})"

    @classmethod
    def named(cls, argument: str, settings: Settings) -> Embedder | None:
        """The embedder of `openai:MODEL`, at the endpoint of the settings."""
        given = asdict(settings.openai) | {"base_url": settings.openai.base_url or OPENAI}
        return with_roles(cls(argument, **given), argument, settings) if argument else None

    in_process = False

    @property
    def name(self) -> str:
        return self._model if self._asked_dimensions is None else f"{self._model}-{self._asked_dimensions}"

    @property
    def dimensions(self) -> int | None:
        return self._dimensions

    async def embed(self, texts: Sequence[str], *, space: str, role: Role) -> Vectors:  # noqa: ARG002 (see roles.py)
        headers = self._headers(space)
        size = self._limits.batch
        batches = [list(texts[start : start + size]) for start in range(0, len(texts), size)]
        answers: list[Vectors] = [np.empty((0, self._dimensions or 0), np.float32)] * len(batches)

        async def fill(position: int) -> None:
            async with self._slots:
                answers[position] = await self._embed_batch(batches[position], headers)

        await side_by_side(fill, range(len(batches)), self._limits.concurrency)
        return np.concatenate(answers) if answers else np.empty((0, self._dimensions or 0), np.float32)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    @property
    def _where(self) -> str:
        """The endpoint for messages, without user info and query, which may hold secrets."""
        return str(self._url.copy_with(userinfo=b"", query=None))

    def _headers(self, space: str) -> dict[str, str]:
        key = self._keys(space)
        key = self._key if key is None else key
        if key is None:
            raise EmbeddingRefused(
                f"there is no key for the embeddings of space {space!r}: set OPENAI_API_KEY, "
                "or `key` or `keys` under [openai] in recollect.toml"
            )
        # Checked here because httpx quotes a bad header in its error.
        if not (key.isascii() and key.isprintable()) or " " in key:
            raise EmbeddingRefused(f"the key for the embeddings of space {space!r} has an invalid character: check it")
        return {"Authorization": f"Bearer {key}"} if key else {}

    async def _embed_batch(self, texts: list[str], headers: Mapping[str, str]) -> Vectors:
        try:
            async with asyncio.timeout(self._limits.total_seconds):
                response = await self._post_until_answered(texts, headers)
        except TimeoutError:
            raise EmbeddingError(
                f"{self._where} did not answer within {self._limits.total_seconds:g} s: try again later"
            ) from None
        try:
            vectors = await asyncio.to_thread(parse_answer, response.content, len(texts))
        except ValueError as error:
            raise EmbeddingError(f"{self._where} answered with something other than embeddings: {error}") from None
        return self._checked(vectors)

    async def _post_until_answered(self, texts: list[str], headers: Mapping[str, str]) -> httpx.Response:
        """The first answer with status 200. Temporary failures are retried with full jitter."""
        attempts = 0
        while True:
            try:
                return await self._post(texts, headers)
            except _TryAgain as failure:
                attempts += 1
                wait = self._wait_or_give_up(attempts, failure)
            await self._sleep(wait)

    async def _post(self, texts: list[str], headers: Mapping[str, str]) -> httpx.Response:
        body: dict[str, object] = {"model": self._model, "input": texts}
        if self._asked_dimensions is not None:
            body["dimensions"] = self._asked_dimensions
        try:
            response = await self._client.post(self._url, json=body, headers=headers)
        except httpx.TransportError as error:
            raise _TryAgain(_reason(error)) from None
        except httpx.HTTPError as error:
            raise EmbeddingError(f"{self._where} failed: {type(error).__name__}") from None
        status = response.status_code
        if status == httpx.codes.OK:
            return response
        advice = f"HTTP {status}" + (f", {ADVICE[status]}" if status in ADVICE else "")
        if status in (408, 429) or status >= 500:
            raise _TryAgain(advice, retry_after(response.headers.get("Retry-After")))
        kind = EmbeddingRefused if status in KEY_STATUSES else EmbeddingError
        raise kind(f"{self._where} refused: {advice}")

    def _wait_or_give_up(self, attempts: int, failure: _TryAgain) -> float:
        limits = self._limits
        if attempts >= limits.attempts:
            raise EmbeddingError(f"{self._where} failed {attempts} times: {failure}; try again later") from None
        if failure.wait is None:
            return self._chance() * min(limits.longest_wait_seconds, limits.backoff_seconds * 2.0 ** (attempts - 1))
        if failure.wait > limits.longest_wait_seconds:
            raise EmbeddingError(f"{self._where} failed: {failure}; try again in {failure.wait:.0f} s") from None
        return failure.wait

    def _checked(self, vectors: Vectors) -> Vectors:
        if self._dimensions not in (None, vectors.shape[1]):
            raise EmbeddingError(
                f"{self._where} answered with {vectors.shape[1]} dimensions instead of {self._dimensions}: "
                "check the model and the `dimensions` setting"
            )
        self._dimensions = vectors.shape[1]
        return vectors


def _endpoint(base_url: str) -> httpx.URL:
    try:
        url = httpx.URL(base_url)
    except (httpx.InvalidURL, TypeError):
        url = httpx.URL()
    if url.scheme not in ("http", "https") or not url.host:
        raise ConfigError("the base_url of the embeddings is not a web address: write it like https://example.org/v1")
    return url.copy_with(path=url.path.rstrip("/") + "/embeddings")


def _reason(error: httpx.TransportError) -> str:
    if isinstance(error, httpx.ConnectError):
        return "it cannot be reached"
    return "no answer in time" if isinstance(error, httpx.TimeoutException) else type(error).__name__
