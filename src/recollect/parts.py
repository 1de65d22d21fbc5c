"""Finds parts by name: stores and indexes by the scheme of their URL, embedders and legs by their name.

Recollect lists its own parts in tables (`composition.py`, `embedders/`, `legs/`). Another package adds parts as entry
points of the same group:

    [project.entry-points."recollect.stores"]
    mydb = "mypkg.store:MyStore.from_url"

A part is imported when first used. Entry points are read only for a name that is not ours, so an installed package
cannot replace a part of Recollect.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from recollect.errors import ConfigError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Parts(Generic[T]):
    """The parts of one entry-point group. `ours` maps each of our names to `module:attribute`, or to
    `module:attribute [extra]` when it needs an extra of Recollect.
    """

    group: str
    ours: Mapping[str, str]

    def names(self) -> list[str]:
        """Our names, then those of other installed packages."""
        return [*self.ours, *sorted({point.name for point in self._points()} - self.ours.keys())]

    def load(self, name: str) -> T | None:
        """Import the part of this name. None: no installed package has it."""
        if name in self.ours:
            place, _, extra = self.ours[name].partition(" ")
            return self._imported(name, place, "recollect" + extra)
        found = [point for point in self._points() if point.name == name]
        if not found:
            return None
        if len(found) > 1:
            packages = ", ".join(sorted(_package(point) for point in found))
            raise ConfigError(f"several packages offer {name!r} in {self.group}: {packages}; uninstall all but one")
        place, _, extra = found[0].value.partition(" ")
        return self._imported(name, place, _package(found[0]) + extra.strip())

    def _points(self) -> list[EntryPoint]:
        from importlib.metadata import entry_points  # late: our own parts do without it

        return list(entry_points(group=self.group))

    def _imported(self, name: str, place: str, requirement: str) -> T:
        try:
            return cast("T", pkgutil.resolve_name(place))
        except ImportError as error:
            raise ConfigError(
                f"{name!r} needs {error.name}, which is not installed: python3 -m pip install '{requirement}'"
            ) from error
        except (AttributeError, ValueError) as error:
            raise ConfigError(
                f"{requirement} offers {name!r} in {self.group} as {place}, which does not exist"
            ) from error


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "an unknown package"
