"""Time-ordered ids: UUIDv7 (RFC 9562), increasing within a process even in the same millisecond."""

from __future__ import annotations

import secrets
import threading
import time
import uuid

_lock = threading.Lock()
_last = 0


def new_id() -> str:
    """A UUIDv7: 48 bits of milliseconds, 12 bits of a fraction of them, 62 random bits."""
    global _last  # the one place where ids of a process are kept in order
    nanoseconds = time.time_ns()
    milliseconds, rest = divmod(nanoseconds, 1_000_000)
    stamp = (milliseconds << 12) | (rest * 4096 // 1_000_000)
    with _lock:
        _last = stamp = max(stamp, _last + 1)
    high = (stamp >> 12 << 16) | 0x7000 | (stamp & 0xFFF)
    return str(uuid.UUID(int=(high << 64) | (0b10 << 62) | secrets.randbits(62)))
