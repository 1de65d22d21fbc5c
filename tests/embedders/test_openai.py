"""The OpenAI protocol against a real endpoint, which answers well, late, wrongly or not at all."""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pytest

from recollect.embedders.openai import Limits, OpenAIEmbedder
from recollect.embedders.openai_answer import parse_answer, retry_after
from recollect.errors import ConfigError, EmbeddingError
from tests.endpoint import Answer, Asked, Endpoint, Script, embeddings, vector_of

if TYPE_CHECKING:
    from recollect.types import Vectors

KEY = "sk-secret-0123456789"
TEXT = "a very private text"


@dataclass
class Waits:
    """Stands in for `asyncio.sleep`: notes how long it was asked to wait, and waits not at all."""

    seconds: list[float] = field(default_factory=list)

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


@contextmanager
def serving(script: Script) -> Iterator[Endpoint]:
    endpoint = Endpoint(script)
    try:
        yield endpoint
    finally:
        endpoint.close()


async def ask(endpoint: Endpoint, *texts: str, space: str = "s", **options: Any) -> Vectors:
    embedder = OpenAIEmbedder("m", **{"base_url": endpoint.base_url, "key": KEY, "sleep": Waits(), **options})
    try:
        return await embedder.embed(texts, space=space, role="document")
    finally:
        await embedder.close()


def unit(text: str) -> npt.NDArray[np.float64]:
    vector = np.array(vector_of(text))
    return np.asarray(vector / np.linalg.norm(vector))


def always(status: int = 200, headers: dict[str, str] | None = None, content: bytes = b"{}") -> Script:
    return lambda _number, _asked: Answer(status, headers or {}, content)


def data(*items: object) -> bytes:
    return json.dumps({"data": items}).encode()


async def test_answers_out_of_order_come_back_in_order() -> None:
    """Rows follow the texts, not the answer's order, over several batches, and have length 1."""
    texts = [f"{'x' * i} {i}" for i in range(10)]
    with serving(lambda _, asked: embeddings(asked)) as endpoint:
        vectors = await ask(endpoint, *texts, limits=Limits(batch=3))
    np.testing.assert_allclose(vectors, [unit(text) for text in texts], atol=1e-6)
    assert vectors.dtype == np.float32
    assert sorted(len(asked.body["input"]) for asked in endpoint.asked) == [1, 3, 3, 3]
    assert {asked.path for asked in endpoint.asked} == {"/v1/embeddings"}


@pytest.mark.parametrize("dimensions", [None, 3])
async def test_the_request(dimensions: int | None) -> None:
    """The body holds the model and the texts, and the dimensions only when they are set."""
    with serving(lambda _, asked: embeddings(asked)) as endpoint:
        await ask(endpoint, TEXT, dimensions=dimensions)
    extra = {} if dimensions is None else {"dimensions": dimensions}
    assert endpoint.asked[0].body == {"model": "m", "input": [TEXT], **extra}


@pytest.mark.parametrize("keys", [{"work": "sk-work"}, {"work": "sk-work"}.get])
async def test_a_space_may_have_its_own_key(keys: Any) -> None:
    """A space's own key is sent for it, the common key for the others, and no header for an empty key."""
    with serving(lambda _, asked: embeddings(asked)) as endpoint:
        await ask(endpoint, TEXT, space="work", keys=keys)
        await ask(endpoint, TEXT, space="home", keys=keys)
        await ask(endpoint, TEXT, space="home", key="")
    assert [asked.key for asked in endpoint.asked] == ["Bearer sk-work", f"Bearer {KEY}", None]


async def test_a_missing_key_names_the_setting() -> None:
    """Without a key nothing is sent, and the message says where to put one."""
    with serving(always()) as endpoint:
        with pytest.raises(
            EmbeddingError, match=r"there is no key .* space 'home': set OPENAI_API_KEY, or `key` or `keys`"
        ):
            await ask(endpoint, TEXT, space="home", key=None, keys={"work": KEY})
        assert endpoint.asked == []


@pytest.mark.parametrize("key", [f"{KEY}\n", f"{KEY} x", f"{KEY}€", f"{KEY}\x00"])
async def test_a_key_that_is_no_key(key: str) -> None:
    """A key with a line break or the like is refused before it reaches a header, and is not quoted."""
    with serving(always()) as endpoint:
        with pytest.raises(EmbeddingError, match="has an invalid character") as caught:
            await ask(endpoint, TEXT, key=key)
        assert "sk-secret" not in str(caught.value)


