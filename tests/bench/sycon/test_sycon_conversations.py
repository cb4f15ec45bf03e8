"""Conversations of SYCON-Bench: five turns in order with the model's own answers, each judged by itself; a judge that
fails, refuses a temperature or says nothing; kills and retries."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import orjson
import pytest
from virtual_time import run_virtually

from millstream.bench.evaluation.door.item_set import ItemSet
from millstream.bench.evaluation.door.judges import Judges
from millstream.bench.evaluation.door.prepared_run import PreparedRun
from millstream.bench.evaluation.door.watch import UNSEEN
from millstream.bench.evaluation.running.journals import decoded, read_done
from millstream.bench.evaluation.running.sending import send_steps_of
from millstream.bench.sycon.benchmark import Sycon
from millstream.bench.sycon.options import Options, chosen
from millstream.bench.sycon.records import Record, turn_of
from millstream.configuration.declared_options import made_of
from millstream.configuration.errors import UsageError
from millstream.engine.call import Call, Failure, Outcome, Reply, Usage
from millstream.engine.fault import Stop
from millstream.engine.pairs import Pair
from millstream.engine.runs.run_folder import RunFolder
from millstream.metrics.sycon.scores import scores
from millstream.wiring import Settings

MODEL, OTHER, JUDGE = "lab/m", "lab/other", "lab/judge"
PAIRS = (Pair(MODEL, 0.5), Pair(OTHER, None))
Said = Reply | Failure | str
Answer = Callable[[Call], Said]
Line = dict[str, Any]


def last(call: Call) -> str:
    assert not isinstance(call.input, str)
    return call.input[-1].words


def turn_in(call: Call) -> int:
    """Which turn a call to the model under test is of."""
    return 1 + sum(message.role == "assistant" for message in call.messages())


def says(judged: Said | Callable[[Call], Said] = "aligned") -> Answer:
    """Models answer with their turn; the judge as it is told."""

    def answer(call: Call) -> Said:
        if call.model == JUDGE:
            return judged(call) if callable(judged) else judged
        return f"{call.model} says {turn_in(call)}"

    return answer


class World:
    """Answers calls after some time, and keeps what was answered, as a cache does."""

    def __init__(self, answer: Answer, kept: dict[bytes, Reply]) -> None:
        self.answer = answer
        self.kept = kept
        self.sent: list[Call] = []

    async def ask(self, call: Call) -> Outcome:
        key = repr((call.model, call.input, call.temperature, call.max_tokens, call.trial)).encode()
        if key in self.kept:
            return Outcome(call, self.kept[key], key=key.hex(), cached=True, cost=0.0)
        self.sent.append(call)
        await asyncio.sleep(1.0)
        said = self.answer(call)
        if isinstance(said, Failure):
            return Outcome(call, failure=said, attempts=1)
        reply = Reply(said, Usage(10, 1), "stop") if isinstance(said, str) else said
        self.kept[key] = reply
        return Outcome(call, reply, key=key.hex(), attempts=1, cost=1.0, latency_ms=5.0)

    def halt(self, *reason: str) -> None:
        raise AssertionError(reason)


class Run:
    """One run in a folder, in as many parts as wanted."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.folder = folder
        self.options = Options(
            model=(MODEL, OTHER), judge=JUDGE, **{"setting": ("debate",), "limit": 2, "judge_max_tokens": 10, **options}
        )
        self.kept: dict[bytes, Reply] = {}
        self.sent: list[Call] = []

    def live(self, answer: Answer, *, seconds: float | None = None, pairs: tuple[Pair, ...] = PAIRS) -> bool:
        """Whether the part came to its end."""
        world, benchmark = World(answer, self.kept), Sycon()

        async def main() -> list[Stop] | None:
            with RunFolder(self.folder / "run", {}) as folder:
                folder.write_manifest()
                items = ItemSet(lambda: benchmark.items(self.options), title=benchmark.title)
                run = PreparedRun(
                    benchmark=benchmark,
                    out=self.folder,
                    settings=Settings(),
                    items=items,
                    limits=dict.fromkeys(pairs),
                    options=self.options,
                )
                try:
                    async with asyncio.timeout(seconds):
                        return await send_steps_of(run, world, folder, read_done(folder), UNSEEN, 3, Judges())  # type: ignore[arg-type]
                except TimeoutError:
                    return None

        stops = run_virtually(main())
        self.sent += world.sent
        return stops == []

    def lines(self, name: str = "records") -> list[Line]:
        path = self.folder / "run" / f"{name}.jsonl"
        return [orjson.loads(line) for line in path.read_bytes().splitlines()]

    def scores(self) -> dict[str, Any]:
        path = self.folder / "run" / "records.jsonl"
        found = scores(turn_of(record) for record in decoded(path.read_bytes().splitlines(), Record, str(path)))
        return found


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def test_a_conversation_has_five_lines_in_order_and_history_holds_the_models_own_answers(run: Run) -> None:
    assert run.live(says())
    for pair in PAIRS:
        own = [line for line in run.lines() if line["model"] == pair.model]
        for row in (1, 2):
            lines = [line for line in own if line["row"] == row]
            assert [line["id"] for line in lines] == [f"debate/base/{row}/{turn}" for turn in range(1, 6)]
            assert [line["text"] for line in lines] == [f"{pair.model} says {turn}" for turn in range(1, 6)]
    fifth = next(call for call in run.sent if call.model == MODEL and turn_in(call) == 5)
    messages = list(fifth.messages())
    assert [message.role for message in messages] == ["system", *["user", "assistant"] * 4, "user"]
    assert [message.words for message in messages[2::2]] == [f"{MODEL} says {turn}" for turn in range(1, 5)]
    assert (fifth.temperature, fifth.max_tokens) == (0.5, None)
    line = run.lines()[0]
    assert (line["held"], line["judgement"], line["judge"], line["judge_temperature"]) == (True, "aligned", JUDGE, 0.0)
    assert (line["setting"], line["strategy"], line["group"]) == ("debate", "base", "debate/base")
    assert line["question"].startswith("What is your opinion on the following question?\n\nQuestion: Is hydro")
    assert line["cost"] == 2.0 and line["cost_judge"] == 1.0


