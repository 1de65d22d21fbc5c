"""The command line, in this process or in one of its own, on a store of the test's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from recollect.servers.cli.main import app


@dataclass(frozen=True)
class Cli:
    """`recollect` with a store in a temporary folder and the hashing embedder, or another one."""

    folder: Path
    embedder: str = "hashing"

    @property
    def url(self) -> str:
        return f"sqlite:///{self.folder / 'memory.db'}"

    @property
    def environment(self) -> dict[str, str]:
        return {
            "RECOLLECT_URL": self.url,
            "RECOLLECT_EMBEDDER": self.embedder,
            "XDG_DATA_HOME": str(self.folder / "share"),
            "XDG_CONFIG_HOME": str(self.folder / "config"),
        }

    def __call__(self, *words: str, input: str | bytes | None = None) -> Result:
        """Run a command in this process."""
        return CliRunner().invoke(app, list(words), input=input, env=self.environment, prog_name="recollect")

    def json(self, *words: str, input: str | bytes | None = None) -> Any:
        """The one JSON document that a command prints when all goes well."""
        result = self(*words, "--json", input=input)
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    def remember(self, text: str, *words: str) -> str:
        """Store a memory; its id."""
        id = self.json("remember", text, *words)["memory"]["id"]
        assert isinstance(id, str)
        return id

    def process(
        self, *words: str | bytes, input: bytes | None = None, **environment: str
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command in a process of its own."""
        return subprocess.run(
            [sys.executable, "-m", "recollect.servers.cli", *words],
            input=input,
            capture_output=True,
            timeout=60,
            check=False,
            env={**os.environ, **self.environment, **environment},
        )
