"""A run folder from somebody else is data: no verb hangs on it, fills the memory, or writes out of it."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from command_line import SMALL, Done, Provider, run_command
from torture import IS_LONG, record

from millstream.engine.runs.run_folder import manifest_hash, specification_hash

pytestmark = [pytest.mark.needs_benchmark("millstone"), pytest.mark.timeout(3600)]

TREE = Path(__file__).parents[2]
FILES = (
    *("manifest.json", "records.jsonl", "failures.jsonl", "scores.json", ".lock", "budget", "labels.jsonl"),
    *("judgements.jsonl", "judgements.json", "report.html", ".reserve", "records.torn", "manifest.json.new"),
)
READ_BY_ALL = ("manifest.json", "records.jsonl")
VERBS: dict[str, tuple[str, ...]] = {
    "score": ("score", "run"),
    "verify": ("verify", "run"),
    "report": ("report", "run"),
    "export": ("export", "run", "--out", "out.parquet"),
    "review": ("review", "run", "--sample", "3", "--csv", "labels.csv"),
    "judge": ("judge", "run"),
    "cache export": ("cache", "export", "run", "out.snapshot", "--cache", "cache"),
    "retry": ("retry", "run", "--no-report"),
    "resume": ("resume", "run", "--no-report"),
}
SECONDS_MAX = 20
MEMORY_MAX = 1 << 30
HUGE = 40 << 30


def to_a_file(path: Path) -> None:
    path.symlink_to(path.parents[1] / "outside" / "file")


def to_zeros(path: Path) -> None:
    path.symlink_to("/dev/zero")


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(HUGE)


def sparse_below_a_line(path: Path) -> None:
    with path.open("wb") as file:
        file.write(b"{}\n")
        file.truncate(HUGE)


def deep(path: Path) -> None:
    path.write_bytes(b'{"specification": {"a": ' + b"[" * 200_000 + b"]" * 200_000 + b"}}\n")


KINDS: dict[str, Callable[[Path], Any]] = {
    "a link to a file outside": to_a_file,
    "a link to zeros without end": to_zeros,
    "a pipe": os.mkfifo,
    "a folder": Path.mkdir,
    "40 GiB without a line": sparse,
    "40 GiB below a line": sparse_below_a_line,
    "JSON 200,000 deep": deep,
}


@contextmanager
def bounded() -> Iterator[None]:
    """Interrupts a block that waits, and refuses it more memory than a reading verb needs."""

    def late(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"not done after {SECONDS_MAX} s")

    before, limit = signal.signal(signal.SIGALRM, late), resource.getrlimit(resource.RLIMIT_DATA)
    held = int(re.search(r"VmData:\s+(\d+)", Path("/proc/self/status").read_text())[1]) << 10  # type: ignore[index]
    resource.setrlimit(resource.RLIMIT_DATA, (held + MEMORY_MAX, limit[1]))
    signal.alarm(SECONDS_MAX)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        resource.setrlimit(resource.RLIMIT_DATA, limit)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, running_provider: Provider) -> Path:
    """A home with a finished run that has one failure, and a folder beside it."""
    running_provider.reset()
    running_provider.set_faults("rejected=400,at=2")
    place = tmp_path_factory.mktemp("strange")
    where = ("--base-url", running_provider.base_url, "--cache", "cache", "--out", "run", "--no-report")
    assert run_command(place, "run", "millstone", "--model", "sim/open", *SMALL, *where).code == 3
    # What they import and reserve at their first use is not what a file makes them take.
    warm = copied(place, tmp_path_factory.mktemp("warm"))
    assert [run_command(warm, *VERBS[verb]).code for verb in ("report", "export")] == [0, 0]
    (place / "outside").mkdir()
    for name in ("file", "table.csv"):
        (place / "outside" / name).write_text("ours\n")
    return place


def copied(home: Path, tmp_path: Path) -> Path:
    place = tmp_path / "home"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(home, place)
    return place


def outside_of(place: Path) -> dict[str, str]:
    return {each.name: each.read_text() for each in (place / "outside").iterdir()}


def ended(place: Path, verb: str) -> Done:
    """How a verb ended, within the time and memory, with nothing outside of the folder changed."""
    before, began = outside_of(place), time.monotonic()
    with bounded():
        done = run_command(place, *VERBS[verb])
    assert time.monotonic() - began < SECONDS_MAX
    assert outside_of(place) == before and "Traceback" not in done.err, done
    assert done.code in (0, 2, 3, 4, 5), done
    if done.code in (2, 5):
        # Of what else a verb says, nothing begins with the program's name but the refusal and its notes.
        assert len([line for line in done.err.splitlines() if line.startswith("millstream: /")]) <= 1, done.err
    return done


@pytest.mark.parametrize("kind", KINDS)
def test_no_file_of_a_folder_hangs_a_verb_or_fills_the_memory_or_leads_out_of_it(
    home: Path, tmp_path: Path, kind: str
) -> None:
    every = list(product(FILES, VERBS))
    tried = every if IS_LONG else every[list(KINDS).index(kind) :: len(KINDS)]
    for file, verb in tried:
        place = copied(home, tmp_path)
        path = place / "run" / file
        path.unlink(missing_ok=True)
        KINDS[kind](path)
        done = ended(place, verb)
        if file in READ_BY_ALL:
            assert done.code in (2, 5), (file, verb, done)
    record("16", len(tried), len(tried), f"{kind}: each verb ended within {SECONDS_MAX} s")


@pytest.mark.parametrize("name", ["tables", "figures"])
def test_a_report_writes_no_table_through_a_link(home: Path, tmp_path: Path, name: str) -> None:
    place = copied(home, tmp_path)
    (place / "run" / name).symlink_to(place / "outside")
    done = ended(place, "report")
    assert done.code == 5 and f"run/{name} is a link" in done.err, done


def test_a_lock_that_is_a_link_is_refused_and_its_target_stays(home: Path, tmp_path: Path) -> None:
    for verb in ("resume", "retry"):
        place = copied(home, tmp_path)
        (place / "run/.lock").unlink()
        (place / "run/.lock").symlink_to(place / "outside/file")
        done = ended(place, verb)
        assert done.code == 5 and ".lock is a link" in done.err, done


def test_a_run_folder_may_itself_be_a_link(home: Path, tmp_path: Path) -> None:
    place = copied(home, tmp_path)
    (place / "run").rename(place / "elsewhere")
    (place / "run").symlink_to(place / "elsewhere")
    assert [ended(place, verb).code for verb in ("score", "verify", "report", "export")] == [0, 0, 0, 0]


def places_in(manifest: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yields the fields of a manifest, and those of its parts."""
    for name, value in manifest.items():
        yield (name,)
        if isinstance(value, dict):
            yield from ((name, inner) for inner in value)


