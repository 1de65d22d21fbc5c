"""Write `docs/reference.md`, the options of every call, from their declarations in `recollect.options`.

python scripts/make_reference.py            write it
python scripts/make_reference.py --check    fail if it is not what would be written
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from math import isfinite
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from recollect import options
from recollect.options import Declared, declared
from recollect.servers.cli.options import flags_of

TARGET = Path(__file__).parents[1] / "docs/reference.md"
RECALL = "How to search. Everything a recipe says can be said differently for one call. Also every filter above."
REPLACE = (
    "A new text, or `by` another memory. A new text takes over namespace, kind and tags; also the fields of `remember`."
)
GROUPS: tuple[tuple[str, str, type, type | None], ...] = (
    ("Which memories", "The filters of `recall` and `list`, applied before ranking.", options.FilterOptions, None),
    ("recall", RECALL, options.Question, options.FilterOptions),
    ("list", "Which page. Also every filter above.", options.PageOptions, options.FilterOptions),
    ("remember", "A text, and what is known about it.", options.NewMemory, None),
    ("update", "Also the fields of `remember`, except `vector` and `id`.", options.Changes, options.MemoryFields),
    ("supersede", REPLACE, options.Replacement, options.MemoryFields),
    ("used", "Which memories helped.", options.Uses, None),
    ("link", "A link from one memory to another.", options.Link, None),
    ("neighbors", "How far to follow links.", options.Walk, None),
    ("grant", "What another space may see.", options.NewGrant, None),
    ("token create", "Who may call a server.", options.NewToken, None),
)
"""Each call, what is said about it, its options, and those that are shown before."""
HEAD = """# Every option

<!-- Written by scripts/make_reference.py from src/recollect/options.py: change the declarations, and run it again. -->

An option has the same name in the library, in HTTP bodies and query strings, and in the tools of MCP. The command line
spells it as the second column says; there, what a call needs is an argument.

A time is a date (`2026-05-03`), an ISO 8601 time (`2026-05-03T10:00Z`), a span (`30m`, `12h`, `7d`, `2w`) or a word
(`now`, `today`, `yesterday`, `tomorrow`); the library also takes a `datetime`. Without a zone it is UTC. A span counts
back from now, or forward for an expiry.
"""
DOORS = {"cli": "the command line", "mcp": "MCP", "http": "HTTP"}
WORDS: dict[Any, str] = {str: "text", int: "whole number", float: "number", bool: "true or false"}


def main() -> int:
    page = "\n".join(lines())
    if "--check" in sys.argv[1:]:
        if TARGET.read_text(encoding="utf-8") == page:
            return 0
        sys.stderr.write(f"{TARGET.name} is not what the declarations say: run `python scripts/make_reference.py`\n")
        return 1
    TARGET.write_text(page, encoding="utf-8")
    return 0


def lines() -> Iterator[str]:
    """The page, line by line."""
    yield HEAD
    for title, about, group, shown in GROUPS:
        known = declared(shown) if shown else {}
        yield f"## {title}\n\n{about}\n"
        yield "| option | command line | value | left out | |\n|---|---|---|---|---|"
        yield from (row(one) for name, one in declared(group).items() if name not in known)
        yield ""


def row(one: Declared) -> str:
    offered = not one.required and "cli" not in one.option.not_on
    flags = " ".join(f"`{flag}`" for flag in flags_of(one).split("/")) if offered else ""
    return f"| `{one.name}` | {flags} | {value(one)} | {left_out(one)} | {meaning(one)} |"


def value(one: Declared) -> str:
    """What may be given: the types, and the bounds of a number."""
    words = "time" if one.is_time else " or ".join(_word(kind) for kind in one.types)
    least, most, above = one.option.least, one.option.most, one.option.above
    if not one.bounds or not isfinite(most) or abs(most) > 1e6:
        return words
    return f"{words}, above {above:g}, at most {most:g}" if above is not None else f"{words}, {least:g} to {most:g}"


def _word(kind: Any) -> str:
    origin, args = get_origin(kind), get_args(kind)
    if origin is Literal:
        return ", ".join(f"`{one}`" for one in args)
    if origin is list:
        return {str: "texts", float: "numbers"}.get(args[0], "pairs of texts")
    if origin is dict:
        return {float: "numbers by name", int: "whole numbers by name"}.get(args[1], "JSON object")
    return WORDS[kind]


def left_out(one: Declared) -> str:
    if one.required:
        return "needed"
    if one.option.otherwise:
        return one.option.otherwise
    default = one.option.default
    return "" if default in (None, (), "") else f"`{str(default).lower() if default is False else default}`"


def meaning(one: Declared) -> str:
    """Help, and which doors do not offer it, with the reason."""
    missing = "; ".join(f"not on {DOORS[door]}: {why}" for door, why in one.option.not_on.items())
    return f"{one.option.help} ({missing[0].upper()}{missing[1:]}.)" if missing else one.option.help


if __name__ == "__main__":
    sys.exit(main())
