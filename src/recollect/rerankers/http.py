"""Any `/rerank` endpoint in the manner of Cohere and Jina: `POST URL` with a query and documents.

No error, repr or log holds a key, a text, or what the server answered (which may quote either).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import httpx

from recollect.errors import BackendError, BackendUnavailable, ConfigError
from recollect.settings import Settings

ADVICE = {
    400: "check the model's name",
    401: "check the key",
    403: "check the key and what it is allowed to do",
    404: "check the URL and the model's name",
    429: "its rate limit or quota is used up",
}
SECONDS = 30.0
"""How long one call may take at most; a recipe's own deadline is shorter."""


class HTTPReranker:
    """Scores from a server. An empty `key` sends none; without a `model` the server uses its own."""

    in_process = False

    def __init__(
        self, url: str, *, model: str | None = None, key: str | None = None, languages: Sequence[str] = ()
    ) -> None:
        self.languages = tuple(languages)
        self._url = _endpoint(url)
        self._model = model
        self._headers = _headers(key)
        self._client = httpx.AsyncClient(timeout=SECONDS)

    @classmethod
    def named(cls, argument: str, settings: Settings) -> HTTPReranker | None:
        """`http:URL`; a URL that begins with `http://` is one itself."""
        url = f"http:{argument}" if argument.startswith("//") else argument
        how = settings.rerank
        return cls(url, model=how.model, key=how.key, languages=how.languages)

    @classmethod
    def secured(cls, argument: str, settings: Settings) -> HTTPReranker | None:
        """`https://…`."""
        return cls.named(f"https:{argument}", settings)

    def __repr__(self) -> str:
        return f"HTTPReranker({self.name!r})"

    @property
    def name(self) -> str:
        """The endpoint as messages name it: user info and query, which may hold secrets, left out."""
        return str(self._url.copy_with(userinfo=b"", query=None))

    async def score(self, question: str, passages: Sequence[str]) -> list[float]:
        if not passages:
            return []
        body: dict[str, object] = {"query": question, "documents": list(passages), "top_n": len(passages)}
        if self._model:
            body["model"] = self._model
        try:
            response = await self._client.post(self._url, json=body, headers=self._headers)
        except httpx.HTTPError as error:
            raise BackendUnavailable(f"{self.name} {_reason(error)}", backend=self.name) from None
        status = response.status_code
        if status != httpx.codes.OK:
            advice = f"HTTP {status}" + (f", {ADVICE[status]}" if status in ADVICE else "")
            passing = status in (408, 429) or status >= 500
            kind = BackendUnavailable if passing else BackendError
            raise kind(f"{self.name} refused: {advice}", backend=self.name)
        try:
            return parse_scores(response.content, len(passages))
        except ValueError as error:
            raise BackendError(
                f"{self.name} answered with something other than scores: {error}", backend=self.name
            ) from None

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()


def parse_scores(content: bytes, count: int) -> list[float]:
    """The `count` scores of an answer in the order of their `index`, each from 0 to 1. Raises ValueError, which says
    what was wrong and never quotes the answer.

    >>> parse_scores(b'{"results": [{"index": 1, "relevance_score": 0.2}, {"index": 0, "relevance_score": 0.9}]}', 2)
    [0.9, 0.2]
    """
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON") from None
    items = answer.get("results", answer.get("data")) if isinstance(answer, Mapping) else answer
    if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
        raise ValueError("it has no list `results`")
    if len(items) != count:
        raise ValueError(f"it has {len(items)} scores instead of {count}")
    scores = {index: _score(item) for item in items if isinstance(index := item.get("index"), int)}
    if scores.keys() != set(range(count)):
        raise ValueError(f"its indexes are not 0 to {count - 1}")
    return [scores[index] for index in range(count)]


def _score(item: Mapping[str, Any]) -> float:
    score = item.get("relevance_score", item.get("score"))
    if isinstance(score, bool) or not isinstance(score, int | float) or not isfinite(score):
        raise ValueError("a score is not a number")
    if not 0 <= score <= 1:
        raise ValueError("a score is not between 0 and 1; have the server normalise its scores")
    return float(score)


def _endpoint(address: str) -> httpx.URL:
    try:
        url = httpx.URL(address)
    except (httpx.InvalidURL, TypeError):
        url = httpx.URL()
    if url.scheme not in ("http", "https") or not url.host:
        raise ConfigError("the URL of the reranker is not a web address: write http:https://example.org/v1/rerank")
    return url


def _headers(key: str | None) -> dict[str, str]:
    # Checked here, because the HTTP library quotes a bad header in its error.
    if key and (not (key.isascii() and key.isprintable()) or " " in key):
        raise ConfigError("the key of the reranker holds a character that no key can have")
    return {"Authorization": f"Bearer {key}"} if key else {}


def _reason(error: httpx.HTTPError) -> str:
    if isinstance(error, httpx.ConnectError):
        return "cannot be reached"
    return "gave no answer in time" if isinstance(error, httpx.TimeoutException) else f"failed: {type(error).__name__}"
