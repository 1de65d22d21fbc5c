"""Recipes: how to search, as plain data. The engine runs any recipe and knows none by name.

`balanced` is the default. The others are the recipes of five existing systems, kept exact: fetch sizes, word
configuration, rank function, fusion constant and bounds are theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Literal, TypeAlias

from recollect.errors import InvalidRequest
from recollect.limits import MAX_HITS, check_number, check_weight, shown
from recollect.ports import KeywordScore, Match, Words
from recollect.types import Leg

DEADLINE = 2.0
"""Seconds that a lane waits for engines outside this process before the answer goes out without it."""


@dataclass(frozen=True, slots=True)
class Lane:
    """One leg over some kinds (none named: all), with its own weight and deadline.

    Without a `deadline` a lane waits 2 s for engines outside this process, and has all the time it needs inside it. A
    deadline in seconds holds for both, from the beginning of the recall.
    `every_namespace` ignores the caller's choice of namespaces (still within the space). The settings below it
    concern one leg each: `words` to `context` the keyword leg, `lowest` the vector leg, `depth` and
    `seeds` the graph leg; `context` also lets the vector leg blend in a memory's thread neighbours. `lowest` is the
    least score that the vector leg gives: -1 leaves cosines as they are, 0 counts what points away as unrelated.
    """

    name: str
    leg: Leg
    weight: float = 1.0
    kinds: tuple[str, ...] = ()
    deadline: float | None = None
    every_namespace: bool = False
    words: Words = "analyzed"
    match: Match = "any"
    score: KeywordScore = "bm25"
    title_boost: float = 0.0
    context: bool = False
    ef_search: int | None = None
    lowest: float = -1.0
    depth: int = 2
    seeds: int = 3


@dataclass(frozen=True, slots=True)
class Limit:
    """How many hits: the default, the bounds, and whether a number outside is moved to the bound or refused."""

    default: int = 10
    least: int = 1
    most: int = MAX_HITS
    clamp: bool = False

    def apply(self, wanted: int | None) -> int:
        if wanted is None:
            return self.default
        if self.clamp and isinstance(wanted, int) and not isinstance(wanted, bool):
            return min(max(wanted, self.least), self.most)
        return int(check_number("limit", wanted, self.least, self.most, whole=True))


@dataclass(frozen=True, slots=True)
class Fanout:
    """How many hits each lane is asked for: `max(times x limit, at_least)`."""

    times: int
    at_least: int = 0

    def apply(self, limit: int) -> int:
        return max(self.times * limit, self.at_least)


FusionMethod: TypeAlias = Literal["rrf", "min_max", "calibrated", "raw"]
DiversityMethod: TypeAlias = Literal["none", "near_copies", "mmr"]
Relevance: TypeAlias = Literal["fused", "cosine"]


@dataclass(frozen=True, slots=True)
class Fusion:
    """How rankings become one. `k` is RRF's constant; `raw` adds the scores as the legs give them.

    `renormalise` gives the weight of lanes that did not answer to the others, in their proportion.
    """

    method: FusionMethod = "calibrated"
    k: int = 60
    renormalise: bool = False


@dataclass(frozen=True, slots=True)
class Diversity:
    """How near-copies are kept from crowding the top. `balance` is MMR's lambda: 1 is plain relevance.

    `relevance` is what MMR weighs against similarity: the fused score divided by the best one, or the cosine with the
    question.
    """

    method: DiversityMethod = "none"
    balance: float = 0.7
    relevance: Relevance = "fused"


@dataclass(frozen=True, slots=True)
class Rerank:
    """Read the best `count` together with the question, and add what that says to their scores.

    `model` is a reranker by name (`local`, `http:URL`); without one it is the client's. `turns` and `rest` say how far
    it is trusted, for a turn of a conversation and for any other memory: with 1 it weighs as much as one lane. A turn
    that is not prose is trusted to it like the rest, a text in a language that it does not know not at all. After
    `deadline` seconds the order stands as it was.

    3 lies in the middle of a plateau from 2 to 6 on conversations. 0.1 lets the reranker decide between memories that
    the lanes find alike, and no more: beyond it, what it was not trained on (abstracts in aeronautics) loses.
    """

    model: str | None = None
    count: int = 30
    turns: float = 3.0
    rest: float = 0.1
    deadline: float = 2.0


@dataclass(frozen=True, slots=True)
class Recipe:
    """Lanes + fanout + fusion + diversity + bounds."""

    name: str
    lanes: tuple[Lane, ...]
    about: str = ""
    limit: Limit = Limit()
    fanout: Fanout = Fanout(times=10, at_least=100)
    fusion: Fusion = Fusion()
    diversity: Diversity = Diversity()
    rerank: Rerank | None = None
    min_score: float | None = None
    min_confidence: float | None = None
    min_quality: float | None = None
    quality_weight: float = 0.0
    """How much a memory's quality counts: scores are multiplied by `1 - weight + weight x quality`."""
    default_namespaces: tuple[str, ...] = ()
    """Where to search when the caller names no namespace (none: in all of them)."""
    include_superseded: bool = False
    include_expired: bool = False
    all_failed: Literal["raise", "empty"] = "raise"
    """What an answer is when every lane failed."""

    @property
    def configurations(self) -> tuple[str, ...]:
        """The text-search configurations that its lanes ask for."""
        return tuple(dict.fromkeys(lane.words for lane in self.lanes if lane.leg == "keyword" and lane.match != "any"))

    def with_(self, **changes: Any) -> Recipe:
        """The recipe with some values changed; an unknown name is refused.

        `weights` maps lane (or leg) names to weights; `lanes` maps lane (or leg) names to settings of theirs;
        `fusion`, `diversity`, `limit`, `fanout` and `rerank` take their object or a mapping of its fields, and `rerank`
        also None.

        >>> recipe("novamem").with_(weights={"keyword": 1, "vector": 0, "graph": 0}).lanes[1].weight
        0.0
        """
        if not changes:
            return self
        lanes = _changed_lanes(self, changes.pop("lanes", None) or {}, changes.pop("weights", None) or {})
        known = {f.name for f in fields(self)} - {"lanes"}
        for name, value in changes.items():
            if name not in known:
                raise InvalidRequest(f"a recipe has no setting {name!r:.80}; it has: {', '.join(sorted(known))}")
            now = Rerank() if name == "rerank" and self.rerank is None else getattr(self, name)
            if name == "rerank" and value is None:
                continue
            if isinstance(value, Mapping):
                changes[name] = _changed(now, value, f"{name} of a recipe")
            elif is_dataclass(now) and not isinstance(value, type(now)):
                raise InvalidRequest(f"{name} must be a {type(now).__name__} or a mapping, not {shown(value)}")
        return replace(self, lanes=lanes, **changes)


