"""Commands that move memories: import and export as JSON Lines, copy from store to store."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO
from urllib.parse import unquote

import typer

from recollect.errors import InvalidRequest
from recollect.limits import LINE_BYTES, check_line
from recollect.servers.cli import options as opt
from recollect.servers.cli.options import open_store
from recollect.servers.cli.output import console, hint, progress, show
from recollect.servers.empty import empty_note

if TYPE_CHECKING:
    from recollect.engine.copying import Copied, CopyProgress

LINES_SHOWN = 20
"""Broken or dangling lines named on the terminal; `--json` names more."""


def import_(
    file: Annotated[str, typer.Argument(metavar="FILE.jsonl", help="A file of JSON Lines; - reads standard input.")],
    space: opt.SpaceName = "default",
    embedder: opt.EmbedderSpec = None,
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Load memories and links. Can be run again after a crash: what is there is not stored twice.

    A line that cannot be taken is named with its number; the good ones are kept, and the exit code is 1.
    """
    from recollect.servers.cli import render

    with _read(file) as (stream, size), open_store(store, embedder, create=True) as r, progress(of_bytes=True) as bar:
        here = r.space(space)
        task = bar.add_task("importing", total=size)
        lines = _lines(stream, lambda read: bar.advance(task, read))
        try:
            imported = here.import_lines(
                lines, on_progress=lambda now: bar.update(task, description=f"importing, {now.created:,} new")
            )
            bar.update(task, description="linking to the nearest")
            here.settle()
        except KeyboardInterrupt:  # closing would wait for a line that may never come; what is stored is durable
            bar.stop()
            os._exit(130)
    show(imported, render.imported, as_json=as_json)
    if imported.dangling_count and not as_json:
        console(sys.stderr).print(render.dangling_lines(imported, most=LINES_SHOWN), soft_wrap=True)
    if imported.broken_count:
        if not as_json:
            console(sys.stderr).print(render.broken_lines(imported, most=LINES_SHOWN), soft_wrap=True)
        raise typer.Exit(1)


def export(
    file: Annotated[str, typer.Argument(metavar="FILE.jsonl", help="The file to write; - writes standard output.")],
    space: opt.SpaceName = "default",
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Write all memories and links of a space as JSON Lines, every field included."""
    from recollect.servers.cli.render import count, one_line

    with open_store(store) as r, _write(file, r.url) as stream, progress() as bar:
        here = r.space(space)
        held = here.stats()
        lines = bar.track(here.export(), total=held.memories + held.edges, description="exporting")
        written = _dump(lines, stream)
        note = "" if held.memories else empty_note(space, r.spaces())
    if file != "-":
        done = {"file": file, "lines": written}
        show(done, lambda _: one_line(f"wrote {count(written, 'line')} to {file}"), as_json=as_json)
    hint(note)


def copy(
    source: Annotated[str, typer.Argument(metavar="FROM", help="The URL of the store to copy.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="The URL of the store to copy to.")],
    space: Annotated[
        list[str] | None,
        typer.Option("--space", metavar="NAME", help="Only this space; repeatable.", show_default="all"),
    ] = None,
    as_json: opt.Json = False,
) -> None:
    """Copy everything from one store to another, and compare the two. Can be run again after a crash.

    Memories keep their ids, times, vectors and links. What differs afterwards is named, and the exit code is 1.
    """
    from recollect.sync import Recollect

    with following("copying") as follow:
        copied = Recollect.copy(source, target, spaces=space, on_progress=follow)
    show_copied(copied, must_match=True, as_json=as_json)


def show_copied(copied: Copied, *, must_match: bool, as_json: bool) -> None:
    """What was copied; where the two stores must hold the same and do not, the difference, and exit code 1."""
    from recollect.servers.cli import render

    show({"spaces": copied.spaces, "verified": copied.verified}, lambda _: render.copied(copied), as_json=as_json)
    if must_match and not copied.verified:
        if not as_json:
            console(sys.stderr).print(render.copy_differences(copied), soft_wrap=True)
        raise typer.Exit(1)


@contextmanager
def following(what: str) -> Iterator[Callable[[CopyProgress], None]]:
    """A bar that shows how far a copy is."""
    from recollect.servers.cli.render import one_line

    with progress() as bar:
        task = bar.add_task(what, total=None)
        yield lambda now: bar.update(
            task, description=one_line(f"{now.stage} {now.space}"), completed=now.done, total=now.total
        )


@contextmanager
def _read(file: str) -> Iterator[tuple[BinaryIO, int | None]]:
    """The file's bytes, and how many there are if that can be told."""
    if file == "-":
        yield sys.stdin.buffer, None
        return
    with Path(file).open("rb") as stream:
        yield stream, Path(file).stat().st_size


def _lines(stream: BinaryIO, on_read: Callable[[int], object]) -> Iterator[str]:
    """The lines as text. Bytes that are not UTF-8 become lone surrogates, which the library refuses line by line."""
    number = 0
    while raw := stream.readline(LINE_BYTES + 1):
        number += 1
        check_line(number, len(raw))
        on_read(len(raw))
        yield raw.decode("utf-8-sig" if number == 1 else "utf-8", "surrogateescape")


@contextmanager
def _write(file: str, store_url: str) -> Iterator[BinaryIO]:
    """Standard output, a device or pipe as it is, or a file that takes its name only once it is whole."""
    target = Path(file)
    if file == "-":
        yield sys.stdout.buffer
        return
    if target.exists() and not target.is_file():
        with target.open("wb") as stream:
            yield stream
        return
    if target.is_file() and _is_store(target, store_url):
        raise InvalidRequest(f"{file} is the store itself: export to another file")
    target = target.resolve()  # behind a link, the file that it leads to is replaced, not the link
    try:
        unfinished = NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False)  # noqa: SIM115
    except OSError as error:  # which names the temporary file
        raise OSError(error.errno, error.strerror, file) from None
    with unfinished as stream:
        part = Path(stream.name)
        try:
            yield stream  # type: ignore[misc]  # a temporary file is a binary stream, whatever its wrapper is called
            stream.flush()
            part.chmod(target.stat().st_mode if target.exists() else 0o666 & ~_umask())
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)


def _is_store(file: Path, url: str) -> bool:
    scheme, _, path = url.partition(":///")
    store = Path(unquote(path)).expanduser()
    return scheme == "sqlite" and store.exists() and store.samefile(file)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _dump(lines: Iterable[dict[str, Any]], stream: BinaryIO) -> int:
    """Write JSON Lines in UTF-8; how many."""
    written = 0
    for line in lines:
        stream.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
        written += 1
    stream.flush()
    return written
