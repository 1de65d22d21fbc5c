"""What every door answers with."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from recollect.servers.documents import json_ready
from recollect.types import Memory


def test_metadata_is_answered_as_it_is_stored() -> None:
    """However deep it is: a store may hold what an earlier version took."""
    metadata: dict[str, object] = {}
    for _ in range(900):
        metadata = {"a": metadata}
    now = datetime(2026, 5, 3, tzinfo=UTC)
    memory = Memory("a", "work", "A text.", metadata=metadata, created_at=now, updated_at=now)
    assert json_ready([memory])[0]["metadata"] is metadata
    json.dumps(json_ready([memory]))
