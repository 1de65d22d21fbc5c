"""Namespaces of one space that another may see: found by every leg, changed only with leave, gone when revoked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from psycopg.conninfo import conninfo_to_dict

from recollect import (
    AsyncRecollect,
    AsyncSpace,
    Grant,
    InvalidRequest,
    Memory,
    NotAllowed,
    NotFound,
    Recall,
    Recollect,
)
from recollect.engine.sharing import MAX_OWNERS, Sharing
from recollect.recipes import RECIPES
from recollect.settings import Settings
from recollect.types import Access

LEGS = ("vector", "keyword", "graph")
NOTES = ("team", "notes")


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'memory.db'}"
    return f"postgresql://?{urlencode(conninfo_to_dict(request.getfixturevalue('pg_database')))}"


@pytest.fixture
async def opened(place: str) -> AsyncIterator[AsyncRecollect]:
    """A memory on each store."""
    async with AsyncRecollect(place, embedder="hashing") as recollect:
        yield recollect


@pytest.fixture
def work(opened: AsyncRecollect) -> AsyncSpace:
    """The space that is granted something."""
    return opened.space("work")


@pytest.fixture
async def team(opened: AsyncRecollect) -> AsyncSpace:
    """The space that grants: umbrellas in the namespaces `notes` and `secret`, linked to each other."""
    team = opened.space("team")
    for namespace in ("notes", "secret"):
        for number in (1, 2):
            await team.remember(f"the {namespace} umbrella {number}", id=f"{namespace}-{number}", namespace=namespace)
        await team.link(f"{namespace}-1", f"{namespace}-2", "beside")
    await team.link("notes-2", "secret-1", "leads to")
    await team.settle()
    return team


async def share(owner: AsyncSpace, to: AsyncSpace, namespace: str = "notes", access: Access = "read") -> Grant:
    """Grant a namespace, and accept it on the other side."""
    granted = await owner.grant(namespace, to=to.name, access=access)
    assert await to.accept(owner.name, namespace)
    return replace(granted, accepted=True)


def only(leg: str) -> dict[str, float]:
    """The weights by which one leg alone answers."""
    return {name: float(name == leg) for name in LEGS}


def found(recall: Recall) -> set[tuple[str, str]]:
    """Whose memories an answer holds, and which."""
    return {(hit.memory.space, hit.memory.id) for hit in recall}


async def asked(space: AsyncSpace, **options: Any) -> set[tuple[str, str]]:
    answer = await space.recall("umbrella", **options)
    assert not answer.degraded, answer.lanes
    return found(answer)


@pytest.mark.parametrize("leg", LEGS)
async def test_each_leg_sees_what_is_granted_and_nothing_else(work: AsyncSpace, team: AsyncSpace, leg: str) -> None:
    """One's own memories and the granted namespace of another; not that one's other namespaces, and not once the
    grant was taken back.
    """
    await work.remember("an umbrella of my own", id="mine")
    await work.remember("another umbrella of my own", id="mine too")
    await work.settle()
    own = {("work", "mine"), ("work", "mine too")}
    assert await asked(work, weights=only(leg)) == own
    await share(team, work)
    assert await asked(work, weights=only(leg)) == own | {("team", "notes-1"), ("team", "notes-2")}
    assert {space for space, _ in await asked(team, weights=only(leg))} == {"team"}
    await team.revoke("notes", from_="work")
    assert await asked(work, weights=only(leg)) == own


async def test_external_indexes_keep_to_the_grant(tmp_path: Path, falkordb_url: str) -> None:
    """With vectors in Qdrant and links in FalkorDB each leg sees what is granted, and nothing else."""
    tiers = Settings(
        f"sqlite:///{tmp_path / 'memory.db'}",
        "hashing",
        vectors=f"qdrant+local:///{tmp_path / 'q'}",
        graph=falkordb_url,
    )
    async with AsyncRecollect(settings=tiers) as recollect:
        team, work = recollect.space("team"), recollect.space("work")
        for name in ("notes", "secret"):
            for number in (1, 2):
                await team.remember(f"the {name} umbrella {number}", id=f"{name}-{number}", namespace=name)
            await team.link(f"{name}-1", f"{name}-2")
        await team.settle()
        await share(team, work)
        async with asyncio.timeout(30):
            while any(lag.waiting for lag in (await recollect.lag()).values()):
                await recollect.sync()
        for leg in LEGS:
            assert await asked(work, weights=only(leg)) == {("team", "notes-1"), ("team", "notes-2")}


async def test_a_space_without_memories_sees_what_is_granted(work: AsyncSpace, team: AsyncSpace) -> None:
    """An empty space has an empty answer; a reader needs no memory of its own."""
    assert await asked(work) == set()
    await share(team, work)
    assert await asked(work) == {("team", "notes-1"), ("team", "notes-2")}


async def test_what_is_named_is_searched_and_nothing_else(work: AsyncSpace, team: AsyncSpace) -> None:
    """Own namespaces and shared ones can be named; no other is searched then. None of the others': an empty list."""
    await share(team, work)
    await work.remember("an umbrella of my own", id="mine")
    await work.remember("an umbrella elsewhere", id="elsewhere", namespace="elsewhere")
    notes = {("team", "notes-1"), ("team", "notes-2")}
    assert await asked(work, namespaces=["default"]) == {("work", "mine")}
    assert await asked(work, shared=[NOTES]) == notes
    assert await asked(work, namespaces=["default"], shared=[NOTES]) == notes | {("work", "mine")}
    assert await asked(work, shared=[]) == {("work", "mine"), ("work", "elsewhere")}


