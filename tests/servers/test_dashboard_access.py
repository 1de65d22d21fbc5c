"""The dashboard's doors: signing in, tokens made and revoked, and that nobody sees another's space."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from recollect import AsyncRecollect
from recollect.engine import tokens
from recollect.servers.gate.gate import Limits
from recollect.types import Issued
from tests.servers.dashboard_reader import ORIGIN, Reader, reading

VIEWS = ("/", "/memories", "/memory", "/health", "/spaces")


@pytest.fixture
async def reader(client: AsyncRecollect) -> AsyncIterator[Reader]:
    async with reading(client) as reader:
        yield reader


@pytest.fixture
async def admin(client: AsyncRecollect) -> Issued:
    """A token for everything, so that the server asks for one."""
    return await client.tokens.create(scope="admin", name="Ada")


async def signed_in(reader: Reader, issued: Issued) -> Reader:
    await reader.send("/login", {"token": issued.secret})
    return reader


@pytest.mark.parametrize("path", VIEWS)
async def test_who_is_not_known_is_sent_to_sign_in(reader: Reader, admin: Issued, path: str) -> None:
    """And then back to where they wanted to go."""
    answer = await reader.http.get(path, params={"space": "work"})
    assert answer.status_code == 303
    assert answer.headers["location"] == f"/login?next=%2F{path[1:]}%3Fspace%3Dwork"
    sent = await reader.send("/login", {"token": admin.secret, "next": f"{path}?space=work"})
    assert sent.headers["location"] == f"{path}?space=work"


async def test_the_cookie_is_for_nobody_else(client: AsyncRecollect, admin: Issued) -> None:
    """Scripts cannot read it, other sites cannot use it, and over https it goes nowhere else."""
    async with reading(client) as reader:
        cookie = (await reader.send("/login", {"token": admin.secret})).headers["set-cookie"].lower()
    assert all(part in cookie for part in ("httponly", "samesite=strict", "path=/"))
    assert "secure" not in cookie
    assert "max-age" not in cookie
    async with reading(client, "https://127.0.0.1") as reader:
        answer = await reader.http.post("/login", data={"token": admin.secret}, headers={"Origin": "https://127.0.0.1"})
    assert "secure" in answer.headers["set-cookie"].lower()


@pytest.mark.parametrize(
    ("headers", "secure"),
    [
        ({"X-Forwarded-Proto": "https"}, True),
        ({"X-Forwarded-Proto": "HTTPS, http"}, True),
        ({"Forwarded": 'for=192.0.2.60;proto="https";by=203.0.113.43'}, True),
        ({"Forwarded": "proto=https, proto=http"}, True),
        ({"Origin": "https://127.0.0.1"}, True),
        ({"X-Forwarded-Proto": "http"}, False),
        ({"X-Forwarded-Proto": "http, https"}, False),
        ({"Forwarded": "for=proto-https;proto=http"}, False),
    ],
)
async def test_behind_a_proxy_that_says_https_the_cookie_is_secure(
    reader: Reader, admin: Issued, headers: dict[str, str], secure: bool
) -> None:
    """Also where only the browser says so, by its Origin."""
    answer = await reader.http.post("/login", data={"token": admin.secret}, headers={"Origin": ORIGIN} | headers)
    assert answer.status_code == 303
    assert ("secure" in answer.headers["set-cookie"].lower()) is secure


async def test_the_cookie_is_a_session_of_its_own(client: AsyncRecollect, reader: Reader, admin: Issued) -> None:
    """It does not hold the token, nor does the store hold what it holds; as a token it opens nothing."""
    await signed_in(reader, admin)
    session = reader.http.cookies["recollect_session"]
    assert admin.secret not in session
    assert admin.token.id not in session
    token = await client.tokens.signed_in(session)
    assert token == admin.token
    bearer = await reader.http.get("/v1/recipes", headers={"Authorization": f"Bearer {session}"})
    assert bearer.status_code == 401
    reader.http.cookies.set("recollect_session", admin.secret)
    assert (await reader.http.get("/")).status_code == 303


async def test_sessions_end_one_by_one_and_with_their_token(client: AsyncRecollect, admin: Issued) -> None:
    """Signing out ends one's own, wherever its cookie went; revoking the token ends all."""
    async with reading(client) as one, reading(client) as other, reading(client) as thief:
        for reader in (one, other):
            await signed_in(reader, admin)
        thief.http.cookies.set("recollect_session", one.http.cookies["recollect_session"])
        await thief.get("/")
        await one.send("/logout", {})
        assert (await thief.http.get("/")).status_code == 303
        await other.get("/")
        await client.tokens.revoke(admin.token.id)
        assert (await other.http.get("/")).status_code == 303


