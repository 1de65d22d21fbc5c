"""What bad input and broken engines get: a problem document that says what was wrong, and no more than that."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from typing import Any, NoReturn

import httpx
import pytest

from recollect import AsyncRecollect, BackendUnavailable
from recollect.errors import (
    BackendError,
    BackendTimeout,
    ConfigError,
    EmbeddingError,
    EmbeddingMismatch,
    InvalidRequest,
    NotAllowed,
    NotFound,
    RecallFailed,
    RecollectError,
    SchemaOutdated,
)
from recollect.servers.gate.gate import Limits
from recollect.servers.problems import problem_of
from recollect.servers.web import application
from tests.conftest import FlakyEmbedder
from tests.servers.http_server import Served, problem, serving

RECALL = "/v1/spaces/work/recall"
MEMORIES = "/v1/spaces/work/memories"
MIB = 1024 * 1024


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("failures"), "--max-body", "1") as served:
        yield served


@pytest.fixture
async def here(client: AsyncRecollect) -> AsyncIterator[httpx.AsyncClient]:
    """The application in this process, so that what is behind it can be broken."""
    app = application(client, Limits(patience=0.2))
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as opened:
        yield opened


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (b'{"query": ', 400, "the body is not JSON: Expecting value at character 10"),
        (b"", 422, "the body is missing"),
        (b'{"query": "\xff"}', 400, "must be UTF-8"),
        (b'{"query": "a", "lanes": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400, "nested too deeply"),
        (b'["query"]', 422, "the body must be a JSON object"),
        (b'"query"', 422, "the body must be"),
        (b"null", 422, "the body"),
        (b"{}", 422, "query is missing"),
        (b'{"query": 5}', 422, "query must be a text, not 5"),
        (b'{"query": "a", "limit": "ten"}', 422, "limit must be a whole number, not 'ten'"),
        (b'{"query": "a", "limit": true}', 422, "limit must be a whole number, not true"),
        (b'{"query": "a", "limt": 5}', 422, "unknown name 'limt'"),
        (b'{"query": "a", "limit": 0}', 422, "limit is 0, and must be from 1 to 100"),
        (b'{"query": " "}', 422, "the query is empty: give it at least one word"),
        (b'{"query": "\\ud800"}', 422, "a lone surrogate"),
        (b'{"query": "a\\u0000"}', 422, "NUL"),
        (b'{"query": "a", "recipe": "nope"}', 422, "the recipe 'nope' does not exist"),
        (b'{"query": "a", "weights": {"vector": NaN}}', 422, "the weight of 'vector' is nan"),
        (b'{"query": "a", "weights": {"vector": -1}}', 422, "must be a number from 0 up"),
        (b'{"query": "a", "lanes": {"vector": {"colour": 1}}}', 422, "has no setting 'colour'"),
        (b'{"query": "a", "since": "soon"}', 422, "is not a time: write 2026-05-03"),
        (b'{"query": "a", "vector": [1, 2]}', 422, "the vector has 2 dimensions"),
    ],
)
def test_a_recall_that_cannot_be_read(server: Served, body: bytes, status: int, says: str) -> None:
    """Each mistake is named with its value; what the library refuses is refused in its words."""
    server.client().post(MEMORIES, json={"text": "something"})
    response = server.client().post(RECALL, content=body, headers={"Content-Type": "application/json"})
    assert says in problem(response, status)["detail"]


@pytest.mark.parametrize("setting", ["name", "leg", "weight", "kinds", "deadline", "every_namespace", "words", "match"])
def test_nobody_breaks_an_engine_for_others_by_what_they_ask(server: Served, setting: str) -> None:
    """A lane's setting of a wrong kind is refused before any engine sees it: otherwise it would fail there, and be left
    alone for everybody.
    """
    client = server.client()
    client.post(MEMORIES, json={"text": "something"})
    values: list[Any] = [None, 5.5, "\x00", [5], {"a": 1}, [[]], 10**400, float("inf"), []]
    for value in values:
        body = json.dumps({"query": "a", "lanes": {"vector": {setting: value}}}).encode()
        answer = client.post(RECALL, content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code in (200, 422), answer.text
    assert client.post(RECALL, json={"query": "something"}).json()["degraded"] is False


def test_what_is_not_sent_as_json_is_not_guessed_at(server: Served) -> None:
    """A form, or a body without a type, is refused, and told what to send."""
    for path in (RECALL, MEMORIES):
        for refused in (
            server.client().post(path, data={"query": "a"}),
            server.client().post(path, content=b'{"query": "a"}'),
        ):
            assert "send `Content-Type: application/json`" in problem(refused, 422)["detail"]


@pytest.mark.parametrize(
    "query", [{"limit": "ten"}, {"limit": 0}, {"colour": "red"}, {"since": "soon"}, {"include_expired": "perhaps"}]
)
def test_a_query_string_that_cannot_be_read(server: Served, query: dict[str, Any]) -> None:
    """A misspelt filter is refused, for otherwise it would silently not filter."""
    problem(server.client().get(MEMORIES, params=query), 422)


def test_paths_and_methods_that_are_not_there(server: Served) -> None:
    """404 and 405 are problems, too; a slash too many is another path."""
    client = server.client()
    for path in (
        "/v1/nope",
        "/v1/recipes/",
        "/v2",
        "/v1/spaces/work",
        "/v1/spaces//memories",
        "/v1/spaces/a/b/memories",
    ):
        problem(client.get(path), 404)
    wrong = client.put("/v1/recipes")
    problem(wrong, 405)
    assert wrong.headers["allow"] == "GET"


@pytest.mark.parametrize("name", ["%00", "%0A", "%FF", "%20", "a" * 201])
def test_names_that_cannot_be(server: Served, name: str) -> None:
    """A space with control characters, broken UTF-8, nothing in it, or too much is refused as the library does."""
    problem(server.client().get(f"/v1/spaces/{name}/stats"), 422)


def test_a_body_that_is_too_large(server: Served) -> None:
    """Refused when it says so, and when it turns out so; one that just fits is taken."""
    client = server.client()
    text = json.dumps({"text": "a " * MIB})
    headers = {"Content-Type": "application/json"}
    assert "1,048,576 bytes" in problem(client.post(MEMORIES, content=text, headers=headers), 413)["detail"]

    def parts() -> Iterator[bytes]:
        for start in range(0, len(text), 65536):
            yield text[start : start + 65536].encode()

    problem(client.post(MEMORIES, content=parts(), headers=headers), 413)
    fits = json.dumps({"text": "b " * (MIB // 2 - 100)})
    assert client.post(MEMORIES, content=fits, headers=headers).status_code == 201


def test_a_request_that_is_not_http(server: Served) -> None:
    """Garbage on the port is answered 400 by the protocol, and the server goes on."""
    url = httpx.URL(server.url)
    with socket.create_connection((url.host, url.port or 0)) as raw:
        raw.sendall(b"\x16\x03\x01 garbage\r\n\r\n")
        assert b" 400 " in raw.recv(4096)
    assert server.client().get("/health/live").status_code == 200


async def test_a_body_that_does_not_come(here: httpx.AsyncClient) -> None:
    """A client that stops in the middle is told so after a while."""

    async def slowly() -> AsyncIterator[bytes]:
        yield b'{"query": '
        await asyncio.Event().wait()

    async with asyncio.timeout(20):
        problem(await here.post(RECALL, content=slowly(), headers={"Content-Type": "application/json"}), 408)


async def test_a_bug_is_told_to_the_log_alone(
    here: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """500 without a word of why; one entry in the log, with the traceback and without the query string."""

    async def broken(*_: object, **__: object) -> NoReturn:
        raise ZeroDivisionError("the secret reason")

    monkeypatch.setattr("recollect.space.AsyncSpace.usage", broken)
    with caplog.at_level(logging.INFO):
        response = await here.get("/v1/spaces/work/usage", params={"since": "7d"})
    assert "secret" not in response.text
    assert problem(response, 500)["type"] == "urn:recollect:bug"
    (entry,) = [one for one in caplog.records if one.name.startswith(("recollect", "uvicorn"))]
    assert entry.getMessage() == "GET /v1/spaces/work/usage failed"
    assert entry.exc_info is not None


@pytest.mark.parametrize("path", ["/v1/spaces/work/usage", "/health", "/?q=door"])
async def test_why_an_engine_failed_is_in_the_log(
    here: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    """One warning for each call, with the reason, whichever door it came by; none with the query string."""

    async def broken(*_: object, **__: object) -> NoReturn:
        raise BackendError("the disk is full", backend="sqlite")

    for verb in ("usage", "recall"):
        monkeypatch.setattr(f"recollect.space.AsyncSpace.{verb}", broken)
    with caplog.at_level(logging.WARNING):
        assert (await here.get(path)).status_code == 500
    (entry,) = [one for one in caplog.records if one.name.startswith("recollect")]
    assert (entry.name, entry.levelname) == ("recollect.gate", "WARNING")
    assert entry.getMessage() == f"GET {path.partition('?')[0]}: the disk is full"


@pytest.mark.parametrize("path", ["/v1/recipes", "/memories", "/health/ready"])
async def test_a_store_that_cannot_say_who_calls_is_in_the_log(
    here: httpx.AsyncClient, client: AsyncRecollect, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    """Also where the gate itself is who asked it first."""
    await client._store.close()
    with caplog.at_level(logging.WARNING):
        await here.get(path)
    (entry,) = [one for one in caplog.records if one.name == "recollect.gate"]
    assert "is not open" in entry.getMessage()


async def test_what_a_caller_did_wrong_is_not_in_the_log(
    here: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody fills it with requests that cannot be carried out."""
    with caplog.at_level(logging.WARNING):
        await here.post(RECALL, json={"query": ""})
        await here.get("/v1/spaces/work/memories/nope")
    assert [one for one in caplog.records if one.name.startswith("recollect")] == []


