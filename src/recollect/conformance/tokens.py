"""The tokens that servers are called with."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

from recollect.conformance.samples import HERE, NOW, record
from recollect.ports import SESSIONS, Store
from recollect.types import Token

DAY = timedelta(days=1)
ODD = "a'b\"c,d{}\\e%_;--é"
FIRST = Token("first", ODD, (HERE, ODD), "write", NOW, NOW + DAY)
SECOND = Token("second", "", (), "admin", NOW + DAY)
DIGEST = bytes(range(32))


async def spec_a_token_comes_back_as_it_was_given(store: Store) -> None:
    """To the last character and microsecond, with its digest; a token that is not there does not."""
    await store.ledger.add_token(FIRST, DIGEST)
    await store.ledger.add_token(SECOND, DIGEST[::-1])
    assert await store.ledger.token("first") == (FIRST, DIGEST)
    assert await store.ledger.token("second") == (SECOND, DIGEST[::-1])
    assert await store.ledger.token("FIRST") is None
    assert await store.ledger.token(HERE) is None


async def spec_tokens_are_listed_oldest_first(store: Store) -> None:
    """By the time at which they were made, whatever the order in which they came, and by id at the same time."""
    assert list(await store.ledger.tokens()) == []
    tokens = [SECOND, replace(FIRST, id="later"), FIRST]
    for token in tokens:
        await store.ledger.add_token(token, DIGEST)
    assert list(await store.ledger.tokens()) == tokens[::-1]


async def spec_a_token_is_revoked_once(store: Store) -> None:
    """The first time counts; the token stays known, and others are as they were."""
    for token in (FIRST, SECOND):
        await store.ledger.add_token(token, DIGEST)
    assert not await store.ledger.revoke_token("third", NOW)
    assert await store.ledger.revoke_token("first", NOW)
    assert not await store.ledger.revoke_token("first", NOW + DAY)
    assert await store.ledger.token("first") == (replace(FIRST, revoked_at=NOW), DIGEST)
    assert await store.ledger.token("second") == (SECOND, DIGEST)


async def spec_of_many_who_revoke_one_does(store: Store) -> None:
    """A token that several revoke at the same time is revoked by one of them."""
    await store.ledger.add_token(FIRST, DIGEST)
    assert sum(await asyncio.gather(*(store.ledger.revoke_token("first", NOW) for _ in range(5)))) == 1


async def spec_a_store_knows_whether_it_ever_had_a_token(store: Store) -> None:
    """Also when the last one was revoked."""
    assert not await store.ledger.any_token()
    await store.ledger.add_token(FIRST, DIGEST)
    assert await store.ledger.any_token()
    await store.ledger.revoke_token("first", NOW)
    assert await store.ledger.any_token()


async def spec_a_token_does_not_make_a_space(store: Store) -> None:
    """It may name spaces that are not there yet."""
    await store.ledger.add_token(FIRST, DIGEST)
    assert list(await store.spaces()) == []
    await store.add(HERE, [record("a")])
    assert await store.ledger.token("first") == (FIRST, DIGEST)


async def spec_a_session_leads_to_its_token(store: Store) -> None:
    """With the time at which it ends, until it is ended."""
    await store.ledger.add_token(FIRST, DIGEST)
    await store.ledger.add_session(DIGEST, "first", now=NOW, expires=NOW + DAY)
    await store.ledger.add_session(DIGEST[::-1], "first", now=NOW, expires=NOW + 2 * DAY)
    assert await store.ledger.session(DIGEST) == (FIRST, NOW + DAY)
    assert await store.ledger.session(DIGEST[::-1]) == (FIRST, NOW + 2 * DAY)
    assert await store.ledger.session(bytes(32)) is None
    assert await store.ledger.end_session(DIGEST)
    assert not await store.ledger.end_session(DIGEST)
    assert await store.ledger.session(DIGEST) is None
    assert await store.ledger.session(DIGEST[::-1]) == (FIRST, NOW + 2 * DAY)


async def spec_a_revoked_token_has_no_session(store: Store) -> None:
    """Revoking it ends those that were begun with it, and no other."""
    for number, token in enumerate((FIRST, SECOND)):
        await store.ledger.add_token(token, DIGEST)
        await store.ledger.add_session(bytes([number]), token.id, now=NOW, expires=NOW + DAY)
    await store.ledger.revoke_token("first", NOW)
    assert await store.ledger.session(b"\0") is None
    assert await store.ledger.session(b"\1") == (SECOND, NOW + DAY)


async def spec_sessions_do_not_pile_up(store: Store) -> None:
    """Those that are over go when another begins, and so do the oldest of a token that has very many."""
    for token in (FIRST, SECOND):
        await store.ledger.add_token(token, DIGEST)
    await store.ledger.add_session(b"over", "second", now=NOW, expires=NOW + DAY)
    for number in range(SESSIONS + 1):
        now = NOW + DAY + timedelta(seconds=number)
        await store.ledger.add_session(number.to_bytes(2, "big"), "first", now=now, expires=now + DAY)
    assert await store.ledger.session(b"over") is None
    kept = [await store.ledger.session(number.to_bytes(2, "big")) is not None for number in range(SESSIONS + 1)]
    assert kept == [False] + SESSIONS * [True]
