"""A `/rerank` endpoint: what is sent, what is accepted, and what is refused, against a real server on loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from recollect.errors import BackendError, BackendUnavailable, ConfigError
from recollect.rerankers import configured_reranker
from recollect.rerankers.http import HTTPReranker
from recollect.settings import RerankSettings, Settings
from tests.endpoint import Answer, Asked, Endpoint


def scores(asked: Asked) -> Answer:
    """The right answer, last document first: a longer document scores higher."""
    items = [{"index": n, "relevance_score": len(text) / 100} for n, text in enumerate(asked.body["documents"])]
    return Answer(content=json.dumps({"results": items[::-1]}).encode())


def answering(answer: Any) -> Answer:
    return Answer(content=json.dumps(answer).encode())


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    served = Endpoint(lambda _, asked: scores(asked))
    yield served
    served.close()


async def test_scores_come_in_the_order_of_the_passages(endpoint: Endpoint) -> None:
    """The server may answer in any order; model, key, question and passages are sent as Cohere and Jina expect."""
    how = RerankSettings(model="m", key="k", languages=("english",))
    reranker = configured_reranker(Settings("", reranker=f"http:{endpoint.base_url}/rerank", rerank=how))
    assert await reranker.score("q", ["a", "bbb", "cc"]) == [0.01, 0.03, 0.02]
    (asked,) = endpoint.asked
    assert reranker.languages == ("english",)
    assert (asked.path, asked.key) == ("/v1/rerank", "Bearer k")
    assert asked.body == {"query": "q", "documents": ["a", "bbb", "cc"], "top_n": 3, "model": "m"}
    await reranker.close()


async def test_a_plain_url_is_enough(endpoint: Endpoint) -> None:
    """`http://…` without the prefix means the same, and no key and no model are sent where none are set."""
    reranker = configured_reranker(Settings(""), f"{endpoint.base_url}/rerank")
    assert await reranker.score("q", ["a"]) == [0.01]
    assert endpoint.asked[0].key is None
    assert "model" not in endpoint.asked[0].body
    await reranker.close()


async def test_no_passages_ask_nobody(endpoint: Endpoint) -> None:
    """Nothing to read is no call."""
    assert await HTTPReranker(endpoint.base_url).score("q", []) == []
    assert endpoint.asked == []


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ([{"index": 0, "score": 0.5}], None),
        ({"data": [{"index": 0, "relevance_score": 1}]}, None),
        ("text", "no list `results`"),
        ({"results": [1]}, "no list `results`"),
        ({"results": []}, "0 scores instead of 1"),
        ({"results": [{"index": 3, "relevance_score": 0.5}]}, "indexes are not 0 to 0"),
        ({"results": [{"index": 0, "relevance_score": "high"}]}, "not a number"),
        ({"results": [{"index": 0, "relevance_score": float("nan")}]}, "not a number"),
        ({"results": [{"index": 0, "relevance_score": 7.5}]}, "not between 0 and 1"),
        ({"results": [{"index": 0}]}, "not a number"),
    ],
)
async def test_answers_are_read_with_suspicion(answer: Any, reason: str | None) -> None:
    """Three common shapes are understood; anything else is refused by what is wrong with it."""
    endpoint = Endpoint(lambda _, __: answering(answer))
    reranker = HTTPReranker(endpoint.base_url)
    try:
        if reason is None:
            assert len(await reranker.score("q", ["a"])) == 1
        else:
            with pytest.raises(BackendError, match=reason):
                await reranker.score("q", ["a"])
    finally:
        await reranker.close()
        endpoint.close()


@pytest.mark.parametrize(
    ("status", "kind"), [(401, BackendError), (500, BackendUnavailable), (429, BackendUnavailable)]
)
async def test_a_refusal_names_the_status_and_no_secret(status: int, kind: type[BackendError]) -> None:
    """What may pass is worth another try; the message holds neither the key nor what the server said."""
    endpoint = Endpoint(lambda _, __: Answer(status=status, content=b"key sesame is wrong"))
    reranker = HTTPReranker(endpoint.base_url + "?token=sesame", key="sesame")
    try:
        with pytest.raises(kind, match=f"HTTP {status}") as caught:
            await reranker.score("q", ["a"])
        assert "sesame" not in str(caught.value)
        assert "sesame" not in repr(reranker)
    finally:
        await reranker.close()
        endpoint.close()


async def test_a_server_that_is_down() -> None:
    """No server is a BackendUnavailable, which a breaker counts."""
    endpoint = Endpoint(lambda _, asked: scores(asked))
    endpoint.close()
    reranker = HTTPReranker(endpoint.base_url)
    with pytest.raises(BackendUnavailable, match="cannot be reached"):
        await reranker.score("q", ["a"])
    await reranker.close()


@pytest.mark.parametrize("spec", ["http:", "http:nowhere", "nothing", "local:x"])
def test_an_unknown_reranker_is_refused(spec: str) -> None:
    """Before anything is opened, with what there is to choose from."""
    with pytest.raises(ConfigError, match=r"web address|use one of local, http:URL"):
        configured_reranker(Settings(""), spec)


def test_a_key_with_a_blank_is_refused() -> None:
    """A header that cannot be sent is refused without being quoted."""
    with pytest.raises(ConfigError, match="no key can have") as caught:
        HTTPReranker("http://localhost/rerank", key="open sesame")
    assert "sesame" not in str(caught.value)