async def test_a_rate_limit_is_waited_out() -> None:
    """After a 429 the wait that the provider asks for is kept to, and the next answer counts."""
    waits = Waits()
    script: Script = lambda n, asked: Answer(429, {"Retry-After": "7"}) if n == 0 else embeddings(asked)  # noqa: E731
    with serving(script) as endpoint:
        vectors = await ask(endpoint, TEXT, sleep=waits)
    np.testing.assert_allclose(vectors[0], unit(TEXT), atol=1e-6)
    assert waits.seconds == [7.0]


async def test_too_long_a_wait_is_refused() -> None:
    """A provider that wants to be left alone for an hour is: no wait, and the message says how long."""
    waits = Waits()
    with serving(always(429, {"Retry-After": "3600"})) as endpoint:
        with pytest.raises(EmbeddingError, match=r"HTTP 429, .*; try again in 3600 s"):
            await ask(endpoint, TEXT, sleep=waits)
        assert (len(endpoint.asked), waits.seconds) == (1, [])


async def test_server_errors_are_retried_with_growing_waits_then_given_up() -> None:
    """Full jitter: each wait is a random share of twice the last bound, up to the longest."""
    waits, limits = Waits(), Limits(attempts=5, backoff_seconds=0.5, longest_wait_seconds=3.0)
    with serving(always(500)) as endpoint:
        with pytest.raises(EmbeddingError, match="failed 5 times: HTTP 500; try again later"):
            await ask(endpoint, TEXT, sleep=waits, limits=limits, chance=lambda: 0.5)
        assert len(endpoint.asked) == 5
    assert waits.seconds == [0.25, 0.5, 1.0, 1.5]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 301])
async def test_a_refusal_is_not_retried(status: int) -> None:
    """Asking again would change nothing, so it is asked once; a redirect is not followed with the key."""
    with serving(always(status, {"Location": "http://127.0.0.1:9/"})) as endpoint:
        with pytest.raises(EmbeddingError, match=f"refused: HTTP {status}"):
            await ask(endpoint, TEXT)
        assert len(endpoint.asked) == 1


