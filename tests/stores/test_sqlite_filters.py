"""Filters as SQL: what no example would show."""

from __future__ import annotations

import apsw
from hypothesis import example, given
from hypothesis import strategies as st

from recollect.stores.sql_store import is_unfiltered
from recollect.stores.sqlite.rows import where_clause
from recollect.types import Filter

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
DB = apsw.Connection(":memory:")
ROW = "SELECT 1 FROM (SELECT 1 AS space, ? AS source, NULL AS superseded_by, NULL AS expires_at) AS m WHERE "


@given(prefix=TEXT, source=TEXT)
@example(prefix="\ud7ff", source="\ud7ff\ue000")
@example(prefix="\U0010ffff", source="\U0010ffff")
@example(prefix="a\U0010ffff", source="b")
@example(prefix="a\U0010ffff", source="a\U0010ffffz")
@example(prefix="a_%*[", source="a_%*[b")
def test_a_source_prefix_is_a_prefix(prefix: str, source: str) -> None:
    """The range that stands for a prefix holds exactly the strings that begin with it."""
    for text in (source, prefix + source):
        condition, values = where_clause(1, Filter(source_prefix=prefix))
        found = DB.execute(ROW + condition, (text, *values)).fetchone()
        assert bool(found) == text.startswith(prefix)


def test_open_filters() -> None:
    """A filter is open when it hides nothing but the superseded and the expired."""
    assert is_unfiltered(Filter())
    assert is_unfiltered(Filter(include_superseded=True, include_expired=True))
    assert not is_unfiltered(Filter(kinds=("fact",)))
    assert not is_unfiltered(Filter(min_quality=0.0))
    assert not is_unfiltered(Filter(thread=""))
