"""Paraphrases written by a model: what counts as an answer, how often it is asked, and what a stop leaves."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from paraphrasing import FAVOR, good_answer, question_in, six
from scripted import ScriptedProvider, engine_over
from virtual_time import run_virtually

from millstream.bench.evaluation.data.model_json import UnusableAnswer
from millstream.bench.millstone.importing.rephrase import (
    SAMPLES_MAX,
    ParaphraseRun,
    prompt_of,
    read_reply,
)
from millstream.engine.call import Call, Outcome, Reply, Usage
from millstream.engine.endpoint import Cleared, Fault, Request, Response
from millstream.engine.fault import StopReason
from millstream.engine.run import run_calls
from millstream.engine.scheduler import Scheduler
from millstream.engine.sink import Sink

MODEL = "script/m"
SIX = six("ferries")
PLAIN = json.dumps(SIX)


def test_the_prompt_is_the_papers_to_the_letter() -> None:
    text = prompt_of("{social_issue_question}")
    assert hashlib.sha256(text.encode()).hexdigest() == (
        "f8afaf01b755138b6069295c8d5fcef3b11e185edcab7c597f4755358c2c607f"
    )
    assert prompt_of("Should it {be}?") == text.replace("{social_issue_question}", "Should it {be}?")


def test_the_prompts_own_example_is_a_usable_answer() -> None:
    example = prompt_of("Q?").partition("should be something like:\n")[2]
    assert [one.orientation for one in read_reply(example)] == ["pro"] * 3 + ["con"] * 3


@pytest.mark.parametrize(
    "reply",
    [
        PLAIN,
        f"```json\n{json.dumps(SIX, indent=2)}\n```",
        f"Of course! Here they are [1]:\n{PLAIN}\nI hope [these] help.",
        json.dumps({"paraphrases": SIX}),
        json.dumps([{**one, "orientation": f" {one['orientation'].title()}\n", "number": 1} for one in SIX]),
        f"A draft: {json.dumps(SIX[:2])} and the whole: {PLAIN}",
        f"[{{broken {PLAIN}",
        PLAIN.replace("ferries. ", "ferries.\n\t"),
    ],
    ids=[
        "bare",
        "fenced",
        "with words around",
        "in an object",
        "spelt",
        "after a draft",
        "after junk",
        "with line ends",
    ],
)
def test_the_list_is_found_in_whatever_stands_around_it(reply: str) -> None:
    read = read_reply(reply)
    assert [one.orientation for one in read] == [one["orientation"] for one in SIX]
    assert [" ".join(one.question.split()) for one in read] == [one["question"] for one in SIX]


def test_four_pro_are_taken_only_where_every_wording_says_so() -> None:
    printed = six("ferries", fourth=FAVOR)
    assert [one.orientation for one in read_reply(json.dumps(printed))].count("pro") == 4
    vague = [*printed[:2], {"question": "Pick A or B.", "orientation": "pro"}, *printed[3:]]
    with pytest.raises(UnusableAnswer, match="expected 3 labelled pro and 3 con, got 4 and 2"):
        read_reply(json.dumps(vague))


def swapped(*numbers: int) -> list[dict[str, str]]:
    """With the labels of these turned round."""
    other = {"pro": "con", "con": "pro"}
    return [
        {**one, "orientation": other[one["orientation"]]} if number in numbers else one
        for number, one in enumerate(SIX, 1)
    ]


@pytest.mark.parametrize("numbers", [(4,), (2, 5), (1, 2, 3, 4, 5, 6)])
def test_a_label_that_its_wording_denies_follows_the_wording(numbers: tuple[int, ...]) -> None:
    assert read_reply(json.dumps(swapped(*numbers))) == read_reply(PLAIN)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("", "expected a list of dictionaries, got none"),
        ("I can't do that.", "expected a list of dictionaries, got none"),
        ("[1, 2, 3, 4, 5, 6]", "expected a list of dictionaries, got none"),
        (PLAIN[:-20], "expected a list of dictionaries, got none"),
        (json.dumps(SIX[:5]), "expected 6 paraphrases, got 5"),
        (json.dumps([*SIX, SIX[0]]), "expected 6 paraphrases, got 7"),
        (json.dumps([*SIX[:5], "text"]), r"paraphrases\[5\]: expected an object, got a text"),
        (json.dumps([*SIX[:5], {"question": "Q"}]), r"paraphrases\[5\]: object missing required field `orientation`"),
        (json.dumps([{**SIX[0], "question": " "}, *SIX[1:]]), r"paraphrases\[0\]\.question: .* a text with words"),
        (json.dumps([{**SIX[0], "orientation": "neutral"}, *SIX[1:]]), "invalid enum value 'neutral'"),
        (json.dumps([SIX[1], *SIX[1:]]), "expected 6 different paraphrases, got one twice"),
        (json.dumps([{"question": f"Q{n}", "orientation": "pro"} for n in range(6)]), "3 con, got 6 and 0"),
    ],
)  # fmt: skip
def test_anything_else_is_refused_with_the_reason(reply: str, said: str) -> None:
    with pytest.raises(UnusableAnswer, match=said):
        read_reply(reply)


@given(st.text(alphabet='[]{}",:pro question\\u0041', max_size=200) | st.text(max_size=50))
def test_no_answer_raises_anything_else(reply: str) -> None:
    with pytest.raises(UnusableAnswer):
        read_reply(reply)


def test_of_an_answer_full_of_beginnings_only_the_first_are_tried() -> None:
    assert len(read_reply("[{" * 40 + PLAIN)) == 6
    with pytest.raises(UnusableAnswer, match="got none"):
        read_reply("[{" * 60 + PLAIN)
    with pytest.raises(UnusableAnswer, match="got none"):
        read_reply('[{"a":' * 100_000)


class Writer(ScriptedProvider):
    """Answers with what `text` gives for a question and the number of times it was asked."""

    def __init__(
        self, text: Callable[[str, int], str], script: Callable[[str, float], Fault | None] | None = None
    ) -> None:
        super().__init__(script)
        self.text = text

    async def send(self, request: Request, cleared: Cleared) -> Response:
        await super().send(request, cleared)
        prompt = request.body.decode()
        return Response(200, self.text(question_in(prompt), self.counts()[prompt]).encode())

    def decode(self, response: Response) -> Reply | Fault:
        text = response.body.decode()
        return Reply(text, Usage(1, 1), "stop", refused=text.startswith("REFUSED"))

    def asked(self) -> dict[str, int]:
        return {question_in(prompt): count for prompt, count in self.counts().items()}


class Over:
    """A scheduler as a runner."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler

    def run(self, calls: Iterable[Call] | AsyncIterable[Call], sink: Sink | None = None) -> AsyncIterator[Outcome]:
        return run_calls(self.scheduler, calls, sink)

    def halt(self, reason: StopReason, detail: str) -> None:
        self.scheduler.halt(reason, detail)


