"""Settings: the only reader of the environment and of `recollect.toml`.

A value comes from the caller, else from the environment (`RECOLLECT_URL`), else from `recollect.toml` in the working
folder or in the user's configuration folder, else from the default. Keys of spaces are given in the file alone:

    url = "sqlite:///memory.db"
    embedder = "openai:text-embedding-3-small"
    [openai]
    base_url = "https://…/v1"
    key = "…"
    keys = { work = "…" }
    [models."my-org/my-model"]
    query_prefix = "search: "
    [postgres]
    pool_size = 8
    schema = "recollect"

`recipes = ["pgmemory", "drobek"]`, or `RECOLLECT_RECIPES=pgmemory,drobek`, names the recipes whose text indexes
`migrate` makes.

`vectors = "qdrant+http://localhost:6333"` and `graph = "falkordb://localhost:6379"` let these engines answer the vector
leg and the graph leg, also as `RECOLLECT_VECTORS` and `RECOLLECT_GRAPH`; `[qdrant]` says how, and its key may also be
`QDRANT_API_KEY`.

`reranker = "http:https://…/rerank"`, or `RECOLLECT_RERANKER`, replaces the packaged reranker of recipes that rerank;
`[rerank]` names its `model` and `key`, which may also be `RECOLLECT_RERANK_KEY`.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from recollect.errors import ConfigError

FILE = "recollect.toml"
HIDDEN = "…"
"""What is shown instead of a secret."""
VARIABLES: Mapping[tuple[str, str], str] = {
    ("", "url"): "RECOLLECT_URL",
    ("", "embedder"): "RECOLLECT_EMBEDDER",
    ("", "vectors"): "RECOLLECT_VECTORS",
    ("", "graph"): "RECOLLECT_GRAPH",
    ("openai", "base_url"): "OPENAI_BASE_URL",
    ("openai", "key"): "OPENAI_API_KEY",
    ("qdrant", "key"): "QDRANT_API_KEY",
    ("", "reranker"): "RECOLLECT_RERANKER",
    ("rerank", "key"): "RECOLLECT_RERANK_KEY",
}
"""The environment variable of a setting, by its table and its name."""
POOLINGS = ("mean", "cls", "last")
QUANTISATIONS = ("none", "int8")
SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")
PASSWORD = re.compile(r"(//[^:/@]*:).*@")
PASSWORD_WORDS = re.compile(r"(password=)[^&\s]*")
COMMAND = re.compile(r"(`recollect (?:(?!--store)[^`])*)`")
"""A command in a message that names no store."""
KINDS: Mapping[type, str] = {
    str: "text",
    dict: "table",
    list: "list",
    int: "whole number",
    float: "number",
    bool: "true or false",
}


@dataclass(frozen=True, slots=True)
class OpenAISettings:
    """How to reach an OpenAI-compatible `/v1/embeddings`. Keys never appear in a repr."""

    base_url: str | None = None
    key: str | None = field(default=None, repr=False)
    keys: Mapping[str, str] = field(default_factory=dict, repr=False)
    dimensions: int | None = None


@dataclass(frozen=True, slots=True)
class RerankSettings:
    """How to use a `/rerank` endpoint. The key never appears in a repr."""

    model: str | None = None
    key: str | None = field(default=None, repr=False)
    languages: tuple[str, ...] = ()
    """The languages that the model knows, such as `english`; none named: all of them."""


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """What an embedding model expects, where that is not known from its name (`embedders/conventions.py`)."""

    query_prefix: str | None = None
    """What stands before a question."""
    document_prefix: str | None = None
    """What stands before a text that is stored."""
    pooling: str | None = None
    """How a model in a folder (`local:FOLDER`) makes one vector of its tokens' vectors."""
    dimensions: int | None = None
    """How many of its dimensions are kept, for models that were trained for that (Matryoshka)."""

    def __post_init__(self) -> None:
        if self.pooling not in (None, *POOLINGS):
            raise ConfigError(f"the pooling of a model is {self.pooling!r}, and must be one of: {', '.join(POOLINGS)}")
        if self.dimensions is not None and self.dimensions < 1:
            raise ConfigError(f"the dimensions of a model are {self.dimensions}, and must be 1 or more")


