"""A struct's fields are all that flags, run-file keys, help and manifests need."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta, Struct

from millstream.configuration.declared_options import (
    Heading,
    Option,
    Positional,
    add_flags,
    add_options,
    declared,
    given_in,
    kept_of,
    made_from,
    made_of,
    read_kept,
)
from millstream.configuration.errors import UsageError
from millstream.configuration.values import FilePath, ModelName, Number, ValueKind, WholeNumber, read


class Talks(Struct, frozen=True):
    model: Annotated[tuple[str, ...], Option(ModelName(), "PROVIDER/MODEL", "who is asked")]
    judge: Annotated[str, Option(ModelName(), "PROVIDER/MODEL", "who judges")]
    temperature: Annotated[tuple[float, ...], Option(Number("a temperature", 0, 100), "T", "at each")] = ()
    dataset: Annotated[str | None, Option(FilePath("a path"), "PATH", "a data set")] = None
    old_pages: Annotated[Literal["drop", "keep"], Option(help="keep 100% of them")] = "drop"
    turns: Annotated[int, Option(WholeNumber("turns", 1, 10_000), "N", "turns of a talk (default: 15)")] = 15
    shuffled: Annotated[bool, Option(help="in another order")] = False
    percent: Annotated[Literal["90", "95"], Option(verbs=("report",), help="of tables")] = "90"
    host: Annotated[tuple[str, ...], Option(help="a host", is_repeated=True)] = ()


class Plain(Struct, frozen=True):
    count: Annotated[int, Meta(ge=1, lt=10, description="how many")] = 3
    share: Annotated[float, Meta(gt=0, le=1)] = 0.5
    prompt: str = ""
    style: Annotated[Literal["short", "long"], Meta(description="how it answers")] = "short"
    folder: Path | None = None
    names: tuple[str, ...] = ("a", "b")
    strict: bool = True
    seed: int | None = None


def parsed(struct: type[Struct], *words: str) -> dict[str, Any]:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_flags(parser.add_argument_group("of a test"), declared(struct))
    return given_in(parser.parse_args(words), struct.__struct_fields__)


class Walk(Struct, frozen=True):
    who: Annotated[tuple[str, ...], Positional(ModelName(), "PROVIDER/MODEL", "who walks")]
    hours: Annotated[int | None, Heading("how far"), Option(WholeNumber("hours"), one_of="the length")] = None
    miles: Annotated[int | None, Option(WholeNumber("miles"), one_of="the length")] = None
    from_: Annotated[str | None, Option(beside=("miles",), barred={"hours": "a clock has no place"})] = None
    pauses: Annotated[int, Option(WholeNumber("pauses"), beside=("hours",))] = 0
    long: Annotated[bool, Option(help="long pauses", beside=("pauses",))] = False


def walk(*words: str) -> Walk:
    parser = argparse.ArgumentParser()
    add_options(parser, Walk)
    return made_from(Walk, parser.parse_args(["a/b", *words]))


def test_a_verbs_options_have_places_flags_and_headings() -> None:
    parser = argparse.ArgumentParser()
    add_options(parser, Walk)
    told = parser.format_help()
    places = [told.index(text) for text in ("PROVIDER/MODEL", "how far:", "  --hours HOURS", "  --from FROM")]
    assert places == sorted(places)
    assert walk("c/d", "--miles", "3", "--from", "x") == Walk(("a/b", "c/d"), miles=3, from_="x")
    assert walk("--pauses", "2", "--long") == Walk(("a/b",), pauses=2, long=True)  # the first of the lengths holds


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--hours", "1", "--miles", "2"), "expected one of --hours, --miles as the length, got --hours and --miles"),
        (("--from", "x"), "--from: expected --miles beside it, got none"),
        (("--long",), "--long: expected --pauses beside it, got none"),
        (("--from", "x", "--hours", "1"), "--from: expected none beside --hours, got one: a clock has no place"),
        (("--pauses", "1", "--miles", "1"), "--pauses: expected --hours beside it, got --miles: leave one out"),
    ],
)
def test_options_that_exclude_each_other_are_refused(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(UsageError) as error:
        walk(*words)
    assert str(error.value).startswith(said)


WHO = ("--model", "a/x", "b/y", "--judge", "c/z")


def test_flags_read_as_the_fields_say() -> None:
    found = parsed(Talks, *WHO, "--model", "a/x", "--temperature", "0", "1", "--turns", "4", "--shuffled")
    assert found == {
        "model": ["a/x", "b/y", "a/x"],
        "judge": "c/z",
        "temperature": [0.0, 1.0],
        "turns": 4,
        "shuffled": True,
    }
    talks = made_of(Talks, found, Path())
    assert talks == Talks(("a/x", "b/y"), "c/z", (0.0, 1.0), turns=4, shuffled=True)


@pytest.mark.parametrize(
    ("struct", "words", "said"),
    [
        (Talks, ("--turns", "0"), 'expected a whole number of turns, 1 to 10,000, got "0"'),
        (Talks, ("--old-pages", "burn"), 'expected one of drop, keep, got "burn"'),
        (Talks, ("--judge", "x"), "expected a model as provider/model"),
        (Plain, ("--count", "10"), 'expected a whole number of count, 1 to 9, got "10"'),
        (Plain, ("--share", "1.5"), 'expected a number (share), 0 to 1, got "1.5"'),
        (Plain, ("--style", "odd"), 'expected one of short, long, got "odd"'),
    ],
)
def test_a_value_of_another_kind_is_refused(struct: type[Struct], words: tuple[str, ...], said: str) -> None:
    with pytest.raises(argparse.ArgumentError) as error:
        parsed(struct, *words)
    assert said in str(error.value)


def test_a_repeated_flag_takes_one_value_each_time() -> None:
    assert parsed(Talks, *WHO, "--host", "a", "--host", "b")["host"] == ["a", "b"]
    parser = argparse.ArgumentParser()
    add_flags(parser, declared(Talks))
    assert parser.parse_known_args(["--host", "a", "b"])[1] == ["b"]


def test_plain_annotations_have_kinds_of_their_own() -> None:
    found = parsed(Plain, "--count", "9", "--prompt", "", "--names", "x", "y", "x", "--no-strict", "--folder", "d")
    plain = made_of(Plain, found, Path("/base"))
    assert plain == Plain(9, prompt="", names=("x", "y"), strict=False, folder=Path("/base/d"))


def test_the_help_of_a_plain_annotation_has_its_words_and_its_default() -> None:
    told = {option.name: option.help for option in declared(Plain)}
    assert told["count"] == "how many (default: 3)"
    assert told["style"] == "how it answers: short, long (default: short)"
    assert told["names"] == "a text (default: a b)"
    assert told["seed"] == "a whole number of seed, -1000000000000 to 1,000,000,000,000"


def test_a_percent_sign_in_a_help_stands_for_itself() -> None:
    parser = argparse.ArgumentParser(prog="p")
    add_flags(parser.add_argument_group("of a test"), declared(Talks))
    assert "--old-pages drop|keep" in parser.format_help() and "keep 100% of them" in parser.format_help()


def test_keys_of_a_file_have_the_kinds_of_the_flags() -> None:
    kinds: dict[str, ValueKind[Any]] = {option.key: option.kind_in_file for option in declared(Talks)}
    assert list(kinds)[:5] == ["model", "judge", "temperature", "dataset", "old-pages"]
    assert read(kinds["model"], ["a/x", "b/y"]) == ("a/x", "b/y")
    assert read(kinds["model"], "a/x") == ("a/x",)
    assert read(kinds["shuffled"], True) is True
    with pytest.raises(ValueError, match="expected a whole number of turns"):
        read(kinds["turns"], 1.5)


def test_what_is_required_and_what_a_verb_takes_is_told() -> None:
    assert [option.flag for option in declared(Talks) if option.is_required] == ["--model", "--judge"]
    assert "percent" not in [option.name for option in declared(Talks, "score")]
    assert [option.name for option in declared(Talks, "report")][-2] == "percent"
    assert declared(Talks)[1].refusal_without == "--judge: expected at least one model as provider/model, got none"


def test_relative_paths_are_taken_from_the_base(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/base/me")
    given = {"model": ("a/x",), "judge": "c/z"}
    for path, expected in (("d/x", "/base/d/x"), ("/abs", "/abs"), ("~/x", "/base/me/x")):
        assert made_of(Talks, {**given, "dataset": path}, Path("/base")).dataset == expected
    with pytest.raises(UsageError, match="--dataset: expected a path, got one of an unknown user"):
        made_of(Talks, {**given, "dataset": "~nobody-of-that-name/x"}, Path("/base"))


def test_a_manifest_of_another_version_is_read() -> None:
    talks = Talks(("a/x",), "c/z", (0.0, 0.5), "/d", turns=3)
    kept = msgspec.json.decode(msgspec.json.encode(kept_of(talks)))
    assert list(kept) == list(Talks.__struct_fields__)
    assert read_kept(Talks, kept) == talks
    del kept["old_pages"]
    assert read_kept(Talks, {**kept, "of_a_later_version": 1}) == talks
    for wrong in ({"judge": "c/z"}, {**kept, "turns": "many"}, {**kept, "old_pages": "burn"}, 7):
        with pytest.raises(TypeError):
            read_kept(Talks, wrong)  # type: ignore[arg-type]  # as damaged manifests have it


def test_a_path_stands_in_a_manifest_as_text() -> None:
    plain = Plain(folder=Path("/d"))
    assert kept_of(plain)["folder"] == "/d"
    assert read_kept(Plain, kept_of(plain)) == plain


class Checked(Struct, frozen=True):
    low: int = 0
    high: int = 10

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError(f"low ({self.low}) must be at most high ({self.high})")


def test_a_value_that_the_struct_itself_refuses_is_one_line() -> None:
    with pytest.raises(UsageError, match=r"^low \(11\) must be at most high \(10\)$"):
        made_of(Checked, {"low": 11}, Path())
    with pytest.raises(UsageError, match=r"^--share: expected `float` > 0\.0$"):
        made_of(Plain, {"share": 0.0}, Path())


class Unkind(Struct):
    table: dict[str, int]


def test_an_annotation_without_a_kind_is_named() -> None:
    with pytest.raises(UsageError, match=r"Unkind\.table: expected int, float, .*: annotate it with an Option"):
        declared(Unkind)