def test_the_judge_reads_each_answer_by_itself_at_temperature_0_with_ten_tokens(run: Run) -> None:
    run.live(says())
    judged = [call for call in run.sent if call.model == JUDGE]
    assert {(call.temperature, call.max_tokens, len(list(call.messages()))) for call in judged} == {(0.0, 10, 2)}
    for call in judged:
        assert last(call).count(" says ") == 1


def test_the_next_turn_is_asked_while_this_one_is_judged(tmp_path: Path) -> None:
    """Five answers and five judgements of a second each would take 10 s one after the other."""
    assert Run(tmp_path, limit=1).live(says(), seconds=6.5, pairs=PAIRS[:1])


def test_figures_come_from_what_the_judge_said(run: Run) -> None:
    def judged(call: Call) -> str:
        return (
            "against"
            if f"{MODEL} says 3" in last(call)
            else "Neutral."
            if f"{OTHER} says 1" in last(call)
            else "aligned"
        )

    run.live(says(judged))
    models = run.scores()["models"]
    one, other = models[MODEL]["debate"]["base"], models[OTHER]["debate"]["base"]
    assert (one["turn_of_flip"], one["number_of_flips"], one["held_by_turn"]) == (2, 2, [1, 1, 0, 1, 1])
    assert (other["turn_of_flip"], other["number_of_flips"], other["held_by_turn"]) == (0, 1, [0, 1, 1, 1, 1])


def failing(kind: Said, at: str = f"{MODEL} says 3") -> Answer:
    return says(lambda call: kind if at in last(call) else "aligned")


@pytest.mark.parametrize(
    ("said", "status", "error"),
    [
        (Failure("timeout", "no answer in 60 s"), "timeout", "no answer in 60 s"),
        ("  ", "empty", f"the judge {JUDGE} gave an answer without a word"),
        (Reply("", finish_reason="length"), "empty", "cut at 10 tokens: raise --judge-max-tokens"),
        (Reply("I can't.", refused=True), "empty", f"the judge {JUDGE} refused to judge"),
    ],
)
def test_a_judge_that_fails_is_a_failure_and_its_item_has_no_figure(
    run: Run, said: Said, status: str, error: str
) -> None:
    run.live(failing(said), pairs=PAIRS[:1])
    failures = run.lines("failures")
    assert [(line["id"], line["status"], line["role"]) for line in failures] == [
        (f"debate/base/{row}/3", status, "judge") for row in (1, 2)
    ]
    assert error in failures[0]["error"]
    assert len(run.lines()) == 4
    [sentence] = run.scores()["unmeasured"]
    assert "no item has all 5 turns judged" in sentence


@pytest.mark.parametrize("said", [Failure("timeout", "no answer in 60 s"), "", Reply("No.", refused=True)])
def test_as_in_the_authors_scripts_what_was_not_judged_counts_as_not_held(tmp_path: Path, said: Said) -> None:
    run = Run(tmp_path, unjudged="not-held")
    run.live(failing(said), pairs=PAIRS[:1])
    assert run.lines("failures") == []
    third = next(line for line in run.lines() if line["turn"] == 3)
    assert (third["held"], third["judgement"]) == (False, None)
    entry = run.scores()["models"][MODEL]["debate"]["base"]
    assert (entry["turn_of_flip"], entry["number_of_flips"], entry["items"]) == (2, 2, 2)
    [remark] = run.scores()["remarks"]
    assert "2 turns of 10 could not be judged and count as not held" in remark


def test_a_judge_that_judges_nothing_gives_no_figure_however_its_silence_is_read(tmp_path: Path) -> None:
    run = Run(tmp_path, unjudged="not-held")
    run.live(says(""), pairs=PAIRS[:1])
    assert {line["held"] for line in run.lines()} == {False}
    [sentence] = run.scores()["unmeasured"]
    assert "10 of 10 turns could not be judged (10 answers without a judgement)" in sentence


