"""What is noted: one line of JSON for each call that was refused and for each that administers something. None of them
holds a secret.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from recollect.errors import NotAllowed
from recollect.servers.caller import Caller
from recollect.types import Scope

LOGGER = logging.getLogger("recollect.audit")
SECRET = re.compile(r"rc_\w+")
AGAIN_SECONDS = 60.0
"""Who calls without a right token, or too often, is noted once in so long, with how often that was."""
KEYS = 10_000


@dataclass(slots=True)
class Asked:
    """What a call's door has asked about its caller's rights."""

    may_administer: bool = False
    administers: bool = False
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Watched(Caller):
    """A caller, and what was asked about it."""

    asked: Asked = field(default_factory=Asked, compare=False)

    def may(self, scope: Scope, space: str | None = None) -> bool:
        allowed = Caller.may(self, scope, space)
        self.asked.may_administer |= allowed and scope == "admin"
        return allowed

    def must(self, scope: Scope, space: str | None = None) -> None:
        try:
            Caller.must(self, scope, space)
        except NotAllowed as error:
            self.asked.refused = str(error)
            raise
        self.asked.administers |= scope == "admin"


class Audit:
    """Writes the lines."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._noted: dict[str, tuple[float, int]] = {}

    def administered(self, who: str, address: str, call: str, status: int) -> None:
        self._write("administered", who, address, call, status=status)

    def refused(self, who: str, address: str, call: str, status: int, reason: str) -> None:
        """A call that its caller may not make."""
        self._write("refused", who, address, call, status=status, reason=reason)

    def repelled(self, who: str, address: str, call: str, status: int, reason: str) -> None:
        """A call without a right token, or one too many. A thousand in a row are one line, and the next says how many
        they were.
        """
        key = f"{who} {address}"
        noted_at, unsaid = self._noted.pop(key, (float("-inf"), 0))
        if self._clock() - noted_at < AGAIN_SECONDS:
            self._noted[key] = (noted_at, unsaid + 1)
            return
        self._noted[key] = (self._clock(), 0)
        if len(self._noted) > KEYS:
            del self._noted[next(iter(self._noted))]
        more = {"unsaid": unsaid} if unsaid else {}
        self._write("refused", who, address, call, status=status, reason=reason, **more)

    def _write(self, event: str, who: str, address: str, call: str, **more: Any) -> None:
        line = {"at": datetime.now(UTC).isoformat(), "event": event, "who": who, "from": address, "call": call, **more}
        LOGGER.info("%s", without_secrets(json.dumps(line, ensure_ascii=True)))


def without_secrets(text: str) -> str:
    """A text with every token in it cut short.

    >>> without_secrets("GET /v1/tokens/rc_1a2b_3c4d")
    'GET /v1/tokens/rc_…'
    """
    return SECRET.sub("rc_…", text)