async def test_a_session_has_an_end(client: AsyncRecollect, reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where its token has none."""
    monkeypatch.setattr(tokens, "SESSION_LENGTH", timedelta())
    await signed_in(reader, await client.tokens.create(scope="admin"))
    assert (await reader.http.get("/")).status_code == 303


async def test_signing_in_counts_as_a_use(client: AsyncRecollect, admin: Issued) -> None:
    """Who signs in again and again is refused as by any other call."""
    async with reading(client, limits=Limits(rate=6)) as reader:
        await reader.send("/login", {"token": admin.secret})
        reader.http.cookies.clear()
        refused = await reader.send("/login", {"token": admin.secret}, status=429)
        assert "used too often" in refused.text


async def test_the_cookie_lives_as_long_as_its_token(client: AsyncRecollect, reader: Reader) -> None:
    """Not longer."""
    issued = await client.tokens.create(expires="1h")
    cookie = (await reader.send("/login", {"token": issued.secret})).headers["set-cookie"]
    found = re.search(r"Max-Age=(\d+)", cookie)
    assert found
    assert 3000 < int(found[1]) <= 3600


@pytest.mark.parametrize("secret", ["", "rc_00_00", "x" * 5000, "<script>"])
async def test_a_wrong_token_is_refused(reader: Reader, admin: Issued, secret: str) -> None:
    """With 401 and one sentence; it is not repeated on the page, and no cookie is set."""
    answer = await reader.send("/login", {"token": secret}, status=401)
    assert "this is not a token of this store" in answer.text
    assert "set-cookie" not in answer.headers
    assert not secret or secret not in answer.text


async def test_signing_out(reader: Reader, admin: Issued) -> None:
    """The cookie is gone, and so is the way in."""
    await signed_in(reader, admin)
    assert "Signed in as <b>Ada</b>" in await reader.get("/")
    await reader.send("/logout", {})
    assert (await reader.http.get("/")).status_code == 303


async def test_signing_in_leads_nowhere_else(reader: Reader, admin: Issued) -> None:
    """A link to the form cannot name another site to go on to."""
    assert 'name="next" value="/"' in await reader.get("/login", next="//evil.example/")
    sent = await reader.send("/login", {"token": admin.secret, "next": "https://evil.example"})
    assert sent.headers["location"] == "/"


async def test_a_server_without_tokens_needs_no_signing_in(reader: Reader) -> None:
    """The form says so, and leads on."""
    assert "To the dashboard" in await reader.read("/login")


async def test_another_sites_form_does_nothing(reader: Reader, admin: Issued, client: AsyncRecollect) -> None:
    """A form of another origin is refused, though the browser might send the cookie along."""
    await signed_in(reader, admin)
    for path, fields in (
        ("/tokens", {"reach": "all"}),
        ("/tokens/revoke", {"id": admin.token.id}),
        ("/logout", {}),
        ("/memory/used", {"space": "work", "id": "a"}),
    ):
        answer = await reader.http.post(path, data=fields, headers={"Origin": "http://evil.example"})
        assert answer.status_code == 403
    assert [token.revoked_at for token in await client.tokens.list()] == [None]


@pytest.mark.parametrize("path", ["/tokens", "/tokens/revoke", "/logout", "/theme", "/memory/used"])
async def test_nothing_changes_by_following_a_link(reader: Reader, path: str) -> None:
    """What changes something takes a form."""
    assert (await reader.http.get(path)).status_code in (404, 405)


async def test_a_reader_cannot_say_what_was_of_use(client: AsyncRecollect, reader: Reader) -> None:
    """It has no button for that, and a form of its own is refused: that changes something."""
    await client.space("mine").remember("My secret", id="mine")
    await signed_in(reader, await client.tokens.create(spaces=["mine"], scope="read", name="me"))
    for path in ("/?q=secret", "/memory?id=mine"):
        assert "/memory/used" not in await reader.get(path)
    for space in ("mine", "theirs"):
        await reader.send("/memory/used", {"space": space, "id": "mine", "back": "/"}, 403)
    assert (await client.space("mine").get("mine")).used == 0


async def test_another_space_is_refused(client: AsyncRecollect, reader: Reader) -> None:
    """On every view, whether it is there or not; and nothing of it shows on one's own."""
    await client.space("theirs").remember("Their secret", id="secret")
    await client.space("mine").remember("My secret", id="mine")
    await signed_in(reader, await client.tokens.create(spaces=["mine"], scope="write", name="me"))
    for path in ("/", "/memories", "/memory?id=secret", "/health"):
        for space in ("theirs", "nowhere"):
            answer = await reader.http.get(path, params={"space": space, "q": "secret", "id": "secret"})
            assert answer.status_code == 403
            assert "Their secret" not in answer.text
    for path in ("/", "/memories", "/health"):
        page = await reader.get(path, q="secret")
        assert "theirs" not in page
        assert "Their secret" not in page
    await reader.get("/memory", 404, id="secret")
    await reader.get("/spaces", 403)


async def test_details_of_engines_are_for_those_who_administer_all(client: AsyncRecollect, reader: Reader) -> None:
    """Others see whether they answer: what an engine says may name other spaces."""
    await signed_in(reader, await client.tokens.create(spaces=["mine"], scope="admin"))
    words = await reader.read("/health")
    assert "store ok answers embedder ok answers" in words


async def test_a_reader_of_all_spaces_names_one(client: AsyncRecollect, reader: Reader) -> None:
    """Which there are is for those who administer them: the field is empty of names."""
    await client.space("work").remember("The red door")
    await signed_in(reader, await client.tokens.create(scope="read"))
    assert '<input id="space" name="space" value="default"' in await reader.get("/memories")
    assert "The red door" in await reader.read("/memories", space="work")


async def test_a_token_is_shown_once(client: AsyncRecollect, reader: Reader) -> None:
    """Its secret is on the page that made it and on no other, and it opens what was said."""
    await client.space("work").remember("The red door")
    made = await reader.send("/tokens", {"name": "CI", "scope": "read", "space": "work", "expires": "90d"}, 200)
    found = re.search(r"rc_[0-9a-f]{16}_[0-9a-f]{48}", made.text)
    assert found
    (token,) = await client.tokens.list()
    assert (token.name, token.scope, token.spaces) == ("CI", "read", ("work",))
    await reader.send("/login", {"token": found[0]})
    assert "The red door" in await reader.read("/memories")
    await signed_in(reader, await client.tokens.create(scope="admin"))
    shown = await reader.get("/spaces")
    assert token.id in shown
    assert found[0] not in shown


async def test_a_revoked_token_opens_nothing(client: AsyncRecollect, reader: Reader, admin: Issued) -> None:
    """From the next page on, for whoever had it."""
    other = await client.tokens.create(name="CI")
    await signed_in(reader, admin)
    sent = await reader.send("/tokens/revoke", {"id": other.token.id})
    assert sent.headers["location"] == "/spaces#tokens"
    assert "CI revoked" in await reader.read("/spaces")
    await reader.send("/logout", {})
    await reader.send("/login", {"token": other.secret}, status=401)


async def test_who_administers_some_spaces_administers_these_alone(
    client: AsyncRecollect, reader: Reader, admin: Issued
) -> None:
    """They see and revoke tokens of their spaces, and make none for others or for all."""
    theirs = await client.tokens.create(spaces=["theirs"], name="Theo")
    both = await client.tokens.create(spaces=["mine", "theirs"], name="Both")
    await signed_in(reader, await client.tokens.create(spaces=["mine"], scope="admin", name="me"))
    page = await reader.get("/spaces")
    assert "<b>me</b>" in page
    assert not any(name in page for name in ("Theo", "Both", "Ada", "theirs"))
    for token in (theirs, both, admin):
        await reader.send("/tokens/revoke", {"id": token.token.id}, 404)
    await reader.send("/tokens", {"space": "theirs"}, 403)
    await reader.send("/tokens", {"space": ["mine", "theirs"]}, 403)
    await reader.send("/tokens", {"reach": "all"}, 403)
    await reader.send("/tokens", {"space": "mine", "scope": "admin"}, 200)
    assert all(token.revoked_at is None for token in await client.tokens.list())


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": "CI"}, "no space was named"),
        ({"space": "work", "scope": "root"}, "the scope is 'root'"),
        ({"space": "work", "expires": "soon"}, "expires is 'soon'"),
        ({"space": "work", "name": "x" * 300}, "more than the 200 allowed"),
    ],
)
async def test_a_token_that_cannot_be_made(
    client: AsyncRecollect, reader: Reader, fields: dict[str, str], said: str
) -> None:
    """One sentence, and none was made."""
    answer = await reader.send("/tokens", fields, 422)
    assert said in answer.text.replace("&#39;", "'")
    assert await client.tokens.list() == []


async def test_forms_that_are_none(reader: Reader) -> None:
    """Another type of body, a body that is no text, and too many fields."""
    for content, kind in ((b"{}", "application/json"), (b"\xff=\xff", None), (b"a=1&" * 2000, None)):
        headers = {"Content-Type": kind or "application/x-www-form-urlencoded"}
        assert (await reader.http.post("/theme", content=content, headers=headers)).status_code == 422


async def test_colours_can_be_chosen(reader: Reader) -> None:
    """And stay, by a cookie; without scripts."""
    sent = await reader.send("/theme", {"theme": "dark", "back": "/memories?space=a"})
    assert sent.headers["location"] == "/memories?space=a"
    assert '<html lang="en" data-theme="dark">' in await reader.get("/")
    await reader.send("/theme", {"theme": "pink"}, 422)
