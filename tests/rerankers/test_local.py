"""The packaged cross-encoder itself: order, batches, odd texts, a missing file, an end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from recollect.errors import BackendError
from recollect.rerankers.local import FOLDER, LocalReranker

QUESTION = "when was the invoice paid?"


@pytest.fixture
async def local() -> AsyncIterator[LocalReranker]:
    reranker = LocalReranker()
    yield reranker
    await reranker.close()


async def test_the_answer_scores_highest(local: LocalReranker) -> None:
    """What answers the question is near 1, what has nothing to do with it near 0."""
    answer, near, far = await local.score(
        QUESTION, ["The invoice was paid on 3 May.", "The invoice is for two chairs.", "Penguins swim in the sea."]
    )
    assert answer > 0.8
    assert far < 0.01
    assert answer > near > far


async def test_scores_do_not_depend_on_batch_mates(local: LocalReranker) -> None:
    """40 passages of mixed length score together what each scores alone, in the order they were given."""
    passages = [f"note {n}: " + "the invoice was settled in May, " * (n * 7 % 23) for n in range(40)]
    together = await local.score(QUESTION, passages)
    for n in range(0, 40, 9):
        assert together[n] == pytest.approx((await local.score(QUESTION, [passages[n]]))[0], abs=0.1)


@pytest.mark.parametrize("text", ["🎉🔥", "你好世界", "", " \n", "a" * 100_000, "word " * 50_000])
async def test_any_text_has_a_score(local: LocalReranker, text: str) -> None:
    """Odd and endless texts are read like any other, as passage and as question."""
    (as_passage,) = await local.score(QUESTION, [text])
    (as_question,) = await local.score(text, ["The invoice was paid on 3 May."])
    assert 0 <= as_passage <= 1
    assert 0 <= as_question <= 1


async def test_no_passages_need_no_model(tmp_path: Path) -> None:
    """Nothing to read loads nothing, so that an empty space answers at once."""
    assert await LocalReranker(tmp_path).score(QUESTION, []) == []


async def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """A broken installation says which file is missing."""
    with pytest.raises(BackendError, match=r"tokenizer\.json is missing: install recollect again"):
        await LocalReranker(tmp_path).score(QUESTION, ["x"])


async def test_a_broken_file_is_an_error_of_ours(tmp_path: Path) -> None:
    """A file that is no model is reported as one, not as an error of the library that reads it."""
    (tmp_path / "tokenizer.json").write_bytes((FOLDER / "tokenizer.json").read_bytes())
    (tmp_path / "model.onnx").write_bytes(b"no model")
    with pytest.raises(BackendError, match="cannot be loaded"):
        await LocalReranker(tmp_path).score(QUESTION, ["x"])


async def test_after_close_it_refuses(local: LocalReranker) -> None:
    """A closed reranker says so."""
    await local.close()
    with pytest.raises(BackendError, match="was closed"):
        await local.score(QUESTION, ["x"])
