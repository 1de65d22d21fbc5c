"""Whether an engine is there, for the log: one line when it goes, and one when it is back."""

from __future__ import annotations

import logging
import time

_log = logging.getLogger(__name__)


class Presence:
    """One engine as those find it who call it, its searches and its feeder together. What they ask meanwhile, and how
    often, is not logged: answers say what they lack.
    """

    def __init__(self, engine: str) -> None:
        self._engine = engine
        self._missed_by: set[str] = set()
        self._since = 0.0

    def lost(self, by: str, why: str, bug: Exception | None = None) -> None:
        """Somebody cannot use it. An error that nobody thought of is logged with its traceback."""
        if not self._missed_by:
            self._since = time.monotonic()
            _log.warning("%s cannot be used: %s", self._engine, why, exc_info=bug)
        self._missed_by.add(by)

    def found(self, by: str) -> None:
        """Somebody can use it again."""
        if by in self._missed_by:
            self._missed_by.remove(by)
            if not self._missed_by:
                _log.info("%s can be used again, after %.0f s", self._engine, time.monotonic() - self._since)
