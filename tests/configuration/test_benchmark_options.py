"""Every benchmark's options reach the command line by one door: what is shared, whose a flag is, what is kept."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Annotated, Literal

import pytest
from msgspec import Struct

from millstream.bench.evaluation.door.declarations import declarations
from millstream.configuration.benchmark_options import (
    MAX_TOKENS,
    MODEL,
    TAKEN,
    TEMPERATURE,
    Declaration,
    SharedOptions,
    add_benchmarks,
    add_readings,
    foreign_to,
    given_to,
)
from millstream.configuration.declared_options import Option
from millstream.configuration.errors import UsageError
from millstream.configuration.values import WholeNumber
from millstream.interfaces.cli.verbs import plan, report, score


class Walks(Struct, frozen=True):
    model: Annotated[tuple[str, ...], MODEL]
    steps: Annotated[int, Option(WholeNumber("steps", 1, 9), "N", "steps of a walk")] = 3
    pace: Annotated[Literal["slow", "fast"], Option(help="how fast")] = "slow"
    temperature: Annotated[tuple[float, ...], TEMPERATURE.by_default("0")] = ()
    max_tokens: Annotated[int | None, MAX_TOKENS.by_default("not sent")] = None


class Unread(Struct, frozen=True):
    unclear: Literal["carry", "drop"] = "carry"
    pace: Literal["slow", "fast"] | None = None
    rounding: Annotated[Literal["up", "down"], Option(verbs=("report",), help="of tables")] = "up"


class Runs(Struct, frozen=True):
    model: Annotated[tuple[str, ...], MODEL]
    coach: str
    temperature: Annotated[tuple[float, ...], TEMPERATURE.by_default("not sent")] = ()
    max_tokens: Annotated[int | None, MAX_TOKENS.by_default("not sent")] = None
    steps: Annotated[Literal["few", "many"], Option(help="steps of a run")] = "few"


class Sits(SharedOptions, frozen=True):
    pass


class Unsaid(Struct, frozen=True):
    pass


WALKS = Declaration("walks", "Walks", Walks, Unread)
RUNS = Declaration("runs", "Runs", Runs, Unsaid)
KNOWN = {"walks": WALKS, "runs": RUNS}


def parser_of(named: str | None, known: dict[str, Declaration] = KNOWN) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_benchmarks(parser, known, named)
    return parser


def test_the_help_tells_what_is_shared_and_what_is_whose() -> None:
    assert "of both benchmarks:" in parser_of(None).format_help()
    told = parser_of(None, {**KNOWN, "sits": Declaration("sits", "Sits", Sits, Unsaid)}).format_help()
    shared, rest = told[told.index("of every benchmark:") :].split("walks and runs:")
    assert "--model" in shared
    assert "(default: walks: 0; runs: not sent; sits: not sent)" in " ".join(shared.split())
    assert rest.index("--steps") < rest.index("walks alone:") < rest.index("--pace")
    assert rest.index("walks alone: how its scores are read (no answer depends on it):") < rest.index("--unclear")
    assert rest.index("runs alone:") < rest.index("--coach")
    assert "--rounding" not in told


def test_what_benchmarks_explain_differently_is_told_of_each() -> None:
    told = " ".join(parser_of(None).format_help().split())
    assert "--steps N walks: steps of a walk; runs: steps of a run" in told
    named = " ".join(parser_of("runs").format_help().split())
    assert (
        "--steps few|many steps of a run" in named
        and "ask at each of these; none: send none (default: not sent)" in named
    )


def test_with_one_named_the_help_leaves_out_what_is_not_its() -> None:
    told = parser_of("runs").format_help()
    assert "--coach" in told and "steps of a run" in told
    assert "--pace" not in told and "--unclear" not in told and "steps of a walk" not in told


@pytest.mark.parametrize(("named", "value", "wrong"), [("walks", "9", "few"), ("runs", "few", "9")])
def test_a_flag_that_two_declare_differently_is_read_as_the_named_one_has_it(
    named: str, value: str, wrong: str
) -> None:
    parsed = parser_of(named).parse_args(["--model", "a/b", "--steps", value])
    assert str(given_to(parsed, KNOWN, "run")["steps"]) == value
    with pytest.raises(argparse.ArgumentError, match="--steps"):
        parser_of(named).parse_args(["--steps", wrong])
    assert parser_of(None).parse_args(["--steps", value]).steps in (9, "few")


def test_an_option_of_another_benchmark_has_its_owner() -> None:
    assert foreign_to("runs", ("model", "steps", "pace"), KNOWN, "run") == ("--pace", WALKS)
    assert foreign_to("walks", ("model", "steps", "pace", "unclear"), KNOWN, "run") is None
    assert foreign_to("runs", ("unclear",), KNOWN, "score") == ("--unclear", WALKS)


def test_a_run_has_the_options_and_the_readings_that_were_given() -> None:
    run = WALKS.made_of({"model": ["a/b", "a/b"], "pace": "fast", "unclear": "drop"}, Path())
    assert run.options == Walks(("a/b",), pace="fast")
    assert run.readings == Unread(unclear="drop")
    kept = WALKS.kept_of(run)
    assert kept == {
        "model": ("a/b",),
        "steps": 3,
        "pace": "fast",
        "temperature": (),
        "max_tokens": None,
        "unclear": "drop",
    }
    assert WALKS.read_kept({**kept, "model": ["a/b"], "of_a_later_version": 1}) == run
    with pytest.raises(UsageError, match=r"^--coach: expected a text, got none$"):
        RUNS.made_of({"model": ["a/b"]}, Path())


def test_readings_of_a_verb_are_those_that_it_takes() -> None:
    told = {}
    for verb in ("score", "report"):
        parser = argparse.ArgumentParser()
        add_readings(parser, KNOWN, verb)
        told[verb] = parser.format_help()
    assert "of Walks's records:" in told["score"] and "--pace" in told["score"]
    assert "--rounding" in told["report"] and "--rounding" not in told["score"]


class Greedy(SharedOptions, frozen=True):
    max_cost: float = 1.0


class Modelless(Struct, frozen=True):
    steps: int = 3


def test_options_without_a_model_are_refused() -> None:
    with pytest.raises(
        UsageError, match=r"^benchmark bare: its options have no field model and temperature and max_tokens: extend"
    ):
        Declaration("bare", "Bare", Modelless, Unsaid).taken_by("run")


class Open(Struct, frozen=True):
    rounding: str


def test_a_reading_needs_a_default() -> None:
    with pytest.raises(UsageError, match="its reading rounding has no default"):
        Declaration("open", "Open", Sits, Open).taken_by("score")


class Worded(SharedOptions, frozen=True):
    mode_: str = ""


def test_an_option_that_the_verb_has_itself_is_refused() -> None:
    with pytest.raises(UsageError, match="benchmark worded: run has a --mode of its own: rename"):
        parser_of("worded", {"worded": Declaration("worded", "Worded", Worded, Unsaid)})
    greedy = Declaration("greedy", "Greedy", Greedy, Unsaid)
    with pytest.raises(UsageError, match="benchmark greedy: run has a --max-cost of its own: rename"):
        parser_of("greedy", {"greedy": greedy})
    for verb in (plan, score, report):
        parser = argparse.ArgumentParser(prog="millstream run", description="")
        verb.add_arguments(parser)
        own = {option.name for each in declarations().values() for option in each.taken_by("run")}
        read = {name for each in declarations().values() for name in each.readings.__struct_fields__}
        assert {action.dest for action in parser._actions} - own - read <= TAKEN