async def test_nobody_there() -> None:
    """A refused connection is tried again, then reported with the address."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # bound but not listening: connections are refused
        base_url = f"http://127.0.0.1:{held.getsockname()[1]}/v1"
        waits = Waits()
        embedder = OpenAIEmbedder("m", base_url=base_url, key=KEY, sleep=waits, limits=Limits(attempts=3))
        with pytest.raises(EmbeddingError, match=f"^{base_url}/embeddings failed 3 times: it cannot be reached"):
            await embedder.embed([TEXT], space="s", role="document")
        await embedder.close()
    assert len(waits.seconds) == 2


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (Limits(attempts=2, read_seconds=0.05), "failed 2 times: no answer in time"),
        (Limits(total_seconds=0.05), r"did not answer within 0\.05 s"),
    ],
)
async def test_a_late_answer(limits: Limits, message: str) -> None:
    """Both the time for one answer and the time for all tries are bounded."""
    with serving(lambda _, __: Answer(stalled=True)) as endpoint, pytest.raises(EmbeddingError, match=message):
        await ask(endpoint, TEXT, limits=limits)


BAD_ANSWERS = [
    (b"<html>", "not JSON"),
    (b"[" * 100_000, "not JSON"),
    (b"[]", "no list `data`"),
    (b'{"data": {}}', "no list `data`"),
    (data(1), "no list `data`"),
    (data(), "0 embeddings instead of 1"),
    (data({"index": 1, "embedding": [1.0]}), "indexes are not 0 to 0"),
    (data({"embedding": [1.0]}), "indexes are not 0 to 0"),
    (data({"index": 0}), "not a list of numbers"),
    (data({"index": 0, "embedding": []}), "not a list of numbers"),
    (data({"index": 0, "embedding": ["1.0"]}), "not a list of numbers"),
    (data({"index": 0, "embedding": [[1.0], [2.0, 3.0]]}), "not a list of numbers"),
    (data({"index": 0, "embedding": [0.0, 0.0]}), "all zero"),
    (data({"index": 0, "embedding": [1.0, float("nan")]}), "not finite"),
    (data({"index": 0, "embedding": [float("inf"), 1.0]}), "not finite"),
]


@pytest.mark.parametrize(("content", "message"), BAD_ANSWERS)
async def test_an_answer_that_is_none(content: bytes, message: str) -> None:
    """Garbage is reported in one sentence that says what was wrong with it."""
    message = f"something other than embeddings: .*{message}"
    with serving(always(content=content)) as endpoint, pytest.raises(EmbeddingError, match=message):
        await ask(endpoint, TEXT)


def test_embeddings_of_one_answer_agree() -> None:
    """Two widths in one answer are refused; two equal indexes too."""
    with pytest.raises(ValueError, match="differ in length"):
        parse_answer(data({"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [1.0, 2.0]}), 2)
    with pytest.raises(ValueError, match="indexes are not 0 to 1"):
        parse_answer(data({"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}), 2)


def test_huge_numbers_are_scaled() -> None:
    """Numbers whose squares overflow still give a vector of length 1."""
    vectors = parse_answer(data({"index": 0, "embedding": [3e300, 4e300]}), 1)
    np.testing.assert_allclose(vectors, [[0.6, 0.8]], atol=1e-6)


async def test_the_width_may_not_change() -> None:
    """Another number of dimensions than asked for, or than before, is an error that names both."""
    wide = data({"index": 0, "embedding": [1.0, 2.0, 3.0, 4.0]})
    script: Script = lambda n, asked: embeddings(asked) if n == 0 else Answer(content=wide)  # noqa: E731
    with serving(script) as endpoint:
        embedder = OpenAIEmbedder("m", base_url=endpoint.base_url, key=KEY)
        assert (await embedder.embed([TEXT], space="s", role="document")).shape == (1, 3)
        assert embedder.dimensions == 3
        with pytest.raises(EmbeddingError, match="4 dimensions instead of 3"):
            await embedder.embed([TEXT], space="s", role="document")
        await embedder.close()
        with pytest.raises(EmbeddingError, match="4 dimensions instead of 8"):
            await ask(endpoint, TEXT, dimensions=8)


async def test_no_texts() -> None:
    """No texts ask nothing."""
    with serving(always()) as endpoint:
        assert (await ask(endpoint)).shape == (0, 0)
        assert (await ask(endpoint, dimensions=8)).shape == (0, 8)
        assert endpoint.asked == []


def quoting(asked: Asked) -> bytes:
    return json.dumps({"error": {"message": f"{asked.key} {asked.body}"}}).encode()


@pytest.mark.parametrize(
    "script",
    [
        lambda _, asked: Answer(401, content=quoting(asked)),
        lambda _, asked: Answer(500, content=quoting(asked)),
        lambda _, asked: Answer(200, content=quoting(asked)),
        lambda _, asked: Answer(200, {"Content-Encoding": "gzip"}, quoting(asked)),
        lambda _, asked: Answer(429, {"Retry-After": "9999"}, quoting(asked)),
    ],
)
async def test_no_secret_in_errors_reprs_and_logs(script: Script, caplog: pytest.LogCaptureFixture) -> None:
    """Neither key nor text shows up anywhere, even when the provider quotes them back."""
    caplog.set_level(logging.DEBUG)
    with serving(script) as endpoint:
        secret_url = endpoint.base_url.replace("http://", "http://user:sk-secret-url@")
        embedder = OpenAIEmbedder("m", base_url=secret_url, key=KEY, sleep=Waits())
        with pytest.raises(EmbeddingError) as caught:
            await embedder.embed([TEXT], space="s", role="document")
        await embedder.close()
    seen: list[object] = [embedder, caught.value, caught.value.__cause__]
    said = " ".join(map(repr, seen)) + str(caught.value)
    assert "sk-secret" not in said
    assert "private" not in said
    assert KEY not in caplog.text
    assert "private" not in caplog.text


@pytest.mark.parametrize("base_url", ["", "example.org/v1", "ftp://example.org", "http://", "http://host:port"])
def test_a_base_url_that_is_none(base_url: str) -> None:
    """A base URL that cannot be asked is refused at once."""
    with pytest.raises(ConfigError, match="base_url of the embeddings is not a web address"):
        OpenAIEmbedder("m", base_url=base_url)


NOW = datetime(2026, 5, 3, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("5", 5.0),
        ("0.25", 0.25),
        ("-3", 0.0),
        ("Sun, 03 May 2026 12:00:30 GMT", 30.0),
        ("Sun, 03 May 2026 11:00:00 GMT", 0.0),
        ("soon", None),
        ("nan", None),
        ("inf", None),
    ],
)
def test_retry_after(value: str | None, seconds: float | None) -> None:
    """Seconds or a date; what is in the past is now, and what is neither asks for nothing."""
    assert retry_after(value, now=NOW) == seconds
