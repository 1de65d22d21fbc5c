"""The public surface: what is exported, and that importing it stays light."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import recollect


def test_all_is_what_is_there_sorted_and_without_repeats() -> None:
    """Every exported name exists; nothing public is left out of `__all__`."""
    exported = recollect.__all__
    assert len(set(exported)) == len(exported)
    assert all(hasattr(recollect, name) for name in exported)
    modules = {name for name, value in vars(recollect).items() if type(value).__name__ == "module"}
    visible = {name for name in vars(recollect) if not name.startswith("_")} - modules
    assert visible == set(exported) - {"__version__"}


def test_importing_the_library_loads_no_engine() -> None:
    """numpy, the model runtime, the SQLite driver and the HTTP client come with their first use."""
    heavy = ["numpy", "onnxruntime", "tokenizers", "apsw", "usearch", "httpx"]
    code = f"import sys, recollect; print([m for m in {heavy} if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_every_public_thing_is_documented() -> None:
    """Classes and functions that people import say what they are, and so do their public methods."""
    undocumented = []
    for name in recollect.__all__:
        thing = getattr(recollect, name)
        if not isinstance(thing, type):
            continue
        if not thing.__doc__:
            undocumented.append(name)
        if name in ("Recollect", "AsyncRecollect", "Space", "AsyncSpace", "Namespace", "AsyncNamespace"):
            calls = {n: call for n, call in vars(thing).items() if callable(call) and not n.startswith("_")}
            undocumented += [f"{name}.{n}" for n, call in calls.items() if not call.__doc__]
    assert undocumented == []


def test_the_synchronous_client_is_made_from_the_asynchronous_one() -> None:
    """`sync.py` is what `scripts/make_sync.py` writes: nobody changes one without the other."""
    script = Path(__file__).parents[2] / "scripts/make_sync.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_both_clients_offer_the_same_calls() -> None:
    """The synchronous client is a facade: nothing more, nothing less, and the same keywords."""
    import inspect

    for name in ("Recollect", "Space", "Namespace"):
        plain, awaited = getattr(recollect, name), getattr(recollect, f"Async{name}")
        calls = {n for n in dir(plain) if not n.startswith("_")}
        assert calls == {n for n in dir(awaited) if not n.startswith("_")}
        for call in calls:
            assert list(inspect.signature(getattr(plain, call)).parameters) == list(
                inspect.signature(getattr(awaited, call)).parameters
            )
