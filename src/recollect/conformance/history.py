"""Superseding, and a memory's history: what it replaced, and what replaced it."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from itertools import pairwise

from recollect.conformance.samples import HERE, NOW, ids, raises, record
from recollect.errors import InvalidRequest, NotFound
from recollect.ports import Store
from recollect.types import Filter, Memory

CHAIN = ["d", "a", "e", "b", "c"]
"""Each was replaced by the next; their ids are in another order."""


async def _versions(store: Store, id: str, limit: int = 100) -> list[str]:
    return list(await store.history(HERE, id, limit=limit))


async def _add_chain(store: Store) -> None:
    await store.add(HERE, [record(id) for id in sorted(CHAIN)])
    for old, new in pairwise(CHAIN):
        await store.supersede(HERE, old, new, now=NOW)


async def spec_supersede_hides_the_old(store: Store) -> None:
    """A superseded memory names its successor and is found only when asked for."""
    await store.add(HERE, [record("old"), record("new")])
    await store.supersede(HERE, "old", "new", now=NOW + timedelta(hours=1))
    old = (await store.get(HERE, ["old"]))["old"]
    assert (old.superseded_by, old.updated_at) == ("new", NOW + timedelta(hours=1))
    assert await ids(store) == ["new"]
    assert await ids(store, Filter(include_superseded=True)) == ["new", "old"]


async def spec_of_several_successors_one_wins(store: Store) -> None:
    """Who supersedes what was superseded meanwhile is told by what; the same successor may be named again."""
    await store.add(HERE, [record(id) for id in ("old", "a", "b", "c")])
    tries = (store.supersede(HERE, "old", new, now=NOW) for new in "abc")
    outcomes = await asyncio.gather(*tries, return_exceptions=True)
    refused = [one for one in outcomes if not isinstance(one, Memory)]
    winner = (await store.get(HERE, ["old"]))["old"].superseded_by
    assert winner is not None
    assert winner in "abc"
    assert len(refused) == 2
    for error in refused:
        assert isinstance(error, InvalidRequest)
        assert f"is already superseded by {winner!r}: supersede that one" in str(error)
    await store.supersede(HERE, "old", winner, now=NOW)


async def spec_a_successor_is_stored_if_it_wins(store: Store) -> None:
    """A record that replaces a memory is stored with the mark, or not at all; a copy of it that is here replaces the
    memory instead, and stays whatever comes of it.
    """
    await store.add(HERE, [record("old"), record("copy", "the same")])
    tries = [store.supersede(HERE, "old", record(id, "the same" if id == "b" else ""), now=NOW) for id in "abc"]
    outcomes = await asyncio.gather(*tries, return_exceptions=True)
    (new,) = [one for one in outcomes if isinstance(one, Memory)]
    assert (await store.get(HERE, ["old"]))["old"].superseded_by == new.id
    assert sum(isinstance(one, InvalidRequest) for one in outcomes) == 2
    assert new.id in ("a", "copy", "c")
    assert await ids(store) == sorted({"copy", new.id})
    assert (await store.get(HERE, [new.id]))[new.id] == new


async def spec_a_refused_successor_leaves_nothing(store: Store) -> None:
    """Not for a memory that is not here, not for itself, not under an id that says something else."""
    await store.add(HERE, [record("old"), record("other", tags=("a",))])
    before = await store.get(HERE, ["old", "other"])
    with raises(NotFound, "nothing"):
        await store.supersede(HERE, "nothing", record("new"), now=NOW)
    with raises(NotFound, "nothing"):
        await store.supersede("nowhere", "nothing", record("new", space="nowhere"), now=NOW)
    with raises(InvalidRequest, "itself"):
        await store.supersede(HERE, "old", record("new", "memory old", tags=("b",)), now=NOW)
    with raises(InvalidRequest, "another text"):
        await store.supersede(HERE, "old", record("other", "another text"), now=NOW)
    assert await store.get(HERE, ["old", "other", "new"]) == before


async def spec_supersede_makes_no_cycles(store: Store) -> None:
    """Nothing supersedes itself, directly or through others, nor what is not there."""
    await store.add(HERE, [record(id) for id in "abc"])
    await store.supersede(HERE, "a", "b", now=NOW)
    await store.supersede(HERE, "b", "c", now=NOW)
    for old, new in ("aa", "ba", "ca"):
        with raises(InvalidRequest):
            await store.supersede(HERE, old, new, now=NOW)
    for old, new in (("a", "nothing"), ("nothing", "a")):
        with raises(NotFound, "nothing"):
            await store.supersede(HERE, old, new, now=NOW)
    assert (await store.get(HERE, ["c"]))["c"].superseded_by is None


async def spec_a_corrected_fact_does_not_come_back(store: Store) -> None:
    """What was superseded stays so when its successor is forgotten."""
    await store.add(HERE, [record("old"), record("new")])
    await store.supersede(HERE, "old", "new", now=NOW)
    await store.forget(HERE, ["new"])
    assert await ids(store) == []


async def spec_a_history_is_the_same_from_each_version(store: Store) -> None:
    """Whichever version is asked for: all of them, each before what replaced it."""
    await _add_chain(store)
    await store.add(HERE, [record("z")])
    for id in CHAIN:
        assert await _versions(store, id) == CHAIN
    assert await _versions(store, "z") == ["z"]


async def spec_one_may_replace_several(store: Store) -> None:
    """All that it replaced are in its history, ties by id; what was replaced together has no part in each other's."""
    await store.add(HERE, [record(id) for id in ("new", "one", "two", "before", "three")])
    for old, new in (("before", "two"), ("one", "new"), ("two", "new"), ("three", "new")):
        await store.supersede(HERE, old, new, now=NOW)
    assert await _versions(store, "new") == ["before", "one", "three", "two", "new"]
    assert await _versions(store, "one") == ["one", "new"]
    assert await _versions(store, "before") == ["before", "two", "new"]


