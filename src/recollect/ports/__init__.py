"""What the engine needs from the outside, as Protocols split by capability.

A store is all of `Records`, `WordIndex`, `VectorIndex` and `GraphIndex`, and has a `Ledger`; an external index replaces
one of the last two indexes. Every method is async, takes the space first, and never reaches another space.
Implementations translate their driver's errors into the tree of `recollect.errors`, in one place each.
"""

from __future__ import annotations

from recollect.ports.engines import Embedder, Engine, Reranker, Role
from recollect.ports.generations import Generations, GenerationState
from recollect.ports.indexes import (
    Change,
    ExternalIndex,
    ExternalLinks,
    ExternalVectors,
    GraphIndex,
    KeywordScore,
    Match,
    Reached,
    Term,
    VectorHits,
    VectorIndex,
    WordHits,
    WordIndex,
    Words,
    WordSearch,
)
from recollect.ports.ledger import SESSIONS, USES, Entry, Lag, Ledger
from recollect.ports.store import Beside, Mark, Records, Sample, SnapshotStore, Store

__all__ = [
    "SESSIONS", "USES", "Beside", "Change", "Embedder", "Engine", "Entry", "ExternalIndex", "ExternalLinks",
    "ExternalVectors", "GenerationState", "Generations", "GraphIndex", "KeywordScore", "Lag", "Ledger", "Mark",
    "Match", "Reached", "Records", "Reranker", "Role", "Sample", "SnapshotStore", "Store", "Term", "VectorHits",
    "VectorIndex", "WordHits", "WordIndex", "WordSearch", "Words",
]  # fmt: skip