@dataclass(frozen=True, slots=True)
class PostgresSettings:
    """How to use a Postgres server. Times are in seconds."""

    pool_size: int = 8
    """Connections held at most. A recall uses one for each of its lanes."""
    acquire_timeout: float = 5.0
    """How long a call waits for a connection that others are using."""
    statement_timeout: float = 30.0
    """How long one statement may take."""
    schema: str = "recollect"
    """The database schema that holds the tables."""
    halfvec: bool = False
    """Whether new vectors are stored in half precision: half the space, a little less exact."""


@dataclass(frozen=True, slots=True)
class QdrantSettings:
    """How to reach a Qdrant, and how its collections are made, for a cluster or a small machine. What exists already is
    left as it is.
    """

    key: str | None = field(default=None, repr=False)
    quantisation: str = "none"
    """`int8` searches among vectors of a quarter of the size, and compares the best in full."""
    shard_number: int | None = None
    replication_factor: int | None = None
    on_disk: bool = False
    """Whether vectors and their graphs are read from the disk rather than held in memory."""

    def __post_init__(self) -> None:
        if self.quantisation not in QUANTISATIONS:
            raise ConfigError(
                f"the quantisation of Qdrant is {self.quantisation!r}, and must be one of: {', '.join(QUANTISATIONS)}"
            )
        for name in ("shard_number", "replication_factor"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"the {name} of Qdrant is {value}, and must be 1 or more")


@dataclass(frozen=True, slots=True)
class Settings:
    """Where the memory lives, which engines search it beside the store, and what embeds it."""

    url: str
    embedder: str = "local"
    openai: OpenAISettings = OpenAISettings()
    models: Mapping[str, ModelSettings] = field(default_factory=dict)
    """What embedding models expect, by their names."""
    postgres: PostgresSettings = PostgresSettings()
    vectors: str | None = None
    """The URL of the index that answers the vector leg; without one the store does."""
    graph: str | None = None
    """The URL of the index that answers the graph leg; without one the store does."""
    qdrant: QdrantSettings = QdrantSettings()
    reranker: str = "local"
    """What reads question and memory together where a recipe says so and names no other: `local`, or `http:URL`."""
    rerank: RerankSettings = RerankSettings()
    recipe: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Recipes of one's own, by name: a `base` and what is changed of it. `recollect tune` writes them."""
    recipes: tuple[str, ...] = ()
    """The recipes whose text indexes `migrate` makes. Those of the built-in recipes are made when they are first asked
    for, too.
    """

    @staticmethod
    def load(*, url: str | None = None, embedder: str | None = None) -> Settings:
        """What the caller says, over the environment, over the file, over the defaults."""
        if url is not None and not isinstance(url, str):
            raise ConfigError(f"the URL of the store must be a text, not {url!r:.80}: write sqlite:///memory.db")
        if url is not None and not url.strip():
            raise ConfigError("the URL of the store is empty: leave it out, or write sqlite:///memory.db")
        file = _read_file()
        settings = Settings(
            url=url or _variable("", "url") or file.get("url") or default_url("memory.db"),
            embedder=embedder or _variable("", "embedder") or file.get("embedder") or "local",
            openai=_openai(_table(file, "openai", OpenAISettings)),
            models=_models(file.get("models", {})),
            postgres=_postgres(_table(file, "postgres", PostgresSettings)),
            vectors=_variable("", "vectors") or file.get("vectors"),
            graph=_variable("", "graph") or file.get("graph"),
            qdrant=_qdrant(_table(file, "qdrant", QdrantSettings)),
            reranker=_variable("", "reranker") or file.get("reranker") or "local",
            rerank=_rerank(_table(file, "rerank", RerankSettings)),
            recipe=_own_recipes(file.get("recipe", {})),
            recipes=_recipes(os.environ.get("RECOLLECT_RECIPES"), file.get("recipes", [])),
        )
        _check_text_values(settings)
        return settings


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its value as it may be shown, and where that came from."""

    name: str
    value: str | int | float | bool | None
    origin: str


def config_paths() -> tuple[Path, ...]:
    """Where `recollect.toml` may be, the first that exists being read: the working folder, the user's own."""
    return Path(FILE).absolute(), _config_folder() / FILE


