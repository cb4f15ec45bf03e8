"""Names the models in README, docs, examples and reproduce files that the table of models says retire within 60 days.

`make check` prints them and passes; `make release` does not release with them (--release). The papers' own names are
exempt: what a reproduce file asks, and lines that speak of a paper.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from millstream.providers.model_remarks import retirement
from millstream.providers.models import ModelTable, bundled_models

HOME = Path(__file__).parent.parent
DAYS = 60
# Tests and the simulated outside use names as data; the table of models is where they are retired.
PAGES = ("*.md", "docs/*.md", "tests/**/*.md", "bench/*/reproduce.toml")
ROOMS = ("bench", "configuration", "engine", "interfaces", "report", "wiring")
NAME = re.compile(r"(?<![\w./-])[a-z]+(?:-[a-z]+)?/[A-Za-z0-9][A-Za-z0-9._@/-]*[A-Za-z0-9]")
OF_A_PAPER = re.compile(r"\bpapers?\b|\bpublished\b|\bauthors\b", re.IGNORECASE)


def files(home: Path) -> Iterator[Path]:
    """Yields the pages, the reproduce files and the programs with examples, in their order."""
    pages = (path for pattern in PAGES for path in sorted(home.glob(pattern)))
    yield from (path for path in pages if path.name != "CHANGELOG.md" and "node_modules" not in path.parts)
    yield from (path for room in ROOMS for path in sorted((home / room).rglob("*.py")))


def papers_own(text: str) -> set[str]:
    """Returns the names of models that a reproduce file asks."""
    values = tomllib.loads(text).get("run", {}).values()
    tables = [table for value in values for table in (value if isinstance(value, list) else [value])]
    asked = [table.get(name, []) for table in tables if isinstance(table, dict) for name in ("model", "judge")]
    return {name for value in asked for name in ([value] if isinstance(value, str) else value)}


def retiring(home: Path, table: ModelTable, day: str) -> Iterator[str]:
    """Yields `FILE:LINE: sentence` for each name that is retired on a day or will be within 60 days."""
    for path in files(home):
        text = path.read_text("utf-8")
        # A snapshot of what is asked is named beside it.
        exempt = tuple(papers_own(text)) if path.suffix == ".toml" else ()
        for number, line in enumerate(text.splitlines(), 1):
            if path.suffix == ".md" and OF_A_PAPER.search(line):
                continue
            for name in dict.fromkeys(NAME.findall(line)):
                if not name.startswith(exempt) and (sentence := retirement(name, table.of(name, day), day, DAYS)):
                    yield f"{path.relative_to(home)}:{number}: {sentence}"


def main(arguments: list[str]) -> int:
    lines = list(retiring(HOME, bundled_models(), datetime.now(UTC).date().isoformat()))
    if "--release" in arguments:
        print("\n".join(lines), end="\n" if lines else "")
    elif lines:
        names = {line.partition(": ")[2].partition(" ")[0] for line in lines}
        listed = f"{len(lines)} lines (.ci/retiring.py --release lists them)"
        print(f"{listed} name models that are retired in {DAYS} days: {', '.join(sorted(names))}")
    return 1 if lines and "--release" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