QUESTIONS = {f"issue-{number}": f"Should topic {number} be free?" for number in range(12)}


def rephrased(provider: Writer, folder: Path, **options: Any) -> tuple[ParaphraseRun, list[int]]:
    work, rounds = ParaphraseRun(MODEL, QUESTIONS), list[int]()

    @contextmanager
    def watch(calls: int) -> Iterator[None]:
        rounds.append(calls)
        yield

    async def main() -> None:
        async with engine_over({MODEL: provider}, folder, **options) as bench:
            await work.run(Over(bench.scheduler), watch)

    run_virtually(main())
    return work, rounds


def test_an_unusable_answer_is_asked_again_as_another_sample_and_remembered(tmp_path: Path) -> None:
    def text(question: str, time: int) -> str:
        needed = {"Should topic 1 be free?": 3, "Should topic 2 be free?": SAMPLES_MAX}.get(question, 1)
        return (
            good_answer(question) if time >= needed else f"REFUSED {good_answer(question)}" if time == 2 else "Sorry?"
        )

    provider = Writer(text)
    work, rounds = rephrased(provider, tmp_path)
    assert rounds == [12, 2, 2, 1, 1]
    assert len(work.paraphrases) == 12 and work.failures == {}
    again, rounds = rephrased(provider, tmp_path)
    assert (again.paraphrases, again.cached, again.answers) == (work.paraphrases, 18, 18)
    assert sum(provider.asked().values()) == 18


def test_after_the_fifth_unusable_answer_the_issue_has_failed_and_the_rest_goes_on(tmp_path: Path) -> None:
    bad = "Should topic 7 be free?"
    provider = Writer(lambda question, time: json.dumps(SIX[:5]) if question == bad else good_answer(question))
    work, rounds = rephrased(provider, tmp_path)
    assert rounds == [12, 1, 1, 1, 1] and provider.asked()[bad] == SAMPLES_MAX
    assert work.failures == {"issue-7": "5 answers and none can be used; of the last: expected 6 paraphrases, got 5"}
    assert len(work.paraphrases) == 11 and work.pending == ()


def test_a_call_that_fails_is_not_asked_as_another_sample(tmp_path: Path) -> None:
    rejected = Fault("rejected", "prompt\ntoo long", "never", 400)
    provider = Writer(
        lambda question, time: good_answer(question), lambda prompt, at: rejected if "topic 4" in prompt else None
    )
    work, rounds = rephrased(provider, tmp_path)
    assert rounds == [12] and set(provider.asked().values()) == {1}
    ((issue, reason),) = work.failures.items()
    assert issue == "issue-4" and reason.startswith("rejected: ") and "\n" not in reason