def explained(*, url: str | None = None, embedder: str | None = None) -> list[Setting]:
    """Every setting with its value and where it came from; secrets are not shown."""
    settings = Settings.load(url=url, embedder=embedder)
    file = _read_file()
    path = next((path for path in config_paths() if path.is_file()), None)
    said = {"url": url, "embedder": embedder}

    def origin(table: str, name: str) -> str:
        if said.get(name) and not table:
            return "the command line"
        variable = VARIABLES.get((table, name))
        if variable and os.environ.get(variable):
            return variable
        within = file.get(table, {}) if table else file
        used = name in within if table else within.get(name)  # an empty text there counts as none
        return str(path) if used else "default"

    found = []
    for one in fields(settings):
        value = getattr(settings, one.name)
        if not is_dataclass(value):
            found.append(Setting(one.name, _shown(one.name, value), origin("", one.name)))
            continue
        for inner in fields(value):
            shown = _shown(inner.name, getattr(value, inner.name))
            found.append(Setting(f"{one.name}.{inner.name}", shown, origin(one.name, inner.name)))
    return found


def _shown(name: str, value: Any) -> str | int | float | bool | None:
    """A value without what is secret in it: keys altogether, and the password of a URL."""
    if name == "recipe":
        return ", ".join(sorted(value)) or None
    if name == "keys":
        return ", ".join(f"{space}: {HIDDEN}" for space in sorted(value)) or None
    if name == "models":
        return ", ".join(sorted(value)) or None
    if name == "key":
        return HIDDEN if value else None
    return without_password(value) if isinstance(value, str) else value


def data_folder() -> Path:
    """The user's folder for data: where the default store and the demo's live."""
    return _user_folder("XDG_DATA_HOME", ".local/share", "LOCALAPPDATA", "Library/Application Support")


def default_url(file: str) -> str:
    """The URL of a store in the user's data folder."""
    return "sqlite:///" + quote(str(data_folder() / file))


def without_password(url: str) -> str:
    """A store's URL as it may be shown.

    >>> without_password("postgresql://ada:secret@localhost/agents?sslmode=require&password=secret")
    'postgresql://ada:…@localhost/agents?sslmode=require&password=…'
    """
    return PASSWORD_WORDS.sub(r"\1…", PASSWORD.sub(r"\1…@", url))


def with_store(message: str, url: str) -> str:
    """A message whose commands name the store that they are about, unless it is the one that is used anyway.

    >>> with_store("it is old: run `recollect migrate`", "sqlite:///old notes.db")
    "it is old: run `recollect migrate --store 'sqlite:///old notes.db'`"
    """
    if "`recollect " not in message or url == Settings.load().url:
        return message
    return COMMAND.sub(lambda found: f"{found[1]} --store {shlex.quote(without_password(url))}`", message)


def cache_folder() -> Path:
    """The user's folder for what can be made again."""
    return _user_folder("XDG_CACHE_HOME", ".cache", "LOCALAPPDATA", "Library/Caches")


def _config_folder() -> Path:
    return _user_folder("XDG_CONFIG_HOME", ".config", "APPDATA", "Library/Application Support")


def _user_folder(variable: str, unix: str, windows: str, mac: str) -> Path:
    if base := os.environ.get(variable):
        return Path(base) / "recollect"
    if sys.platform == "win32" and (base := os.environ.get(windows)):
        return Path(base) / "recollect"
    return Path.home() / (mac if sys.platform == "darwin" else unix) / "recollect"


def _variable(table: str, name: str) -> str | None:
    return os.environ.get(VARIABLES[table, name])


