"""Log lines: one entry begins one line, whatever a request put into it."""

from __future__ import annotations

import logging
import re
from typing import Any

LINE = "%(asctime)s %(levelname)s %(name)s: %(message)s"
STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Characters that begin another line, move the cursor or turn the direction of writing."""


def one_line(text: str) -> str:
    r"""A text with every character that could forge a line, or steer a terminal, written out.

    >>> print(one_line("GET /a\n2026 INFO all is well \x1b[2J"))
    GET /a\n2026 INFO all is well \x1b[2J
    """
    return STEERING.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class LineFormatter(logging.Formatter):
    """Messages on one line; tracebacks, which may quote a request, indented below it."""

    def __init__(self) -> None:
        super().__init__(LINE)

    def format(self, record: logging.LogRecord) -> str:
        of_others, record.exc_text = record.exc_text, None  # a traceback as another handler has formatted it
        try:
            return super().format(record)
        finally:
            record.exc_text = of_others

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the base class's name
        record.message = one_line(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802 - the base class's name
        return "\n".join(f"  {one_line(line)}" for line in super().formatException(ei).split("\n"))