def forged(manifest: dict[str, Any], place: tuple[str, ...], wrong: Any) -> dict[str, Any]:
    """A manifest with another value in a field, and the hashes that it asks for."""
    changed = json.loads(json.dumps(manifest))
    part = changed[place[0]] if len(place) > 1 else changed
    part[place[-1]] = wrong
    if isinstance(changed["specification"], dict):
        changed["specification_hash"] = specification_hash(changed["specification"])
    return {**changed, "manifest_hash": manifest_hash(changed)}


def test_a_field_of_the_manifest_that_is_of_another_type_is_told_in_a_line(home: Path, tmp_path: Path) -> None:
    manifest = json.loads((home / "run/manifest.json").read_bytes())
    every = list(product(places_in(manifest), (None, 5, "x", [], {}, [1], {"a": 1}), ("score", "verify", "export")))
    named = [(("specification", "max_tokens"), 5, "report"), (("dataset", "labels"), 5, "score")]
    place = copied(home, tmp_path)
    for field, wrong, verb in named + (every if IS_LONG else every[::29]):
        (place / "run/manifest.json").write_text(json.dumps(forged(manifest, field, wrong)))
        done = ended(place, verb)
        if (field, wrong, verb) in named:
            assert done.code == 5 and "its manifest.json is none of ours (" in done.err.splitlines()[-1], done
        (place / "out.parquet").unlink(missing_ok=True)


ROOMS = ("engine/runs", "bench/evaluation", "interfaces/batch", "interfaces/export", "bench/load/report")
OTHER_OPENINGS = re.compile(r"\.read_bytes\(\)|\.read_text\(|\.open\(\"|\bos\.open\(|\.write_(bytes|text)\(|\bopen\(")
# Files that a person names, which may be links, and those of this package.
NAMED_BY_PEOPLE = (
    *("bench/evaluation/data/data_rows.py", "interfaces/batch/input.py", "interfaces/batch/pipe.py"),
    *("interfaces/export/parquet.py", "interfaces/batch/output.py", "bench/evaluation/page/item_section.py"),
)


def test_files_of_a_run_are_opened_in_one_way_only() -> None:
    every = [path for room in ROOMS for path in sorted((TREE / room).rglob("*.py"))]
    others = [
        f"{path.relative_to(TREE)}:{number}: {line.strip()}"
        for path in every
        if str(path.relative_to(TREE)) not in NAMED_BY_PEOPLE
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if OTHER_OPENINGS.search(line)
    ]
    assert others == []
