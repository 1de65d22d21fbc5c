"""Times as people give them: a moment, or a span from now such as 36h, 7d or 4w."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from recollect.errors import InvalidRequest
from recollect.limits import check_time

SPAN: Final = re.compile(r"(\d{1,6})([hdw])")
HOURS: Final = {"h": 1, "d": 24, "w": 7 * 24}


def check_moment(what: str, value: object, after: Callable[[timedelta], datetime]) -> datetime | None:
    """A time; of a span, what `after` makes of it. Raises OverflowError where that is outside of all years."""
    span = SPAN.fullmatch(value) if isinstance(value, str) else None
    if span:
        return after(timedelta(hours=int(span[1]) * HOURS[span[2]]))
    try:
        return check_time(what, value)
    except InvalidRequest as error:
        raise InvalidRequest(f"{error}, or a span such as 36h, 7d or 4w") from None