@pytest.mark.parametrize("recipe", RECIPES)
async def test_every_recipe_keeps_to_the_grant(opened: AsyncRecollect, work: AsyncSpace, recipe: str) -> None:
    """Also one whose lanes look into every namespace, however the caller chose: that is about its own space."""
    team = opened.space("team")
    for kind in ("fact", "message", "identity", "knowledge", "chunk"):
        await team.remember(f"the {kind} umbrella", kind=kind, namespace="notes")
        await team.remember(f"the secret {kind} umbrella", kind=kind, namespace="secret")
    await share(team, work)
    for named in (None, [NOTES]):
        answer = await work.recall("umbrella", recipe=recipe, shared=named)
        assert {hit.memory.namespace for hit in answer} == {"notes"}


async def test_equal_ids_of_two_spaces_are_kept_apart(work: AsyncSpace, team: AsyncSpace) -> None:
    """Both are found, each with its own text and reasons, and hits are counted for one's own alone."""
    await work.remember("my own umbrella", id="notes-1")
    await share(team, work)
    answer = await work.recall("umbrella", diversity={"method": "mmr"}, limit=2)
    assert len(answer) == 2
    texts = {(hit.memory.space, hit.memory.text) for hit in await work.recall("umbrella")}
    assert {("work", "my own umbrella"), ("team", "the notes umbrella 1")} <= texts
    await work.stats()  # writes what was counted
    assert (await work.get("notes-1")).hits > 0
    assert (await team.get("notes-1")).hits == 0


async def test_links_are_not_followed_through_what_is_not_granted(work: AsyncSpace, team: AsyncSpace) -> None:
    """A memory that is two steps away, with a hidden one between, is not reached."""
    await team.remember("far away", id="far", namespace="notes")
    await team.link("secret-1", "far", "leads to")
    await share(team, work)
    notes = work.shared(*NOTES)
    lanes = {"graph": {"depth": 3, "seeds": 1}}
    reached = await notes.recall("the notes umbrella 2", weights=only("graph"), lanes=lanes)
    assert ("team", "secret-1") not in found(reached)
    assert {hit.why[0].raw for hit in reached if hit.memory.id == "far"} <= {
        link.strength for link in await notes.neighbors("notes-2")
    }
    assert {neighbor.memory.namespace for neighbor in await notes.neighbors("notes-2")} == {"notes"}


async def test_a_window_stays_in_the_namespace(work: AsyncSpace, opened: AsyncRecollect) -> None:
    """Neighbours come along from the same thread of the same namespace only."""
    team = opened.space("team")
    for turn in ("before the umbrella came", "the umbrella", "after that it rained"):
        await team.remember(turn, thread="t", namespace="notes")
        await team.remember(f"secretly {turn}", thread="t", namespace="secret")
    await share(team, work)
    hit = next(hit for hit in await work.recall("the umbrella", window=1) if hit.memory.text == "the umbrella")
    assert [memory.text for memory in (*hit.before, *hit.after)] == ["before the umbrella came", "after that it rained"]


