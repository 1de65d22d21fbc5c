"""`local-multilingual`, the model of the distribution recollect-multilingual: the real one, where it is installed."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import AsyncIterator
from importlib.metadata import entry_points

import numpy as np
import pytest

from recollect import AsyncRecollect
from recollect.embedders import make_embedder
from recollect.errors import ConfigError
from recollect.parts import Parts
from recollect.ports import Embedder
from tests.embedders.conftest import cosine

INSTALLED = any(point.name == "local-multilingual" for point in entry_points(group="recollect.embedders"))
needs_model = pytest.mark.skipif(
    not INSTALLED and not os.environ.get("CI"),
    reason="recollect-multilingual is not installed: python3 -m pip install ./distributions/recollect-multilingual",
)
MEMORIES = {
    "de": "Die Rechnung der Druckerei wurde am dritten Mai überwiesen",
    "it": "Il gatto della vicina dorme sempre sul davanzale della cucina",
    "en": "The train to the mountains leaves at seven in the morning",
}


@pytest.fixture
async def multilingual() -> AsyncIterator[Embedder]:
    embedder = make_embedder("local-multilingual")
    yield embedder
    await embedder.close()


def test_the_package_to_install_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks for the model without the distribution reads which one has it."""
    monkeypatch.setattr(Parts, "_points", lambda parts: [])
    with pytest.raises(ConfigError, match="python3 -m pip install recollect-multilingual"):
        make_embedder("local-multilingual")


@needs_model
@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("when was the printer's bill paid?", "de"),
        ("quando è stata pagata la fattura della tipografia?", "de"),
        ("where does the cat next door sleep?", "it"),
        ("wo schläft die Katze der Nachbarin?", "it"),
        ("wann fährt der Zug in die Berge?", "en"),
        ("a che ora parte il treno per le montagne?", "en"),
    ],
)
async def test_a_question_in_one_language_finds_a_memory_in_another(
    question: str, answer: str, multilingual: Embedder
) -> None:
    """No word is shared: the recall goes by meaning alone."""
    async with AsyncRecollect("sqlite:///:memory:", embedder=multilingual) as recollect:
        notes = recollect.space("notes")
        for language, text in MEMORIES.items():
            await notes.remember(text, id=language)
        recall = await notes.recall(question)
    assert recall.hits[0].memory.id == answer


@needs_model
async def test_questions_and_memories_have_prefixes_of_their_own(multilingual: Embedder) -> None:
    """The model was trained with them, so one text has two vectors."""
    (asked,) = await multilingual.embed(["the fox"], space="s", role="query")
    (stored,) = await multilingual.embed(["the fox"], space="s", role="document")
    assert not np.array_equal(asked, stored)
    assert multilingual.name == "multilingual-e5-small"


@needs_model
async def test_decomposed_text_and_long_text(multilingual: Embedder) -> None:
    """A file name from macOS means what it means elsewhere; only the first 512 tokens of a text count."""
    head = "Überweisung für die Bücher " * 200
    texts = [
        "Bücher über Äpfel",
        unicodedata.normalize("NFD", "Bücher über Äpfel"),
        head,
        head + "something else " * 300,
    ]
    composed, decomposed, cut, long = await multilingual.embed(texts, space="s", role="document")
    assert cosine(composed, decomposed) == pytest.approx(1)
    assert cosine(cut, long) == pytest.approx(1)


@needs_model
async def test_batches_do_not_matter(multilingual: Embedder) -> None:
    """A text has the same vector alone as beside longer ones."""
    texts = ["der Fuchs", "una volpe salta sopra il cane pigro e poi se ne va", "fox"]
    together = await multilingual.embed(texts, space="s", role="document")
    for text, vector in zip(texts, together, strict=True):
        (alone,) = await multilingual.embed([text], space="s", role="document")
        assert cosine(alone, vector) == pytest.approx(1, abs=1e-4)
