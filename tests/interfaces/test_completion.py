"""`millstream completion`: the words that a shell offers, by the installed verbs and options."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from command_line import environment, run_command

from millstream.interfaces.cli.command import VERBS
from millstream.interfaces.cli.verbs.completion import offered


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], [*VERBS, "--help", "--version"]),
        ([""], [*VERBS, "--help", "--version"]),
        (["re"], ["resume", "retry", "rescore", "report", "review"]),
        (["cache", ""], ["stats", "why", "prune", "export", "import"]),
        (["completion", ""], ["bash", "zsh", "fish"]),
        (["sim", "--rule", ""], ["fixed", "sliding", "bucket"]),
        (["review", "DIR", "--s"], ["--sample", "--seed"]),
        (["cache", "why", "--te"], ["--temperature"]),
        (["quota", "--mo"], []),
        (["nothing", ""], []),
    ],
)
def test_an_unfinished_command_is_offered_what_can_follow(words: list[str], expected: list[str]) -> None:
    assert offered(words) == expected


@pytest.mark.needs_benchmark("millstone", "chameleon")
def test_benchmarks_their_options_and_the_values_of_these_are_offered() -> None:
    assert {"millstone", "chameleon"} <= set(offered(["run", ""]))
    assert offered(["run", "millstone", "--sta"]) == ["--stance"]
    assert offered(["run", "millstone", "--stance", ""]) == ["paper", "careful"]
    # The options of another benchmark are left out, as they are from the help.
    assert offered(["run", "millstone", "--judge"]) == []
    assert offered(["data", "millstone", "--re"]) == ["--rephrase"]


@pytest.mark.process
def test_bash_completes_by_the_script(tmp_path: Path) -> None:
    program = tmp_path / "millstream"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m millstream "$@"\n')
    program.chmod(0o755)
    typed = """
        eval "$(millstream completion bash)"
        COMP_WORDS=(millstream cache s); COMP_CWORD=2; _millstream; echo "${COMPREPLY[@]}"
        COMP_WORDS=(millstream sim --rule ""); COMP_CWORD=3; _millstream; echo "${COMPREPLY[@]}"
        complete -p millstream
    """
    variables = environment(tmp_path)
    variables["PATH"] = f"{tmp_path}:{variables['PATH']}"
    done = subprocess.run(["bash", "-c", typed], env=variables, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == [
        "stats",
        "fixed sliding bucket",
        "complete -o default -F _millstream millstream",
    ]
    assert done.stderr == ""


def test_each_shell_has_a_script_and_another_is_refused_in_one_line(tmp_path: Path) -> None:
    for shell in ("bash", "zsh", "fish"):
        done = run_command(tmp_path, "completion", shell)
        assert done.code == 0 and "millstream completion words" in done.out
    done = run_command(tmp_path, "completion", "tcsh")
    assert done.code == 2 and "bash" in done.err and done.err.count("\n") == 1