async def test_a_reader_reads_and_does_not_write(work: AsyncSpace, team: AsyncSpace) -> None:
    """With `read`, what changes something is refused, and nothing is changed."""
    await share(team, work)
    notes = work.shared(*NOTES)
    assert (await notes.get("notes-1")).space == "team"
    assert [memory.id for memory in (await notes.list()).memories] == ["notes-1", "notes-2"]
    assert {hit.memory.namespace for hit in await notes.recall("umbrella")} == {"notes"}
    before = await texts(team)
    for refused in (
        notes.remember("mine now"),
        notes.update("notes-1", text="mine now"),
        notes.forget("notes-1"),
        notes.supersede("notes-1", "mine now"),
        notes.link("notes-1", "notes-2"),
        notes.unlink("notes-1", "notes-2"),
    ):
        with pytest.raises(NotAllowed, match="may only read namespace 'notes' of space 'team'"):
            await refused
    assert await texts(team) == before


async def texts(space: AsyncSpace) -> dict[str, str]:
    page = await space.list(include_superseded=True)
    return {memory.id: memory.text for memory in page.memories}


async def test_a_writer_writes_in_the_namespace(work: AsyncSpace, team: AsyncSpace) -> None:
    """With `write` every verb works there, in the space of the owner, who sees it."""
    await share(team, work, access="write")
    notes = work.shared(*NOTES)
    added = (await notes.remember("a kite", tags=["toys"])).memory
    assert (added.space, added.namespace) == NOTES
    assert (await team.get(added.id)).text == "a kite"
    assert (await notes.update(added.id, text="a red kite")).text == "a red kite"
    newer: Memory = await notes.supersede(added.id, "a blue kite")
    assert (newer.namespace, newer.tags) == ("notes", ("toys",))
    await notes.link(newer.id, "notes-1", "flies over", 0.5)
    assert ("flies over", 0.5) in [(n.relation, n.strength) for n in await team.neighbors("notes-1")]
    assert await notes.unlink(newer.id, "notes-1", "flies over") == 1
    assert await notes.forget(newer.id, "nothing") == 1
    assert (await work.stats()).memories == 0


async def test_a_writer_does_not_reach_beyond_the_namespace(work: AsyncSpace, team: AsyncSpace) -> None:
    """Ids of other namespaces are not there for it, as if they did not exist; nothing is moved out, no id taken."""
    await share(team, work, access="write")
    notes = work.shared(*NOTES)
    before = await texts(team)
    for beyond in (
        notes.get("secret-1"),
        notes.update("secret-1", text="stolen"),
        notes.supersede("secret-1", "stolen"),
        notes.supersede("notes-1", by="secret-1"),
        notes.link("notes-1", "secret-1"),
        notes.unlink("notes-2", "secret-1"),
        notes.neighbors("secret-1"),
    ):
        with pytest.raises(NotFound, match="namespace 'notes' of space 'team' holds no memory 'secret-1'"):
            await beyond
    assert await notes.forget("secret-1") == 0
    for nonsense in (
        notes.update("notes-1", namespace="secret"),
        notes.remember("a kite", namespace="secret"),
        notes.remember("a kite", id="secret-1"),
        notes.recall("umbrella", namespaces=["secret"]),
        notes.list(namespaces=["secret"]),
        notes.neighbors("notes-1", depth=2),
    ):
        with pytest.raises(InvalidRequest):
            await nonsense
    assert await texts(team) == before


async def test_without_a_grant_nothing_tells_what_is_there(work: AsyncSpace, team: AsyncSpace) -> None:
    """A namespace that exists and one that does not are refused in the same words."""
    for name in ("notes", "nothing"):
        refusal = f"space 'work' may not see namespace '{name}' of space 'team': its owner can grant it, and this "
        refusal += "space can then accept the grant"
        for refused in (
            work.recall("umbrella", shared=[("team", name)]),
            work.shared("team", name).get("notes-1"),
            work.shared("team", name).list(),
            work.shared("team", name).remember("a kite"),
        ):
            with pytest.raises(NotAllowed) as error:
                await refused
            assert str(error.value) == refusal


async def test_a_revoked_handle_is_of_no_use(work: AsyncSpace, team: AsyncSpace) -> None:
    """A grant is looked at with every call, and granting again with less takes the rest away."""
    await share(team, work, access="write")
    notes = work.shared(*NOTES)
    await notes.remember("a kite")
    await share(team, work, access="read")
    with pytest.raises(NotAllowed):
        await notes.remember("another kite")
    assert await team.revoke("notes", from_="work")
    with pytest.raises(NotAllowed):
        await notes.list()
    assert not await team.revoke("notes", from_="work")


