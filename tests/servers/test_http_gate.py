"""Who may call: tokens of every kind on every route, forged headers, guesses, limits, and what is noted of it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from recollect import NotAllowed, Recollect
from recollect.engine.tokens import ID_BYTES, SECRET_BYTES
from recollect.types import Token
from tests.servers.http_server import EVIL, Served, problem, serving

OPEN = {"/health/live", "/health/ready"}
BODIES: dict[str, Any] = {
    "POST /v1/spaces/{space}/memories": {"text": "hello"},
    "PATCH /v1/spaces/{space}/memories/{id}": {"title": "hello"},
    "POST /v1/spaces/{space}/supersede": {"old": "a", "text": "hello"},
    "POST /v1/spaces/{space}/recall": {"query": "hello"},
    "POST /v1/spaces/{space}/links": {"source": "a", "target": "b"},
    "POST /v1/spaces/{space}/grants": {"namespace": "default", "to": "theirs"},
    "POST /v1/spaces/{space}/grants/received": {"owner": "theirs", "namespace": "default"},
    "POST /v1/tokens": {"spaces": ["ours"]},
}
QUERIES = {
    "GET /v1/spaces/{space}/neighbors": {"id": "a"},
    "DELETE /v1/spaces/{space}/links": {"source": "a", "target": "b"},
    "DELETE /v1/spaces/{space}/grants": {"namespace": "default", "to": "theirs"},
    "DELETE /v1/spaces/{space}/grants/received": {"owner": "theirs", "namespace": "default"},
    "GET /v1/tokens": {"space": "ours"},
}
READS = ("GET", "POST /v1/spaces/{space}/recall")
ADMINISTERS = ("/score", "/grants", "/v1/tokens", "/v1/sync", "/metrics")
EVERYBODYS = {"GET /v1/recipes", "GET /v1/spaces"}
"""Calls that any right token may make, and that say nothing of another's space."""


class Call(NamedTuple):
    """One operation of the OpenAPI document."""

    method: str
    path: str

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def scope(self) -> str:
        if any(part in self.path for part in ADMINISTERS):
            return "admin"
        return "read" if self.name.startswith(READS) else "write"

    def send(self, client: httpx.Client, space: str = "ours") -> httpx.Response:
        path = self.path.format(space=space, id="a")
        return client.request(self.method, path, json=BODIES.get(self.name), params=QUERIES.get(self.name))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """With tokens, and a space `ours` that holds something."""
    with serving(tmp_path_factory.mktemp("gate"), tokens=True) as served:
        served.client().post("/v1/spaces/ours/memories", json={"text": "ours alone", "id": "a"})
        yield served


@pytest.fixture(scope="module")
def calls(server: Served) -> list[Call]:
    """Everything that the server offers but its health: a new route is in here by itself."""
    paths = server.client().get("/openapi.json").json()["paths"]
    return [Call(m.upper(), path) for path, methods in paths.items() for m in methods if path not in OPEN]


@pytest.fixture(scope="module")
def strangers(server: Served) -> dict[str, str]:
    """Secrets that open nothing: wrong ones, one that has expired, one that was revoked."""
    id, revoked = server.token("ours")
    expired = f"rc_{'0' * 2 * ID_BYTES}_{'1' * 2 * SECRET_BYTES}"
    past = Token(
        "0" * 2 * ID_BYTES, "", ("ours",), "admin", datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 4, 1, tzinfo=UTC)
    )
    with Recollect(server.store, embedder="hashing") as r:
        r.tokens.revoke(id)
        r._portal.run(r._async._store.ledger.add_token(past, sha256(expired.encode()).digest()))
        with pytest.raises(NotAllowed, match="expired"):
            r.tokens.check(expired)
    right = str(server.secret)
    return {"wrong": right[:-1] + ("0" if right[-1] != "0" else "1"), "expired": expired, "revoked": revoked}


def test_every_route_is_known_to_these_tests(calls: list[Call]) -> None:
    """What is enumerated is what there is: some of each kind, and no route beside them."""
    assert {call.scope for call in calls} == {"read", "write", "admin"}
    assert len(calls) > 20


