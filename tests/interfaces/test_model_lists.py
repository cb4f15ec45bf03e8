"""`models --check` reads each provider's own list of models, and says where the table of models differs from it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from command_line import CommandLine

from millstream.providers.model_list import differences
from millstream.providers.models import bundled_models

TABLE = bundled_models()
OPENAI = {
    "object": "list",
    "data": [
        {"id": "gpt-4o", "object": "model", "created": 0, "owned_by": "openai", "shutdown_date": "2027-03-01"},
        {"id": "gpt-6-luna", "object": "model", "created": 0, "owned_by": "openai", "shutdown_date": None},
        {"id": "gpt-99", "object": "model", "created": 0, "owned_by": "openai"},
    ],
}
ANTHROPIC = {"data": [{"type": "model", "id": "claude-opus-5-5", "display_name": "Opus 5.5"}], "has_more": False}
GEMINI = {"models": [{"name": "models/gemini-3.8-flash", "version": "001"}]}
LISTS: dict[str, Any] = {
    "/v1/models": OPENAI,
    "/v1/models?limit=1000": ANTHROPIC,
    "/v1beta/models?pageSize=1000": GEMINI,
    "/broken/models": {"object": "no list"},
}


@pytest.fixture
def server() -> Iterator[tuple[str, list[tuple[str, dict[str, str]]]]]:
    """A server with the lists of three providers, at an address, and the path and headers of each list asked."""
    asked: list[tuple[str, dict[str, str]]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
            self._answer(200 if self.path in LISTS else 404, LISTS.get(self.path, {}))

        def do_POST(self) -> None:
            self._answer(404, {"error": {"message": "no calls here"}})

        def _answer(self, status: int, document: Any) -> None:
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            pass

    serving = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=serving.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{serving.server_port}", asked
    serving.shutdown()
    thread.join()
    serving.server_close()


def lists(cli: CommandLine, model: str, address: str) -> list[str]:
    done = cli("models", "--check", model, "--json", "--base-url", address, "--cache", "cache")
    found: list[str] = json.loads(done.out)["lists"]
    return found


def test_what_openais_list_says_otherwise_is_said_by_kind(
    cli: CommandLine, server: tuple[str, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-list")
    gone, other, new = lists(cli, "openai/gpt-6-luna", f"{server[0]}/v1")
    assert gone.startswith("openai: in the table of models, and not in its list: ") and "openai/gpt-6-sol" in gone
    assert "openai/gpt-6-luna" not in gone and "openai/gpt-4o," not in gone
    assert "gpt-3.5-turbo" not in gone  # it is retired in the table too
    table = TABLE.models["openai/gpt-4o"].retires
    assert other == f"openai: with another last day in its list: openai/gpt-4o (2027-03-01; in the table {table})"
    assert new == "openai: in its list, and without a row: openai/gpt-99"
    [(path, headers)] = server[1]
    assert (path, headers["authorization"]) == ("/v1/models", "Bearer sk-of-the-list")


@pytest.mark.parametrize(
    ("model", "variable", "path", "listed"),
    [
        ("anthropic/claude-opus-5-5", "ANTHROPIC_API_KEY", "/v1/models?limit=1000", "anthropic/claude-opus-5-5"),
        ("gemini/gemini-3.8-flash", "GEMINI_API_KEY", "/v1beta/models?pageSize=1000", "gemini/gemini-3.8-flash"),
        ("openai-responses/gpt-6-luna", "OPENAI_API_KEY", "/v1/models", "openai/gpt-6-luna"),
    ],
)
def test_each_providers_list_is_read_at_its_own_address(
    cli: CommandLine,
    server: tuple[str, list[Any]],
    monkeypatch: pytest.MonkeyPatch,
    model: str,
    variable: str,
    path: str,
    listed: str,
) -> None:
    monkeypatch.setenv(variable, "key-of-the-list")
    first, *_ = lists(cli, model, f"{server[0]}/v1" if path == "/v1/models" else server[0])
    assert "in the table of models, and not in its list" in first and f"{listed}," not in first
    assert [asked for asked, _ in server[1]] == [path]


def test_a_list_that_cannot_be_read_is_said_and_changes_no_exit_code(
    cli: CommandLine, server: tuple[str, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-list")
    done = cli("models", "--check", "openai/gpt-6-luna", "--base-url", f"{server[0]}/broken", "--cache", "cache")
    assert done.code == 3 and "sk-of-the-list" not in done.out
    *_, line = done.out.splitlines()
    assert line == "openai: its list of models can't be read: status 200, and no list of models"


def test_a_provider_without_rows_has_no_list_to_compare(cli: CommandLine, server: tuple[str, list[Any]]) -> None:
    assert lists(cli, "vllm/own", f"{server[0]}/v1") == []
    assert server[1] == []


def test_a_list_that_agrees_with_the_table_needs_no_line() -> None:
    rows = {name: row for name, row in TABLE.models.items() if name.startswith("xai/")}
    alive = {name.partition("/")[2]: None for name, row in rows.items() if (row.retires or "9999") > "2026-11-26"}
    assert list(differences("xai", alive, TABLE, "2026-11-26")) == []


def test_what_a_router_offers_besides_is_not_listed() -> None:
    assert list(differences("openrouter", {"vendor/new": None}, TABLE, "2026-11-26")) == []
    assert list(differences("xai", {"grok-99": None}, TABLE, "2026-11-26"))[-1].endswith("without a row: xai/grok-99")
