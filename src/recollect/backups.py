"""backup and restore: all that a store holds as one file, and back into a store, whole or by spaces.

A backup is itself a store file, so it can also be opened. It takes its name only once it is whole, checked and on the
disk; nothing of it is left if it fails.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory

from recollect import composition
from recollect.engine.copying import Copied, OnProgress, chosen, compare, copy_open, opened, refuse_same
from recollect.errors import ConfigError, InvalidRequest
from recollect.ports import Store


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup that was written: its file, and how many memories of each space are in it."""

    file: str
    spaces: Mapping[str, int]

    @property
    def memories(self) -> int:
        return sum(self.spaces.values())


async def backup(store: Store, path: str | Path, *, force: bool, on_progress: OnProgress) -> Backup:
    """Write a backup of an open store to a file that is not there yet, or with `force` in another backup's place."""
    file = await asyncio.to_thread(_free_place, store, path, force)
    with TemporaryDirectory(dir=file.parent, prefix=".recollect-backup-") as folder:
        part = Path(folder, "memory.db")
        spaces = await composition.write_backup(store, part, on_progress)
        await asyncio.to_thread(_put_in_place, part, file)
    return Backup(str(file), spaces)


async def restore(
    path: str | Path, target: Store, spaces: Sequence[str] | None, *, force: bool, on_progress: OnProgress
) -> Copied:
    """Copy the spaces of a backup into a store that is not open, and compare them afterwards. A space that holds other
    memories already is refused before anything is copied, unless `force` says to add to them.
    """
    source = composition.backup_file(await asyncio.to_thread(_written, path))
    refuse_same(source, target)
    async with opened(source):
        await source.remarks()  # raises if it is damaged
        names = await chosen(source, spaces)
        async with opened(target):
            for name in () if force else names:
                await _refuse_mixture(source, target, name)
            return await copy_open(source, target, names, on_progress)


async def _refuse_mixture(source: Store, target: Store, space: str) -> None:
    """What a restore that was cut off has left is fine: it is all in the backup."""
    if not (await target.stats(space)).memories:
        return
    found = await compare(source, target, space)
    others = found.extra.count + found.different.count
    if others:
        raise InvalidRequest(
            f"space {space!r} of {target.location} holds {others:,} memories that are not in the backup, or not the "
            "same: restore into an empty store, or add what is missing with --force (force=True), which changes none "
            "of them"
        )


def _written(path: str | Path) -> Path:
    file = _file(path)
    if not file.is_file():
        raise ConfigError(f"there is no backup at {file}: name a file that `recollect backup FILE` wrote")
    return file


def _free_place(store: Store, path: str | Path, force: bool) -> Path:
    """Where a backup may be written. What is there stays, unless it may be replaced."""
    file = _file(path).absolute()
    if not file.parent.is_dir():
        raise InvalidRequest(f"there is no folder {file.parent}: make it first, or name another file")
    if store.location == str(file.resolve()):
        raise InvalidRequest(f"{file} is the store itself: name another file")
    if file.exists() and not file.is_file():
        raise InvalidRequest(f"{file} is not a file: name another")
    if file.exists() and not force:
        raise InvalidRequest(f"{file} is there already: name another file, or replace it with --force (force=True)")
    if file.with_name(f"{file.name}-wal").exists():
        raise InvalidRequest(f"{file} is open as a store, or was not closed: name another file")
    return file


def _file(path: object) -> Path:
    if not isinstance(path, str | PathLike):
        raise InvalidRequest(f"the file of a backup must be a path, not {type(path).__name__}")
    return Path(path).expanduser()


def _put_in_place(part: Path, file: Path) -> None:
    """On the disk first, then under its name."""
    _sync(part)
    part.replace(file)
    _sync(file.parent)


def _sync(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
