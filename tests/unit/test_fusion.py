"""Fusion, on plain rankings."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.ranking.fusion import by_max, calibrated, fuse, keep_exact, renormalised, rrf, weighted
from recollect.recipes import Fusion, FusionMethod, Lane
from recollect.types import Background, Fused, Leg, Ranking, Scored


def ranking(
    lane: str,
    *hits: tuple[str, float],
    leg: Leg = "keyword",
    background: Background | None = None,
    exact: frozenset[str] = frozenset(),
) -> Ranking:
    return Ranking(lane, leg, tuple(Scored(*hit) for hit in hits), background, exact)


def scores(fused: list[Fused]) -> dict[str, float]:
    return {f.id: f.score for f in fused}


def ids(fused: list[Fused]) -> list[str]:
    return [f.id for f in fused]


@st.composite
def rankings(draw: st.DrawFn) -> list[Ranking]:
    lanes = []
    for lane in range(draw(st.integers(1, 4))):
        found = draw(st.lists(st.sampled_from("abcdefgh"), unique=True))
        raw = sorted(draw(st.lists(st.floats(0, 100), min_size=len(found), max_size=len(found))), reverse=True)
        lanes.append(ranking(f"lane{lane}", *zip(found, raw, strict=True)))
    return lanes


def test_rrf_first_hit() -> None:
    """The first hit of one ranking is 1/61."""
    assert scores(rrf([ranking("a", ("x", 9.0))])) == {"x": 1 / 61}


def test_rrf_worked_example() -> None:
    """First in one lane and fifth in another: 1/61 + 1/65 = 0.0318."""
    one = ranking("a", ("x", 9.0))
    other = ranking("b", *((c, 5.0) for c in "pqrs"), ("x", 1.0))
    fused = rrf([one, other])
    assert fused[0].id == "x"
    assert fused[0].score == 1 / 61 + 1 / 65
    assert round(fused[0].score, 4) == 0.0318


@given(rankings(), st.randoms())
def test_rrf_does_not_depend_on_the_order_of_lanes(lanes: list[Ranking], random: st.DataObject) -> None:
    """Each score is the same to the last digit; only the order of equals goes by the lanes."""
    shuffled = list(lanes)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert scores(rrf(lanes)) == scores(rrf(shuffled))


def test_ties_go_to_the_earlier_lane() -> None:
    """First in one lane each: the one that the recipe's first lane found goes first, whatever the ids. The sources fill
    one map, list by list ("addRanks(dense.rows); addRanks(fts.rows)"), and sort it.
    """
    meaning, words = ranking("vector", ("z", 0.9)), ranking("keyword", ("c", 4.0))
    for fuse_two in (rrf, lambda lanes: weighted(lanes, [1.0, 1.0])):
        assert ids(fuse_two([meaning, words])) == ["z", "c"]
        assert ids(fuse_two([words, meaning])) == ["c", "z"]


def test_ties_between_two_that_both_lanes_found_go_to_the_better_rank_in_the_first() -> None:
    """First and second against second and first."""
    fused = rrf([ranking("vector", ("z", 0.9), ("c", 0.8)), ranking("keyword", ("c", 4.0), ("z", 3.0))])
    assert fused[0].score == fused[1].score
    assert ids(fused) == ["z", "c"]


@given(rankings())
def test_equals_stand_by_lane_and_then_by_rank(lanes: list[Ranking]) -> None:
    """In one order for the same lanes, however many are equal."""
    place = {
        (lane.lane, hit.id): (n, rank) for n, lane in enumerate(lanes) for rank, hit in enumerate(lane.hits, start=1)
    }
    fused = weighted(lanes, [1.0] * len(lanes))
    keys = [(-f.score, min(place[part.lane, f.id] for part in f.why)) for f in fused]
    assert keys == sorted(keys)


def test_weighted_with_novamems_weights() -> None:
    """Keyword 0.3, vector 0.6, graph 0.1, each min-max normalised; a lane that lacks an id adds 0."""
    fused = weighted(
        [
            ranking("keyword", ("x", 4.0), ("y", 3.0), ("z", 2.0)),
            ranking("vector", ("y", 0.9), ("z", 0.5)),
            ranking("graph", ("z", 0.4)),
        ],
        [0.3, 0.6, 0.1],
    )
    assert scores(fused) == {"y": pytest.approx(0.3 * 0.5 + 0.6), "x": pytest.approx(0.3), "z": pytest.approx(0.1)}
    assert ids(fused) == ["y", "x", "z"]


def test_weighted_takes_any_normalisation() -> None:
    """Dividing by the best instead of min-max."""
    assert scores(weighted([ranking("a", ("x", 4.0), ("y", 1.0))], [2.0], by_max)) == {"x": 2.0, "y": 0.5}


def test_calibrated_adds_surprisals() -> None:
    """Words 3 deviations up add 3, meaning 4 deviations up adds 16 / 2, both over ln 100."""
    fused = calibrated(
        [
            ranking("words", ("x", 7.0), background=Background(1.0, 2.0, 100)),
            ranking("meaning", ("x", 0.6), ("y", 0.4), background=Background(0.2, 0.1, 100)),
        ],
        [1.0, 1.0],
        ["exponential", "normal"],
    )
    assert scores(fused) == {"x": pytest.approx((3 + 8) / log(100)), "y": pytest.approx(2 / log(100))}


def test_calibrated_ignores_the_best_of_a_bad_list() -> None:
    """A list that stands out decides against one whose best is nothing special."""
    bad = ranking("meaning", ("x", 0.21), ("y", 0.20), background=Background(0.2, 0.1, 99))
    good = ranking("words", ("y", 12.0), ("x", 1.0), background=Background(1.0, 2.0, 99))
    assert ids(calibrated([bad, good], [1, 1], ["normal", "exponential"])) == ["y", "x"]


def test_calibrated_without_a_background_is_min_max_and_links_count_as_they_are() -> None:
    """No background, or one of two memories: only the list itself to go by. What all hold adds nothing."""
    lanes = [ranking("words", ("x", 4.0), ("y", 2.0)), ranking("links", ("y", 0.5))]
    assert scores(calibrated(lanes, [1.0, 0.1], ["exponential", None])) == {"x": 1.0, "y": 0.05}
    few = replace(lanes[0], background=Background(3.0, 1.0, 2))
    assert scores(calibrated([few], [1.0], ["exponential"])) == {"x": 1.0, "y": 0.0}
    flat = replace(lanes[0], background=Background(2.0, 0.0, 9))
    assert scores(calibrated([flat], [1.0], ["exponential"])) == {"x": 0.0, "y": 0.0}


def test_an_exact_match_keeps_its_place_among_a_hundred_alike() -> None:
    """Vectors prefer every other invoice; the one that was asked for by number stays first, and `why` says so."""
    others = [f"invoice-{n}" for n in range(12300, 12400) if n != 12346]
    meaning = ranking(
        "vector", *((id, 0.9) for id in others), ("invoice-12346", 0.1), background=Background(0.1, 0.01, 100)
    )
    words = ranking(
        "keyword",
        ("invoice-12346", 6.0),
        *((id, 1.0) for id in others),
        background=Background(1.05, 0.5, 100),
        exact=frozenset(["invoice-12346"]),
    )
    fused = calibrated([meaning, words], [1, 1], ["normal", "exponential"])
    assert fused[0].id == "invoice-12346"
    assert fused[0].score == pytest.approx(sum(part.contribution for part in fused[0].why))
    assert fused[0].why[-1].lane == "exact"


@given(rankings(), st.frozensets(st.sampled_from("abcdefgh")))
def test_keeping_exact_hits_loses_nothing(lanes: list[Ranking], exact: frozenset[str]) -> None:
    """The same ids, scores still falling, and no exact hit below its own place."""
    fused = rrf(lanes)
    first = replace(lanes[0], exact=exact)
    kept = keep_exact(fused, first)
    assert sorted(ids(kept)) == sorted(ids(fused))
    assert [f.score for f in kept] == sorted((f.score for f in kept), reverse=True)
    for place, hit in enumerate(first.hits):
        if hit.id in exact:
            assert ids(kept).index(hit.id) <= place


@given(rankings())
def test_inputs_stay_as_they_were_and_why_adds_up(lanes: list[Ranking]) -> None:
    """Fusion changes no ranking; every score is the sum of its contributions, each naming lane, rank and raw score."""
    lanes = [replace(lane, background=Background(1.0, 2.0, 50)) for lane in lanes]
    before = deepcopy(lanes)
    for fused in (
        rrf(lanes),
        weighted(lanes, [0.5] * len(lanes)),
        calibrated(lanes, [1.0] * len(lanes), ["normal"] * len(lanes)),
    ):
        assert set(ids(fused)) == {hit.id for lane in lanes for hit in lane.hits}
        by_lane = {lane.lane: lane for lane in lanes}
        for f in fused:
            assert f.score == pytest.approx(sum(part.contribution for part in f.why))
            assert all(by_lane[p.lane].hits[p.rank - 1] == (f.id, p.raw) for p in f.why)
    assert lanes == before


def test_fuse_does_what_the_recipe_says() -> None:
    """Method, constant and weights come from the recipe."""
    words, meaning = ranking("keyword", ("x", 4.0), ("y", 2.0)), ranking("vector", ("y", 0.9))
    lanes = [(Lane("keyword", "keyword", weight=0.3), words), (Lane("vector", "vector", weight=0.6), meaning)]
    plain = [(Lane("keyword", "keyword"), words), (Lane("vector", "vector"), meaning)]
    assert scores(fuse(Fusion("rrf"), plain)) == {"y": 1 / 62 + 1 / 61, "x": 1 / 61}
    assert scores(fuse(Fusion("min_max"), lanes)) == {"x": 0.3, "y": 0.6}
    assert scores(fuse(Fusion("raw"), plain[1:])) == {"y": 0.9}
    known = [
        (plain[0][0], replace(words, background=Background(0.0, 2.0, 1000), tail="exponential")),
        (plain[1][0], replace(meaning, background=Background(0.5, 0.1, 1000), tail="normal")),
    ]
    assert scores(fuse(Fusion("calibrated"), known)) == {
        "y": pytest.approx((1 + 8) / log(1000)),
        "x": pytest.approx(2 / log(1000)),
    }


@pytest.mark.parametrize("method", ["rrf", "min_max", "calibrated"])
def test_the_weight_of_a_missing_lane_goes_to_the_others(method: FusionMethod) -> None:
    """In their proportion, so that scores keep their scale; unless the recipe leaves it out. With no lane missing
    nothing changes, to the last digit.
    """
    words, meaning = ranking("keyword", ("x", 4.0), ("y", 2.0)), ranking("vector", ("y", 0.9))
    keyword, vector = Lane("keyword", "keyword", weight=0.3), Lane("vector", "vector", weight=0.6)
    graph, unwanted = Lane("graph", "graph", weight=0.1), Lane("unwanted", "vector", weight=0)
    plain, renormalising = Fusion(method), Fusion(method, renormalise=True)
    all_there = [(keyword, words), (vector, meaning), (unwanted, None)]
    assert fuse(renormalising, all_there) == fuse(plain, all_there)
    one_missing = [*all_there, (graph, None)]
    as_it_is = scores(fuse(plain, one_missing))
    assert as_it_is == scores(fuse(plain, all_there))
    assert scores(fuse(renormalising, one_missing)) == pytest.approx({id: s / 0.9 for id, s in as_it_is.items()})
    only_words = [(keyword, words), (vector, None), (graph, None)]
    assert scores(fuse(renormalising, only_words)) == scores(fuse(plain, [(replace(keyword, weight=1.0), words)]))


def test_nothing_answered_is_nothing_fused() -> None:
    """Also where weights are renormalised."""
    assert fuse(Fusion(renormalise=True), [(Lane("keyword", "keyword"), None)]) == []


@given(st.lists(st.floats(0.01, 10), min_size=1, max_size=5), st.floats(0, 10))
def test_renormalised_weights_keep_their_sum_and_their_proportion(weights: list[float], absent: float) -> None:
    """What is given to each is its share."""
    total = sum(weights) + absent
    shared = renormalised(weights, total)
    assert sum(shared) == pytest.approx(total)
    assert [w / shared[0] for w in shared] == pytest.approx([w / weights[0] for w in weights])
