"""What the commands take: the declared options as options of the command line, and those that are its own."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, get_args, get_origin

import typer

from recollect.errors import ConfigError
from recollect.options import Declared, FilterOptions, MemoryFields, declared
from recollect.settings import without_password

if TYPE_CHECKING:
    from recollect.sync import Recollect

KINDS = ("fact", "episodic", "semantic", "identity", "message", "knowledge", "chunk")
"""The kinds of the design, offered on Tab; any other short name is allowed."""


def recipe_names() -> list[str]:
    """What Tab offers after `--recipe`."""
    from recollect.recipes import RECIPES
    from recollect.settings import Settings

    with suppress(ConfigError):  # Tab must not fail; the command says what is wrong with the file
        return [*RECIPES, *Settings.load().recipe]
    return [*RECIPES]


def kind_names() -> list[str]:
    return list(KINDS)


COMPLETIONS: Mapping[str, Callable[[], list[str]]] = {"recipe": recipe_names, "kind": kind_names, "kinds": kind_names}
WHICH = frozenset({*FilterOptions.__annotations__, "shared"})
ABOUT = frozenset(MemoryFields.__annotations__)

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
NoShared: TypeAlias = Annotated[
    bool, typer.Option("--no-shared", help="Without what other spaces share.", rich_help_panel="Which memories")
]

Given: TypeAlias = dict[str, Any]
"""What the caller gave of the declared options, by name: the library's defaults hold for the rest."""


def takes(group: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of a group, in place of its parameter `given`. What the command declares itself, and
    what the group requires, which are arguments of the command, is left to the command.
    """

    def derive(command: Callable[..., None]) -> Callable[..., None]:
        own = signature(command, eval_str=True).parameters
        options = {
            name: one
            for name, one in declared(group).items()
            if name not in own and not one.required and "cli" not in one.option.not_on
        }

        @wraps(command)
        def run(**values: Any) -> None:
            said = {name: values.pop(name) for name in options}
            command(**values, given={name: _read(options[name], one) for name, one in said.items() if one is not None})

        derived = sorted((_parameter(group, one) for one in options.values()), key=_in_panel)
        first = list(own).index("given")
        each = [*list(own.values())[:first], *derived, *list(own.values())[first + 1 :]]
        run.__signature__ = Signature([one.replace(kind=Parameter.KEYWORD_ONLY) for one in each])  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in each}
        return run

    return derive


def _in_panel(parameter: Parameter) -> bool:
    return parameter.annotation.__metadata__[0].rich_help_panel is not None


def _parameter(group: type, one: Declared) -> Parameter:
    """A declared option as Typer reads it."""
    option, kind = one.option, one.types[0]
    several = get_origin(kind) is list or kind == dict[str, float]
    default = None if several or option.default in ("", ()) else option.default
    read_as: Any = list[str] if several else str if get_origin(kind) is dict else kind
    made = typer.Option(
        flags_of(one),
        metavar=_metavar(one),
        help=f"{option.help.removesuffix('.')}; repeatable." if several else option.help,
        rich_help_panel=_panel(group, one.name),
        show_default=(not several and option.otherwise) or (default is not None and default is not False),
        autocompletion=COMPLETIONS.get(one.name),
    )
    annotation: Any = Annotated[read_as if default is not None else read_as | None, made]
    return Parameter(one.name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _panel(group: type, name: str) -> str | None:
    if "kinds" in declared(group):
        return "Which memories" if name in WHICH else None
    return "About the memory" if name in ABOUT and "kind" in declared(group) else None


def flags_of(one: Declared) -> str:
    """How an option is spelt: `--tag`, `--min-score`, `--expired/--no-expired`."""
    name = one.option.flag or one.option.item or one.name.replace("_", "-")
    return f"--{name}/--no-{name}" if bool in one.types and one.nullable else f"--{name}"


def _metavar(one: Declared) -> str | None:
    kind = one.types[0]
    if one.option.metavar or kind is bool:
        return one.option.metavar or None
    if get_origin(kind) is Literal:
        return "|".join(get_args(kind))
    if one.is_time:
        return "TIME"
    if get_origin(kind) is dict:
        return "JSON"
    return {int: "N", float: "X"}.get(kind) or (one.option.item or one.option.flag or one.name).upper()


def _read(one: Declared, value: Any) -> Any:
    """A value of the command line as the library takes it."""
    kind, flag = one.types[0], flags_of(one)
    if kind == dict[str, float]:
        return _weights(value, flag)
    if kind == list[tuple[str, str]]:
        return _pairs(value, flag)
    return _object(value, flag) if get_origin(kind) is dict else value


def open_store(store: str | None, embedder: str | None = None, *, create: bool = False) -> Recollect:
    """The library, opened late: `--help` must not pay for it. Only what stores something makes a store."""
    from recollect.sync import Recollect

    return Recollect(store, embedder=embedder, create=create)


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


def _object(text: str, flag: str) -> dict[str, Any]:
    """A JSON object from the command line."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise typer.BadParameter(f"{text!r:.60} is not JSON: {error}.", param_hint=flag) from None
    if not isinstance(value, dict):
        raise typer.BadParameter(f"{text!r:.60} is not a JSON object.", param_hint=flag)
    return value


def _pairs(names: list[str], flag: str) -> list[tuple[str, str]]:
    """`["team/notes"]` -> `[("team", "notes")]`."""
    pairs = [(space, namespace) for space, _, namespace in (name.partition("/") for name in names)]
    for name, pair in zip(names, pairs, strict=True):
        if not all(pair):
            raise typer.BadParameter(f"{name!r} is not SPACE/NAMESPACE, e.g. team/notes.", param_hint=flag)
    return pairs


def _weights(pairs: list[str], flag: str) -> dict[str, float]:
    """`["keyword=0.5"]` -> `{"keyword": 0.5}`."""
    weights = {}
    for pair in pairs:
        lane, _, number = pair.partition("=")
        try:
            weights[lane] = float(number)
        except ValueError:
            raise typer.BadParameter(f"{pair!r} is not LANE=NUMBER, e.g. keyword=0.5.", param_hint=flag) from None
    return weights
