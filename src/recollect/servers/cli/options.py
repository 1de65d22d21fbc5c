"""The options and arguments that several commands share, each defined once."""

from __future__ import annotations

import json
import shlex
import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from recollect.settings import without_password

if TYPE_CHECKING:
    from recollect.sync import Recollect

KINDS = ("fact", "episodic", "semantic", "identity", "message", "knowledge", "chunk")
"""The kinds of the design, offered on Tab; any other short name is allowed."""


def recipe_names() -> list[str]:
    """What Tab offers after `--recipe`."""
    from recollect.recipes import RECIPES

    return list(RECIPES)


def kind_names() -> list[str]:
    return list(KINDS)


_told = partial(typer.Option, rich_help_panel="About the memory")
_narrowed = partial(typer.Option, rich_help_panel="Which memories")
_everywhere = partial(typer.Option, rich_help_panel="Store and output")

Id: TypeAlias = Annotated[str, typer.Argument(metavar="ID", help="The memory's id.")]

Store: TypeAlias = Annotated[
    str | None,
    _everywhere("--store", metavar="URL", help="Where the memories live.", show_default="RECOLLECT_URL, else a file"),
]
DemoStore: TypeAlias = Annotated[
    str | None,
    _everywhere("--store", metavar="URL", help="Where to load the memories.", show_default="a demo.db of its own"),
]
EvalStore: TypeAlias = Annotated[
    str | None,
    _everywhere("--store", metavar="URL", help="Where to load the sets.", show_default="a temporary file"),
]
SpaceName: TypeAlias = Annotated[str, _everywhere("--space", metavar="NAME", help="Whose memories: the tenant.")]
EmbedderSpec: TypeAlias = Annotated[
    str | None,
    _everywhere("--embedder", metavar="SPEC", help="What makes vectors: local, openai:MODEL.", show_default="local"),
]
Json: TypeAlias = Annotated[bool, _everywhere("--json", help="Print one JSON document instead of text.")]

Title: TypeAlias = Annotated[str | None, _told("--title", metavar="TITLE", help="Its title.")]
Kind: TypeAlias = Annotated[
    str | None, _told("--kind", metavar="KIND", help="What it is: fact, message, ...", autocompletion=kind_names)
]
Namespace: TypeAlias = Annotated[str | None, _told("--namespace", metavar="NAME", help="Its division of the space.")]
Tags: TypeAlias = Annotated[list[str] | None, _told("--tag", metavar="TAG", help="A tag of it; repeatable.")]
Source: TypeAlias = Annotated[str | None, _told("--source", metavar="SOURCE", help="Where it is from: a file, a URL.")]
Thread: TypeAlias = Annotated[str | None, _told("--thread", metavar="THREAD", help="Its conversation or document.")]
Place: TypeAlias = Annotated[int | None, _told("--place", metavar="N", help="Its place there; left out: the end.")]
Metadata: TypeAlias = Annotated[str | None, _told("--metadata", metavar="JSON", help="A JSON object of your own.")]
OccurredAt: TypeAlias = Annotated[
    str | None, _told("--occurred-at", metavar="TIME", help="When it happened: 2026-05-03, yesterday.")
]
ExpiresAt: TypeAlias = Annotated[
    str | None, _told("--expires-at", metavar="TIME", help="When to stop recalling it; 7d: in a week.")
]

