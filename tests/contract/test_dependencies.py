"""What we lean on must not fall over: native libraries that do not get along in one process."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("order", [("usearch.index", "onnxruntime"), ("onnxruntime", "usearch.index")])
def test_the_vector_index_and_the_model_runtime_live_in_one_process(order: tuple[str, str]) -> None:
    """In either order of import: some releases of usearch crash the process when onnxruntime comes second."""
    code = f"import os; os.environ['ORT_DISABLE_TELEMETRY'] = '1'; import {order[0]}; import {order[1]}; print('ok')"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (shown.returncode, shown.stdout.strip()) == (0, "ok")
