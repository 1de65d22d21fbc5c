"""Files that are checked whenever they are read, and used from a private copy.

A process that maps a file trusts everyone who can write to it: truncating it kills the process (SIGBUS), and a changed
link in a graph may kill it too (SIGSEGV). So the whole file is copied, and the copy is checked.
"""

from __future__ import annotations

import os
import zlib
from io import FileIO
from mmap import ACCESS_READ, mmap
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Final, NamedTuple

IN_MEMORY = 256 << 20
"""Bytes up to which the copy is in memory. A larger copy is an unnamed file that is mapped, so the system can reclaim
its memory."""
_PART: Final = 1 << 20


class Damaged(Exception):
    """A file differs from what was written."""


class CheckedFile(NamedTuple):
    """A file as it was when it was written."""

    name: str
    size: int
    checksum: int

    @classmethod
    def of(cls, path: Path) -> CheckedFile:
        """Flush a file that was just written, and compute its checksum."""
        checksum = size = 0
        with path.open("rb") as file:
            os.fsync(file.fileno())
            while part := file.read(_PART):
                checksum, size = zlib.crc32(part, checksum), size + len(part)
        return cls(path.name, size, checksum)

    @property
    def in_memory(self) -> int:
        """Bytes of memory that a copy takes."""
        return self.size if self.size <= IN_MEMORY else 0

    def read(self, folder: Path) -> memoryview:
        """A private copy of the contents. Raises Damaged if they differ from what was written."""
        with (folder / self.name).open("rb", buffering=0) as file:
            if os.fstat(file.fileno()).st_size != self.size:
                raise Damaged(f"{file.name} has a different size than when it was written")
            if self.size <= IN_MEMORY:
                return self._in_memory(file)
            with TemporaryFile(dir=folder, prefix=self.name) as copy:
                return self._on_disk(file, copy)

    def _in_memory(self, file: FileIO) -> memoryview:
        copy = memoryview(mmap(-1, max(self.size, 1)))[: self.size]
        at = checksum = 0
        while read := file.readinto(copy[at : at + _PART]):
            checksum, at = zlib.crc32(copy[at : at + read], checksum), at + read
        self._check(file, at, checksum)
        return copy

    def _on_disk(self, file: FileIO, copy: IO[bytes]) -> memoryview:
        """Written, not mapped: a full disk is then an error, not a crash."""
        size = checksum = 0
        while part := file.read(min(_PART, self.size - size)):
            checksum, size = zlib.crc32(part, checksum), size + len(part)
            copy.write(part)
        self._check(file, size, checksum)
        copy.flush()
        return memoryview(mmap(copy.fileno(), size, access=ACCESS_READ))

    def _check(self, file: FileIO, size: int, checksum: int) -> None:
        if (size, checksum) != (self.size, self.checksum):
            raise Damaged(f"{file.name} differs from what was written")
