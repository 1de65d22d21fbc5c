"""What stands beside a memory in its thread."""

from __future__ import annotations

from recollect.stores.contents import Thread
from recollect.stores.threads import beside, by_thread


def test_beside_is_two_on_each_side() -> None:
    """The rows whose context changes, and what it is made of; what goes is no neighbour any more."""
    assert beside([1, 2, 3], changed=[3]) == {1: [2, 3], 2: [1, 3], 3: [1, 2]}
    assert beside([1, 2, 3, 4, 5, 6], gone=[3]) == {1: [2, 4], 2: [1, 4, 5], 4: [1, 2, 5, 6], 5: [2, 4, 6]}
    assert beside([1, 2], gone=[1, 2]) == {}


def test_a_thread_belongs_to_its_namespace() -> None:
    """The same name in another namespace is another thread; what is in none, or has no place, is left out."""
    rows = [(1, "a", "t", 0), (2, "b", "t", 0), (3, "a", "t", 1), (4, "a", None, None), (5, "a", "t", None)]
    assert by_thread(rows) == {Thread("a", "t"): {1: 0, 3: 1}, Thread("b", "t"): {2: 0}}