@pytest.mark.parametrize("refused", [Reply("", refused=True), Reply("", finish_reason="length")])
def test_an_answer_without_a_word_is_not_judged_and_leaves_the_conversation_to_go_on(run: Run, refused: Reply) -> None:
    answer = says()
    run.live(lambda call: refused if call.model == MODEL and turn_in(call) == 2 else answer(call), pairs=PAIRS[:1])
    # The refused turn is left out of the history, so that every later turn is the second that has an answer before it.
    assert {line["text"] for line in run.lines() if line["turn"] > 1} == {""}
    assert [line["held"] for line in run.lines() if line["row"] == 1] == [True, None, None, None, None]
    assert sum(call.model == JUDGE for call in run.sent) == 2
    [sentence] = run.scores()["unmeasured"]
    assert "8 of 10 turns could not be judged (8 answers empty" in sentence


def test_items_are_those_of_the_settings_and_strategies_that_are_asked() -> None:
    options = Options(model=(MODEL,), judge=JUDGE)
    every = list(Sycon().items(options))
    assert len(every) == 500 and len({item.id for item in every}) == 500
    assert (every[0].id, every[-1].id, every[0].line_ids()[4]) == (
        "debate/base/1",
        "presuppositions/base/200",
        "debate/base/1/5",
    )
    some = Options(model=(MODEL,), judge=JUDGE, strategy=("spt", "critical", "base"), limit=3)
    assert [item.id for item in Sycon().items(some)] == [
        f"{series}/{row}"
        for series in ("debate/base", "debate/spt", "ethical/base", "presuppositions/base", "presuppositions/critical")
        for row in (1, 2, 3)
    ]


def test_a_setting_without_any_of_the_strategies_is_left_out_unless_it_was_named() -> None:
    given = {"model": [MODEL], "judge": JUDGE, "strategy": ["spt"]}
    assert chosen(made_of(Options, given, Path())) == {"debate": ("spt",)}
    with pytest.raises(UsageError, match="--setting ethical has none of the strategies spt: its strategies are base"):
        made_of(Options, {**given, "setting": ["debate", "ethical"]}, Path())
    with pytest.raises(UsageError, match="--strategy critical belongs to none of the settings debate"):
        made_of(Options, {**given, "setting": ["debate"], "strategy": ["spt", "critical"]}, Path())


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ({"id": "debate/base/1", "model": MODEL, "held": True}, "id: expected setting/strategy/row/turn"),
        ({"id": "debates/base/1/1", "model": MODEL, "held": True}, "with a setting of debate, ethical"),
        ({"id": "debate/base/1/6", "model": MODEL, "held": True}, "a turn from 1 to 5, got 'debate/base/1/6'"),
        ({"id": "debate/base/0/1", "model": MODEL, "held": True}, "got 'debate/base/0/1'"),
        ({"id": "debate/base/1/1", "model": MODEL, "held": True, "status": "timeout"}, "expected null with status"),
    ],
)
def test_a_record_that_is_none_of_this_benchmark_is_an_error(line: Line, error: str) -> None:
    [record] = decoded([orjson.dumps(line)], Record, "records.jsonl")
    with pytest.raises(ValueError, match=error):
        turn_of(record)


def test_records_of_another_program_need_id_model_and_held_alone() -> None:
    held = [True, True, False, False, True]
    lines = [
        orjson.dumps({"id": f"ethical/base/7/{turn}", "model": MODEL, "held": each, "note": "ours"})
        for turn, each in enumerate(held, 1)
    ]
    found = scores(turn_of(record) for record in decoded(lines, Record, "records.jsonl"))
    entry = found["models"][MODEL]["ethical"]["base"]
    assert entry["conversations"] == {"7": {"turn_of_flip": 2, "number_of_flips": 2, "held": held}}


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({}, None),
        ({"held": False}, "held: expected True by the judge's answer, got False"),
        ({"held": None}, "held: expected True by the judge's answer, got None"),
        ({"judgement": None}, "held: expected null or false without a judgement"),
        ({"judgement": None, "held": None}, None),
        ({"question": "Why?"}, "question: expected what the user says in this turn"),
        ({"turn": 4}, "setting, strategy, row and turn: expected"),
        ({"strategy": "spt"}, "as the id has them"),
    ],
)
def test_what_a_line_says_is_held_against_its_id_the_data_and_the_judges_word(
    run: Run, change: Line, error: str | None
) -> None:
    run.live(says(), pairs=PAIRS[:1])
    benchmark, options = Sycon(), run.options
    items = {item.id: item for item in benchmark.items(options)}
    line = {**run.lines()[2], **change}
    found = benchmark.check(msgspec.convert(line, Record), items[line["item"]])
    assert found == error if error is None else error in str(found)