async def test_a_recall_without_any_lane(here: httpx.AsyncClient, embedder: FlakyEmbedder) -> None:
    """503, how each lane failed, and when to try again."""
    embedder.down = True
    response = await here.post(RECALL, json={"query": "a", "weights": {"keyword": 0, "graph": 0}})
    failed = problem(response, 503)
    assert failed["type"] == "urn:recollect:recall-failed"
    assert {lane["lane"]: lane["status"] for lane in failed["lanes"]}["vector"] == "failed"
    assert "the embedding service is down" in str(failed["lanes"])
    assert response.headers["retry-after"] == "1"


async def test_a_memory_is_kept_while_the_embedder_is_down(here: httpx.AsyncClient, embedder: FlakyEmbedder) -> None:
    """It is stored, found by its words, and the answer says that it is degraded."""
    embedder.down = True
    made = await here.post(MEMORIES, json={"text": "Invoice 12345"})
    assert (made.status_code, made.json()["memory"]["embedding"]) == (201, "pending")
    recall = (await here.post(RECALL, json={"query": "invoice"})).json()
    assert (recall["degraded"], len(recall["hits"])) == (True, 1)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ConfigError("x"), 500),
        (InvalidRequest("x"), 422),
        (NotFound("x"), 404),
        (NotAllowed("x"), 403),
        (NotAllowed("x", known=False), 401),
        (EmbeddingMismatch("x"), 409),
        (BackendError("x", backend="sqlite"), 500),
        (BackendUnavailable("x", backend="sqlite"), 503),
        (BackendTimeout("x", backend="sqlite"), 503),
        (SchemaOutdated("x", backend="sqlite"), 503),
        (EmbeddingError("x"), 502),
        (RecallFailed("x"), 503),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_the_tree_of_errors_has_its_statuses(error: RecollectError, status: int) -> None:
    """What errors.py draws is what HTTP answers."""
    made = problem_of(error)
    assert (made.status, made.document["status"], made.document["detail"]) == (status, status, "x")
