"""How fast the packaged model starts, answers and embeds: `python benchmarks/embedding.py`.

Start-up is measured in fresh processes (their import of Python itself not counted), the rest in this one.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time

from recollect.embedders.local import LocalEmbedder

START = """
import time; began = time.perf_counter(), time.process_time()
import asyncio
from recollect.embedders.local import LocalEmbedder
asyncio.run(LocalEmbedder().embed(["when was that bill settled?"], space="bench", role="document"))
print(time.perf_counter() - began[0], time.process_time() - began[1])
"""
WORDS = ("the", "invoice", "was", "paid", "late", "because", "our", "bank", "had", "closed", "early", "on", "friday")
BOUNDS = (128, 256, 512, 1024, 2048, 4096)


def text_of(tokens: int, seed: int) -> str:
    """A text of about that many tokens: each of these words is one, and the model adds two."""
    return " ".join(WORDS[(seed * 7 + i * i) % len(WORDS)] for i in range(tokens - 2))


def start_up(runs: int = 5) -> tuple[float, float]:
    """Seconds by the clock and of the processor, from the first import to the first vector: the best of some runs."""
    answers = [
        subprocess.run([sys.executable, "-c", START], capture_output=True, text=True, check=True).stdout.split()
        for _ in range(runs)
    ]
    wall, processor = min((float(wall), float(processor)) for wall, processor in answers)
    return wall, processor


async def seconds(embedder: LocalEmbedder, texts: list[str], runs: int = 3) -> tuple[float, float]:
    """The best of some runs, by the clock and of the processor (the fairer one on a busy machine)."""
    took = []
    for _ in range(runs):
        began = time.perf_counter(), time.process_time()
        await embedder.embed(texts, space="bench", role="document")
        took.append((time.perf_counter() - began[0], time.process_time() - began[1]))
    return min(wall for wall, _ in took), min(processor for _, processor in took)


async def main() -> None:
    wall, processor = start_up()
    print(f"first vector in a new process  {wall:6.2f} s  ({processor:.2f} s of processor time)")
    embedder = LocalEmbedder()
    await embedder.embed(["load"], space="bench", role="document")
    wall, processor = await seconds(embedder, ["when was that bill settled?"], 50)
    print(f"one question                   {wall * 1000:6.1f} ms")
    await embedder.close()
    for tokens, count in ((20, 300), (200, 40)):
        texts = [text_of(tokens, seed) for seed in range(count)]
        for bound in BOUNDS:
            embedder = LocalEmbedder(batch_tokens=bound)
            await embedder.embed(["load"], space="bench", role="document")
            wall, processor = await seconds(embedder, texts)
            print(
                f"texts of {tokens:3} tokens, {bound:4} a batch {count / wall:6.0f} texts/s"
                f"  ({count / processor:.0f} per second of processor time)"
            )
            await embedder.close()


if __name__ == "__main__":
    asyncio.run(main())
