"""Memory that AI agents can trust: hybrid recall by meaning, words and links, in one file.

>>> from recollect import Recollect
>>> with Recollect("sqlite:///:memory:", embedder="hashing") as r:
...     work = r.space("work")
...     _ = work.remember("Invoice 12345 was paid on 3 May", tags=["billing"])
...     for hit in work.recall("invoice 12345"):
...         print(hit.memory.text)
Invoice 12345 was paid on 3 May
"""

from recollect.backups import Backup
from recollect.client import AsyncRecollect
from recollect.engine.copying import Copied, CopiedSpace, CopyProgress
from recollect.engine.doctor import Check, Diagnosis
from recollect.engine.quality import Rated
from recollect.engine.remember import Ingested
from recollect.engine.transfer import BrokenLine, DanglingLine, Imported
from recollect.errors import (
    BackendError,
    BackendTimeout,
    BackendUnavailable,
    ConfigError,
    EmbeddingError,
    EmbeddingMismatch,
    EmbeddingRefused,
    IndexBuilding,
    InvalidRequest,
    NotAllowed,
    NotFound,
    RecallFailed,
    RecollectError,
    SchemaOutdated,
)
from recollect.ports import Embedder
from recollect.recipes import RECIPES, Diversity, Fanout, Fusion, Lane, Limit, Recipe
from recollect.settings import Settings
from recollect.space import AsyncNamespace, AsyncSpace
from recollect.sync import Namespace, Recollect, Space
from recollect.types import (
    Bucket,
    Contribution,
    Draft,
    Edge,
    Expectation,
    Filter,
    Grant,
    Hit,
    Issued,
    LaneReport,
    LegUsage,
    Memory,
    Migration,
    Neighbor,
    Page,
    Recall,
    Remembered,
    Snippet,
    SpaceStats,
    SpaceUsage,
    Token,
    Usage,
    Use,
    Why,
)

__all__ = [
    "RECIPES",
    "AsyncNamespace",
    "AsyncRecollect",
    "AsyncSpace",
    "BackendError",
    "BackendTimeout",
    "BackendUnavailable",
    "Backup",
    "BrokenLine",
    "Bucket",
    "Check",
    "ConfigError",
    "Contribution",
    "Copied",
    "CopiedSpace",
    "CopyProgress",
    "DanglingLine",
    "Diagnosis",
    "Diversity",
    "Draft",
    "Edge",
    "Embedder",
    "EmbeddingError",
    "EmbeddingMismatch",
    "EmbeddingRefused",
    "Expectation",
    "Fanout",
    "Filter",
    "Fusion",
    "Grant",
    "Hit",
    "Imported",
    "IndexBuilding",
    "Ingested",
    "InvalidRequest",
    "Issued",
    "Lane",
    "LaneReport",
    "LegUsage",
    "Limit",
    "Memory",
    "Migration",
    "Namespace",
    "Neighbor",
    "NotAllowed",
    "NotFound",
    "Page",
    "Rated",
    "Recall",
    "RecallFailed",
    "Recipe",
    "Recollect",
    "RecollectError",
    "Remembered",
    "SchemaOutdated",
    "Settings",
    "Snippet",
    "Space",
    "SpaceStats",
    "SpaceUsage",
    "Token",
    "Usage",
    "Use",
    "Why",
    "__version__",
]

__version__ = "0.1.0"