def test_no_token_no_answer(server: Served, calls: list[Call]) -> None:
    """Without a token every route but the health's says that it wants one, and how."""
    nobody = server.client("")
    for call in calls:
        refused = call.send(nobody)
        assert "asks for a token" in problem(refused, 401)["detail"], call.name
        assert refused.headers["www-authenticate"] == "Bearer"
    assert nobody.get("/health/live").status_code == nobody.get("/health/ready").status_code == 200


@pytest.mark.parametrize("kind", ["wrong", "expired", "revoked"])
def test_a_token_that_is_not_good_opens_nothing(
    server: Served, calls: list[Call], strangers: dict[str, str], kind: str
) -> None:
    """Wrong, expired or revoked: 401 on every route. Each call is from an address of its own, for one that shows wrong
    tokens is soon not heard at all.
    """
    bearer = {"Authorization": f"Bearer {strangers[kind]}"}
    for number, call in enumerate(calls, 2):
        transport = httpx.HTTPTransport(local_address=f"127.0.{list(strangers).index(kind) + 1}.{number}")
        with httpx.Client(base_url=server.url, headers=bearer, transport=transport) as client:
            problem(call.send(client), 401)


def test_a_token_of_another_space_gets_nowhere(server: Served, calls: list[Call]) -> None:
    """403 on every route of a space, whether or not there is one, and on what concerns all of them."""
    _, secret = server.token("theirs", scope="admin")
    client = server.client(secret)
    for call in calls:
        if call.name in EVERYBODYS:
            continue
        for space in ("ours", "nowhere"):
            problem(call.send(client, space), 404 if call.name == "DELETE /v1/tokens/{id}" else 403)
    assert client.get("/v1/spaces").json() == ["theirs"]
    with Recollect(server.store, embedder="hashing") as r:
        assert r.space("ours").get("a").text == "ours alone"


def test_a_scope_allows_what_it_says(server: Served, calls: list[Call]) -> None:
    """A token to read cannot write, one to write cannot administer; each can do what is before it."""
    order = ["read", "write", "admin"]
    for number, scope in enumerate(order[:2]):
        _, secret = server.token("ours", scope=scope)  # type: ignore[arg-type]
        client = server.client(secret)
        for call in calls:
            if call.name not in EVERYBODYS and order.index(call.scope) > number:
                problem(call.send(client), 403)
    assert client.post("/v1/spaces/ours/recall", json={"query": "ours"}).status_code == 200


def test_an_administrator_administers_its_own_spaces(server: Served) -> None:
    """It makes, sees and revokes tokens for its spaces, and none beyond; a secret is shown once."""
    id, secret = server.token("ours")
    client = server.client(secret)
    made = client.post("/v1/tokens", json={"spaces": ["ours"], "scope": "read", "expires": "90d"})
    assert made.status_code == 201
    assert made.json()["secret"].startswith("rc_")
    for spaces in ([], ["theirs"], ["ours", "theirs"]):
        problem(client.post("/v1/tokens", json={"spaces": spaces}), 403)
    seen = client.get("/v1/tokens")
    assert {token["id"] for token in seen.json()} >= {id, made.json()["token"]["id"]}
    assert all(token["spaces"] == ["ours"] for token in seen.json())
    assert "rc_" not in seen.text
    other, _ = server.token("theirs")
    problem(client.delete(f"/v1/tokens/{other}"), 404)
    assert client.delete(f"/v1/tokens/{made.json()['token']['id']}").json()["revoked_at"]


def test_a_revoked_token_is_refused_by_the_next_call(server: Served) -> None:
    """Revocation needs no waiting, by whichever process it was done."""
    id, secret = server.token("ours", scope="read")
    client = server.client(secret)
    assert client.get("/v1/spaces/ours/stats").status_code == 200
    with Recollect(server.store, embedder="hashing") as r:
        assert r.tokens.revoke(id)
    assert "revoked" in problem(client.get("/v1/spaces/ours/stats"), 401)["detail"]


