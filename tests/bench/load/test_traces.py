"""Traces of any usual shape are read as seconds from their first call on; what is none is told by its line."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.bench.load.arrivals import Replay
from millstream.bench.load.traces import TraceExcerpt, read_trace
from millstream.configuration.errors import UsageError


def written(folder: Path, content: str | bytes) -> Path:
    file = folder / "trace"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def since_first(folder: Path, content: str | bytes, part: TraceExcerpt | None = None) -> list[float]:
    stamps = read_trace(written(folder, content), part or TraceExcerpt()).stamps
    return [round(stamp - stamps[0], 6) for stamp in stamps]


SHAPES: dict[str, tuple[str, str]] = {
    "plain numbers": ("5\n5.5\n\n7\n", "seconds (if they are milliseconds, add --speed 1000)"),
    "a header and numbers": ("arrived\n5\n5.5\n7\n", "'arrived', read as seconds"),
    "a time among other columns": ("id,model,time,tokens\n9,a,5,1\n8,b,5.5,1\n7,c,7,1\n", "'time', read as seconds"),
    "no header": ("a,5,1\nb,5.5,2\nc,7,3\n", "'column 2', read as seconds"),
    "the first column that holds numbers": ("who,what\na,5\nb,5.5\nc,7\n", "'what', read as seconds"),
    "semicolons": ("x;Timestamp\na;5\nb;5.5\nc;7\n", "'Timestamp', read as seconds"),
    "tabs and an empty first cell": ("x\tts\n\t5\n\t5.5\n\t7\n", "'ts', read as seconds"),
    "its unit in its name": ("timestamp_ms\n5000\n5500\n7000\n", "'timestamp_ms', read as milliseconds"),
    "a unit in brackets": ("Arrival (us)\n5000000\n5500000\n7000000\n", "read as microseconds"),
    "seconds since 1970": ("1700000005\n1700000005.5\n1700000007\n", "read as seconds"),
    "milliseconds since 1970": ("1700000005000\n1700000005500\n1700000007000\n", "read as milliseconds"),
    "nanoseconds since 1970": (
        "1700000005000000000\n1700000005500000000\n1700000007000000000\n",
        "read as nanoseconds",
    ),
    "dates": (
        "2026-01-31T23:59:58Z\n2026-01-31T23:59:58.500+00:00\n2026-02-01 00:00:00\n",
        "3 time stamps, read as dates",
    ),
    "dates of two zones": (
        "when,n\n2026-03-01T12:00:00+01:00,1\n2026-03-01T11:00:00.5Z,2\n2026-03-01T13:00:02+02:00,3\n",
        "'when', read as dates",
    ),
    "JSON lines": ('{"ts": 5}\n{"ts": 5.5, "x": 1}\n{"ts": 7}\n', "'ts', read as seconds"),
    "JSON lines of dates": (
        '{"timestamp": "2026-01-01T00:00:05Z"}\n{"timestamp": "2026-01-01T00:00:05.5Z"}\n'
        '{"timestamp": "2026-01-01T00:00:07Z"}\n',
        "'timestamp', read as dates",
    ),
    "numbers in quotes": ('time,who\n"5","a, b"\n"5.5",c\n"7",d\n', "'time', read as seconds"),
    "Windows": ("\ufefftime\r\n5\r\n5.5\r\n7\r\n", "'time', read as seconds"),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_trace_is_read_whatever_its_shape(shape: str, tmp_path: Path) -> None:
    content, told = SHAPES[shape]
    trace = read_trace(written(tmp_path, content), TraceExcerpt())
    assert [round(stamp - trace.stamps[0], 6) for stamp in trace.stamps] == [0.0, 0.5, 2.0]
    assert told in trace.told


@pytest.mark.parametrize(
    ("stamps", "since"),
    [
        ((0, 10_535, 27_482), [0.0, 10.535, 27.482]),
        ((5, 45, 118, 185), [0.0, 40.0, 113.0, 180.0]),
        ((0.5, 10_535.5), [0.0, 10_535.0]),
    ],
)
def test_whole_numbers_that_lie_far_apart_are_milliseconds(
    stamps: tuple[float, ...], since: list[float], tmp_path: Path
) -> None:
    assert since_first(tmp_path, "\n".join(map(str, stamps))) == since


AZURE = (
    "TIMESTAMP,ContextTokens,GeneratedTokens\n"
    "2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n2023-11-16 18:15:51.2224670,879,55\n"
)
BURST_GPT = (
    "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    "5,,3.1,ChatGPT,472,18,490,Conversation log\n45,,2,ChatGPT,1087,230,1317,Conversation log\n"
    "118,x,4,GPT-4,417,0,417,API log\n"
)
MOONCAKE = (
    '{"timestamp": 0, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1]}\n'
    '{"timestamp": 0, "input_length": 7322, "output_length": 490, "hash_ids": [0, 14]}\n'
    '{"timestamp": 3052, "input_length": 2287, "output_length": 316, "hash_ids": [0]}\n'
)


@pytest.mark.parametrize(
    ("content", "stamps", "inputs", "outputs"),
    [
        (AZURE, [0.0, 4.314579, 4.541877], (374, 396, 879), (44, 109, 55)),
        (BURST_GPT, [0.0, 40.0, 113.0], (472, 1087, 417), (18, 230, 0)),
        (MOONCAKE, [0.0, 0.0, 3.052], (6758, 7322, 2287), (500, 490, 316)),
    ],
    ids=["Azure", "BurstGPT", "Mooncake"],
)
def test_public_traces_are_read_with_their_tokens(
    content: str, stamps: list[float], inputs: tuple[int, ...], outputs: tuple[int, ...], tmp_path: Path
) -> None:
    trace = read_trace(written(tmp_path, content), TraceExcerpt(inputs=True, outputs=True))
    assert [stamp - trace.stamps[0] for stamp in trace.stamps] == pytest.approx(stamps, abs=2e-6)
    assert (trace.inputs, trace.outputs, trace.has_tokens) == (inputs, outputs, True)
    plain = read_trace(written(tmp_path, content), TraceExcerpt())
    assert (plain.inputs, plain.outputs, plain.has_tokens) == ((), (), True)


def own(due: float, model: str = "sim/steady") -> str:
    return json.dumps({"model": model, "due": due, "begun": due, "ended": 9, "input_tokens": 5, "output_tokens": 6})


def test_a_tests_own_calls_are_replayed_in_the_order_in_which_they_were_due(tmp_path: Path) -> None:
    lines = "\n".join(map(own, (2_000.0, 0.25, 1_000.0)))
    trace = read_trace(written(tmp_path, lines + "\n"), TraceExcerpt(outputs=True))
    assert (trace.stamps, trace.outputs) == ((0.25, 1_000.0, 2_000.0), (6, 6, 6))
    # Where a kill tore the last line; in the middle it is damage.
    assert read_trace(written(tmp_path, lines + '\n{"model": "si'), TraceExcerpt()).stamps == (0.25, 1_000.0, 2_000.0)
    with pytest.raises(UsageError, match="line 4: expected a JSON object, got none"):
        read_trace(written(tmp_path, lines + '\n{"model": "si\n' + own(3.0)), TraceExcerpt())


def test_the_calls_of_several_models_are_no_trace_of_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"line 2: expected a call of sim/steady as before, got one of sim/open"):
        read_trace(written(tmp_path, own(1.0) + "\n" + own(2.0, "sim/open")), TraceExcerpt())


def test_of_a_long_trace_only_what_is_wanted_is_read(tmp_path: Path) -> None:
    lines = "\n".join(map(str, range(5_000))) + "\nnonsense\n"
    assert since_first(tmp_path, lines, TraceExcerpt(seconds=2.5)) == [0.0, 1.0, 2.0]
    assert since_first(tmp_path, lines, TraceExcerpt(calls=2)) == [0.0, 1.0]
    assert since_first(tmp_path, "\n".join(map(own, (5.0, 1.0, 2.0))), TraceExcerpt(calls=2)) == [0.0, 1.0]


def test_the_first_seconds_of_a_trace_are_so_long_though_they_end_in_silence(tmp_path: Path) -> None:
    path = written(tmp_path, "0\n0.5\n9\n")
    assert read_trace(path, TraceExcerpt(seconds=3.0)).lasts == 3.0
    # A trace that ends by itself, or with its calls, is as long as its stamps.
    assert (
        read_trace(path, TraceExcerpt(seconds=20.0)).lasts is None
        and read_trace(path, TraceExcerpt(calls=2)).lasts is None
    )
    assert Replay((0.0, 0.5), 2.0, 3.0).seconds == 1.5 and Replay((0.0, 0.5), 2.0).seconds == 0.25


def test_more_time_stamps_than_memory_should_hold_are_refused(tmp_path: Path) -> None:
    for lines in (map(str, range(11)), map(own, map(float, range(11)))):
        with pytest.raises(UsageError, match="expected at most 10 time stamps, got more: take a part of them"):
            read_trace(written(tmp_path, "\n".join(lines)), TraceExcerpt(most=10))
    assert len(since_first(tmp_path, "\n".join(map(str, range(10))), TraceExcerpt(most=10))) == 10


REFUSED: dict[str, tuple[str | bytes, str]] = {
    "nothing": ("", "expected a time stamp a line, got none"),
    "a header alone": ("time,tokens\n", "expected a time stamp a line, got none"),
    "words": ("one\ntwo\n", "line 2: expected a time stamp (a number or an ISO date), got none in one"),
    "a fall": ("1\n3\n2\n", "line 3: expected a time no earlier than the one before it, got one that is 1 s earlier"),
    "a hole": ("time\n1\n\n-\n", "line 4: expected a number in time, got -"),
    "a short row": ("a,time\nx,1\ny\n", "line 3: expected a number in time, got nothing"),
    "no number": ("1\nNaN\n", "line 2: expected a number, got NaN"),
    "no end": ('{"t": 1}\n{"t": 1e999}\n', "line 2: expected a number in t, got inf"),
    "a date among numbers": ("1\n2026-01-01\n", "line 2: expected a number, got 2026-01-01"),
    "a number among dates": ("2026-01-01\n7\n", "line 2: expected an ISO date, as in the line before, got 7"),
    "JSON without a time": ('{"x": "a"}\n', "line 1: expected a time stamp (a number or an ISO date), got none in x"),
    "JSON that is no object": ('{"t": 1}\n[2]\n', "line 2: expected a JSON object, got [2]"),
    "torn JSON": ('{"t": 1}\n{"t": \n', "line 2: expected a JSON object, got none"),
    "a JSON list": ("[1, 2]\n", "got a JSON list: write an object a line"),
    "a binary file": (b"\x00\x01\n", "line 1: expected text, got a binary file"),
    "another encoding": (b"1\n\xff\n", "expected UTF-8, got byte 0xff at offset 2"),
    "an open quote": ('time\n"1\n2\n', "expected CSV, got something else"),
    "an endless line": (b"1" * (1 << 20), "line 1: expected fewer than 1,048,576 bytes, got more"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_trace_is_refused_by_its_line(case: str, tmp_path: Path) -> None:
    content, said = REFUSED[case]
    with pytest.raises(UsageError) as refused:
        read_trace(written(tmp_path, content), TraceExcerpt())
    assert said in str(refused.value) and str(refused.value).startswith("--replay: ")


def test_tokens_that_a_trace_does_not_tell_are_refused_only_if_they_were_asked_for(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--prompt-tokens trace: .* such as input_tokens, got time: give a number"):
        read_trace(written(tmp_path, "time\n1\n"), TraceExcerpt(inputs=True))
    broken = "time,input_tokens,output_tokens\n1,5,6\n2,many,6\n"
    with pytest.raises(UsageError, match="line 3: expected a whole number of tokens in input_tokens"):
        read_trace(written(tmp_path, broken), TraceExcerpt(inputs=True))
    assert since_first(tmp_path, broken, TraceExcerpt(outputs=True)) == [0.0, 1.0]


def test_what_is_no_file_is_refused_unread(tmp_path: Path) -> None:
    for path in (tmp_path, Path("/dev/zero"), tmp_path / "none"):
        with pytest.raises(UsageError, match=r"--replay: .*: expected a (readable )?file"):
            read_trace(path, TraceExcerpt())


@settings(deadline=None)
@given(st.lists(st.floats(0, 1e7).map(lambda number: round(number, 3)), min_size=1, max_size=30).map(sorted))
def test_what_was_written_is_read_in_every_shape(tmp_path_factory: pytest.TempPathFactory, stamps: list[float]) -> None:
    folder = tmp_path_factory.mktemp("shapes")
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    expected = [stamp - stamps[0] for stamp in stamps]
    for content in (
        "time_s\n" + "\n".join(map(repr, stamps)),
        "".join(json.dumps({"timestamp_ms": 1000 * stamp}) + "\n" for stamp in stamps),
        "when\n" + "\n".join((begin + timedelta(seconds=stamp)).isoformat() for stamp in stamps),
    ):
        assert since_first(folder, content) == pytest.approx(expected, abs=2e-3)


@settings(deadline=None)
@given(st.lists(st.one_of(st.text(max_size=20), st.binary(max_size=20), st.floats().map(str)), max_size=8))
def test_no_content_makes_a_trace_end_in_anything_but_times_or_a_line(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[str | bytes]
) -> None:
    data = b"\n".join(each if isinstance(each, bytes) else each.encode() for each in pieces)
    try:
        trace = read_trace(written(tmp_path_factory.mktemp("fuzz"), data), TraceExcerpt(inputs=len(pieces) % 2 == 0))
    except UsageError:
        return
    assert trace.stamps and all(map(math.isfinite, trace.stamps)) and list(trace.stamps) == sorted(trace.stamps)


_CELLS = st.one_of(st.integers().map(str), st.floats().map(str), st.dates().map(str), st.text(max_size=5), st.just('"'))


@settings(deadline=None)
@given(st.lists(st.lists(_CELLS, max_size=4).map(",".join), max_size=8), st.sampled_from(["", "time,x\n", "{"]))
def test_no_table_makes_a_trace_end_in_anything_but_times_or_a_line(
    tmp_path_factory: pytest.TempPathFactory, rows: list[str], head: str
) -> None:
    try:
        trace = read_trace(written(tmp_path_factory.mktemp("fuzz"), head + "\n".join(rows)), TraceExcerpt())
    except UsageError:
        return
    assert trace.stamps and list(trace.stamps) == sorted(trace.stamps)
