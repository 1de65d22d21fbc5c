"""What work in the background has in common."""

from __future__ import annotations


def interpreter_ends(error: BaseException) -> bool:
    """Whether work failed because Python ends and nobody closed the client: there are no threads for it any more, and
    nobody to tell.
    """
    return isinstance(error, RuntimeError) and "interpreter shutdown" in str(error)
