"""Bytes become numbered lines, however they are cut; and numbers are kept by what they were counted under."""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.configuration.errors import UsageError
from millstream.engine.fault import LocalFault
from millstream.interfaces.batch.digests import Digests
from millstream.interfaces.batch.input import InputFile, InputLine, lines_of, lines_of_pipe


def split(pieces: list[bytes], most: int = 1 << 20) -> list[InputLine]:
    return list(lines_of(pieces, most))


def test_blank_lines_are_counted_and_passed_over() -> None:
    assert split([b"a\n\n  \r\nb\r\n\n"]) == [InputLine(1, b"a"), InputLine(4, b"b\r")]


def test_a_last_line_needs_no_newline() -> None:
    assert split([b"a\nb"]) == [InputLine(1, b"a"), InputLine(2, b"b")]
    assert split([b""]) == split([]) == []


def test_a_mark_before_the_file_is_no_part_of_its_first_line_and_none_anywhere_else() -> None:
    assert split([b"\xef\xbb", b"\xbfa\n\xef\xbb\xbfb\n"]) == [InputLine(1, b"a"), InputLine(2, b"\xef\xbb\xbfb")]


def test_a_line_that_is_too_long_is_told_and_not_kept() -> None:
    assert split([b"a\n" + b"x" * 11 + b"\nb\n"], most=10) == [
        InputLine(1, b"a"),
        InputLine(2, None),
        InputLine(3, b"b"),
    ]
    assert split([b"x" * 8, b"x" * 8, b"\n" + b"y" * 10 + b"\n" + b"z" * 99], most=10) == [
        InputLine(1, None),
        InputLine(2, b"y" * 10),
        InputLine(3, None),
    ]


@given(st.binary(max_size=60).map(lambda data: data.replace(b"\x00", b"\n")), st.integers(0, 2**32))
def test_where_pieces_end_makes_no_difference(data: bytes, seed: int) -> None:
    chance = random.Random(seed)
    cuts = sorted(chance.sample(range(len(data) + 1), min(len(data) + 1, 5)))
    pieces = [data[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    assert split(pieces, most=12) == split([data], most=12)


def test_a_file_is_known_by_its_bytes_and_read_twice_alike(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(b"a\n\nb\nc")

    async def lines(source: InputFile) -> list[InputLine]:
        return [line async for line in source.lines()]

    with InputFile(path) as source:
        survey = source.survey()
        assert (survey.requests, survey.last) == (3, 4)
        assert asyncio.run(lines(source)) == [InputLine(1, b"a"), InputLine(3, b"b"), InputLine(4, b"c")]
    path.write_bytes(b"a\n\nb\nd")
    with InputFile(path) as source:
        assert source.survey().digest != survey.digest


def test_a_file_that_changes_while_it_is_read_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(b"a\n")

    async def read(source: InputFile) -> None:
        async for _ in source.lines():
            with path.open("ab") as file:
                file.write(b"b\n")

    with InputFile(path) as source:
        source.survey()
        with pytest.raises(LocalFault, match="was changed while it was read"):
            asyncio.run(read(source))


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, said in (
        (tmp_path / "none", "No such file"),
        (tmp_path, "expected a"),
        (tmp_path / "pipe", "read as `-`"),
    ):
        with pytest.raises(UsageError, match=said):
            InputFile(path)


def test_lines_of_a_pipe_come_before_its_end_does() -> None:
    out, into = os.pipe()

    async def main() -> list[InputLine]:
        lines, found = lines_of_pipe(out), []
        os.write(into, b"a\nb")
        found.append(await anext(lines))
        os.write(into, b"\n")
        found.append(await anext(lines))
        os.close(into)
        return found + [line async for line in lines]

    try:
        assert asyncio.run(asyncio.wait_for(main(), 20)) == [InputLine(1, b"a"), InputLine(2, b"b")]
    finally:
        os.close(out)


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(1, 5))))
def test_amounts_add_up_under_each_text_as_in_a_dictionary(added: list[tuple[int, int]]) -> None:
    digests, true = Digests(), dict[int, int]()
    for text, count in added:
        assert digests.add(str(text).encode(), count) == true.get(text, 0)
        true[text] = true.get(text, 0) + count


def test_a_text_keeps_the_number_that_it_was_first_noted_with_through_all_growing() -> None:
    digests = Digests()
    assert [digests.first(b"%d" % n, n + 1) for n in range(20_000)] == [0] * 20_000
    assert [digests.first(b"%d" % n, 7) for n in range(20_000)] == list(range(1, 20_001))
