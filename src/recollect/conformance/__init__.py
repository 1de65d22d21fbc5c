"""What every store must do, as runnable specs: for our stores and for other people's.

    pytest --recollect-store mypkg:make

`make` takes an empty folder and returns a fresh store (`MakeStore`). Each spec becomes a test. A spec is an async
function of a store that raises when the store misbehaves; its docstring is the rule. What a store leaves out, it
declares (`capabilities.py`).
"""

from recollect.conformance.capabilities import CAPABILITIES, LeftOut
from recollect.conformance.specs import SPECS, MakeStore, Spec, check

__all__ = ["CAPABILITIES", "SPECS", "LeftOut", "MakeStore", "Spec", "check"]
