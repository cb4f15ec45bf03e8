"""The long attack: every promise of tests/promises.toml, a line each with what was tried and what survived.

Results of each test are kept in build/torture, so a run that was stopped goes on where it stopped, for the same commit.
Words of the command line name promises (`1 7`); `--failed` tries again what failed, at this commit, and keeps the rest
with the commit it was tried at; `--page` writes docs/reliability.md and the table of README.md from the results;
MILLSTREAM_TORTURE_SEED draws other attacks.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "build" / "torture"
# How many of a promise's worst cases are told.
WORST = 20
PAGE = ROOT / "docs" / "reliability.md"
README = ROOT / "README.md"
BEGIN, END = "<!-- promises: make reliability -->\n", "<!-- end of promises -->\n"
HEAD = """# What is promised

Each promise, how it is kept, and what attacks it. `make test` makes every attack in a short form, `make torture` in a
long one. The figures are those of the last long run, begun on {day}, with seed {seed}, on {cores} cores. The last
column names the commits that were attacked.
`make torture ARGS="1 7"` attacks some promises alone, and `MILLSTREAM_TORTURE_SEED=2 make torture` draws other attacks.

| | promise | tried | survived | in | at |
|---|---|--:|--:|--:|---|
"""


def promises() -> list[dict[str, Any]]:
    """Returns the promises in their order."""
    with (ROOT / "tests" / "promises.toml").open("rb") as file:
        return list(tomllib.load(file)["promise"])


def attack(name: str, test: str, seed: str) -> dict[str, Any]:
    """Runs one long test, with a log and a file of results of this name, and returns what became of it."""
    lines = RESULTS / f"{name}.jsonl"
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
    limits = ["-o", "timeout=7200", "-o", "faulthandler_timeout=0"]
    begun = time.monotonic()
    with (RESULTS / f"{name}.log").open("w+") as log:
        subprocess.run([*pytest, *limits, test], cwd=ROOT, env=environment, stdout=log, stderr=log)
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
        "worst": list(dict.fromkeys(line["worst"] for line in attacks))[:WORST],
    }


def summed(promise: dict[str, Any], results: dict[str, Any]) -> dict[str, Any] | None:
    """Returns what became of a promise in all its long tests; None while some of them have not run."""
    parts = [results["tests"].get(test) for test in promise["long"]]
    if not parts or None in parts:
        return None
    found = {key: sum(part[key] for part in parts) for key in ("tried", "survived", "tests", "failed", "seconds")}
    found["commits"] = list(dict.fromkeys(part["commit"] for part in parts))
    return {**found, "worst": [worst for part in parts for worst in part["worst"]][:WORST]}


def commit() -> str:
    """Returns the commit that is tried, with a mark where files differ from it."""
    found = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    return found.stdout.strip() or "unknown"


def page(results: dict[str, Any]) -> str:
    """Returns docs/reliability.md."""
    rows, parts = [], list[str]()
    for promise in promises():
        number, sums = promise["number"], summed(promise, results)
        figures = " |  |  | "
        if sums:
            at = ", ".join(f"`{commit}`" for commit in sums["commits"])
            figures = f"{sums['tried']:,} | {sums['survived']:,} | {sums['seconds']:,} s | {at}"
        rows.append(f"| [{number}](#promise-{number}) | {promise['promise']} | {figures} |\n")
        parts += [f"\n## Promise {number}\n", promise["promise"] + "\n", f"**How it is kept.** {promise['kept']}\n"]
        tests = ", ".join(f"`{test}`" for test in promise["tests"])
        parts.append(
            f"**How it is tested.** {tests}" + (", and longer by `make torture`.\n" if promise["long"] else ".\n")
        )
        if sums and sums["worst"]:
            parts += ["**What was seen.**\n", *(f"- {worst[0].upper()}{worst[1:]}." for worst in sums["worst"]), ""]
        for test in promise["long"]:
            if sums and (broken := results["tests"][test])["failed"]:
                every = broken["tests"] + broken["failed"]
                parts.append(f"\n**What failed.** {broken['failed']} of {every} tests of `{test}`.\n")
    head = HEAD.format(**{name: results[name] for name in ("day", "seed", "cores")})
    return head + "".join(rows) + "\n".join(parts).rstrip() + "\n"


def with_promises(readme: str, results: dict[str, Any]) -> str:
    """Returns the README with a line a promise: what was tried and what survived."""
    rows = []
    for promise in promises():
        sums = summed(promise, results)
        figures = f"{sums['survived']:,} of {sums['tried']:,}" if sums else "not tried yet"
        number = promise["number"]
        anchor = f"docs/reliability.md#promise-{number}"
        rows.append(f"| [{number}]({anchor}) | {promise['short']} | {figures} |\n")
    before, _, rest = readme.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}| | promise | survived |\n|---|---|--:|\n{''.join(rows)}{END}{after}"


def main() -> int:
    """Attacks the promises that are named, or all. Returns 1 if one was broken."""
    words = sys.argv[1:]
    RESULTS.mkdir(parents=True, exist_ok=True)
    kept = RESULTS / "results.json"
    seed, now = os.environ.get("MILLSTREAM_TORTURE_SEED", "1"), commit()
    results = json.loads(kept.read_text()) if kept.exists() else {}
    if words == ["--page"]:
        if "tests" not in results:
            sys.exit("torture: there are no results yet: run `make torture` first")
        PAGE.write_text(page(results), "utf-8")
        README.write_text(with_promises(README.read_text("utf-8"), results), "utf-8")
        return 0
    is_again = words == ["--failed"]
    if is_again and "tests" not in results:
        sys.exit("torture: nothing has failed yet: run `make torture` first")
    if is_again:
        words, seed = [], results["seed"]
    elif (results.get("commit"), results.get("seed")) != (now, seed):
        day = time.strftime("%Y-%m-%d", time.gmtime())
        results = {"commit": now, "seed": seed, "day": day, "cores": os.cpu_count(), "tests": {}}
    wanted = [promise for promise in promises() if promise["long"] and (not words or str(promise["number"]) in words)]
    for promise in wanted:
        for test in promise["long"]:
            if words or results["tests"].get(test, {}).get("failed"):
                results["tests"].pop(test, None)
    writing = Lock()

    def carry_out(promise: dict[str, Any], number: int, test: str) -> None:
        result = attack(f"{promise['number']}-{number}", test, seed)
        with writing:
            results["tests"][test] = {**result, "commit": now}
            kept.write_text(json.dumps(results, indent=1))
            if (whole := summed(promise, results)) is not None:
                print(line_of(promise, whole), flush=True)

    for promise in wanted:
        if (whole := summed(promise, results)) is not None:
            print(line_of(promise, whole), flush=True)

    # The longest, which mostly waits, beside two others at a time; then, with the machine to themselves, those that
    # measure time.
    wanted.sort(key=lambda promise: not promise.get("is_longest", False))
    for is_alone, workers in ((False, 3), (True, 1)):
        chosen = [promise for promise in wanted if promise.get("is_alone", False) is is_alone]
        with ThreadPoolExecutor(workers) as pool:
            every = [(promise, *each) for promise in chosen for each in enumerate(promise["long"], 1)]
            begun = [pool.submit(carry_out, *each) for each in every if each[2] not in results["tests"]]
        for each in begun:
            each.result()
    ended = [summed(promise, results) for promise in wanted]
    return int(any(result is None or result["failed"] for result in ended))


def line_of(promise: dict[str, Any], found: dict[str, Any]) -> str:
    """Returns a promise's line on the screen."""
    logs = f"FAILED: build/torture/{promise['number']}-*.log"
    figures = f"tried {found['tried']:9,}  survived {found['survived']:9,}  {found['seconds']:5,} s"
    return f"{promise['number']:>2}  {figures}  {logs if found['failed'] else '; '.join(found['worst'][:1])}"


if __name__ == "__main__":
    sys.exit(main())