async def test_whoever_was_granted_something_can_end_it(work: AsyncSpace, team: AsyncSpace) -> None:
    """It is out of sight as if it had been revoked, for this space alone; until it is granted again."""
    await team.grant("notes", to="guest", access="write")
    await share(team, work, access="write")
    assert len(await work.recall("umbrella")) == 2
    assert await work.refuse(*NOTES)
    assert len(await work.recall("umbrella")) == 0
    with pytest.raises(NotAllowed):
        await work.shared(*NOTES).list()
    assert await team.grants() == [Grant("team", "notes", "guest", "write")]
    assert not await work.refuse(*NOTES)
    await share(team, work)
    assert len(await work.recall("umbrella")) == 2
    with pytest.raises(InvalidRequest, match="namespace is empty"):
        await work.refuse("team", "")


async def test_an_offer_reaches_nothing_until_it_is_accepted(work: AsyncSpace, team: AsyncSpace) -> None:
    """Text that another space plants is in no answer, list or handle of a space that has not accepted it; from when it
    has, it is; and both sides see which of the two it is.
    """
    await work.remember("an umbrella of my own", id="mine")
    for access in ("read", "write"):
        offer = await team.grant("notes", to="work", access=access)
        assert offer == Grant("team", "notes", "work", access, accepted=False)
        assert await team.grants() == await work.grants() == [offer]
        assert await asked(work) == {("work", "mine")}
        for refused in (work.recall("umbrella", shared=[NOTES]), work.shared(*NOTES).list(),
                        work.shared(*NOTES).get("notes-1"), work.shared(*NOTES).remember("a kite")):  # fmt: skip
            with pytest.raises(NotAllowed):
                await refused
    assert await work.accept(*NOTES)
    assert await team.grants() == await work.grants() == [Grant("team", "notes", "work", "write", accepted=True)]
    assert await asked(work) == {("work", "mine"), ("team", "notes-1"), ("team", "notes-2")}


async def test_only_what_was_offered_is_accepted(opened: AsyncRecollect, work: AsyncSpace, team: AsyncSpace) -> None:
    """Accepting what nobody offered gives nothing, nor does accepting what was offered to another, or taken back."""
    await team.grant("notes", to="guest")
    assert not await work.accept(*NOTES)
    assert not await team.accept(*NOTES)
    await team.grant("notes", to="work")
    await team.revoke("notes", from_="work")
    assert not await work.accept(*NOTES)
    assert await opened.space("guest").grants() == [Grant("team", "notes", "guest")]
    assert await asked(work) == await asked(opened.space("guest")) == set()
    for wrong in (("", "notes"), ("team", ""), ("team", 7)):
        with pytest.raises(InvalidRequest):
            await work.accept(*wrong)


async def test_an_accepted_grant_changes_its_access_without_asking_again(work: AsyncSpace, team: AsyncSpace) -> None:
    """More or fewer rights over the other's data put nothing else into one's own answers. Once refused it is an offer
    again.
    """
    await share(team, work)
    assert (await team.grant("notes", to="work", access="write")).accepted
    await work.shared(*NOTES).remember("a kite")
    assert (await team.grant("notes", to="work", access="read")).accepted
    assert len(await work.shared(*NOTES).recall("umbrella")) > 0
    await work.refuse(*NOTES)
    assert not (await team.grant("notes", to="work", access="write")).accepted
    assert await asked(work) == set()


async def test_another_client_revokes(opened: AsyncRecollect, work: AsyncSpace, team: AsyncSpace) -> None:
    """Nothing of a grant is remembered in the process: what another one takes back is out of reach at once."""
    await share(team, work)
    async with AsyncRecollect(opened.url, embedder="hashing") as other:
        assert len(await other.space("work").recall("umbrella")) == 2
        await team.revoke("notes", from_="work")
        assert len(await other.space("work").recall("umbrella")) == 0


