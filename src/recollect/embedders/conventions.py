"""The prefixes and pooling of common embedding models, by name.

A model that was trained with prefixes is much worse without them. The values are from the model cards on
huggingface.co (intfloat, BAAI, Snowflake, nomic-ai, Alibaba-NLP, thenlper, mixedbread-ai, Qwen, google, ibm-granite,
jinaai, sentence-transformers), as of 2025.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

from recollect.settings import ModelSettings


@dataclass(frozen=True, slots=True)
class Conventions:
    """The prefix of a question and of a document, and how token vectors become one: their mean, the first (`cls`), or
    the last.
    """

    query_prefix: str = ""
    document_prefix: str = ""
    pooling: str = "mean"

    @property
    def has_prefixes(self) -> bool:
        return bool(self.query_prefix or self.document_prefix)


_SEARCHING: Final = "Represent this sentence for searching relevant passages: "
_INSTRUCTION: Final = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: "

_KNOWN: Final = tuple(
    (re.compile(pattern), conventions)
    for pattern, conventions in (
        (r"e5-mistral|gte-qwen2|qwen3-embedding", Conventions(_INSTRUCTION, pooling="last")),
        (r"e5-.*instruct", Conventions(_INSTRUCTION)),
        (r"\be5-(small|base|large)", Conventions("query: ", "passage: ")),
        (r"\bbge-m3", Conventions(pooling="cls")),
        (r"\bbge-(small|base|large)-zh", Conventions("为这个句子生成表示以用于检索相关文章：", pooling="cls")),  # noqa: RUF001
        (r"\bbge-(small|base|large)", Conventions(_SEARCHING, pooling="cls")),
        (r"arctic-embed(2|.*-v2)", Conventions("query: ", pooling="cls")),
        (r"arctic-embed|mxbai-embed", Conventions(_SEARCHING, pooling="cls")),
        (r"nomic-embed-text", Conventions("search_query: ", "search_document: ")),
        (r"embeddinggemma", Conventions("task: search result | query: ", "title: none | text: ")),
        (r"gte-.*-v1\.5|gte-multilingual|gte-modernbert|granite-embedding", Conventions(pooling="cls")),
        (r"\bgte-|all-minilm|all-mpnet|jina-embeddings-v2", Conventions()),
    )
)


def conventions_of(model: str, declared: ModelSettings | None = None) -> Conventions:
    """The declared conventions of a model, over the known ones. An unknown model has no prefixes and mean pooling.

    >>> conventions_of("intfloat/multilingual-e5-small").query_prefix
    'query: '
    """
    name = model.lower()
    known = next((conventions for pattern, conventions in _KNOWN if pattern.search(name)), Conventions())
    if declared is None:
        return known
    given = {name: getattr(declared, name) for name in ("query_prefix", "document_prefix", "pooling")}
    return replace(known, **{name: value for name, value in given.items() if value is not None})
