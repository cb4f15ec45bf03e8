"""Help: examples that parse, verbs in groups, no option that does nothing, and hints at what was meant."""

from __future__ import annotations

import shlex

import pytest
from command_line import CommandLine

from millstream.interfaces.cli.command import GROUPS, VERBS, parser_of

EXAMPLES = [(verb, example) for verb in VERBS for example in parser_of(verb, ()).examples]


@pytest.mark.parametrize(("verb", "example"), EXAMPLES, ids=[example for _, example in EXAMPLES])
def test_every_example_is_a_command_of_its_verb(verb: str, example: str) -> None:
    first, *words = shlex.split(example)
    assert first == verb
    if "--help" not in words:
        parser = parser_of(verb, words)
        _, unknown = parser.parse_known_args(words)
        assert unknown == [] and parser.mistakes == []


@pytest.mark.parametrize("verb", VERBS)
def test_every_help_ends_with_one_to_three_examples(verb: str, cli: CommandLine) -> None:
    shown = cli(verb, "--help").out.rstrip("\n").partition("\nexamples:\n")[2].split("\n")
    assert 1 <= len(shown) <= 3 and all(line.startswith(f"  millstream {verb}") for line in shown)


def test_every_verb_is_listed_in_one_group(cli: CommandLine) -> None:
    shown = cli("--help").out
    for group, verbs in GROUPS.items():
        block = shown.partition(f"\n{group}:\n")[2].partition("\n\n")[0]
        assert tuple(line.split()[0] for line in block.split("\n")) == verbs
    assert len(set(VERBS)) == len(VERBS) == sum(map(len, GROUPS.values()))


def test_without_a_verb_the_first_commands_are_shown(cli: CommandLine) -> None:
    done = cli()
    assert done.code == 2 and "millstream demo " in done.out and done.out.count("\n") < 8


@pytest.mark.parametrize(
    ("verb", "hidden"),
    [
        ("plan", ("--sink", "--no-report", "--out")),
        ("load", ("--mode", "--patience")),
        ("probe", ("--mode",)),
        ("export", ("--parquet",)),
    ],
)
def test_options_that_do_nothing_are_not_shown(verb: str, hidden: tuple[str, ...], cli: CommandLine) -> None:
    shown = cli(verb, "--help").out.partition("examples:")[0].split()
    assert not [name for name in hidden if name in shown]


def test_a_long_usage_names_the_arguments_alone(cli: CommandLine) -> None:
    assert cli("load", "--help").out.startswith("usage: millstream load [option…] PROVIDER/MODEL…\n")
    assert cli("batch", "--help").out.startswith("usage: millstream batch [option…] IN OUT\n")
    assert cli("verify", "--help").out.startswith("usage: millstream verify [-h] [--json] DIR\n")


def test_help_and_version_have_the_usual_other_forms(cli: CommandLine) -> None:
    assert cli("help", "quota") == cli("quota", "--help")
    assert cli("-V") == cli("--version")