def test_a_page_of_another_site_is_refused(server: Served) -> None:
    """A forged Origin gets nowhere, with a token and by cookie; the server's own is welcome."""
    client = server.client()
    problem(client.get("/v1/recipes", headers={"Origin": EVIL}), 403)
    problem(client.get("/v1/recipes", headers={"Origin": "null"}), 403)
    problem(client.get("/v1/recipes", headers={"Origin": "http://["}), 403)
    assert client.get("/v1/recipes", headers={"Origin": server.url}).status_code == 200


def test_a_cookie_counts_only_on_this_servers_pages(server: Served) -> None:
    """What changes something by cookie must come from a page of this server."""
    browser = server.client("")
    browser.post("/login", data={"token": str(server.secret)}, headers={"Origin": server.url})
    body = {"text": "by cookie"}
    problem(browser.post("/v1/spaces/ours/memories", json=body), 403)
    problem(browser.post("/v1/spaces/ours/memories", json=body, headers={"Origin": EVIL}), 403)
    own = browser.post("/v1/spaces/ours/memories", json=body, headers={"Origin": server.url})
    assert own.status_code == 201
    assert browser.get("/v1/spaces/ours/stats").status_code == 200


def test_people_are_sent_to_sign_in(server: Served) -> None:
    """A page, asked for by nobody known, leads to the one where one signs in, and that is open."""
    nobody = server.client("")
    sent = nobody.get("/memories", params={"space": "ours"})
    assert (sent.status_code, sent.headers["location"]) == (303, "/login?next=%2Fmemories%3Fspace%3Dours")
    assert nobody.get("/login").status_code == 200


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_signing_in_leads_to_a_page(server: Served, method: str) -> None:
    """Not to where only a form can be sent, which the first token's maker would do by reloading."""
    sent = server.client("").request(method, "/tokens", headers={"Origin": server.url})
    assert (sent.status_code, sent.headers["location"]) == (303, "/login?next=%2F")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("PUT", "/", 405), ("GET", "/tokens", 405), ("POST", "/static/mark.svg", 405), ("GET", "/static/nope", 404)],
)
def test_a_page_that_is_not_there(server: Served, method: str, path: str, status: int) -> None:
    """A problem for programs, a page for people."""
    said = problem(server.client().request(method, path), status)
    page = server.client(Accept="text/html").request(method, path)
    assert (page.status_code, page.headers["content-type"]) == (status, "text/html; charset=utf-8")
    assert said["title"] in page.text


def test_mcp_is_for_posts(server: Served) -> None:
    """Another method is refused as everywhere, and told which is meant."""
    refused = server.client().get("/mcp")
    assert "by POST" in problem(refused, 405)["detail"]
    assert refused.headers["allow"] == "POST"


def test_without_tokens_only_this_machines_names_are_heeded(tmp_path: Path) -> None:
    """A server that asks nobody for a token refuses another Host (DNS rebinding) and another Origin; the first token
    closes it, for the next call already.
    """
    with serving(tmp_path) as served:
        client = served.client()
        port = httpx.URL(served.url).port
        for host in (
            f"evil.example:{port}",
            "evil.example",
            f"localhost.evil.example:{port}",
            "127.0.0.1@evil.example",
            "",
        ):
            problem(client.get("/v1/recipes", headers={"Host": host}), 403)
        problem(client.get("/v1/recipes", headers={"Origin": EVIL}), 403)
        for host in (f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}", "LOCALHOST"):
            assert client.get("/v1/recipes", headers={"Host": host}).status_code == 200
        stale = {"Cookie": "recollect_session=rc_of_another_server"}
        assert client.get("/v1/recipes", headers=stale).status_code == 200
        secret = client.post("/v1/tokens", json={"scope": "admin"}).json()["secret"]
        problem(client.get("/v1/recipes"), 401)
        assert served.client(secret).get("/v1/recipes").status_code == 200


