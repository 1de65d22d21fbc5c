"""Recipes are data, and every cell of the design's table is in them."""

from __future__ import annotations

import pytest

from recollect.errors import InvalidRequest
from recollect.recipes import RECIPES, Diversity, Fanout, Limit, recipe


def test_all_recipes_are_there() -> None:
    """Selectable by name, the default first."""
    assert list(RECIPES) == [
        "balanced",
        "careful",
        "polyant",
        "polyant_knowledge",
        "sci",
        "pgmemory",
        "drobek",
        "novamem",
    ]


@pytest.mark.parametrize(
    ("name", "limit", "fanout"),
    [
        ("balanced", 10, 100),
        ("balanced", 50, 500),
        ("polyant", 10, 20),
        ("polyant", 5, 20),
        ("polyant", 15, 30),
        ("polyant_knowledge", 5, 5),
        ("sci", 10, 30),
        ("pgmemory", 5, 20),
        ("pgmemory", 10, 40),
        ("drobek", 10, 30),
        ("novamem", 10, 30),
    ],
)
def test_fanout(name: str, limit: int, fanout: int) -> None:
    """Each lane is asked for what the source system asks for."""
    assert RECIPES[name].fanout.apply(limit) == fanout


@pytest.mark.parametrize(
    ("name", "default"),
    [
        ("balanced", 10),
        ("polyant", 10),
        ("polyant_knowledge", 5),
        ("sci", 10),
        ("pgmemory", 5),
        ("drobek", 10),
        ("novamem", 10),
    ],
)
def test_default_limit(name: str, default: int) -> None:
    """The number of hits when none is asked for."""
    assert RECIPES[name].limit.apply(None) == default


def test_drobek_moves_a_limit_into_its_bounds() -> None:
    """1 to 50, as the source system clamps it; ef_search is 64."""
    assert [RECIPES["drobek"].limit.apply(n) for n in (0, 50, 51, 10**9)] == [1, 50, 50, 50]
    assert RECIPES["drobek"].lanes[0].ef_search == 64


@pytest.mark.parametrize("limit", [0, -1, 101, 10**9, True, 2.5, "10"])
def test_the_default_recipe_refuses_a_limit_outside_its_bounds(limit: object) -> None:
    """A sentence that names the value and the bounds, instead of a silent change."""
    with pytest.raises(InvalidRequest, match="limit"):
        Limit().apply(limit)  # type: ignore[arg-type]


def test_the_keyword_lanes_speak_the_source_systems_language() -> None:
    """Configuration, reading of the query and rank function, cell by cell."""
    spoken = {
        (r.name, lane.words, lane.match, lane.score, lane.title_boost)
        for r in RECIPES.values()
        for lane in r.lanes
        if lane.leg == "keyword"
    }
    assert spoken == {
        ("balanced", "analyzed", "any", "bm25", 0.0),
        ("careful", "analyzed", "any", "bm25", 0.0),
        ("polyant", "simple", "websearch", "ts_rank", 0.0),
        ("sci", "english", "plain", "ts_rank_cd", 0.0),
        ("pgmemory", "english", "plain", "ts_rank", 0.0),
        ("drobek", "simple", "plain", "ts_rank_cd", 0.5),
        ("novamem", "english", "plain", "ts_rank_cd", 0.0),
    }


def test_the_lanes_and_kinds_of_the_seeds() -> None:
    """Polyant: facts by meaning, messages by words. Sci: six lanes, identity shared by all profiles."""
    assert [(lane.leg, lane.kinds) for lane in RECIPES["polyant"].lanes] == [
        ("vector", ("fact",)),
        ("keyword", ("message",)),
    ]
    assert [(lane.leg, lane.kinds) for lane in RECIPES["polyant_knowledge"].lanes] == [("vector", ("chunk",))]
    sci = RECIPES["sci"].lanes
    assert len(sci) == 6
    assert {lane.kinds for lane in sci if lane.every_namespace} == {("identity",)}
    assert all(lane.kinds == ("knowledge",) for lane in RECIPES["drobek"].lanes)
    assert [(lane.leg, lane.weight) for lane in RECIPES["novamem"].lanes] == [
        ("keyword", 0.3),
        ("vector", 0.6),
        ("graph", 0.1),
    ]


def test_fusion_and_diversity_of_the_seeds() -> None:
    """RRF k=60 four times, min-max once; MMR with lambda 0.7 in one."""
    assert {
        r.name: (r.fusion.method, r.fusion.k) for r in RECIPES.values() if r.fusion.method == "rrf"
    } == dict.fromkeys(("polyant", "sci", "pgmemory", "drobek"), ("rrf", 60))
    assert RECIPES["novamem"].fusion.method == "min_max"
    assert RECIPES["pgmemory"].diversity == Diversity("mmr", balance=0.7, relevance="fused")
    assert RECIPES["pgmemory"].min_quality == 0.05
    assert RECIPES["polyant"].all_failed == "empty"


def test_weights_are_overridden_by_lane_or_leg() -> None:
    """A leg's name reaches all its lanes, a lane's name that one."""
    sci = recipe("sci").with_(weights={"keyword": 0, "identity-keyword": 2})
    assert [lane.weight for lane in sci.lanes] == [1, 0, 1, 0, 1, 2]


def test_any_setting_can_be_changed_for_one_call() -> None:
    """Nested settings are given as mappings, whole ones as objects; the original stays as it was."""
    changed = recipe("drobek").with_(
        fusion={"k": 10}, fanout=Fanout(5), lanes={"keyword": {"match": "any"}}, min_score=0.01
    )
    assert (changed.fusion.k, changed.fanout.times, changed.min_score) == (10, 5, 0.01)
    assert changed.lanes[1].match == "any"
    assert RECIPES["drobek"].fusion.k == 60


@pytest.mark.parametrize(
    "changes",
    [
        {"colour": 1},
        {"weights": {"smell": 1}},
        {"weights": {"vector": float("nan")}},
        {"weights": {"vector": -0.1}},
        {"weights": {"vector": float("inf")}},
        {"lanes": {"keyword": {"volume": 11}}},
        {"lanes": {"smell": {}}},
        {"fusion": {"volume": 11}},
    ],
)
def test_unknown_settings_and_bad_weights_are_refused(changes: dict[str, object]) -> None:
    """The sentence names what there is."""
    with pytest.raises(InvalidRequest):
        recipe("balanced").with_(**changes)


def test_an_unknown_recipe_is_refused() -> None:
    """The sentence lists the recipes there are."""
    with pytest.raises(InvalidRequest, match="balanced, careful, polyant"):
        recipe("best")
