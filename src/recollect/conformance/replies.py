"""What requests with an idempotency key were answered with."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

from recollect.conformance.samples import HERE, NOW, record
from recollect.ports import Store
from recollect.types import Reply

MINUTE = timedelta(minutes=1)
LATER = NOW + MINUTE
BODY = bytes(range(256))


async def claimed(
    store: Store, key: str = "key", fingerprint: str = "one", *, now: datetime = NOW, space: str = HERE
) -> Reply | None:
    """What a claim of the next minute is told."""
    return await store.ledger.claim(space, key, fingerprint, now=now, expires=now + MINUTE)


async def spec_a_key_is_claimed_and_answered(store: Store) -> None:
    """The first request gets the key; those that follow learn that it is under way, and then what it was answered."""
    assert await claimed(store) is None
    assert await claimed(store) == await claimed(store, fingerprint="two") == Reply("one")
    await store.ledger.reply(HERE, "key", 201, BODY, expires=LATER)
    assert await claimed(store) == await claimed(store, fingerprint="two") == Reply("one", 201, BODY)


async def spec_keys_are_apart(store: Store) -> None:
    """A key of another space, or one that differs in anything, is another key."""
    odd = "a'b\"c/d:e%_;--{}"
    assert await claimed(store, odd) is None
    assert await claimed(store, odd, space="another") is None
    assert await claimed(store, odd.upper()) is None
    await store.ledger.reply("another", odd, 200, b"theirs", expires=LATER)
    await store.ledger.disclaim("nowhere", odd)
    assert await claimed(store, odd) == Reply("one")
    assert await claimed(store, odd, space="another") == Reply("one", 200, b"theirs")


async def spec_of_many_who_claim_one_gets_the_key(store: Store) -> None:
    """In a space that is there, in one that begins with the claims, and where a claim has expired."""
    await store.add(HERE, [record("a")])
    for space, now in ((HERE, NOW), ("new", NOW), (HERE, LATER)):
        answers = await asyncio.gather(*(claimed(store, fingerprint=str(n), now=now, space=space) for n in range(10)))
        assert answers.count(None) == 1
        winner = Reply(str(answers.index(None)))
        assert all(answer == winner for answer in answers if answer is not None)


async def spec_a_key_that_is_let_go_is_free(store: Store) -> None:
    """A request that came to nothing may be sent again; an answer stays."""
    assert await claimed(store) is None
    await store.ledger.disclaim(HERE, "key")
    assert await claimed(store, fingerprint="two") is None
    await store.ledger.reply(HERE, "key", 200, b"", expires=LATER)
    await store.ledger.disclaim(HERE, "key")
    assert await claimed(store) == Reply("two", 200, b"")


async def spec_the_first_answer_stays(store: Store) -> None:
    """A request that was taken over changes nothing; an answer without a claim is not kept."""
    assert await claimed(store) is None
    await store.ledger.reply(HERE, "key", 200, b"first", expires=LATER)
    await store.ledger.reply(HERE, "key", 500, b"second", expires=LATER + MINUTE)
    assert await claimed(store) == Reply("one", 200, b"first")
    await store.ledger.reply(HERE, "other", 200, b"", expires=LATER)
    assert await claimed(store, "other") is None


async def spec_what_has_expired_is_taken_over(store: Store) -> None:
    """A claim, and an answer; each from the moment on that it expires, and as if it had never been."""
    assert await claimed(store) is None
    assert await claimed(store, now=LATER - timedelta(microseconds=1)) == Reply("one")
    assert await claimed(store, fingerprint="two", now=LATER) is None
    await store.ledger.reply(HERE, "key", 200, BODY, expires=LATER + 5 * MINUTE)
    assert await claimed(store, now=LATER + 4 * MINUTE) == Reply("two", 200, BODY)
    assert await claimed(store, fingerprint="three", now=LATER + 5 * MINUTE) is None
    assert await claimed(store, now=LATER + 5 * MINUTE) == Reply("three")


async def spec_what_has_expired_is_removed(store: Store) -> None:
    """By claims of other keys, so that it does not pile up; what has not expired is left alone. A claim at an earlier
    time tells whether a key is still there.
    """
    keys = [f"key {n}" for n in range(20)]
    for key in keys:
        assert await claimed(store, key) is None
    await store.ledger.reply(HERE, keys[0], 200, b"kept", expires=LATER + MINUTE)
    assert await claimed(store, now=LATER) is None
    assert [key for key in keys if await claimed(store, key) is not None] == [keys[0]]
