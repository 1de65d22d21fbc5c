"""An option is declared once: every door derives from the declaration, and the library checks its bounds."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from math import isfinite
from typing import Annotated, Any

import pytest
import typer

from recollect import AsyncSpace, Draft, options
from recollect.engine.query import parse_query
from recollect.engine.tokens import AsyncTokens
from recollect.errors import InvalidRequest
from recollect.options import Declared, Door, Option, RecallOptions, declared
from recollect.servers.cli.main import app
from recollect.servers.cli.options import Given, flags_of, takes
from recollect.servers.http import bodies
from recollect.servers.mcp.arguments import schemas
from recollect.servers.mcp.tools import TOOLS

HTTP: dict[type, type[bodies.Body]] = {
    options.Question: bodies.Question,
    options.PageOptions: bodies.Listing,
    options.NewMemory: bodies.NewMemory,
    options.Changes: bodies.Changes,
    options.Replacement: bodies.Supersession,
    options.Uses: bodies.Uses,
    options.Link: bodies.Link,
    options.Walk: bodies.Walk,
    options.NewGrant: bodies.NewGrant,
    options.NewToken: bodies.NewToken,
}
MCP: dict[type, str] = {
    options.Question: "memory_recall",
    options.PageOptions: "memory_list",
    options.NewMemory: "memory_remember",
    options.Changes: "memory_update",
    options.Uses: "memory_used",
    options.Link: "memory_link",
    options.Walk: "memory_neighbors",
}
CLI: dict[type, str] = {
    options.Question: "recall",
    options.PageOptions: "list",
    options.NewMemory: "remember",
    options.Changes: "update",
    options.Replacement: "supersede",
    options.Link: "link",
    options.Walk: "neighbors",
    options.NewGrant: "grant",
    options.NewToken: "token create",
}


class Wider(RecallOptions, total=False):
    """The options of a recall, and one that nobody has seen before."""

    novelty: Annotated[float | None, Option("How much a new memory counts.", 0, 1)]


def offered(group: type, door: Door) -> list[Declared]:
    return [one for one in declared(group).values() if door not in one.option.not_on]


def params_of(command: str) -> list[Any]:
    found: Any = typer.main.get_command(app)
    for part in command.split():
        found = found.commands[part]
    return list(found.params)


@pytest.mark.parametrize("group", HTTP, ids=lambda group: group.__name__)
def test_http_takes_every_option(group: type) -> None:
    """A body has the declared names and no others, each with the declared help."""
    fields = HTTP[group].model_fields
    assert list(fields) == [one.name for one in offered(group, "http")]
    for one in offered(group, "http"):
        assert (fields[one.name].description, fields[one.name].is_required()) == (one.description, one.required)


@pytest.mark.parametrize("group", MCP, ids=lambda group: group.__name__)
def test_mcp_offers_every_option(group: type) -> None:
    """A tool takes the declared names, with the declared bounds."""
    takes_ = TOOLS[MCP[group]].takes
    for one in offered(group, "mcp"):
        assert one.name in takes_
        assert one.bounds.items() <= takes_[one.name].items()


@pytest.mark.parametrize("group", CLI, ids=lambda group: group.__name__)
def test_the_command_line_offers_every_option(group: type) -> None:
    """A command has a flag for each option; what a call needs is an argument."""
    params = params_of(CLI[group])
    known = {flag for param in params for flag in (*param.opts, *param.secondary_opts)}
    arguments = [param for param in params if not param.opts[0].startswith("-")]
    for one in offered(group, "cli"):
        assert one.required or set(flags_of(one).split("/")) <= known or one.name in {a.name for a in arguments}, one
    assert len([one for one in offered(group, "cli") if one.required]) <= len(arguments)


@pytest.mark.parametrize(
    ("call", "group"),
    [
        (AsyncSpace.list, options.PageOptions),
        (AsyncSpace.link, options.Link),
        (AsyncSpace.neighbors, options.Walk),
        (AsyncSpace.grant, options.NewGrant),
        (AsyncTokens.create, options.NewToken),
        (Draft, options.NewMemory),
    ],
    ids=lambda one: one.__name__,
)
def test_the_library_has_the_declared_defaults(call: Callable[..., Any], group: type) -> None:
    """A default that a signature repeats is the declared one."""
    repeated = [one for one in signature(call).parameters.values() if one.name in declared(group)]
    assert any(one.default not in (None, one.empty) for one in repeated)
    for one in repeated:
        if one.default is not one.empty and one.name != "metadata":
            assert one.default == declared(group)[one.name].option.default, one.name


def test_what_a_door_leaves_out_has_a_reason() -> None:
    """Every option of a recall is offered everywhere but for a vector, where nobody has one to give."""
    left_out = {(one.name, door) for one in declared(RecallOptions).values() for door in one.option.not_on}
    assert left_out == {("vector", "cli"), ("vector", "mcp")}
    assert all(reason for one in declared(RecallOptions).values() for reason in one.option.not_on.values())


def test_a_new_option_reaches_every_door() -> None:
    """One field more in a group is one field more in a body, in a schema and on the command line."""

    @bodies.takes(Wider)
    class Body(bodies.Body):
        pass

    @takes(Wider)
    def command(given: Given) -> None:
        heard.update(given)

    heard: dict[str, Any] = {}
    assert Body.model_validate({"novelty": 0.5}).given() == {"novelty": 0.5}
    assert schemas(Wider)["novelty"] == {
        "type": "number",
        "minimum": 0,
        "maximum": 1,
        "description": "How much a new memory counts.",
    }
    alone = typer.Typer()
    alone.command()(command)
    typer.main.get_command(alone).main(["--novelty", "0.5", "--tag", "a"], standalone_mode=False)
    assert (heard["novelty"], heard["tags"]) == (0.5, ["a"])


@pytest.mark.parametrize(
    "one", [one for one in declared(RecallOptions).values() if one.bounds], ids=lambda one: one.name
)
def test_the_library_keeps_the_declared_bounds(one: Declared) -> None:
    """The bounds are allowed, and what lies beyond them is refused by the name of the option."""
    for bound, beyond in ((one.option.least, -1), (one.option.most, 1)):
        assert isfinite(bound)
        parse_query("x", {one.name: bound if float in one.types else int(bound)})  # type: ignore[misc]
        with pytest.raises(InvalidRequest, match=rf"{one.name}.* is .*, and must be from "):
            parse_query("x", {one.name: bound + beyond})  # type: ignore[misc]


@pytest.mark.parametrize("group", dict.fromkeys([*HTTP, *CLI]), ids=lambda group: group.__name__)
def test_every_option_has_a_sentence(group: type) -> None:
    """Help begins with a capital and ends with a full stop."""
    for one in declared(group).values():
        assert one.option.help[0].isupper(), one.name
        assert one.option.help.endswith("."), one.name