def _read_file() -> dict[str, Any]:
    for path in config_paths():
        if path.is_file():
            try:
                table = tomllib.loads(path.read_text(encoding="utf-8"))
            except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
                raise ConfigError(f"{path} cannot be read: {error}") from error
            known = {f.name for f in fields(Settings)}
            if unknown := sorted(set(table) - known):
                raise ConfigError(
                    f"{path} has an unknown setting {unknown[0]!r}; there are: {', '.join(sorted(known))}"
                )
            return table
    return {}


def _table(
    file: Mapping[str, Any],
    name: str,
    settings: type[OpenAISettings | ModelSettings | PostgresSettings | QdrantSettings | RerankSettings],
    within: str = "",
) -> dict[str, Any]:
    """One table of the file, all of its names known and all of its values of the right kind."""
    table, name = file.get(name, {}), within + name
    if not isinstance(table, dict):
        raise ConfigError(f"[{name}] in {FILE} must be a table")
    kinds = {field.name: _kind(str(field.type)) for field in fields(settings)}
    if unknown := sorted(set(table) - set(kinds)):
        raise ConfigError(f"[{name}] has an unknown setting {unknown[0]!r}; there are: {', '.join(sorted(kinds))}")
    for key, value in table.items():
        kind = kinds[key]
        if type(value) is not kind and not (kind is float and type(value) is int):
            raise ConfigError(f"[{name}] {key} must be a {KINDS[kind]}, not a {type(value).__name__}")
    return table


def _kind(annotation: str) -> type:
    """The type of a setting's value in the file, by its annotation."""
    plain = annotation.removesuffix(" | None")
    kinds = {"str": str, "int": int, "float": float, "bool": bool, "tuple[str, ...]": list}
    return kinds.get(plain, dict)


def _openai(table: Mapping[str, Any]) -> OpenAISettings:
    if not all(isinstance(key, str) for key in table.get("keys", {}).values()):
        raise ConfigError("[openai] keys must give each space a text")
    settings = OpenAISettings(**table)
    return replace(
        settings,
        base_url=_variable("openai", "base_url") or settings.base_url,
        key=_variable("openai", "key") or settings.key,
    )


def _models(tables: object) -> dict[str, ModelSettings]:
    if not isinstance(tables, dict):
        raise ConfigError(f'[models] in {FILE} must hold a table for each model: write [models."NAME"]')
    return {model: ModelSettings(**_table(tables, model, ModelSettings, "models.")) for model in tables}


def _postgres(table: Mapping[str, Any]) -> PostgresSettings:
    settings = PostgresSettings(**table)
    for name in ("pool_size", "acquire_timeout", "statement_timeout"):
        if not getattr(settings, name) > 0:
            raise ConfigError(f"[postgres] {name} must be above 0, not {getattr(settings, name)}")
    if not SCHEMA.fullmatch(settings.schema):
        raise ConfigError(
            f"[postgres] schema must be a name of lower-case letters, digits and underscores, not {settings.schema!r}"
        )
    return settings


def _qdrant(table: Mapping[str, Any]) -> QdrantSettings:
    settings = QdrantSettings(**table)
    return replace(settings, key=_variable("qdrant", "key") or settings.key)


def _rerank(table: Mapping[str, Any]) -> RerankSettings:
    settings = RerankSettings(**{**table, "languages": tuple(table.get("languages", ()))})
    return replace(settings, key=_variable("rerank", "key") or settings.key)


def _own_recipes(tables: object) -> Mapping[str, Mapping[str, Any]]:
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        raise ConfigError(f"[recipe] in {FILE} must hold a table for each recipe, such as [recipe.mine]")
    return tables


def _recipes(given: str | None, listed: object) -> tuple[str, ...]:
    """Names between commas, or a list of them."""
    if given is not None:
        return tuple(name.strip() for name in given.split(",") if name.strip())
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        raise ConfigError(f'recipes must be a list of names, such as ["pgmemory"], not {listed!r:.80}')
    return tuple(listed)


def _check_text_values(settings: Settings) -> None:
    given = {name: getattr(settings, name) for name in ("url", "embedder", "vectors", "graph", "reranker")}
    for name, value in given.items():
        if not isinstance(value, str) and not (value is None and name in ("vectors", "graph")):
            raise ConfigError(f"{name} must be a text, not {value!r}")
