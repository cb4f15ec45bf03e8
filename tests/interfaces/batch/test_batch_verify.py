"""`millstream verify` of a batch, and what verbs for runs say to one."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from batches import rows_of, write_mixed, write_sound
from command_line import CommandLine, Provider

LINES = 100


def batch(provider: Provider, *more: str) -> tuple[str, ...]:
    return ("batch", "in.jsonl", "out.jsonl", "--base-url", provider.base_url, "--cache", "c", "--no-progress", *more)


@pytest.mark.parametrize("apart", [(), ("--errors", "errors.jsonl")], ids=["together", "apart"])
def test_a_whole_batch_is_proven_by_its_output_or_the_folder_beside_it(
    cli: CommandLine, provider: Provider, tmp_path: Path, apart: tuple[str, ...]
) -> None:
    codes = write_mixed(tmp_path / "in.jsonl", LINES)
    assert cli(*batch(provider, *apart)).code == 3
    os.symlink("out.jsonl", tmp_path / "link")
    for where in ("out.jsonl", "out.jsonl.millstream", "link"):
        done = cli("verify", where, "--json")
        assert done.code == 0, done
        told = json.loads(done.out)
        assert (told["records"], told["failures"], told["pending"]) == (LINES - len(codes), len(codes), 0)


def cut_last(path: Path) -> None:
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def double_first(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data + data.splitlines(keepends=True)[0])


def change_digit(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"total_tokens":', b'"total_tokens":1', 1))


def change_note(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"attempts":1', b'"attempts":2', 1))


def change_manifest(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"repeats": "new"', b'"repeats": "same"', 1))


def add_foreign(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b'{"id": "batch_req_1"}\n')


@pytest.mark.parametrize(
    ("name", "harm", "said"),
    [
        ("out.jsonl", cut_last, "manifest.json: counts 12 answers and 0 failures; the rows are 11 and 0"),
        ("out.jsonl", double_first, "out.jsonl line 13: a second row for line"),
        ("out.jsonl", change_digit, "out.jsonl line 1: changed"),
        ("out.jsonl", add_foreign, "out.jsonl line 13: no row of this batch"),
        ("out.jsonl", Path.unlink, "out.jsonl: missing"),
        ("out.jsonl.millstream/records.jsonl", change_note, "records.jsonl line 1: damaged"),
        ("out.jsonl.millstream/manifest.json", change_manifest, "manifest.json: its hash is not the one noted"),
    ],
)
def test_whatever_is_wrong_is_named(
    cli: CommandLine, provider: Provider, tmp_path: Path, name: str, harm: Callable[[Path], None], said: str
) -> None:
    write_sound(tmp_path / "in.jsonl", 12)
    assert cli(*batch(provider)).code == 0
    harm(tmp_path / name)
    done = cli("verify", "out.jsonl.millstream")
    assert done.code == 5 and said in done.out, done


@pytest.mark.parametrize("verb", ["resume", "retry", "score", "report", "review"])
def test_verbs_for_runs_name_the_command_that_a_batch_has(
    cli: CommandLine, provider: Provider, tmp_path: Path, verb: str
) -> None:
    write_sound(tmp_path / "in.jsonl", 2)
    assert cli(*batch(provider)).code == 0
    before = rows_of(tmp_path / "out.jsonl")
    for where in ("out.jsonl", "out.jsonl.millstream"):
        done = cli(verb, where)
        assert done.code == 2 and done.err.count("\n") == 1, done
        assert "got a batch: `millstream batch IN " in done.err and "goes on with it" in done.err
    assert rows_of(tmp_path / "out.jsonl") == before and len(list(tmp_path.iterdir())) == 4
