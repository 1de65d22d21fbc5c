"""The OpenAPI document, and schemathesis over it: requests of all kinds, and no answer that it does not know."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # schemathesis brings it
import pytest

from tests.servers.http_server import Served, serving

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "response_headers_conformance",
    "unsupported_method",
)
EXAMPLES = 15
"""Random requests for each operation, beside those that schemathesis makes for each field's limits."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("schema"), "--rate", "0", tokens=True) as served:
        served.client().post("/v1/spaces/work/memories", json={"text": "here"})
        yield served


@pytest.fixture(scope="module")
def document(server: Served) -> dict[str, Any]:
    found: dict[str, Any] = server.client().get("/openapi.json").json()
    return found


def test_no_request_meets_a_server_error_or_an_undocumented_answer(server: Served, tmp_path: Path) -> None:
    """schemathesis finds no 5xx, and no status, content type, header or body that is not in the document."""
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{server.url}/openapi.json"]
    options = {
        "header": f"Authorization: Bearer {server.secret}",
        "checks": ",".join(CHECKS),
        "max-examples": str(EXAMPLES),
        "phases": "examples,coverage,fuzzing,stateful",
        "seed": "5",
        "generation-database": ":memory:",
        "exclude-path": "/v1/tokens/{id}",  # where it would revoke its own token, and learn nothing from then on
    }
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    hooks = {"SCHEMATHESIS_HOOKS": "tests.servers.schemathesis_hooks", "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [*command, *words], env={**os.environ, **hooks}, cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in server.errors()


def test_every_operation_says_how_it_fails(document: dict[str, Any]) -> None:
    """Each has a summary, an answer, and the same problems, all in one content type."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            where = f"{method} {path}"
            assert operation["summary"], where
            assert any(status.startswith("2") for status in operation["responses"]), where
            for status in ("401", "403", "404", "413", "422", "429", "500"):
                assert list(operation["responses"][status]["content"]) == ["application/problem+json"], where


def test_operations_are_called_what_the_library_calls_them(document: dict[str, Any]) -> None:
    """Each has an id of its own, in words: `recall`, `supersede`, `token_create`."""
    ids = [operation["operationId"] for methods in document["paths"].values() for operation in methods.values()]
    assert len(set(ids)) == len(ids)
    assert {"remember", "recall", "supersede", "neighbors", "list", "token_list", "import"} <= set(ids)
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)?", id) for id in ids)


def test_bodies_have_examples(document: dict[str, Any]) -> None:
    """Whoever reads a request's schema finds one that works."""
    schemas = document["components"]["schemas"]
    for name in (
        "NewMemory",
        "Changes",
        "Supersession",
        "Question",
        "Link",
        "NewGrant",
        "Acceptance",
        "NewToken",
        "Problem",
    ):
        assert schemas[name]["examples"], name


def test_what_schemas_refer_to_is_there(document: dict[str, Any]) -> None:
    """No reference leads nowhere, and none of FastAPI's own errors is left."""
    known = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert set(references(document)) <= known
    assert not {name for name in known if "Validation" in name}


def references(part: Any) -> Iterator[str]:
    """Every `$ref` in a document."""
    if isinstance(part, dict):
        yield from (str(value) for name, value in part.items() if name == "$ref")
        for value in part.values():
            yield from references(value)
    elif isinstance(part, list):
        for value in part:
            yield from references(value)


def test_answers_are_what_their_schemas_say(server: Served, document: dict[str, Any]) -> None:
    """Real answers, with hits, reasons, links and grants in them, fit the schemas that derive from the records."""
    client, here = server.client(), "/v1/spaces/schemas"
    ids = [
        client.post(f"{here}/memories", json={"text": text, "thread": "t", "metadata": {"a": [1]}}).json()["memory"][
            "id"
        ]
        for text in ("Invoice 12345 was paid on 3 May", "It had been open for weeks")
    ]
    asked = {"query": "invoice 12345", "window": 1, "expect": ids[1]}
    calls: list[tuple[str, str, str, dict[str, Any]]] = [
        ("post", "/memories", "", {"json": {"text": "One more"}}),
        ("post", "/memories", "", {"json": [{"text": "Two more"}]}),
        ("get", "/memories", "", {"params": {"limit": 1}}),
        ("get", "/memories/{id}", f"/memories/{ids[0]}", {}),
        ("get", "/memories/{id}/history", f"/memories/{ids[0]}/history", {}),
        ("post", "/recall", "", {"json": asked}),
        ("post", "/links", "", {"json": {"source": ids[0], "target": ids[1]}}),
        ("get", "/neighbors", "", {"params": {"id": ids[0]}}),
        ("get", "/stats", "", {}),
        ("get", "/usage", "", {}),
        ("post", "/grants", "", {"json": {"namespace": "default", "to": "others"}}),
        ("get", "/grants", "", {}),
        ("post", "/import", "", {"content": '{"text": "x"}\n{"text": ""}\n'}),
    ]
    for method, path, real, what in calls:
        answer = client.request(method, f"{here}{real or path}", **what)
        responses = document["paths"][f"/v1/spaces/{{space}}{path}"][method]["responses"]
        schema = responses[str(answer.status_code)]["content"]["application/json"]["schema"]
        jsonschema.validate(answer.json(), {**schema, "components": document["components"]})