def _changed(thing: Any, values: Mapping[str, Any], what: str) -> Any:
    if not isinstance(values, Mapping):
        raise InvalidRequest(f"the settings of {what} must be a mapping of names to values, not {shown(values)}")
    known = {f.name for f in fields(thing)}
    for name in values:
        if name not in known:
            raise InvalidRequest(f"{what} has no setting {name!r:.80}; it has: {', '.join(sorted(known))}")
    return replace(thing, **{name: tuple(v) if isinstance(v, list) else v for name, v in values.items()})


def _changed_lanes(
    recipe: Recipe, settings: Mapping[str, Mapping[str, Any]], weights: Mapping[str, float]
) -> tuple[Lane, ...]:
    names = {lane.name for lane in recipe.lanes} | {lane.leg for lane in recipe.lanes}
    for what, given in (("lanes", settings), ("weights", weights)):
        if not isinstance(given, Mapping):
            raise InvalidRequest(f"{what} must be a mapping of lane names to values, not {shown(given)}")
    for name in (*settings, *weights):
        if name not in names:
            raise InvalidRequest(f"recipe {recipe.name!r} has no lane {name!r:.80}; it has: {', '.join(sorted(names))}")

    def changed(lane: Lane) -> Lane:
        for name in (lane.leg, lane.name):
            if name in settings:
                lane = _changed(lane, settings[name], f"lane {lane.name!r}")
            if name in weights:
                lane = replace(lane, weight=check_weight(name, weights[name]))
        return lane

    return tuple(changed(lane) for lane in recipe.lanes)


def _balanced() -> Recipe:
    return Recipe(
        name="balanced",
        about="the default: meaning, words and links, fused by what each list is worth for this question",
        lanes=(
            Lane("vector", "vector", context=True),
            Lane("keyword", "keyword", context=True),
            Lane("graph", "graph", weight=0.1, depth=1),
        ),
        diversity=Diversity("near_copies"),
        fusion=Fusion("calibrated", renormalise=True),
    )


