"""What spaces let each other see."""

from __future__ import annotations

from typing import Final

from recollect.conformance.samples import HERE, record
from recollect.ports import Store
from recollect.types import Grant

READER = "reader"
WRITER = "writer"
READ: Final = "read"
WRITE: Final = "write"


async def spec_a_grant_is_seen_from_both_sides(store: Store) -> None:
    """Both sides see who granted what to whom: by namespace the one, by space the other."""
    await store.add(HERE, [record("a")])
    await store.ledger.grant(HERE, "notes", READER, "read")
    await store.ledger.grant(HERE, "notes", WRITER, "write")
    await store.ledger.grant(HERE, "letters", READER, "read")
    await store.ledger.grant("another", "notes", READER, "read")
    for space, namespace, to in ((HERE, "notes", READER), (HERE, "notes", WRITER), (HERE, "letters", READER)):
        assert await store.ledger.accept(space, namespace, to)
    assert await store.ledger.accept("another", "notes", READER)
    assert list(await store.ledger.granted_by(HERE)) == [
        Grant(HERE, "letters", READER, "read", accepted=True),
        Grant(HERE, "notes", READER, "read", accepted=True),
        Grant(HERE, "notes", WRITER, "write", accepted=True),
    ]
    assert [(grant.space, grant.namespace) for grant in await store.ledger.granted_to(READER)] == [
        ("another", "notes"),
        (HERE, "letters"),
        (HERE, "notes"),
    ]
    assert [grant.access for grant in await store.ledger.granted_to(WRITER)] == ["write"]


async def spec_a_grant_is_an_offer_until_it_is_accepted(store: Store) -> None:
    """The owner sees it with its mark; to the other side an offer and a grant are two lists. Taken back, it is in
    neither, and granted again it is an offer again.
    """
    assert not await store.ledger.accept(HERE, "notes", READER)
    await store.ledger.grant(HERE, "notes", READER, "read")
    assert not await store.ledger.accept(HERE, "notes", WRITER)
    assert not await store.ledger.accept(READER, "notes", READER)
    offer = Grant(HERE, "notes", READER, "read", accepted=False)
    assert list(await store.ledger.granted_by(HERE)) == list(await store.ledger.offered_to(READER)) == [offer]
    assert list(await store.ledger.granted_to(READER)) == []
    for _ in range(2):
        assert await store.ledger.accept(HERE, "notes", READER)
        accepted = Grant(HERE, "notes", READER, "read", accepted=True)
        assert list(await store.ledger.granted_by(HERE)) == list(await store.ledger.granted_to(READER)) == [accepted]
        assert list(await store.ledger.offered_to(READER)) == []
    assert await store.ledger.revoke(HERE, "notes", READER)
    await store.ledger.grant(HERE, "notes", READER, "read")
    assert list(await store.ledger.offered_to(READER)) == [offer]


async def spec_a_second_grant_changes_the_access(store: Store) -> None:
    """Granting again is no second grant: the last access holds, and what was accepted stays so."""
    for access in ("read", "write", "read"):
        await store.ledger.grant(HERE, "notes", READER, access)
        assert list(await store.ledger.offered_to(READER)) == [Grant(HERE, "notes", READER, access)]
    assert await store.ledger.accept(HERE, "notes", READER)
    for again in (WRITE, READ):
        await store.ledger.grant(HERE, "notes", READER, again)
        assert list(await store.ledger.granted_to(READER)) == [Grant(HERE, "notes", READER, again, accepted=True)]


async def spec_a_grant_is_revoked_by_its_owner_alone(store: Store) -> None:
    """One grant is taken back, others stay; another space has none of this name to take back."""
    await store.ledger.grant(HERE, "notes", READER, "read")
    await store.ledger.grant(HERE, "notes", WRITER, "write")
    assert not await store.ledger.revoke(READER, "notes", READER)
    assert not await store.ledger.revoke(HERE, "letters", READER)
    assert await store.ledger.revoke(HERE, "notes", READER)
    assert not await store.ledger.revoke(HERE, "notes", READER)
    assert list(await store.ledger.offered_to(READER)) == []
    assert list(await store.ledger.granted_by(HERE)) == [Grant(HERE, "notes", WRITER, "write")]


async def spec_names_are_taken_as_they_are(store: Store) -> None:
    """No character of a name means anything, and names are compared to the last of them."""
    odd = "a'b\"c/d:e%_;--{}"
    await store.ledger.grant(odd, odd, odd + "!", "read")
    assert list(await store.ledger.offered_to(odd + "!")) == [Grant(odd, odd, odd + "!", "read")]
    assert list(await store.ledger.offered_to(odd)) == []
    assert list(await store.ledger.offered_to(odd.upper() + "!")) == []
    assert not await store.ledger.accept(odd, odd, odd.upper() + "!")
    assert await store.ledger.accept(odd, odd, odd + "!")


async def spec_granting_to_a_space_does_not_make_it(store: Store) -> None:
    """A space that was only granted something holds nothing yet."""
    await store.add(HERE, [record("a")])
    await store.ledger.grant(HERE, "notes", READER, "read")
    assert list(await store.spaces()) == [HERE]
