"""Which open store claimed an idempotency key, and whether its process is still alive.

An open store that claims keys holds SQLite's own lock on a file of its own, in a folder beside the store. The system
releases the lock when the process ends, however it ends: an owner whose lock is free is dead, and so is one whose file
is gone. Process ids play no part: containers and restarts use them again.
"""

from __future__ import annotations

import re
import stat
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from typing import Final
from uuid import uuid4

import apsw

TIDIED: Final = 1_000
"""Files of dead owners that are removed at once, at most: nobody waits for more."""
_NAME = re.compile(r"[0-9a-f]{32}")


class Owner:
    """An open store as the owner of keys. Used by one thread at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: tuple[str, apsw.Connection] | None = None

    def name(self) -> str:
        """The name of this owner. Its lock is held from the first call on, until `close`."""
        if self._held is None:
            self._folder.mkdir(exist_ok=True)
            for file in islice(self._folder.iterdir(), TIDIED):
                self.is_dead(file.name)  # what the dead left behind is removed
            self._held = self._hold()
        return self._held[0]

    def is_dead(self, name: str) -> bool:
        """Whether the owner of this name is gone; its file goes with it."""
        if not _NAME.fullmatch(name):
            return False
        file = self._folder / name
        try:
            if not _may_be_an_owners(file):
                return False
            with closing(apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READWRITE)) as lock:
                _lock(lock)
                with suppress(OSError):  # where a file that is open cannot be removed, it stays
                    file.unlink(missing_ok=True)
        except apsw.BusyError:
            return False
        except FileNotFoundError:
            return True
        except apsw.Error:  # it cannot be opened: because it is gone, or because it is another user's
            return not file.exists()
        return True

    def close(self) -> None:
        if self._held is not None:
            name, lock = self._held
            self._held = None
            with suppress(OSError):
                (self._folder / name).unlink(missing_ok=True)
            lock.close()

    def _hold(self) -> tuple[str, apsw.Connection]:
        """A new name whose lock is held. A file that another process took for a dead one's is left to it."""
        while True:
            name = uuid4().hex
            file = self._folder / name
            lock = apsw.Connection(str(file))
            with suppress(apsw.BusyError):
                _lock(lock)
                if file.exists():
                    return name, lock
            lock.close()


def _may_be_an_owners(file: Path) -> bool:
    """Whether a file is empty, as those of owners are. SQLite would change what somebody else has put in its place, or
    what a link leads to.
    """
    found = file.lstat()
    return stat.S_ISREG(found.st_mode) and found.st_size == 0


def _lock(file: apsw.Connection) -> None:
    """Raises BusyError where another holds the lock."""
    file.pragma("journal_mode", "memory")  # nothing is written, and no second file is needed
    file.execute("BEGIN EXCLUSIVE")
