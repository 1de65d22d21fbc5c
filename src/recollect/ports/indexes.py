"""Searching: by words, by vectors, along links; inside the store, or in an engine beside it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeAlias

from recollect.ports.engines import Engine
from recollect.types import Background, Edge, Filter, Generation, Memory, Scored

if TYPE_CHECKING:
    from recollect.types import Vector

Words: TypeAlias = str
"""`analyzed`, or the name of a text-search configuration of Postgres. Every store knows `simple` and `english`."""
Match: TypeAlias = Literal["any", "plain", "websearch"]
KeywordScore: TypeAlias = Literal["bm25", "ts_rank", "ts_rank_cd"]


@dataclass(frozen=True, slots=True)
class Term:
    """One analyzed term of a question, how much it counts beside its rarity, and whether it names one thing."""

    term: str
    weight: float = 1.0
    names: bool = False


@dataclass(frozen=True, slots=True)
class WordSearch:
    """A question for a word index.

    `match="any"` uses the analyzer's `terms` and `phrases` (each phrase is adjacent terms, scored like one term).
    `plain` (every word) and `websearch` (every word, with "quotes", `or` and `-not`) are Postgres' own readings of
    the raw `text` under the `words` configuration. `title_boost` is added when the title contains the whole text.
    `context` lets what stands beside a memory in its thread count as a weaker field. `within` are the namespaces in
    which word counts and text lengths are measured; none: the whole space. Then scores reveal nothing of other
    namespaces to a caller who may see only these.
    """

    text: str
    terms: tuple[Term, ...] = ()
    phrases: tuple[tuple[str, ...], ...] = ()
    words: Words = "analyzed"
    match: Match = "any"
    score: KeywordScore = "bm25"
    title_boost: float = 0.0
    context: bool = True
    within: tuple[str, ...] = ()


class WordHits(NamedTuple):
    """A word index's answer.

    `background`: how the question scores the space at large. `holders`: for each term that names one thing, and for
    each phrase (its terms joined by blanks), the ids of hits whose own words, not only their context, hold it.
    """

    hits: Sequence[Scored]
    background: Background | None = None
    holders: Mapping[str, frozenset[str]] = {}


class VectorHits(NamedTuple):
    """A vector index's answer, how the question's vector compares with those of the space at large, and which of the
    hits stand in a thread (None: the index does not know).
    """

    hits: Sequence[Scored]
    background: Background | None = None
    threaded: frozenset[str] | None = None


class Reached(NamedTuple):
    """A memory reached over links: best product of strengths, how many steps that path has, its last relation."""

    id: str
    strength: float
    steps: int
    relation: str


class WordIndex(Protocol):
    async def search_words(self, space: str, /, search: WordSearch, where: Filter, *, limit: int) -> WordHits: ...


class VectorIndex(Protocol):
    async def search_vectors(
        self,
        space: str,
        /,
        vector: Vector,
        where: Filter,
        *,
        limit: int,
        ef_search: int | None = None,
        generation: Generation | None = None,
    ) -> VectorHits:
        """The nearest memories by cosine, best first, ties by id; recall against exact search >= 0.99. Only vectors of
        `generation` are compared, the current one by default. Raises EmbeddingMismatch if its vectors are gone.
        """

    async def nearest_to(self, space: str, /, ids: Sequence[str], *, limit: int) -> dict[str, list[Scored]]:
        """For each of these memories that has a vector, the others that are nearest to it, best first, whatever their
        state; ties with the last are included. After them come those that are linked already and nearer to it than
        to the weakest of their own `limit` nearest. An index that does not know the links adds a few more in their
        place: who is next.
        """

    async def vectors(
        self, space: str, /, ids: Sequence[str], *, generation: Generation | None = None
    ) -> dict[str, Vector]:
        """The vectors of these memories that have one of this generation, by default of the current one."""


class GraphIndex(Protocol):
    async def link(self, space: str, /, edges: Sequence[Edge]) -> None:
        """Add edges; same ends and relation: the strength is replaced. Raises NotFound when an end is not here."""

    async def link_nearest(self, space: str, /, nearest: Mapping[str, Sequence[Scored]]) -> None:
        """Link each of these memories to the nearest among what was found near it, and mark it as linked. What was
        found and is linked already takes it in place of the weakest of its own nearest, where it is nearer. Whatever
        was forgotten meanwhile is left out.
        """

    async def unlink(self, space: str, /, source: str, target: str, relation: str | None = None) -> int: ...

    async def walk(
        self, space: str, /, seeds: Sequence[str], where: Filter, *, depth: int, limit: int
    ) -> Sequence[Reached]:
        """Memories within `depth` (1 to 3) steps of a seed, along links in either direction, by the best product of
        strengths over all paths, best first, ties by id. Seeds are left out unless another seed reaches them.
        Only memories that pass `where` are returned; the walk may pass through the others of this space.
        """

    def edges(self, space: str, /, ids: Sequence[str] | None = None) -> AsyncIterator[Edge]:
        """Every edge of the space, or those that touch these ids, streamed."""


class Change(NamedTuple):
    """The new state of one memory in an external index: its fields, its vector, and the links that begin at it.
    Without a memory, it was forgotten.
    """

    id: str
    memory: Memory | None
    vector: Vector | None = None
    edges: tuple[Edge, ...] = ()


class ExternalIndex(Engine, Protocol):
    """An engine beside the store that answers one leg. The store is the source of truth: the index can be rebuilt from
    it. `name` is also its name in the outbox.
    """

    async def open(self) -> None:
        """Connect to the engine. One that is down is not an error here, because it may come back."""

    async def close(self) -> None: ...

    async def check(self) -> None:
        """Raise BackendUnavailable, with the reason, if the engine cannot be used."""

    async def use(self, generation: Generation) -> None:
        """Hold the vectors of this generation from now on, if it holds any. An engine that is down is not an error."""

    async def apply(self, space: str, /, changes: Sequence[Change]) -> None:
        """Bring these memories to these states, durable on return. Idempotent; of two states of one memory, the later
        in the sequence, or in a later call, wins.
        """

    async def count(self, space: str, /) -> int:
        """How many memories of a space it holds."""

    def ids(self, space: str, /) -> AsyncIterator[str]:
        """The ids of a space that it holds, streamed."""

    async def spaces(self) -> Sequence[str]:
        """The spaces that have memories in it."""

    async def shadow(self) -> ExternalIndex:
        """An empty index of the same kind, to rebuild into while this one goes on answering."""

    async def publish(self, shadow: ExternalIndex) -> None:
        """Answer from `shadow` from now on, for every process, and delete what was there before."""


class ExternalVectors(ExternalIndex, VectorIndex, Protocol):
    """An external index that answers the vector leg."""

    async def of(self, generation: Generation) -> ExternalIndex:
        """The same index for another generation, held beside the one in use."""

    async def drop(self, generation: Generation) -> None:
        """Delete the vectors of a generation that it does not use."""


class ExternalLinks(ExternalIndex, Protocol):
    """An external index that answers the graph leg."""

    async def walk(
        self, space: str, /, seeds: Sequence[str], where: Filter, *, depth: int, limit: int
    ) -> Sequence[Reached]:
        """See `GraphIndex.walk`."""
