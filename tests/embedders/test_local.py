"""The packaged model itself: meaning, order, batches, laziness, privacy."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from recollect.embedders.local import FOLDER, LocalEmbedder
from recollect.errors import EmbeddingError
from tests.embedders.conftest import cosine


@pytest.mark.parametrize(
    ("text", "paraphrase", "unrelated"),
    [
        ("The invoice was paid on 3 May", "when was that bill settled?", "Penguins live in the southern hemisphere"),
        ("Die Rechnung wurde am 3. Mai bezahlt", "Wann wurde die Rechnung bezahlt?", "Pinguine schwimmen im Meer"),
        ("La fattura è stata pagata a maggio", "Quando è stata pagata la fattura?", "I pinguini nuotano nel mare"),
    ],
)
async def test_meaning(local: LocalEmbedder, text: str, paraphrase: str, unrelated: str) -> None:
    """A paraphrase is nearer than an unrelated text, in German and Italian too."""
    vectors = await local.embed([text, paraphrase, unrelated], space="s", role="document")
    assert cosine(vectors[0], vectors[1]) > cosine(vectors[0], vectors[2])


async def test_vectors_are_unit_float32_in_input_order(local: LocalEmbedder) -> None:
    """300 texts of mixed length, embedded together, are what each is alone, in the order they were given."""
    texts = [f"note {i}: " + "the quick brown fox jumps " * (i * 7 % 23) for i in range(300)]
    together = await local.embed(texts, space="s", role="document")
    assert together.shape == (300, local.dimensions)
    assert together.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1.0, atol=1e-5)
    for i in range(0, 300, 9):
        alone = await local.embed([texts[i]], space="s", role="document")
        np.testing.assert_allclose(together[i], alone[0], atol=1e-5)


async def test_no_texts(local: LocalEmbedder) -> None:
    """No texts give no rows of the right width."""
    assert (await local.embed([], space="s", role="document")).shape == (0, 384)


async def test_only_the_first_512_tokens_count(local: LocalEmbedder) -> None:
    """What stands beyond the model's reach does not change the vector, not even when it is a megabyte."""
    head = "word " * 600
    vectors = await local.embed([head, head + "entirely different " * 50_000], space="s", role="document")
    np.testing.assert_allclose(vectors[0], vectors[1], atol=1e-5)


@pytest.mark.parametrize("text", ["🎉🔥", "你好世界", "", " \n", "a" * 100_000, "\u202e\u0301"])
async def test_any_text_has_a_unit_vector(local: LocalEmbedder, text: str) -> None:
    """Emoji, CJK, blank, endless and odd texts are embedded like any other."""
    vectors = await local.embed([text], space="s", role="document")
    assert np.linalg.norm(vectors[0]) == pytest.approx(1.0, abs=1e-5)


async def test_the_event_loop_goes_on() -> None:
    """Other tasks run while many texts are embedded, and a question asked meanwhile does not wait for their end."""
    embedder = LocalEmbedder(threads=1)
    finished: list[str] = []
    ticks = 0

    async def embed(name: str, texts: list[str]) -> None:
        await embedder.embed(texts, space="s", role="document")
        finished.append(name)

    bulk = asyncio.create_task(embed("bulk", ["the quick brown fox jumps over the lazy dog " * 8] * 60))
    await asyncio.sleep(0)
    question = asyncio.create_task(embed("question", ["where is the fox?"]))
    while not bulk.done():
        ticks += 1
        await asyncio.sleep(0.001)
    await question
    await embedder.close()
    assert ticks > 1
    assert finished == ["question", "bulk"]


async def test_concurrent_first_calls_load_once() -> None:
    """Calls that arrive before the model is loaded share one load, and agree."""
    embedder = LocalEmbedder()
    try:
        first, second = await asyncio.gather(
            embedder.embed(["fox"], space="a", role="document"), embedder.embed(["fox"], space="b", role="document")
        )
        assert np.array_equal(first, second)
    finally:
        await embedder.close()


async def test_missing_model(tmp_path: Path) -> None:
    """A missing model file is one clear sentence, and only when a text arrives."""
    embedder = LocalEmbedder(tmp_path)
    with pytest.raises(EmbeddingError, match=r"tokenizer\.json is missing: install recollect again"):
        await embedder.embed(["x"], space="s", role="document")
    await embedder.close()


async def test_damaged_model(tmp_path: Path) -> None:
    """A model file that is not one is an EmbeddingError, with the library's own error as its cause."""
    (tmp_path / "tokenizer.json").write_bytes((FOLDER / "tokenizer.json").read_bytes())
    (tmp_path / "model.onnx").write_bytes(b"not a model")
    embedder = LocalEmbedder(tmp_path)
    with pytest.raises(EmbeddingError, match="cannot be loaded") as caught:
        await embedder.embed(["x"], space="s", role="document")
    assert caught.value.__cause__ is not None
    await embedder.close()


async def test_closed() -> None:
    """A closed embedder says so."""
    embedder = LocalEmbedder()
    await embedder.close()
    with pytest.raises(EmbeddingError, match="is closed"):
        await embedder.embed(["x"], space="s", role="document")


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files are read from /proc")
def test_no_telemetry(tmp_path: Path) -> None:
    """Embedding opens no socket and no telemetry cache, and leaves nothing in the user's folders."""
    script = """if True:
        import asyncio, os, pathlib
        from recollect.embedders.local import LocalEmbedder
        embedder = LocalEmbedder()
        asyncio.run(embedder.embed(["private"], space="s", role="document"))
        links = [os.readlink(f) for f in pathlib.Path("/proc/self/fd").iterdir() if f.is_symlink()]
        print([link for link in links if "socket" in link or "onnxruntime" in link])
    """
    env = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": ":".join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", script], env=env, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr
    assert list(tmp_path.iterdir()) == []
