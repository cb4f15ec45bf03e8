"""The site is built from docs/ without a fault, has every page and verb, and a dead link or heading is a fault."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ci_programs import ci_program

from millstream.interfaces.cli.command import VERBS

ROOT = Path(__file__).parent.parent
pytestmark = [pytest.mark.long, pytest.mark.process, pytest.mark.needs_benchmark("millstone", "chameleon", "sycon")]


def built(root: Path, site: Path) -> subprocess.CompletedProcess[str]:
    # In a process of its own: the generator is made for one site a process.
    command = [sys.executable, "-P", str(ROOT / ".ci" / "site.py"), str(root), str(site)]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_site_has_every_page_and_verb_and_no_fault(tmp_path: Path) -> None:
    site = tmp_path / "site"
    done = built(ROOT, site)
    assert done.returncode == 0, done.stderr
    pages = {page.stem for page in site.glob("*.html")}
    listed = {page for pages in ci_program("site").CONTENTS.values() for page in pages}
    assert {page.stem for page in (ROOT / "docs").glob("*.md")} <= listed <= pages
    reference = re.sub(r"</?span[^>]*>", "", (site / "command-line.html").read_text("utf-8"))
    assert [verb for verb in VERBS if f">millstream {verb}<" not in reference] == []
    start = (site / "start.html").read_text("utf-8")
    assert "code.css" in start and "code.js" in start and "Copyright" not in start
    assert (
        "pre-wrap" in (site / "_static" / "code.css").read_text()
        and "clipboard" in (site / "_static" / "code.js").read_text()
    )
    pictures = re.findall(r'(?:src|srcset)="([^":]+\.(?:png|svg))"', (site / "index.html").read_text("utf-8"))
    assert len(pictures) >= 3 and [picture for picture in pictures if not (site / picture).exists()] == []


def test_a_dead_link_a_dead_heading_and_a_page_that_is_not_listed_are_faults(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    shutil.copytree(ROOT / "docs", repository / "docs")
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "LICENSE", "CITATION.cff"):
        shutil.copy(ROOT / name, repository / name)
    with (repository / "docs" / "start.md").open("a") as page:
        page.write("\n[One](gone.md), [two](using.md#gone) and [three](#gone).\n")
    (repository / "docs" / "unlisted.md").write_text("# Unlisted\n")
    done = built(repository, tmp_path / "site")
    assert (done.returncode, done.stdout) == (1, "4 faults\n"), done.stderr
