"""Wires to several servers that a test may cut and slow down, in a process of their own: what is measured beside them
must not pay for them.

    python -m tests.faults.relay PORT …
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from tests.faults.postgres_process import Wire

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SLOW = 10.0
"""Seconds that a slow wire keeps each part of a request."""


class SlowWire(Wire):
    """A wire that can also keep back what is sent to the server. It arrives all the same, when whoever sent it has long
    given up: an engine that is slow does what it was asked, late.
    """

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self._fast = asyncio.Event()
        self._fast.set()

    @property
    def port(self) -> int:
        assert self._listener
        port: int = self._listener.sockets[0].getsockname()[1]
        return port

    def slow(self) -> None:
        self._fast.clear()

    def mend(self) -> None:
        super().mend()
        self._fast.set()

    async def _joined(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A server that is away refuses, and so does the wire to it."""
        try:
            await super()._joined(reader, writer)
        except OSError:
            writer.transport.abort()

    async def _pass(
        self,
        source: asyncio.StreamReader,
        target: asyncio.StreamWriter,
        watch: Callable[[Wire, bytes], None] | None,
    ) -> None:
        to_server = target.get_extra_info("peername")[1] == self._server_port
        with suppress(OSError):
            while part := await source.read(1 << 16):
                if to_server and not self._fast.is_set():
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._fast.wait(), SLOW)
                target.write(part)
                await target.drain()
        target.transport.abort()


class Relay:
    """The process, as a test handles it. Wires are named by their number; it ends with the test at the latest."""

    def __init__(self, ports: Sequence[int]) -> None:
        command = [sys.executable, "-m", __name__, *map(str, ports)]
        self._running = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ports = [int(port) for port in self._answer().split()]

    def cut(self, wire: int) -> None:
        self._do("cut", wire)

    def slow(self, wire: int) -> None:
        self._do("slow", wire)

    def mend(self, wire: int) -> None:
        self._do("mend", wire)

    def end(self) -> None:
        self._running.kill()
        self._running.communicate()

    def _do(self, what: str, wire: int) -> None:
        """It is done on return."""
        assert self._running.stdin
        self._running.stdin.write(f"{what} {wire}\n")
        self._running.stdin.flush()
        self._answer()

    def _answer(self) -> str:
        assert self._running.stdout
        return self._running.stdout.readline()


async def serve(ports: Sequence[int]) -> None:
    """Pass on until the standard input ends."""
    wires = [SlowWire(port) for port in ports]
    for wire in wires:
        await wire.__aenter__()
    print(*(wire.port for wire in wires), flush=True)  # noqa: T201 (whoever started it waits for this)
    while line := await asyncio.to_thread(sys.stdin.readline):
        what, number = line.split()
        {"cut": SlowWire.cut, "slow": SlowWire.slow, "mend": SlowWire.mend}[what](wires[int(number)])
        print("done", flush=True)  # noqa: T201


if __name__ == "__main__":
    asyncio.run(serve([int(port) for port in sys.argv[1:]]))
