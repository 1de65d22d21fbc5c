"""What going wrong looks like: one sentence on standard error and an exit code, never a traceback.

0: done. 1: it could not be done. 2: the call, a value in it or the configuration is wrong. 130: interrupted.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from typer.core import TyperCommand, TyperGroup
from typer.exceptions import Abort, TyperException

from recollect.errors import ConfigError, InvalidRequest, RecollectError
from recollect.servers.cli.output import console, survive_odd_terminals
from recollect.servers.problems import in_words
from recollect.settings import with_store


class Command(TyperCommand):
    """Typer's command, whose help shows flags as flags."""

    def get_params(self, ctx: Any) -> list[Any]:
        return without_types_of_flags(super().get_params(ctx))


class Commands(TyperGroup):
    """Typer's group of commands, with our own way to fail."""

    def get_params(self, ctx: Any) -> list[Any]:
        return without_types_of_flags(super().get_params(ctx))

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,  # noqa: ARG002 - Typer passes it; here it always means exiting
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command line and exit with its code."""
        words = sys.argv[1:] if args is None else list(args)
        survive_odd_terminals()

        def run() -> Any:
            return TyperGroup.main(self, args, prog_name, complete_var, False, windows_expand_args, **extra)

        sys.exit(_exit_code(run, store=_option(words, "--store"), as_json="--json" in words))


def without_types_of_flags(params: list[Any]) -> list[Any]:
    """A flag takes no value, and so its help has no type."""
    for param in params:
        if getattr(param, "is_bool_flag", False):
            param.metavar = ""
    return params


def _exit_code(run: Callable[[], Any], *, store: str | None, as_json: bool) -> int:
    try:
        code = run()
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has left: nothing more to say, also not when Python closes the stream
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (KeyboardInterrupt, Abort):
        return 130
    except TyperException as error:
        _report("UsageError", _usage(error), as_json=as_json)
        return error.exit_code
    except RecollectError as error:
        message = str(error).replace("force=True", "--force")  # the library's keyword, as a flag
        message = with_store(message, store) if store else message
        _report(type(error).__name__, message, as_json=as_json)
        return 2 if isinstance(error, (ConfigError, InvalidRequest)) else 1
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _report(type(error).__name__, f"{where}{error.strerror or error}", as_json=as_json)
        return 1
    except Exception as error:  # noqa: BLE001 - the last resort: a bug is one sentence too, and says where it is
        _report(type(error).__name__, _bug(error), as_json=as_json)
        return 1
    return code if isinstance(code, int) else 0


def _option(words: Sequence[str], name: str) -> str | None:
    """What the command line says for an option; the last one counts."""
    given = [word.removeprefix(f"{name}=") for word in words if word.startswith(f"{name}=")]
    given += [value for word, value in pairwise(words) if word == name]
    return given[-1] if given else None


def _usage(error: TyperException) -> str:
    """Typer's message on one line, and where to read on."""
    message = _refused_value(error) or " ".join(error.format_message().split()).rstrip(".")
    context = getattr(error, "ctx", None)
    return f"{message}; see `{context.command_path} --help`" if context else message


def _refused_value(error: TyperException) -> str:
    """What is wrong with a value that Typer had pydantic read; nothing for any other error."""
    from pydantic import ValidationError

    cause, param = error.__cause__, getattr(error, "param", None)
    if param is None or not isinstance(cause, ValidationError):
        return ""
    return in_words(cause.errors()[0], param.opts[0] if param.opts[0].startswith("-") else param.display_name_raw)


def _bug(error: Exception) -> str:
    where = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{Path(where.filename).name}:{where.lineno}"
    return f"unexpected {type(error).__name__} at {place}: {error}; please report this as a bug"


def _report(kind: str, message: str, *, as_json: bool) -> None:
    if as_json:
        sys.stderr.write(json.dumps({"error": {"type": kind, "message": message}}) + "\n")
        return
    from rich.text import Text

    from recollect.servers.cli.render import visible

    line = Text.assemble(("error: ", "bold red"), visible(message).replace("\n", " "))
    console(sys.stderr).print(line, soft_wrap=True)
