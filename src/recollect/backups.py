"""backup and restore: a whole store as one file, and back into a store, whole or by spaces.

A backup is a SQLite store, so it can also be opened. It gets its name once it is complete, verified and on disk. A
failed backup leaves nothing behind, and a killed one leaves a folder that the next backup removes.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from recollect import composition
from recollect.engine.copying import Copied, OnProgress, chosen, compare, copy_open, opened, refuse_same
from recollect.errors import ConfigError, InvalidRequest
from recollect.ports import Store

UNFINISHED: Final = ".recollect-backup-"
"""How the name begins of a folder in which a backup is being written."""


@dataclass(frozen=True, slots=True)
class Backup:
    """A written backup: its file, and its number of memories by space."""

    file: str
    spaces: Mapping[str, int]

    @property
    def memories(self) -> int:
        return sum(self.spaces.values())


async def backup(store: Store, path: str | Path, *, force: bool, on_progress: OnProgress) -> Backup:
    """Back up an open store to a new file, or with `force` over an existing one."""
    file = await asyncio.to_thread(_free_place, store, path, force)
    await asyncio.to_thread(_remove_abandoned, file.parent)
    with TemporaryDirectory(dir=file.parent, prefix=UNFINISHED) as folder, composition.in_use(Path(folder)):
        part = Path(folder, "memory.db")
        spaces = await composition.write_backup(store, part, on_progress)
        await asyncio.to_thread(_put_in_place, part, file)
    return Backup(str(file), spaces)


async def restore(
    path: str | Path, target: Store, spaces: Sequence[str] | None, *, force: bool, on_progress: OnProgress
) -> Copied:
    """Copy the spaces of a backup into a closed store, then compare them. Without `force`, a space that already holds
    other memories is refused before anything is copied.
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
    """Raises InvalidRequest if the target holds other memories. Those of an interrupted restore are in the backup."""
    if not (await target.stats(space)).memories:
        return
    found = await compare(source, target, space)
    others = found.extra.count + found.different.count
    if others:
        raise InvalidRequest(
            f"space {space!r} of {target.location} holds {others:,} memories that differ from the backup: restore into "
            "an empty store, or add force=True to add only what is missing"
        )


def _written(path: str | Path) -> Path:
    file = _file(path)
    if not file.is_file():
        raise ConfigError(f"{file} does not exist: name a file that was written as a backup")
    return file


def _free_place(store: Store, path: str | Path, force: bool) -> Path:
    """The path to write to. Raises InvalidRequest if a backup must not be written there."""
    file = _file(path).absolute()
    if not file.parent.is_dir():
        raise InvalidRequest(f"the folder {file.parent} does not exist: make it first, or name another file")
    if store.location == str(file.resolve()):
        raise InvalidRequest(f"{file} is the store itself: name another file")
    if file.exists() and not file.is_file():
        raise InvalidRequest(f"{file} is not a file: name another")
    if file.exists() and not force:
        raise InvalidRequest(f"{file} already exists: name another file, or add force=True to replace it")
    if file.with_name(f"{file.name}-wal").exists():
        raise InvalidRequest(f"{file} is open as a store, or was not closed: name another file")
    return file


def _remove_abandoned(folder: Path) -> None:
    for unfinished in folder.glob(f"{UNFINISHED}*"):
        if composition.is_abandoned(unfinished):
            shutil.rmtree(unfinished, ignore_errors=True)


def _file(path: object) -> Path:
    if not isinstance(path, str | PathLike):
        raise InvalidRequest(f"the file of a backup must be a path, not {type(path).__name__}")
    return Path(path).expanduser()


def _put_in_place(part: Path, file: Path) -> None:
    """Flush the file to disk, then give it its name."""
    _sync(part)
    part.replace(file)
    _sync(file.parent)


def _sync(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