async def test_who_is_shared_nothing_with_is_not_looked_up_each_time(
    work: AsyncSpace, team: AsyncSpace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is remembered for a while, but no longer than until a grant is made; a grant itself is not remembered."""
    monkeypatch.setattr("recollect.engine.sharing.NO_GRANTS_SECONDS", 600.0)
    looked_up: list[str] = []
    look_up = Sharing._granted

    async def counted(self: Sharing, space: str) -> Sequence[Grant]:
        looked_up.append(space)
        return await look_up(self, space)

    monkeypatch.setattr(Sharing, "_granted", counted)
    for _ in range(3):
        assert await asked(work) == set()
    assert len(looked_up) == 1
    await share(team, work)
    for _ in range(3):
        assert len(await asked(work)) == 2
    assert len(looked_up) == 4


async def test_grants_are_not_passed_on(opened: AsyncRecollect, work: AsyncSpace, team: AsyncSpace) -> None:
    """What a space was granted it cannot grant: `notes` of `work` is another namespace, and stays so."""
    await share(team, work, access="write")
    friend = opened.space("friend")
    await share(work, friend, access="write")
    assert await asked(friend) == set()
    with pytest.raises(NotAllowed):
        await friend.shared(*NOTES).list()
    with pytest.raises(NotAllowed):
        await friend.recall("umbrella", shared=[NOTES])


async def test_grants_are_listed_for_both(work: AsyncSpace, team: AsyncSpace) -> None:
    """First what a space grants, then what it is granted, then what it is offered."""
    granted = await share(team, work, access="write")
    back = await work.grant("default", to="team")
    assert granted == Grant("team", "notes", "work", "write", accepted=True)
    assert await team.grants() == [granted, back]
    assert await work.grants() == [back, granted]


async def test_requests_that_make_no_sense(work: AsyncSpace, team: AsyncSpace) -> None:
    """One sentence each, before anything is stored."""
    with pytest.raises(InvalidRequest, match="already sees its own namespaces"):
        await team.grant("notes", to="team")
    with pytest.raises(InvalidRequest, match="the access is 'own', and must be one of: read, write"):
        await team.grant("notes", to="work", access="own")  # type: ignore[arg-type]
    for namespace, to in (("", "work"), ("notes", " "), ("no\ntes", "work"), ("n" * 201, "work"), (7, "work")):
        with pytest.raises(InvalidRequest):
            await team.grant(namespace, to=to)  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest, match="itself: use it without"):
        work.shared("work", "notes")
    with pytest.raises(InvalidRequest, match="17 namespaces were given, more than the 16 allowed"):
        await work.recall("umbrella", namespaces=["a"], shared=[("team", f"n{n}") for n in range(16)])
    for wrong in ("team", [("team",)], ["team/notes"], [("team", 7)], 7):
        with pytest.raises(InvalidRequest):
            await work.recall("umbrella", shared=wrong)  # type: ignore[arg-type]
    assert await team.grants() == []


async def test_how_many_may_share_with_one(opened: AsyncRecollect, work: AsyncSpace) -> None:
    """Each is a search more for its recalls, so there is an end to what it accepts. Offers use up nothing of it; who
    shares already may share more, and whoever refuses one has room for another.
    """
    for number in range(MAX_OWNERS):
        await opened.space(f"stranger {number}").grant("notes", to="work")
    for number in range(MAX_OWNERS):
        await share(opened.space(f"owner {number}"), work)
    with pytest.raises(InvalidRequest, match="16 spaces already share with space 'work'"):
        await work.accept("stranger 0", "notes")
    await share(opened.space("owner 0"), work, "letters")
    assert await asked(work) == set()
    assert await work.refuse("owner 1", "notes")
    assert await work.accept("stranger 0", "notes")


async def test_how_many_offers_a_space_may_have_out(
    opened: AsyncRecollect, work: AsyncSpace, team: AsyncSpace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is bounded for the space that makes them: another space offers as before, and what was accepted or taken back
    does not count.
    """
    monkeypatch.setattr("recollect.engine.sharing.MAX_OFFERS", 3)
    for number in range(3):
        await team.grant(f"n{number}", to="work")
    with pytest.raises(InvalidRequest, match="space 'team' has 3 offers that were not accepted: revoke some"):
        await team.grant("n3", to="work")
    await team.grant("n0", to="work", access="write")
    await opened.space("another").grant("notes", to="work")
    assert await work.accept("team", "n0")
    await team.grant("n3", to="work")
    assert await work.refuse("team", "n1")
    await team.grant("n4", to="work")


def test_the_synchronous_handle_is_the_same(url: str) -> None:
    """`Space.shared` offers what `AsyncSpace.shared` does."""
    with Recollect(url, embedder="hashing") as recollect:
        team, work = recollect.space("team"), recollect.space("work")
        team.grant("notes", to="work", access="write")
        assert work.accept("team", "notes")
        notes = work.shared("team", "notes")
        kite = notes.remember("a kite").memory
        red = notes.supersede(kite.id, "a red kite")
        assert notes.update(red.id, tags=["toys"]) == notes.get(red.id) == notes.list().memories[0]
        notes.link(red.id, kite.id, "was")
        assert [n.memory.id for n in notes.neighbors(red.id)] == [kite.id]
        assert notes.unlink(red.id, kite.id, "was") == 1
        assert [hit.memory.id for hit in notes.recall("kite")] == [red.id]
        assert notes.forget(red.id, kite.id) == 2
        assert team.revoke("notes", from_="work")
        assert work.grants() == team.grants() == []
