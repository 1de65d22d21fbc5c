"""Write `src/recollect/sync.py`, the client without `await`, from the asynchronous one.

    python scripts/make_sync.py            write it
    python scripts/make_sync.py --check    fail if it is not what would be written

Each `async def verb(self, …)` becomes a `def` that runs it through the portal; a plain method is passed on, and what
comes back is wrapped if it has a synchronous twin.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src/recollect"
TARGET = PACKAGE / "sync.py"
SOURCES = ("space.py", "engine/tokens.py", "client.py")
CLIENT = "AsyncRecollect"
CLASSES = ("AsyncNamespace", "AsyncSpace", "AsyncTokens", CLIENT)
LEFT_OUT = {"replies", "sign_in", "signed_in", "sign_out", "close"}
"""What is for servers, which are asynchronous; and `close`, which comes from `portal.Opened`."""
HEADER = '''"""The client without `await`: each call runs that of its asynchronous twin on an event loop of its own.

Written by scripts/make_sync.py: change the asynchronous classes, and run it again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from recollect.portal import Opened, Portal
'''


def main() -> int:
    written = formatted("".join(source()))
    if "--check" not in sys.argv:
        TARGET.write_text(written, encoding="utf-8")
    elif TARGET.read_text(encoding="utf-8") != written:
        print(f"{TARGET.name} is stale: run `python scripts/make_sync.py`", file=sys.stderr)
        return 1
    return 0


def source() -> Iterator[str]:
    """The module, not yet formatted, with more imports than it needs."""
    trees = [ast.parse((PACKAGE / name).read_text(encoding="utf-8")) for name in SOURCES]
    found = {node.name: node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)}
    yield HEADER
    for name, path in zip(CLASSES, ("space", "space", "engine.tokens", "client"), strict=True):
        yield f"from recollect.{path} import {name}\n"
    for tree in trees:
        for node in tree.body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                yield f"{ast.unparse(node)}\n"
    for name in CLASSES:
        yield from facade(found[name])


def facade(node: ast.ClassDef) -> Iterator[str]:
    """The synchronous twin of a class."""
    bases = ["Opened"] if node.name == CLIENT else [ast.unparse(base) for base in node.bases]
    yield f"\nclass {sync(node.name)}{sync(f'({bases[0]})') if bases else ''}:\n{docstring(node, 4)}"
    yield f"    _async: {node.name}\n\n"
    yield from opening(node) if node.name == CLIENT else beginning(node, inherits=bool(bases))
    for one in node.body:
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and not one.name.startswith("_"):
            yield "" if one.name in LEFT_OUT else method(node.name, one)


def beginning(node: ast.ClassDef, *, inherits: bool) -> Iterator[str]:
    """How a twin is made: of what it stands for, and the way to its loop."""
    yield f"    def __init__(self, behind: {node.name}, portal: Portal) -> None:\n"
    if inherits:
        yield "        super().__init__(behind, portal)\n"
    yield "        self._async = behind\n"
    if not inherits:
        yield "        self._portal = portal\n        self._run = portal.run\n"
    yield from attributes(node)


def opening(node: ast.ClassDef) -> Iterator[str]:
    """How the client is made, which opens it."""
    made = next(one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__")
    yield f"    def __init__({sync(ast.unparse(made.args))}) -> None:\n"
    yield f"        self._async = {node.name}({passed_on(made.args)})\n"
    yield "        super().__init__(self._async)\n"
    yield from attributes(node)


def attributes(node: ast.ClassDef) -> Iterator[str]:
    """What the class says that its instances have."""
    for one in node.body:
        if isinstance(one, ast.AnnAssign) and (name := ast.unparse(one.target)) not in LEFT_OUT:
            kind, value = ast.unparse(one.annotation), f"self._async.{name}"
            yield f"        self.{name} = {wrapped(kind, value)}\n"


def method(owner: str, node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """A call without `await`."""
    static = any(ast.unparse(one) == "staticmethod" for one in node.decorator_list)
    returns = ast.unparse(node.returns) if node.returns else "None"
    call = f"{owner if static else 'self._async'}.{node.name}({passed_on(node.args)})"
    if returns.startswith("AsyncGenerator"):
        call = f"self._portal.each({call})"
    elif isinstance(node, ast.AsyncFunctionDef):
        call = f"asyncio.run({call})" if static else f"self._run({call})"
    else:
        call = wrapped(returns, call)
    decorator = "    @staticmethod\n" if static else ""
    head = f"    def {node.name}({sync(ast.unparse(node.args))}) -> {sync(returns)}:\n"
    return f"{decorator}{head}{docstring(node, 8)}        {'' if returns == 'None' else 'return '}{call}\n\n"


def passed_on(args: ast.arguments) -> str:
    """A call's arguments, as they are handed to the call behind it."""
    plain = [one.arg for one in (*args.posonlyargs, *args.args) if one.arg != "self"]
    more = [f"*{args.vararg.arg}"] if args.vararg else []
    named = [f"{one.arg}={one.arg}" for one in args.kwonlyargs]
    return ", ".join([*plain, *more, *named, *([f"**{args.kwarg.arg}"] if args.kwarg else [])])


def wrapped(kind: str, value: str) -> str:
    return f"{sync(kind)}({value}, self._portal)" if kind in CLASSES else value


def sync(text: str) -> str:
    """Types and words without their asynchronous forms."""
    text = re.sub(rf"\b({'|'.join(CLASSES)})\b", lambda found: found[0].removeprefix("Async"), text)
    text = re.sub(r"\bAsyncGenerator\[(.*), None\]", r"Iterator[\1]", text)
    return re.sub(r" \| AsyncIterable\[\w+\]", "", text).replace("async with", "with")


def docstring(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, indent: int) -> str:
    said = ast.get_docstring(node, clean=False)
    return f'{" " * indent}"""{sync(said)}"""\n' if said else ""


def formatted(text: str) -> str:
    """As ruff would have it, without the imports that nothing uses."""
    for command in (["check", "--select", "F401,I", "--fix"], ["format"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--quiet", "--stdin-filename", str(TARGET), "-"]
        done = subprocess.run(ruff, input=text, capture_output=True, text=True, check=False, cwd=PACKAGE.parents[1])
        if done.returncode:
            raise SystemExit(done.stdout + done.stderr)
        text = done.stdout
    return text


if __name__ == "__main__":
    raise SystemExit(main())
