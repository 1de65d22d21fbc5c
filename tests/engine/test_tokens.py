"""Tokens: made once, checked for every call, revoked at once; never a secret where it does not belong."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from recollect import AsyncRecollect, InvalidRequest, Issued, NotAllowed, Recollect, Token
from recollect.engine.tokens import SPACES, AsyncTokens
from recollect.stores.sqlite.store import SqliteStore

NO_SUCH = "this is not a token of this store: check it, or ask for another"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(tmp_path / "memory.db")
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def tokens(store: SqliteStore) -> AsyncTokens:
    return AsyncTokens(store.ledger)


def bytes_of(folder: Path) -> bytes:
    """Every file of a folder."""
    return b"".join(path.read_bytes() for path in folder.iterdir() if path.is_file())


async def refusal(tokens: AsyncTokens, secret: str) -> str:
    """The sentence that a secret is refused with."""
    with pytest.raises(NotAllowed) as refused:
        await tokens.check(secret)
    assert not refused.value.known
    return str(refused.value)


async def test_a_token_is_known_by_its_secret(tokens: AsyncTokens) -> None:
    """What was asked for is what a check answers, for each token its own."""
    first = await tokens.create(spaces=["work", "home", "work"], scope="write", name="the build", expires="90d")
    second = await tokens.create()
    assert await tokens.check(first.secret) == first.token
    assert await tokens.check(second.secret) == second.token
    token = first.token
    assert (token.spaces, token.scope, token.name) == (("work", "home"), "write", "the build")
    assert token.expires_at == token.created_at + timedelta(days=90)
    assert (second.token.spaces, second.token.scope, second.token.expires_at) == ((), "read", None)
    assert first.secret.startswith(f"rc_{token.id}_")


async def test_a_token_allows_its_scope_in_its_spaces(tokens: AsyncTokens) -> None:
    """Each scope includes those before it; without spaces it is for all of them."""
    one = (await tokens.create(spaces=["work"], scope="write")).token
    assert [one.may(scope, "work") for scope in ("read", "write", "admin")] == [True, True, False]
    assert not one.may("read", "home")
    assert not one.may("read")
    everything = (await tokens.create(scope="admin")).token
    assert everything.may("admin", "home")
    assert everything.may("admin")


async def test_only_the_hash_of_a_secret_is_kept(store: SqliteStore, tmp_path: Path, tokens: AsyncTokens) -> None:
    """No file of the store holds the secret, and neither does what is printed of an issued token."""
    issued = await tokens.create(name="the build")
    kept = bytes_of(tmp_path)
    assert b"the build" in kept
    assert sha256(issued.secret.encode()).digest() in kept
    random = issued.secret.rpartition("_")[2]
    assert random.encode() not in kept
    assert random not in f"{issued!r} {issued} {await tokens.list()} {await store.ledger.token(issued.token.id)}"


async def test_what_is_no_token_is_refused(tokens: AsyncTokens) -> None:
    """Wrong, unknown or no secret at all: one sentence for all of them, which does not repeat what was given."""
    issued, other = await tokens.create(), await tokens.create()
    end = "0" if issued.secret[-1] != "0" else "1"
    tried = [
        issued.secret[:-1] + end,
        issued.secret.replace(issued.token.id, other.token.id),
        issued.secret.replace(issued.token.id, "0" * 16),
        issued.secret.upper(),
        issued.secret + "\n",
        issued.token.id,
        "",
        "rc__",
        "\ud800",
        "é" * 100_000,
    ]
    assert {await refusal(tokens, secret) for secret in tried} == {NO_SUCH}


async def test_an_expired_token_is_refused(store: SqliteStore, tokens: AsyncTokens) -> None:
    """From the moment on that it expires; its bearer is told when that was."""
    issued = await tokens.create()
    now = datetime.now(UTC)
    for id, expires in (("a" * 16, now), ("b" * 16, now + timedelta(hours=1))):
        secret = issued.secret.replace(issued.token.id, id)
        await store.ledger.add_token(Token(id, "", (), "read", now, expires), sha256(secret.encode()).digest())
    expired, valid = (issued.secret.replace(issued.token.id, id) for id in ("a" * 16, "b" * 16))
    assert await refusal(tokens, expired) == f"this token expired at {now.isoformat()}: ask for another"
    assert (await tokens.check(valid)).id == "b" * 16


async def test_a_revoked_token_is_refused_at_once(tmp_path: Path) -> None:
    """By every process that uses the store; revoking it again says that there was nothing to revoke."""
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    async with AsyncRecollect(url, embedder="hashing") as here, AsyncRecollect(url, embedder="hashing") as there:
        issued, other = await here.tokens.create(), await here.tokens.create()
        assert await there.tokens.check(issued.secret) == issued.token
        assert await here.tokens.revoke(issued.token.id)
        assert await refusal(there.tokens, issued.secret) == "this token was revoked: ask for another"
        assert await there.tokens.check(other.secret) == other.token
        assert not await there.tokens.revoke(issued.token.id)
        assert [token.revoked_at is None for token in await there.tokens.list()] == [False, True]


@pytest.mark.parametrize("id", ["", "nothing", "0" * 16, "\x00", "\ud800", "rc_" + "0" * 16 + "_" + "0" * 48])
async def test_what_is_no_id_revokes_nothing(tokens: AsyncTokens, id: str) -> None:
    """A secret given for an id is not repeated in an error either."""
    await tokens.create()
    assert await tokens.revoke(id) is False


async def test_tokens_are_listed(tokens: AsyncTokens) -> None:
    """Oldest first: all of them, or those that name a space."""
    made = [(await tokens.create(spaces=spaces)).token for spaces in (["a"], ["b"], [], ["b", "a"])]
    assert await tokens.list() == made
    assert await tokens.list("a") == [made[0], made[3]]
    assert await tokens.list("c") == []


async def test_a_store_that_had_a_token_asks_for_one(store: SqliteStore, tokens: AsyncTokens) -> None:
    """Before the first it does not; after the last was revoked it still does, also for another process."""
    assert not await tokens.required()
    issued = await tokens.create()
    await tokens.revoke(issued.token.id)
    assert await tokens.required()
    assert await AsyncTokens(store.ledger).required()


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"scope": "own"}, "the scope is 'own', and must be one of: read, write, admin"),
        ({"spaces": "work"}, "spaces must be a list of texts, not 'work'"),
        ({"spaces": ["a\nb"]}, "holds a control character"),
        ({"spaces": [""]}, "space is empty"),
        ({"spaces": [f"{n}" for n in range(SPACES + 1)]}, "65 spaces were given, more than the 64 allowed"),
        ({"name": " "}, "name is empty"),
        ({"name": "n" * 201}, "more than the 200 allowed"),
        ({"expires": "2020-01-01"}, "expires is 2020-01-01T00:00:00+00:00, which is past"),
        ({"expires": "0d"}, "which is past"),
        ({"expires": "999999w"}, "within the years 1 to 9999"),
        ({"expires": "soon"}, "expires is 'soon', which is not a time: write 2026-05-03,"),
        ({"expires": 90}, "expires must be a time, not int: write 2026-05-03,"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else "",
)
async def test_what_no_token_can_be_made_of(tokens: AsyncTokens, asked: dict[str, Any], says: str) -> None:
    """Refused in a sentence, and nothing is made."""
    with pytest.raises(InvalidRequest) as refused:
        await tokens.create(**asked)
    assert says in str(refused.value)
    assert await tokens.list() == []
    assert not await tokens.required()


@pytest.mark.parametrize(
    ("expires", "hours"), [("12h", 12), ("2w", 14 * 24), (datetime.now(UTC) + timedelta(hours=5), 5)]
)
async def test_when_a_token_expires(tokens: AsyncTokens, expires: Any, hours: int) -> None:
    """After a span, or at a time; a time without a zone is UTC."""
    token = (await tokens.create(expires=expires)).token
    assert token.expires_at is not None
    assert round((token.expires_at - token.created_at) / timedelta(hours=1)) == hours
    naive = datetime(2999, 1, 1)
    assert (await tokens.create(expires=naive)).token.expires_at == naive.replace(tzinfo=UTC)


def test_without_await() -> None:
    """`Recollect.tokens` has the same calls."""
    with Recollect("sqlite:///:memory:", embedder="hashing") as r:
        assert not r.tokens.required()
        issued = r.tokens.create(spaces=["work"], scope="admin", name="me", expires="1w")
        assert isinstance(issued, Issued)
        assert r.tokens.check(issued.secret) == issued.token == r.tokens.list("work")[0]
        assert r.tokens.required()
        assert r.tokens.revoke(issued.token.id)
        with pytest.raises(NotAllowed):
            r.tokens.check(issued.secret)
