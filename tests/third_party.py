"""A package of somebody else, installed in a folder."""

from __future__ import annotations

from pathlib import Path


def install(folder: Path, name: str, source: str, entry_points: str = "") -> None:
    """Put a package of one module into a folder, as pip would: the module, its metadata and its entry points. Whoever
    has the folder on the path has the package.
    """
    folder.joinpath(f"{name}.py").write_text(source, encoding="utf-8")
    metadata = folder / f"{name}-1.0.dist-info"
    metadata.mkdir()
    metadata.joinpath("METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
    metadata.joinpath("entry_points.txt").write_text(entry_points, encoding="utf-8")
