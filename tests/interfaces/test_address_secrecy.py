"""A password or a key inside an address is shown nowhere, whichever variable or option holds the address."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from command_line import CommandLine

from millstream.configuration.errors import WRONG_USAGE
from millstream.engine.endpoint import Response
from millstream.providers.llm.errors import ErrorBody
from millstream.providers.llm.faults import fault_of
from millstream.providers.search.faults import search_fault
from millstream.providers.search.table import ENGINES
from millstream.providers.table import PROVIDERS

pytestmark = pytest.mark.needs_benchmark("millstone", "chameleon")

CANARY = "canary+7f/3a=9d2e1b8c4e5f60718293"
IN_A_URL = quote(CANARY, safe="")
ADDRESS = f"http://someone:{IN_A_URL}@127.0.0.1:1/v1?key={IN_A_URL}&{IN_A_URL}#{IN_A_URL}"
VARIABLES = sorted(
    {row.url_variable for row in PROVIDERS.values() if row.url_variable}
    | {row.url_variable for row in ENGINES.values() if row.url_variable}
)
MODELS = [f"{name}/some" for name in PROVIDERS] + [f"search/{name}" for name in ENGINES]
RUN = ("--limit", "1", "--templates", "1", "--trials", "1")
OUT = ("--out", "out")
VERBS = [
    ("models",),
    ("models", "--json"),
    ("quota",),
    *(("models", "--check", model, "--json") for model in MODELS),
    ("plan", "millstone", "--model", "openai/x", *RUN),
    ("run", "millstone", "--model", "openai/x", *RUN, *OUT),
    ("run", "chameleon", "--model", "sim/x", "--judge", "sim/x", "--search", "searxng", *OUT),
    ("load", "openai/x", "--rate", "1", "--duration", "1s", *OUT),
    ("probe", "openai/x", "--max-cost", "1", *OUT),
    ("cache", "why", "openai/x", "--prompt", "x"),
    ("models", "--base-url", ADDRESS),
    ("models", "--base-url", ADDRESS.split("@")[1].join(("http://", ""))),
    ("models", "--cache", ADDRESS),
    ("models", ADDRESS),
    ("quota", "--config", "wrong.toml"),
    ("quota", "--config", "wrong.yaml"),
    ("run", "millstone", "--model", "sim/x", "--sink", f"some:{ADDRESS}", *OUT),
    ("serve", "--host", ADDRESS),
]


def forms_of(secret: str) -> Iterator[str]:
    for form in (secret, quote(secret, safe=""), quote(secret)):
        yield form
        for lead in range(3):
            yield b64encode(b"?" * lead + form.encode()).decode()[4:-4]


def test_every_variable_that_holds_an_address_is_in_the_table() -> None:
    assert {"OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT", "OLLAMA_BASE_URL", "SEARXNG_BASE_URL"} <= set(VARIABLES)
    assert len(VARIABLES) >= 13


@pytest.mark.parametrize("arguments", VERBS, ids=lambda arguments: " ".join(arguments[:3])[:40])
def test_no_verb_shows_the_secrets_of_an_address(
    arguments: tuple[str, ...], cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in VARIABLES:
        monkeypatch.setenv(name, ADDRESS)
    for row in PROVIDERS.values():
        if row.key_variable:
            monkeypatch.setenv(row.key_variable, "some-key-of-no-use")
    (tmp_path / "wrong.toml").write_text(f'[providers.lab]\nbase_url = "{ADDRESS}"\n')
    (tmp_path / "wrong.yaml").write_text(f"providers:\n  lab:\n    base_url: {ADDRESS}: x\n")
    done = cli(*arguments)
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and "wrong" not in path.name]
    everything = "\n".join([done.out, done.err, *(data.decode("latin-1") for data in written)])
    assert [form for form in forms_of(CANARY) if form in everything] == []
    if arguments[0] == "models" and len(arguments) < 3 and ADDRESS not in arguments:
        assert done.code == 0 and done.out.count("http://***@127.0.0.1:1/v1?key=***&***#***") >= len(VARIABLES)
    else:
        assert done.code == WRONG_USAGE or (done.code == 0 and done.err == "") or "--check" in arguments


def test_a_redirect_is_told_without_the_secrets_of_where_it_leads() -> None:
    response = Response(307, b"{}", headers={"location": ADDRESS})
    for fault in (fault_of(response), search_fault(response, ErrorBody((), ""))):
        assert fault.kind == "redirect" and "http://***@127.0.0.1:1/v1?key=***&***#***" in fault.detail
        assert not [form for form in forms_of(CANARY) if form in repr(fault)]
