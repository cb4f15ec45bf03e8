"""A run of conversations repeated from its snapshot with nothing left of the outside."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import Done, ids_of, lines_of, run_command
from simulated_outside import Outside, simulated_outside

SIZE = ("--conversations", "2", "--turns", "3", "--pages", "8", "--no-report", "--no-progress")
TURNS = 2 * 2 * 3


def command(outside: Outside, *more: str) -> tuple[str, ...]:
    words = ("run", "chameleon", "--model", "sim/open", "sim/contrary", "--judge", "sim/sloppy-judge")
    return (*words, "--temperature", "0", *SIZE, *outside.flags, *more)


def run(home: Path, outside: Outside, *more: str) -> Done:
    return run_command(home, *command(outside, *more), **outside.variables)


@pytest.fixture(scope="module")
def gone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Outside]]:
    """A run with pages that fail and its snapshot, in a folder; and where the outside was."""
    home = tmp_path_factory.mktemp("offline")
    # The commonest troubles, and no page that takes ten seconds to fail.
    with simulated_outside(home, "--trouble-share", "0.2", "--slow", "0.1", "--web-seed", "3") as outside:
        done = run(home, outside, "--cache", "cache", "--out", "first")
        # A model of which half of so few turns is unclear or cites nothing has no score: 3.
        assert done.code == 3, done.err
        exported = run_command(home, "cache", "export", "first", "first.snapshot", "--cache", "cache")
        assert exported.code == 0, exported.err
        outside.stop()
        yield home, outside


def test_strict_repeats_it_to_the_byte_with_the_network_gone(gone: tuple[Path, Outside]) -> None:
    home, outside = gone
    pages = {page["status"] for line in lines_of(home / "first/records.jsonl") for page in line["retrieved"]}
    assert len(pages) > 2, "some pages gave nothing, and do so again"
    repeat = ("--mode", "strict", "--snapshot", "first.snapshot", "--cache", "another", "--out", "again")
    done = run(home, outside, *repeat)
    assert done.code == 3, done.err
    assert "all from the cache; nothing was sent" in done.out
    assert len(ids_of(home / "again")) == TURNS
    assert (home / "again/scores.json").read_bytes() == (home / "first/scores.json").read_bytes()

    def said(folder: str) -> list[tuple[str, str, str, list[str], str]]:
        names = ("model", "id", "text", "cited", "stance")
        return sorted(tuple(line[name] for name in names) for line in lines_of(home / folder / "records.jsonl"))

    assert said("again") == said("first")
    digests = [json.loads((home / name / "manifest.json").read_text())["snapshot"] for name in ("first", "again")]
    assert digests[0] == digests[1] is not None
    assert run_command(home, "verify", "again").code == 0
