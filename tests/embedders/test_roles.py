"""Prefixes by role, pooling, and vectors cut short."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from recollect.embedders import make_embedder
from recollect.embedders.conventions import Conventions, conventions_of
from recollect.embedders.local import FOLDER, LocalEmbedder, unit_vectors
from recollect.embedders.roles import RoleEmbedder
from recollect.errors import ConfigError, EmbeddingError
from recollect.ports import Role
from recollect.settings import ModelSettings, Settings
from tests.embedders.conftest import CountingEmbedder, cosine

if TYPE_CHECKING:
    from recollect.types import Vectors

BGE = "Represent this sentence for searching relevant passages: "


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("intfloat/multilingual-e5-small", Conventions("query: ", "passage: ", "mean")),
        ("intfloat/e5-base-v2", Conventions("query: ", "passage: ", "mean")),
        ("BAAI/bge-small-en-v1.5", Conventions(BGE, "", "cls")),
        ("bge-m3", Conventions("", "", "cls")),
        ("Snowflake/snowflake-arctic-embed-m-v1.5", Conventions(BGE, "", "cls")),
        ("snowflake-arctic-embed2", Conventions("query: ", "", "cls")),
        ("Snowflake/snowflake-arctic-embed-l-v2.0", Conventions("query: ", "", "cls")),
        ("nomic-embed-text:v1.5", Conventions("search_query: ", "search_document: ", "mean")),
        ("thenlper/gte-small", Conventions("", "", "mean")),
        ("Alibaba-NLP/gte-base-en-v1.5", Conventions("", "", "cls")),
        ("text-embedding-3-small", Conventions("", "", "mean")),
        ("nobody/knows-it", Conventions("", "", "mean")),
    ],
)
def test_common_models_are_known_by_name(model: str, expected: Conventions) -> None:
    """Prefixes and pooling are those of the model's card; an unknown name gets no prefix."""
    assert conventions_of(model) == expected


def test_what_is_declared_counts_more_than_what_is_known() -> None:
    """A field that is not declared stays as it is known."""
    declared = ModelSettings(query_prefix="", pooling="last")
    assert conventions_of("e5-small", declared) == Conventions("", "passage: ", "last")


async def test_a_text_gets_the_prefix_of_its_role(counting: CountingEmbedder) -> None:
    """And nothing else of it changes."""
    embedder = RoleEmbedder(counting, Conventions("ask: ", "tell: "))
    await embedder.embed(["fox"], space="s", role="query")
    await embedder.embed(["fox", "owl"], space="s", role="document")
    assert counting.calls == [["ask: fox"], ["tell: fox", "tell: owl"]]


class Given(CountingEmbedder):
    """Answers every text with one vector."""

    def __init__(self, vector: Sequence[float]) -> None:
        super().__init__(len(vector))
        self._vector = np.array(vector, np.float32)

    async def embed(self, texts: Sequence[str], *, space: str, role: Role) -> Vectors:
        return np.stack([self._vector] * len(texts))


async def test_a_cut_vector_has_length_one_and_a_name_of_its_own() -> None:
    """(3, 4, 12) / 13 cut to two dimensions is (3, 4) / 5."""
    embedder = RoleEmbedder(Given([3 / 13, 4 / 13, 12 / 13]), Conventions(), dimensions=2)
    vectors = await embedder.embed(["fox"], space="s", role="document")
    assert vectors.tolist() == [pytest.approx([0.6, 0.8])]
    assert (embedder.name, embedder.dimensions) == ("hashing-3-2", 2)


async def test_a_vector_cannot_be_cut_to_more_than_it_has() -> None:
    """Nor where nothing would be left of it."""
    with pytest.raises(EmbeddingError, match="makes vectors of 2 dimensions, which cannot be cut to 3"):
        await RoleEmbedder(Given([0.6, 0.8]), Conventions(), dimensions=3).embed(["x"], space="s", role="query")
    with pytest.raises(EmbeddingError, match=r"first 1 dimensions .* are all zero"):
        await RoleEmbedder(Given([0.0, 1.0]), Conventions(), dimensions=1).embed(["x"], space="s", role="query")


@pytest.mark.parametrize(("pooling", "expected"), [("mean", [0.8, 0.6]), ("cls", [1.0, 0.0]), ("last", [0.6, 0.8])])
def test_pooling(pooling: str, expected: list[float]) -> None:
    """Padding counts for nothing: (1, 0) and (0.6, 1.2) are two tokens, and a third stands behind the mask."""
    output = np.array([[[1.0, 0.0], [0.6, 1.2], [9.0, 9.0]]], np.float32)
    if pooling == "last":
        output[0, 1] = [0.3, 0.4]
    vectors = unit_vectors(output, np.array([[1, 1, 0]]), pooling)
    assert vectors.tolist() == [pytest.approx(expected)]


async def test_a_model_in_a_folder(tmp_path: Path, local: LocalEmbedder) -> None:
    """`local:FOLDER` reads any ONNX model with its tokenizer; it is named by its folder."""
    named = tmp_path / "model"
    named.mkdir()
    for file in FOLDER.iterdir():
        (named / file.name).symlink_to(file)
    embedder = make_embedder(f"local:{named}")
    try:
        (theirs,) = await embedder.embed(["the red fox"], space="s", role="query")
        (ours,) = await local.embed(["the red fox"], space="s", role="query")
        assert (embedder.name, embedder.dimensions) == ("model", 384)
        assert cosine(theirs, ours) == pytest.approx(1)
    finally:
        await embedder.close()


async def test_a_folder_without_a_model(tmp_path: Path) -> None:
    """Which file is missing is said when the first text arrives."""
    embedder = make_embedder(f"local:{tmp_path}")
    with pytest.raises(EmbeddingError, match=r"tokenizer\.json is missing: put a whole model there"):
        await embedder.embed(["x"], space="s", role="query")
    await embedder.close()


def test_models_are_declared_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By name; a setting that is not one is refused with those there are."""
    monkeypatch.chdir(tmp_path)
    Path("recollect.toml").write_text('[models."org/m"]\nquery_prefix = "ask: "\ndimensions = 256\n')
    assert Settings.load().models == {"org/m": ModelSettings(query_prefix="ask: ", dimensions=256)}
    Path("recollect.toml").write_text('[models."org/m"]\nprefix = "ask: "\n')
    with pytest.raises(ConfigError, match=r"\[models.org/m\] has an unknown setting 'prefix'; there are: dimensions"):
        Settings.load()
    Path("recollect.toml").write_text('[models.m]\npooling = "max"\n')
    with pytest.raises(ConfigError, match="pooling of a model is 'max', and must be one of: mean, cls, last"):
        Settings.load()
