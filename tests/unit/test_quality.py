"""Quality as arithmetic: what it comes to, how it moves, and what it does to a ranking."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import fsum, isclose, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.engine.quality import BASE, HALF_LIFE, quality, quality_factor, weighed
from recollect.ranking.fusion import rrf
from recollect.types import Fused, Ranking, Scored

NOW = datetime(2026, 5, 3, tzinfo=UTC)
counts = st.integers(1, 10**9)
ages = st.timedeltas(timedelta(), timedelta(days=20_000))
worths = st.floats(0, 1)


@pytest.mark.parametrize(
    ("hits", "days", "most", "expected"),
    [
        (100, 0, 100, 1.0),
        (100, 90, 100, 0.5),
        (100, 180, 100, 0.25),
        (9, 0, 99, 0.75),
        (9, 90, 99, 0.375),
        (1, 0, 1, 1.0),
        (1, 0, 1023, 0.55),
    ],
)
def test_what_quality_comes_to(hits: int, days: int, most: int, expected: float) -> None:
    """The share of the logarithms above the base, halved with every 90 days."""
    assert isclose(quality(hits, NOW - timedelta(days=days), most, NOW), expected)


def test_the_formula_is_the_documented_one() -> None:
    """Written out once more."""
    expected = (0.5 + 0.5 * log(1 + 7) / log(1 + 40)) * 0.5 ** (30 / 90)
    assert isclose(quality(7, NOW - timedelta(days=30), 40, NOW), expected)


@given(most=st.integers(0, 10**9))
def test_the_never_asked_is_at_the_base(most: int) -> None:
    """However busy the space is; so is what has hits of which nobody knows when."""
    assert quality(0, None, most, NOW) == BASE
    assert quality(3, None, most, NOW) == BASE


@given(hits=st.integers(0, 10**9), most=st.integers(0, 10**9), age=st.timedeltas(-HALF_LIFE, timedelta(days=20_000)))
def test_it_is_from_0_to_1(hits: int, most: int, age: timedelta) -> None:
    """Also where hits have passed the maximum meanwhile, or a clock is ahead."""
    assert 0 <= quality(hits, NOW - age, most, NOW) <= 1


@given(hits=counts, more=st.integers(0, 10**6), most=counts, age=ages)
def test_more_hits_are_never_worse(hits: int, more: int, most: int, age: timedelta) -> None:
    """At the same age."""
    assert quality(hits + more, NOW - age, most, NOW) >= quality(hits, NOW - age, most, NOW)


@given(hits=counts, most=counts, age=ages, later=ages)
def test_a_later_hit_is_never_worse(hits: int, most: int, age: timedelta, later: timedelta) -> None:
    """With the same number of hits."""
    assert quality(hits, NOW - min(age, later), most, NOW) >= quality(hits, NOW - max(age, later), most, NOW)


@given(hits=st.integers(0, 10**6), most=counts, age=ages)
def test_being_asked_never_makes_worse(hits: int, most: int, age: timedelta) -> None:
    """One hit more, now, whatever was before: never asked, or asked long ago. It is at least the base then."""
    before = quality(hits, NOW - age if hits else None, most, NOW)
    assert quality(hits + 1, NOW, max(most, hits + 1), NOW) >= max(BASE, before)


@given(hits=counts, most=counts, age=ages)
def test_it_halves_every_90_days(hits: int, most: int, age: timedelta) -> None:
    """From any age on, all of it: also what is below the base."""
    now = quality(hits, NOW - age, most, NOW)
    assert isclose(quality(hits, NOW - age - HALF_LIFE, most, NOW), now / 2, rel_tol=1e-9)


def test_a_floor_of_five_hundredths_is_reached() -> None:
    """By the hardly asked after 299 days and by the most asked after 389, never by the never asked."""
    assert quality(1, NOW - timedelta(days=300), 10**9, NOW) < 0.06
    assert quality(9, NOW - timedelta(days=388), 9, NOW) > 0.05
    assert quality(9, NOW - timedelta(days=390), 9, NOW) < 0.05


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
