"""The tree of errors drawn in the module is the tree in the code."""

from __future__ import annotations

import inspect

from recollect import errors


def test_the_drawn_tree_is_the_real_one() -> None:
    """Every error is drawn, below its parent."""
    drawn = [line.split("─")[-1].split()[0] for line in (errors.__doc__ or "").splitlines() if "─ " in line]
    real = [n for n, c in vars(errors).items() if inspect.isclass(c) and issubclass(c, errors.RecollectError)]
    assert set(drawn) == set(real) - {"RecollectError"}


def test_callers_can_catch_what_they_know() -> None:
    """A bad value is a ValueError, a missing memory a LookupError."""
    assert issubclass(errors.InvalidRequest, ValueError)
    assert issubclass(errors.NotFound, LookupError)
    assert errors.BackendUnavailable("down", backend="sqlite").backend == "sqlite"
