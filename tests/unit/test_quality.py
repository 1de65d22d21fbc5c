"""Quality as arithmetic: what it comes to, how it moves, and what it does to a ranking."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import fsum, isclose, log
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.engine.quality import BASE, HALF_LIFE, quality, quality_factor, usefulness, weighed
from recollect.ranking.fusion import rrf
from recollect.types import Fused, Memory, Ranking, Scored

NOW = datetime(2026, 5, 3, tzinfo=UTC)
counts = st.integers(1, 10**9)
ages = st.timedeltas(timedelta(), timedelta(days=20_000))
days = st.floats(0, 20_000)
worths = st.floats(0, 1)


def aged(days: float = 0.0, **counted: Any) -> Memory:
    """A memory that was stored so long ago."""
    then = NOW - timedelta(days=days)
    return Memory("a", "work", "a text", created_at=then, updated_at=then, **counted)


def used(times: int, days: float = 0.0, stored: float = 20_000, **counted: Any) -> Memory:
    """One that was of use, the last time so long ago."""
    return aged(stored, used=times, last_used_at=NOW - timedelta(days=days), **counted)


@pytest.mark.parametrize(
    ("memory", "most", "expected"),
    [
        (used(100), 100, 1.0),
        (used(100, days=90), 100, 0.5),
        (used(100, days=180), 100, 0.25),
        (used(9), 99, 0.75),
        (used(9, days=90), 99, 0.375),
        (used(1), 1, 1.0),
        (used(1), 1023, 0.55),
        (aged(0), 99, 0.5),
        (aged(90), 99, 0.25),
        (aged(180), 99, 0.125),
        (aged(0, hits=90, last_hit_at=NOW), 99, 0.75),  # ninety hits are nine uses
        (used(9, hits=900, last_hit_at=NOW), 9999, 0.75),
        (aged(900, hits=90, last_hit_at=NOW), 99, 0.75 * 0.5**9),  # returned today: 810 of its 900 days are idle
        (used(9, days=100, hits=900, last_hit_at=NOW), 9999, 0.75 * 0.5),  # 90 days since it was of use, in effect
        (used(9, days=90, hits=900, last_hit_at=NOW - timedelta(days=95)), 9999, 0.75 * 0.5),  # returned before that
    ],
)
def test_what_quality_comes_to(memory: Memory, most: float, expected: float) -> None:
    """The share of the logarithms above the base, halved with every 90 days since it was used, stored or changed; to
    have been returned counts a tenth, in number and in time.
    """
    assert isclose(quality(memory, most, NOW), expected)


def test_the_formula_is_the_documented_one() -> None:
    """Written out once more."""
    expected = (0.5 + 0.5 * log(1 + 7 + 0.3) / log(1 + 40)) * 0.5 ** (30 / 90)
    assert isclose(quality(used(7, days=30, hits=3, last_hit_at=NOW - timedelta(days=40)), 40, NOW), expected)


@given(most=st.integers(0, 10**9))
def test_a_new_memory_is_at_the_base(most: int) -> None:
    """However busy the space is."""
    assert quality(aged(), most, NOW) == BASE


def test_a_single_hit_does_not_make_the_best_memory() -> None:
    """Being returned is not being useful: where nothing was used yet, the scale is that of one use."""
    once = aged(hits=1, last_hit_at=NOW)
    assert quality(once, usefulness(once), NOW) < 0.6


def test_a_change_makes_a_memory_fresh() -> None:
    """Somebody cared."""
    assert quality(replace(aged(500), updated_at=NOW), 99, NOW) == BASE


@given(times=st.integers(0, 10**9), hits=st.integers(0, 10**9), most=st.floats(0, 1e9), age=ages)
def test_it_is_from_0_to_1(times: int, hits: int, most: float, age: timedelta) -> None:
    """Also where uses have passed the maximum meanwhile, or a clock is ahead."""
    for then in (NOW - age, NOW + HALF_LIFE):
        one = Memory("a", "work", "a text", created_at=then, updated_at=then, used=times, last_used_at=then, hits=hits)
        assert 0 <= quality(one, most, NOW) <= 1
        assert 0 <= quality(replace(one, last_hit_at=NOW), most, NOW) <= 1


@given(times=counts, more=st.integers(0, 10**6), most=counts, days=days)
def test_more_uses_are_never_worse(times: int, more: int, most: int, days: float) -> None:
    """At the same age."""
    assert quality(used(times + more, days), most, NOW) >= quality(used(times, days), most, NOW)


@given(times=st.integers(0, 10**6), hits=st.integers(0, 10**6), most=counts, days=days)
def test_being_used_beats_being_returned_and_neither_makes_worse(times: int, hits: int, most: int, days: float) -> None:
    """Whatever was before: never asked, or asked long ago. What was used now is at least at the base."""
    then = NOW - timedelta(days=days)
    before = replace(aged(days), used=times, last_used_at=then, hits=hits, last_hit_at=then)
    returned = replace(before, hits=hits + 1, last_hit_at=NOW)
    of_use = replace(before, used=times + 1, last_used_at=NOW)
    scale = max(most, usefulness(of_use))
    assert quality(before, scale, NOW) <= quality(returned, scale, NOW) <= quality(of_use, scale, NOW)
    assert quality(of_use, scale, NOW) >= BASE


@given(times=st.integers(0, 10**9), most=counts, days=days)
def test_it_halves_every_90_days(times: int, most: int, days: float) -> None:
    """From any age on, all of it, the never asked, too: also what is below the base."""
    now = quality(used(times, days), most, NOW)
    assert isclose(quality(used(times, days), most, NOW + HALF_LIFE), now / 2, rel_tol=1e-9)


@pytest.mark.parametrize(
    ("memory", "reached"),
    [(aged(), 299), (used(9, stored=0), 389), (used(1, stored=0), 334)],
    ids=["never asked", "the most useful", "hardly used"],
)
def test_a_floor_of_five_hundredths_is_reached(memory: Memory, reached: int) -> None:
    """pgmemory: "knowledge that was captured but never proved useful doesn't clutter results". After 299 days it is
    below that recipe's floor of 0.05, and the most useful 389 days after its last use. No new memory is.
    """
    assert quality(memory, 9, NOW) >= BASE
    assert quality(memory, 9, NOW + timedelta(days=reached - 1)) >= 0.05
    assert quality(memory, 9, NOW + timedelta(days=reached)) < 0.05


@pytest.mark.parametrize(("most", "reached"), [(10**9, 333), (0, 433)])
def test_what_is_returned_every_day_and_never_used_is_left_out_in_the_end(most: float, reached: int) -> None:
    """A tenth later than if nobody had asked for it."""

    def after(days: int) -> float:
        # the share as if nothing had been returned, or as if it were the most useful
        hits = 0 if most else 10
        return quality(aged(days, hits=hits, last_hit_at=NOW), most, NOW)

    assert after(reached - 1) >= 0.05
    assert after(reached) < 0.05


FUSED = rrf([Ranking("vector", "vector", (Scored("a", 0.9), Scored("b", 0.8), Scored("c", 0.7)))])


def test_weighing_multiplies_scores() -> None:
    """By `1 - w + w x quality`, the unscored counting as the never asked; why says so, and still adds up."""
    found = weighed(FUSED, {"a": 0.0, "b": 1.0, "c": None}, 0.5)
    assert [(f.id, f.score) for f in found] == [("b", 1 / 62), ("c", 0.75 / 63), ("a", 0.5 / 61)]
    (_, part) = found[2].why
    assert (part.lane, part.rank, part.raw, part.normalised) == ("quality", 3, 0.0, 0.5)
    assert str(part) == "quality #3 (0) -0.0082"
    for f in found:
        assert isclose(f.score, fsum(part.contribution for part in f.why))


@given(st.dictionaries(st.sampled_from("abc"), worths | st.none()), worths)
def test_weighing_keeps_every_hit_and_raises_none(qualities: dict[str, float | None], weight: float) -> None:
    """Best first; with weight 0 every score is what it was; what is gone meanwhile counts as unscored."""
    found = weighed(FUSED, qualities, weight)
    before = {f.id: f.score for f in FUSED}
    assert found == sorted(found, key=lambda f: (-f.score, f.id))
    assert {f.id for f in found} == before.keys()
    assert all(f.score <= before[f.id] for f in found)
    if not weight:
        assert {f.id: f.score for f in found} == before


def test_a_lift_for_an_exact_match_is_taken_back() -> None:
    """It belongs to the order before: what keeps its place is lifted again, from its own score. A lane that is called
    "exact" keeps its share.
    """
    lifted = Fused("a", 0.9, (("exact", 1, 3.0, 0.4, 0.4, "keyword"), ("exact", 1, 3.0, 0.5, 0.5, "exact")))
    (found,) = weighed([lifted], {"a": 1.0}, 0.5)
    assert isclose(found.score, 0.4)
    assert [part[5] for part in found.parts] == ["keyword", "quality"]
    assert quality_factor(found) == 1.0
    assert quality_factor(lifted) == 1.0
