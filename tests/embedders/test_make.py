"""Embedders by name."""

from __future__ import annotations

import subprocess
import sys

import pytest

from recollect.embedders import configured, make_embedder
from recollect.errors import ConfigError, embedder_of
from recollect.settings import ModelSettings, OpenAISettings, Settings


@pytest.mark.parametrize(
    ("spec", "name", "dimensions"),
    [
        ("local", "granite-embedding-30m-english", 384),
        ("hashing", "hashing-256", 256),
        ("hashing:64", "hashing-64", 64),
        ("openai:text-embedding-3-small", "text-embedding-3-small", None),
        ("openai:org/model:v2", "org/model:v2", None),
    ],
)
async def test_by_name(spec: str, name: str, dimensions: int | None) -> None:
    """Each choice makes its embedder; a model's name may hold colons."""
    embedder = make_embedder(spec)
    assert (embedder.name, embedder.dimensions) == (name, dimensions)
    await embedder.close()


async def test_the_embedder_of_a_model() -> None:
    """What an error tells people to write is a name that makes an embedder of that model."""
    for spec in ("local", "hashing:64"):
        embedder = make_embedder(spec)
        assert embedder_of(embedder.name) == spec
        await embedder.close()
    assert embedder_of("text-embedding-3-small") is None


async def test_dimensions_are_part_of_a_remote_name() -> None:
    """Vectors of one model at two widths are two generations."""
    embedder = configured(Settings(url="", embedder="openai:m", openai=OpenAISettings(dimensions=512)))
    assert (embedder.name, embedder.dimensions) == ("m-512", 512)
    await embedder.close()


def test_a_known_model_gets_its_prefixes_and_a_declared_one_those_it_declares() -> None:
    """Both are part of the name: vectors made without prefixes are not compared with vectors made with them."""
    declared = Settings(url="", models={"mine": ModelSettings(query_prefix="q: ", dimensions=64)})
    names = [configured(declared, f"openai:{model}").name for model in ("plain", "e5-base", "mine")]
    assert names[0] == "plain"
    assert names[1].startswith("e5-base@")
    assert names[2].startswith("mine@")
    assert names[2].endswith("-64")


def test_a_known_prefix_can_be_declared_away() -> None:
    """For an endpoint that adds the prefixes itself."""
    settings = Settings(url="", models={"e5-base": ModelSettings(query_prefix="", document_prefix="")})
    assert configured(settings, "openai:e5-base").name == "e5-base"


@pytest.mark.parametrize("spec", ["", "cohere", "openai", "openai:", "hashing:", "hashing:-1", "hashing:x", "local:"])
def test_unknown(spec: str) -> None:
    """Anything else is refused with the list of choices."""
    with pytest.raises(
        ConfigError, match=r"the embedder .* does not exist: use one of local, local:FOLDER, openai:MODEL"
    ):
        make_embedder(spec)


def test_importing_the_package_is_light() -> None:
    """Neither numpy nor a model runtime comes with the package; they come with an embedder that needs them."""
    heavy = {"numpy", "onnxruntime", "tokenizers", "httpx", "apsw"}
    script = f"import sys, recollect.embedders; print({heavy!r} & {{*sys.modules}})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