def _careful() -> Recipe:
    return replace(
        _balanced(),
        name="careful",
        about="balanced, and the best 30 are read together with the question: better for conversations, slower",
        rerank=Rerank(),
    )


def _polyant() -> Recipe:
    return Recipe(
        name="polyant",
        about="facts by meaning, messages by words, RRF",
        lanes=(
            Lane("vector", "vector", kinds=("fact",)),
            Lane("keyword", "keyword", kinds=("message",), words="simple", match="websearch", score="ts_rank"),
        ),
        fanout=Fanout(times=2, at_least=20),
        fusion=Fusion("rrf"),
        include_superseded=True,
        include_expired=True,
        all_failed="empty",
    )


def _polyant_knowledge() -> Recipe:
    return Recipe(
        name="polyant_knowledge",
        about="chunks of documents by meaning alone, scored by their cosine",
        lanes=(Lane("vector", "vector", kinds=("chunk",)),),
        limit=Limit(default=5),
        fanout=Fanout(times=1),
        fusion=Fusion("raw"),
        include_superseded=True,
        include_expired=True,
    )


def _sci() -> Recipe:
    kinds = ("episodic", "semantic", "identity")

    def lane(kind: str, leg: Leg) -> Lane:
        name, shared = f"{kind}-{leg}", kind == "identity"
        if leg == "vector":
            return Lane(name, leg, kinds=(kind,), every_namespace=shared)
        return Lane(
            name, leg, kinds=(kind,), every_namespace=shared, words="english", match="plain", score="ts_rank_cd"
        )

    return Recipe(
        name="sci",
        about="meaning and words over each of three kinds of memory, six lanes, RRF; a profile is a namespace",
        lanes=tuple(lane(kind, leg) for kind in kinds for leg in ("vector", "keyword")),
        fanout=Fanout(times=3),
        fusion=Fusion("rrf"),
        default_namespaces=("default",),
        include_superseded=True,
        include_expired=True,
    )


def _pgmemory() -> Recipe:
    return Recipe(
        name="pgmemory",
        about="meaning and words, RRF, then MMR for variety; poor memories left out",
        lanes=(
            Lane("vector", "vector"),
            Lane("keyword", "keyword", words="english", match="plain", score="ts_rank"),
        ),
        limit=Limit(default=5),
        fanout=Fanout(times=4, at_least=20),
        fusion=Fusion("rrf"),
        diversity=Diversity("mmr", balance=0.7),
        min_quality=0.05,
        include_superseded=True,
        include_expired=True,
    )


def _drobek() -> Recipe:
    return Recipe(
        name="drobek",
        about="knowledge by meaning and words with a title boost, RRF; superseded entries left out",
        lanes=(
            Lane("vector", "vector", kinds=("knowledge",), ef_search=64),
            Lane(
                "keyword",
                "keyword",
                kinds=("knowledge",),
                words="simple",
                match="plain",
                score="ts_rank_cd",
                title_boost=0.5,
            ),
        ),
        limit=Limit(default=10, most=50, clamp=True),
        fanout=Fanout(times=3),
        fusion=Fusion("rrf"),
    )


def _novamem() -> Recipe:
    return Recipe(
        name="novamem",
        about="words, meaning and links, each min-max normalised, weighted 0.3 / 0.6 / 0.1",
        lanes=(
            Lane("keyword", "keyword", weight=0.3, words="english", match="plain", score="ts_rank_cd"),
            Lane("vector", "vector", weight=0.6, lowest=0.0),
            Lane("graph", "graph", weight=0.1),
        ),
        limit=Limit(default=10, most=100, clamp=True),
        fanout=Fanout(times=3),
        fusion=Fusion("min_max"),
    )


RECIPES: Mapping[str, Recipe] = {
    r.name: r
    for r in (_balanced(), _careful(), _polyant(), _polyant_knowledge(), _sci(), _pgmemory(), _drobek(), _novamem())
}
"""The built-in recipes by name."""


def recipe(which: str | Recipe, known: Mapping[str, Recipe] = RECIPES) -> Recipe:
    """A recipe by name; a Recipe is returned as it is."""
    if isinstance(which, Recipe):
        return which
    if not isinstance(which, str) or which not in known:
        raise InvalidRequest(f"the recipe {shown(which)} does not exist: use one of {', '.join(known)}")
    return known[which]
