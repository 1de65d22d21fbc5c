"""Idempotency keys: a write that is sent again is answered again, and not run again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event
from uuid import uuid4

import httpx
import pytest

from recollect import AsyncRecollect
from recollect.servers.web import application
from tests.endpoint import Answer, Asked, Endpoint, embeddings
from tests.servers.http_server import Served, problem, serving

MEMORIES = "/v1/spaces/work/memories"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("once")) as served:
        yield served


def key() -> dict[str, str]:
    return {"Idempotency-Key": str(uuid4())}


def test_a_write_that_is_sent_again_is_answered_again(server: Served) -> None:
    """The same status and the same bytes, with a header that says so; nothing is stored twice."""
    client, headers = server.client(), key()
    body = {"text": "a turn of a talk", "thread": "talk"}
    first, again = (client.post(MEMORIES, json=body, headers=headers) for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.content == again.content
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    assert len(client.get(MEMORIES, params={"thread": "talk"}).json()["memories"]) == 1
    assert client.post(MEMORIES, json=body, headers=key()).status_code == 200  # an exact copy, by another request


def test_a_key_belongs_to_one_request(server: Served) -> None:
    """The same key with another body, or for another path, is refused; in another space it is another key."""
    client, headers = server.client(), key()
    assert client.post(MEMORIES, json={"text": "one"}, headers=headers).status_code == 201
    assert "another request" in problem(client.post(MEMORIES, json={"text": "two"}, headers=headers), 422)["detail"]
    problem(client.post("/v1/spaces/work/links", json={"source": "a", "target": "b"}, headers=headers), 422)
    assert client.post("/v1/spaces/play/memories", json={"text": "two"}, headers=headers).status_code == 201


def test_what_came_to_nothing_can_be_sent_again(server: Served) -> None:
    """A refused write leaves its key free, for the corrected one as well."""
    client, headers = server.client(), key()
    problem(client.post(MEMORIES, json={"text": ""}, headers=headers), 422)
    assert client.post(MEMORIES, json={"text": "now it says something"}, headers=headers).status_code == 201


def test_every_write_takes_a_key(server: Served) -> None:
    """Patch, delete, supersede, link and unlink are answered again as well, though running them again would fail."""
    client = server.client()
    one, two = (client.post(MEMORIES, json={"text": text}).json()["memory"]["id"] for text in ("rain", "sun"))
    requests = [
        ("PATCH", f"{MEMORIES}/{one}", {"title": "Rain"}),
        ("POST", "/v1/spaces/work/links", {"source": one, "target": two}),
        ("DELETE", f"/v1/spaces/work/links?source={one}&target={two}&relation=related", None),
        ("POST", "/v1/spaces/work/supersede", {"old": one, "text": "drizzle"}),
        ("DELETE", f"{MEMORIES}/{one}", None),
    ]
    for method, path, body in requests:
        headers = key()
        first, again = (client.request(method, path, json=body, headers=headers) for _ in range(2))
        assert first.status_code == again.status_code == 200, first.text
        assert first.content == again.content


def test_a_key_must_be_a_name(server: Served) -> None:
    """One that is too long is refused."""
    problem(server.client().post(MEMORIES, json={"text": "one"}, headers={"Idempotency-Key": "k" * 201}), 422)


def test_an_answer_outlives_the_server(tmp_path: Path) -> None:
    """Another process, on the same store, answers the same."""
    headers = key()
    answers = []
    for _ in range(2):
        with serving(tmp_path) as served:
            answers.append(served.client().post(MEMORIES, json={"text": "once"}, headers=headers))
    assert answers[0].content == answers[1].content
    assert answers[1].headers["idempotency-replayed"] == "true"


def test_a_server_that_is_killed_leaves_no_key_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a server works on a request, another one on the same store answers 409; once it was killed in the middle of
    it, the other runs the request at once.
    """
    begun, headers, body = Event(), key(), {"text": "the one that was cut off"}

    def script(_: int, asked: Asked) -> Answer:
        first = any("cut off" in text for text in asked.body["input"]) and not begun.is_set()
        if first:
            begun.set()
        return replace(embeddings(asked), stalled=first)

    endpoint = Endpoint(script)
    monkeypatch.setenv("OPENAI_BASE_URL", endpoint.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    try:
        with serving(tmp_path, embedder="openai:any") as other, serving(tmp_path, embedder="openai:any") as killed:
            with ThreadPoolExecutor(1) as pool:
                cut_off = pool.submit(killed.client().post, MEMORIES, json=body, headers=headers)
                assert begun.wait(60)
                problem(other.client().post(MEMORIES, json=body, headers=headers), 409)
                killed.process.kill()
                with pytest.raises(httpx.HTTPError):
                    cut_off.result()
            killed.process.wait()
            answer = other.client().post(MEMORIES, json=body, headers=headers)
            assert answer.status_code == 201
            assert other.client().post(MEMORIES, json=body, headers=headers).content == answer.content
    finally:
        endpoint.close()


def test_who_may_not_write_learns_nothing_by_a_key(tmp_path: Path) -> None:
    """An answer that is kept is not shown to a token of another space, nor to one that may only read."""
    with serving(tmp_path, tokens=True) as served:
        headers, body = key(), {"text": "ours alone"}
        assert served.client().post(MEMORIES, json=body, headers=headers).status_code == 201
        for secret in (served.token("other")[1], served.token("work", scope="read")[1]):
            problem(served.client(secret).post(MEMORIES, json=body, headers=headers), 403)


@pytest.fixture
async def here(client: AsyncRecollect) -> AsyncIterator[httpx.AsyncClient]:
    app = application(client)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as opened:
        yield opened


async def test_a_request_under_way_is_not_run_beside_itself(
    here: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the first is being worked on, the same request is answered 409; then as the first was."""
    from recollect.space import AsyncSpace

    remember, begun, go_on = AsyncSpace.remember, asyncio.Event(), asyncio.Event()

    async def slow(self: AsyncSpace, text: str, **fields: object) -> object:
        begun.set()
        await go_on.wait()
        return await remember(self, text, **fields)  # type: ignore[arg-type]

    monkeypatch.setattr(AsyncSpace, "remember", slow)
    headers, body = key(), {"text": "slowly"}
    first = asyncio.create_task(here.post(MEMORIES, json=body, headers=headers))
    await begun.wait()
    waiting = await here.post(MEMORIES, json=body, headers=headers)
    assert "under way" in problem(waiting, 409)["detail"]
    go_on.set()
    answer = await first
    assert answer.status_code == 201
    assert (await here.post(MEMORIES, json=body, headers=headers)).content == answer.content
