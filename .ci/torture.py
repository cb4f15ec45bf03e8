"""The long attack: every promise of tests/promises.toml in turn, a line each with what was tried and what survived.

Results are kept in build/torture, so a run that was stopped goes on where it stopped, for the same commit. Words of the
command line name promises (`1 7`); `--page` writes docs/reliability.md from the results; MILLSTREAM_TORTURE_SEED draws
other attacks.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "build" / "torture"
PAGE = ROOT / "docs" / "reliability.md"
HEAD = """# What is promised

Each promise, how it is kept, and what attacks it. `make test` makes every attack in a short form, `make torture` in a
long one. The figures are those of the last long run, at commit `{commit}` on {day}, with seed {seed}, on {cores} cores.
`make torture ARGS="1 7"` attacks some promises alone, and `MILLSTREAM_TORTURE_SEED=2 make torture` draws other attacks.

| | promise | tried | survived | in |
|---|---|--:|--:|--:|
"""


def promises() -> list[dict[str, Any]]:
    """Returns the promises in their order."""
    with (ROOT / "tests" / "promises.toml").open("rb") as file:
        return list(tomllib.load(file)["promise"])


def attack(promise: dict[str, Any], seed: str) -> dict[str, Any]:
    """Runs a promise's long tests and returns what became of them."""
    lines = RESULTS / f"{promise['number']}.jsonl"
    lines.unlink(missing_ok=True)
    environment = {**os.environ, "MILLSTREAM_TORTURE": "long", "MILLSTREAM_TORTURE_SEED": seed}
    environment["MILLSTREAM_TORTURE_OUT"] = str(lines)
    pytest = [
        sys.executable,
        "-P",
        "-m",
        "pytest",
        "-c",
        "tests/pytest.ini",
        "--rootdir=.",
        "-q",
        "-p",
        "no:cacheprovider",
    ]
    limits = ["-o", "timeout=3600", "-o", "faulthandler_timeout=0"]
    begun = time.monotonic()
    with (RESULTS / f"{promise['number']}.log").open("w+") as log:
        subprocess.run([*pytest, *limits, *promise["long"]], cwd=ROOT, env=environment, stdout=log, stderr=log)
        log.seek(0)
        end = log.read().strip().rpartition("\n")[2]
    counts = {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|error)", end)}
    passed, failed = counts.get("passed", 0), counts.get("failed", 0) + counts.get("error", 0)
    attacks = [json.loads(line) for line in lines.read_text().splitlines()] if lines.exists() else []
    # Tests that say nothing of their own count as an attack each; one that failed survived nothing.
    silent = passed - len({line["test"] for line in attacks})
    return {
        "tried": sum(line["tried"] for line in attacks) + silent + failed,
        "survived": sum(line["survived"] for line in attacks) + silent,
        "tests": passed,
        "failed": failed or int(passed == 0),
        "seconds": round(time.monotonic() - begun),
        "worst": list(dict.fromkeys(line["worst"] for line in attacks))[:6],
    }


def commit() -> str:
    """Returns the commit that is tried, with a mark where files differ from it."""
    found = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    return found.stdout.strip() or "unknown"


def page(results: dict[str, Any]) -> str:
    """Returns docs/reliability.md."""
    rows, parts = [], list[str]()
    for promise in promises():
        number, found = promise["number"], results["promises"].get(str(promise["number"]))
        figures = f"{found['tried']:,} | {found['survived']:,} | {found['seconds']:,} s" if found else " | | "
        rows.append(f"| [{number}](#promise-{number}) | {promise['promise']} | {figures} |\n")
        parts += [f"\n## Promise {number}\n", promise["promise"] + "\n", f"**How it is kept.** {promise['kept']}\n"]
        tests = ", ".join(f"`{test}`" for test in promise["tests"])
        parts.append(
            f"**How it is tested.** {tests}" + (", and longer by `make torture`.\n" if promise["long"] else ".\n")
        )
        if found and found["worst"]:
            parts += ["**What was seen.**\n", *(f"- {worst[0].upper()}{worst[1:]}." for worst in found["worst"]), ""]
    head = HEAD.format(**{name: results[name] for name in ("commit", "day", "seed", "cores")})
    return head + "".join(rows) + "\n".join(parts).rstrip() + "\n"


def main() -> int:
    """Attacks the promises that are named, or all. Returns 1 if one was broken."""
    words = sys.argv[1:]
    RESULTS.mkdir(parents=True, exist_ok=True)
    kept = RESULTS / "results.json"
    seed, now = os.environ.get("MILLSTREAM_TORTURE_SEED", "1"), commit()
    results = json.loads(kept.read_text()) if kept.exists() else {}
    if words == ["--page"]:
        PAGE.write_text(page(results), "utf-8")
        return 0
    if (results.get("commit"), results.get("seed")) != (now, seed):
        day = time.strftime("%Y-%m-%d", time.gmtime())
        results = {"commit": now, "seed": seed, "day": day, "cores": os.cpu_count(), "promises": {}}
    broken = 0
    for promise in promises():
        number = str(promise["number"])
        if not promise["long"] or (words and number not in words):
            continue
        found = results["promises"].get(number)
        if found is None or found["failed"] or words:
            found = results["promises"][number] = attack(promise, seed)
            kept.write_text(json.dumps(results, indent=1))
        state = "FAILED: build/torture/" + number + ".log" if found["failed"] else "; ".join(found["worst"][:1])
        figures = f"tried {found['tried']:9,}  survived {found['survived']:9,}  {found['seconds']:5,} s"
        print(f"{number:>2}  {figures}  {state}", flush=True)
        broken += bool(found["failed"])
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main())
