"""The keywords of the public calls, as typed dictionaries, so that both clients share one signature."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from recollect.recipes import Diversity, Fanout, Fusion, Recipe
    from recollect.types import Vector


class FilterOptions(TypedDict, total=False):
    """Which memories a call may see; what is left out does not narrow."""

    kinds: Iterable[str]
    namespaces: Iterable[str]
    tags: Iterable[str]
    source_prefix: str
    thread: str | None
    since: datetime | str | None
    until: datetime | str | None
    min_quality: float | None
    include_superseded: bool | None
    include_expired: bool | None


class ListOptions(FilterOptions, total=False):
    """Which memories to list, and in which order: oldest first, or newest first."""

    newest_first: bool


class RecallOptions(FilterOptions, total=False):
    """How to recall. Everything a recipe says can be said differently for one call.

    `weights` maps lane or leg names to weights, `lanes` maps them to other settings of theirs; `expect` asks where a
    memory that should have been found was lost; `window` brings thread neighbours along; `vector` is the question's
    vector where the caller has it already; `shared` names namespaces of others that they let this space see, each as
    (space, namespace), and none of them by an empty list; `renormalise` says whether the weight of lanes that did not
    answer goes to the others; `quality_weight` says how much a memory's quality counts, from 0 to 1; `ef_search`, from
    1 to 200, is how many candidates an approximate vector index keeps while it searches, in place of its own number.
    """

    recipe: str | Recipe
    limit: int | None
    fanout: int | Fanout | None
    weights: Mapping[str, float] | None
    lanes: Mapping[str, Mapping[str, Any]] | None
    fusion: Fusion | Mapping[str, Any] | None
    renormalise: bool | None
    diversity: Diversity | Mapping[str, Any] | None
    min_score: float | None
    quality_weight: float | None
    ef_search: int | None
    expect: str | None
    window: int
    vector: Sequence[float] | Vector | None
    shared: Iterable[tuple[str, str]] | None


class _Described(TypedDict, total=False):
    namespace: str
    kind: str
    title: str
    tags: Iterable[str]
    source: str
    thread: str | None
    place: int | None
    metadata: Mapping[str, Any] | None
    occurred_at: datetime | str | None
    expires_at: datetime | str | None


class MemoryFields(_Described, total=False):
    """What can be said of a memory beside its text."""

    vector: Sequence[float] | Vector | None
    id: str | None


class Changes(_Described, total=False):
    """What `update` can change."""

    text: str
    quality: float | None