def test_a_thousand_guesses(tmp_path: Path) -> None:
    """Refused, soon with 429, noted once; a right token from that address is heard all the same, though it was never
    seen before, and no secret is logged.
    """
    with serving(tmp_path, tokens=True) as served:
        known, guesser = served.client(), served.client("rc_0000_guess")
        statuses = [guesser.get("/v1/recipes").status_code for _ in range(1000)]
        assert set(statuses) == {401, 429}
        assert statuses.count(429) > statuses.count(401)
        limited = guesser.get("/v1/recipes")
        assert int(limited.headers["retry-after"]) >= 1
        problem(limited, 429)
        assert known.get("/v1/recipes").status_code == 200
        lines = audit(served)
        assert len(lines) == 1
        assert (lines[0]["event"], lines[0]["who"], lines[0]["status"]) == ("refused", "unknown", 401)
        assert "guess" not in served.errors()
        assert str(served.secret) not in served.errors()


def test_a_guesser_keeps_nobody_from_signing_in(tmp_path: Path) -> None:
    """Beside too many wrong tokens the form is shown, answers another wrong one with 429, and takes a right one."""
    with serving(tmp_path, tokens=True) as served:
        browser = served.client("", Origin=served.url)
        statuses = [browser.post("/login", data={"token": "rc_0000_guess"}).status_code for _ in range(20)]
        assert set(statuses) == {401, 429}
        limited = browser.post("/login", data={"token": "rc_0000_guess"})
        assert (limited.status_code, "too many wrong tokens" in limited.text) == (429, True)
        assert int(limited.headers["retry-after"]) >= 1
        assert browser.get("/login").status_code == 200
        assert browser.post("/login", data={"token": str(served.secret)}).status_code == 303


def test_a_stale_cookie_is_no_guess(server: Served) -> None:
    """It leads to the form each time, which takes it away, and no token from that address is refused for it."""
    _, wrong = server.token("ours")
    browser = server.client("", Cookie=f"recollect_session={wrong[:-1]}")
    for _ in range(20):
        assert browser.get("/memories").headers["location"] == "/login?next=%2Fmemories"
    form = browser.get("/login")
    assert form.status_code == 200
    assert 'recollect_session=""' in form.headers["set-cookie"]
    assert "Max-Age=0" in form.headers["set-cookie"]
    problem(server.client(wrong[:-1]).get("/v1/recipes"), 401)


def test_a_token_is_used_too_often(tmp_path: Path) -> None:
    """Beyond its rate a token is answered 429 with the seconds to wait; another one is served meanwhile."""
    with serving(tmp_path, "--rate", "60", tokens=True) as served:
        client = served.client()
        answers = [client.get("/v1/recipes") for _ in range(30)]
        assert [one.status_code for one in answers[:10]] == [200] * 10
        refused = [one for one in answers if one.status_code == 429]
        assert refused
        assert int(refused[0].headers["retry-after"]) >= 1
        _, other = served.token(scope="read")
        assert served.client(other).get("/v1/recipes").status_code == 200


def test_the_audit(tmp_path: Path) -> None:
    """A line for each call that was refused to a token and for each that administers; none for others, no secret."""
    with serving(tmp_path, tokens=True) as served:
        id, secret = served.token("ours", scope="read")
        reader, admin = served.client(secret), served.client()
        for _ in range(2):
            reader.post("/v1/spaces/ours/memories", json={"text": "no"})
        reader.get("/v1/spaces/ours/memories", params={"source_prefix": "a private thing"})
        made = admin.post("/v1/tokens", json={"spaces": ["ours"]}).json()
        admin.delete(f"/v1/tokens/{made['secret']}")
        admin.get("/metrics")
        noted = [(line["event"], line["call"], line["status"]) for line in audit(served)]
        assert noted == [
            ("refused", "POST /v1/spaces/ours/memories", 403),
            ("refused", "POST /v1/spaces/ours/memories", 403),
            ("administered", "POST /v1/tokens", 201),
            ("administered", "DELETE /v1/tokens/rc_…", 404),
        ]
        assert audit(served)[0]["who"] == id
        for text in (secret, str(served.secret), made["secret"], "a private thing"):
            assert text not in served.errors()


def audit(served: Served) -> list[dict[str, Any]]:
    """The lines so far; they are written once a call has been answered, so the last is waited for."""
    before = -1
    while before != (before := len(served.errors())):
        time.sleep(0.05)
    return [json.loads(line) for line in served.errors().splitlines() if line.startswith("{")]
