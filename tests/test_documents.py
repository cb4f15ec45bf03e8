"""What README and docs say is true: links lead somewhere, examples run, verbs and exit codes are those there are."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from millstream.configuration import errors as refusal
from millstream.fixtures.provider import ModelProvider, Options

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").glob("*.md"))]
# The documents tell of all benchmarks that come with this.
DOCUMENTED = pytest.mark.needs_benchmark("millstone", "chameleon", "sycon")
ROOMS = "bench|configuration|engine|fixtures|interfaces|metrics|providers|report|speed|tests|wiring"
USING = (ROOT / "docs" / "using.md").read_text("utf-8")


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)


@DOCUMENTED
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_named_files_exist(page: Path) -> None:
    text = page.read_text("utf-8")
    for link in (*re.findall(r"\]\(([^)#]+)\)", text), *re.findall(r'(?:src|srcset)="([^"]+)"', text)):
        assert link.startswith("https://") or (page.parent / link).exists(), link
    for name in re.findall(rf"`((?:{ROOMS})/[\w/.]+)`", text):
        assert (ROOT / name).exists(), name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_paragraph_has_more_than_120_words(page: Path) -> None:
    text = page.read_text("utf-8")
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    paragraphs = [token.content for token in tokens if token.type == "inline"]
    assert [paragraph[:60] for paragraph in paragraphs if len(paragraph.split()) > 120] == []


def test_every_verb_is_told_and_every_verb_told_exists() -> None:
    verbs = {path.stem for path in (ROOT / "interfaces" / "cli" / "verbs").glob("*.py")} - {"__init__"}
    told = "\n".join(page.read_text("utf-8") for page in PAGES)
    every = "run|resume|retry|plan|score|report|verify|review|data|models|quota|load|probe|cache|sim|batch|export|serve"
    assert verbs == set(re.findall(rf"millstream ({every}|demo|completion|judge|view|ctl|rescore|init)\b", told))


def test_every_message_of_the_troubleshooting_page_is_one_of_ours() -> None:
    rooms = (ROOT / room for room in ROOMS.split("|") if room not in ("tests", "speed"))
    # A message that is written over several lines is one text.
    source = re.sub(r'"\s*\n\s*f?"', "", "\n".join(path.read_text() for room in rooms for path in room.rglob("*.py")))
    told = re.findall(r"^\| `([^`]+)` \|", (ROOT / "docs" / "troubleshooting.md").read_text("utf-8"), re.MULTILINE)
    assert len(told) > 20 and [message for message in told if message not in source] == []


def test_the_exit_codes_told_are_those_there_are() -> None:
    told = {int(code) for row in re.findall(r"^\| ([\d, ]+) \|", USING, re.MULTILINE) for code in row.split(",")}
    codes = {refusal.DONE, refusal.WRONG_USAGE, refusal.WITH_FAILURES, refusal.RESUMABLE, refusal.LOCAL_FAULT}
    assert told == {*codes, refusal.INTERRUPTED, 143}


@DOCUMENTED
def test_the_run_file_shown_can_be_planned(tmp_path: Path) -> None:
    (shown,) = blocks(ROOT / "docs" / "using.md", "toml")
    (tmp_path / "sweep.toml").write_text(shown)
    command = [sys.executable, "-P", "-m", "millstream", "plan", "sweep.toml", "--no-cache-check"]
    done = subprocess.run(command, cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("Traceback")) == (0, 0), done.stderr
    assert "openai/gpt-6-luna" in done.stdout and "mylab/llama-3.1-8b" in done.stdout
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "docs" / "using.md"], ids=lambda page: page.name)
def test_the_python_shown_runs(page: Path, tmp_path: Path) -> None:
    (shown,) = blocks(page, "python")

    async def main() -> tuple[int, str, int]:
        # The model that is shown is not one that the simulated provider has, so it is asked for one that it has.
        program = shown.replace("openai/gpt-6-luna", "openai/open").replace(", max_cost=0.50", "")
        async with ModelProvider(Options()) as provider:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", program),
                env=environment(tmp_path, OPENAI_BASE_URL=provider.base_url),
                stdout=subprocess.PIPE,
            )
            out, _ = await process.communicate()
            return process.returncode or 0, out.decode(), provider.log.total

    code, out, calls = asyncio.run(main())
    assert (code, len(out.splitlines())) == (0, calls)
    assert calls >= 1 and out.count("ok") >= calls


def environment(home: Path, **more: str) -> dict[str, str]:
    paths = [os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    own = {"HOME": str(home), "PATH": os.environ["PATH"], "OPENAI_API_KEY": "sk-for-tests-of-documents"}
    return {**own, "PYTHONPATH": os.pathsep.join(paths), **more}