Kinds: TypeAlias = Annotated[
    list[str] | None,
    _narrowed("--kind", metavar="KIND", help="Only of this kind; repeatable.", autocompletion=kind_names),
]
Namespaces: TypeAlias = Annotated[
    list[str] | None, _narrowed("--namespace", metavar="NAME", help="Only in this namespace; repeatable.")
]
Shared: TypeAlias = Annotated[
    list[str] | None,
    _narrowed(
        "--shared", metavar="SPACE/NAMESPACE", help="Only in this namespace that another space shares; repeatable."
    ),
]
NothingShared: TypeAlias = Annotated[bool, _narrowed("--no-shared", help="Without what other spaces share.")]
WantedTags: TypeAlias = Annotated[
    list[str] | None, _narrowed("--tag", metavar="TAG", help="Only with this tag; repeated: with all of them.")
]
SourcePrefix: TypeAlias = Annotated[
    str, _narrowed("--source", metavar="PREFIX", help="Only from sources that start so.", show_default=False)
]
InThread: TypeAlias = Annotated[str | None, _narrowed("--thread", metavar="THREAD", help="Only of this thread.")]
Since: TypeAlias = Annotated[
    str | None, _narrowed("--since", metavar="TIME", help="Only what happened since: 2026-05-03, 7d, yesterday.")
]
Until: TypeAlias = Annotated[str | None, _narrowed("--until", metavar="TIME", help="Only what happened before then.")]
MinQuality: TypeAlias = Annotated[
    float | None, _narrowed("--min-quality", metavar="Q", help="Only this good or better; unscored ones stay.")
]
WithSuperseded: TypeAlias = Annotated[
    bool | None, _narrowed("--superseded/--no-superseded", help="With replaced memories, or without.")
]
WithExpired: TypeAlias = Annotated[
    bool | None, _narrowed("--expired/--no-expired", help="With expired memories, or without.")
]


def open_store(store: str | None, embedder: str | None = None, *, create: bool = False) -> Recollect:
    """The library, opened late: `--help` must not pay for it. Only what stores something makes a store."""
    from recollect.sync import Recollect

    return Recollect(store, embedder=embedder, create=create)


def given(**values: Any) -> dict[str, Any]:
    """Only what the caller gave: the library's defaults hold for the rest."""
    return {name: value for name, value in values.items() if value is not None}


def again(context: typer.Context, **changed: Any) -> str:
    """The command line that was typed, with some options changed; it can be run as it stands."""
    words: list[str] = context.command_path.split()
    for param in context.command.params:
        value = changed.get(param.name or "", context.params.get(param.name or ""))
        if value in (None, (), [], "") or value == param.default:
            continue
        name = param.opts[0] if value else param.secondary_opts[0]
        if getattr(param, "is_flag", False):
            words.append(name)
        else:
            several = value if isinstance(value, list | tuple) else [value]
            values = [without_password(str(one)) if param.name == "store" else str(one) for one in several]
            words += values if not name.startswith("-") else [word for one in values for word in (name, one)]
    return shlex.join(words)


def text_of(text: str) -> str:
    """The text itself, or standard input for `-`."""
    if text != "-":
        return text
    try:
        return sys.stdin.buffer.read().decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"standard input is not UTF-8 text (at byte {error.start}).") from None


def metadata_of(text: str | None) -> dict[str, Any] | None:
    """A JSON object from the command line."""
    if text is None:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise typer.BadParameter(f"{text!r:.60} is not JSON: {error}.", param_hint="--metadata") from None
    if not isinstance(value, dict):
        raise typer.BadParameter(f"{text!r:.60} is not a JSON object.", param_hint="--metadata")
    return value


def shared_of(names: list[str] | None, *, none: bool) -> list[tuple[str, str]] | None:
    """`["team/notes"]` -> `[("team", "notes")]`; an empty list for none at all."""
    if none and names:
        raise typer.BadParameter("--shared and --no-shared exclude each other.", param_hint="--no-shared")
    pairs = [(space, namespace) for space, _, namespace in (name.partition("/") for name in names or ())]
    for name, pair in zip(names or (), pairs, strict=True):
        if not all(pair):
            raise typer.BadParameter(f"{name!r} is not SPACE/NAMESPACE, e.g. team/notes.", param_hint="--shared")
    return pairs if pairs or none else None


def weights_of(pairs: list[str] | None) -> dict[str, float] | None:
    """`["keyword=0.5"]` -> `{"keyword": 0.5}`."""
    if not pairs:
        return None
    weights = {}
    for pair in pairs:
        lane, _, number = pair.partition("=")
        try:
            weights[lane] = float(number)
        except ValueError:
            raise typer.BadParameter(f"{pair!r} is not LANE=NUMBER, e.g. keyword=0.5.", param_hint="--weight") from None
    return weights