async def spec_a_history_is_in_the_order_of_replacing(store: Store) -> None:
    """An older memory can hold again and replace a newer one; what has expired is part of a history, too."""
    old, past = record("old", created_at=NOW - timedelta(days=2)), NOW - timedelta(days=1)
    await store.add(HERE, [old, record("new", created_at=past, expires_at=past)])
    await store.supersede(HERE, "new", "old", now=NOW)
    assert await _versions(store, "old") == ["new", "old"]


async def spec_a_history_ends_at_what_was_forgotten(store: Store) -> None:
    """A version that is gone is left out and leads no further; one that is not here has no history."""
    await _add_chain(store)
    await store.forget(HERE, ["e"])
    assert await _versions(store, "d") == ["d", "a"]
    assert await _versions(store, "c") == ["b", "c"]
    assert await _versions(store, "e") == []
    assert await _versions(store, "nothing") == []


async def spec_a_history_that_bites_its_tail_ends(store: Store) -> None:
    """Memories that came from elsewhere may name each other as successors: each is in the history once."""
    await store.add(HERE, [record("a", superseded_by="b"), record("b", superseded_by="a")])
    await store.add(HERE, [record("c", superseded_by="b"), record("self", superseded_by="self")])
    assert sorted(await _versions(store, "a")) == ["a", "b", "c"]
    assert sorted(await _versions(store, "c")) == ["a", "b", "c"]
    assert await _versions(store, "self") == ["self"]


async def spec_a_limited_history_has_the_nearest(store: Store) -> None:
    """So many before and so many after, those the fewest steps away."""
    await _add_chain(store)
    assert await _versions(store, "e", 1) == ["a", "e", "b"]
    assert await _versions(store, "d", 2) == ["d", "a", "e"]
    assert await _versions(store, "c", 3) == ["a", "e", "b", "c"]
    await store.add(HERE, [record(f"copy {number}", superseded_by="c") for number in range(5)])
    assert len(await _versions(store, "c", 3)) == 4
