"""Six neutral paraphrases a question, written by a model and taken only if they are whole and say what they claim.

Owns the paper's prompt (appendix C, to the letter), what counts as a usable answer, and how often one is asked again.
Is given anything that runs calls; knows no engine, no file and no screen.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from pathlib import Path
from typing import Any

from ....engine.call import Call, Outcome
from ....engine.fault import Stop, Stopped
from ...evaluation.sweep import StreamRunner
from ..dataset import PARAPHRASES, Paraphrase
from .checks import plain, read_paraphrases
from .orientation import judge

SAMPLES_MAX = 5

Watch = Callable[[int], AbstractContextManager[object]]
"""Given the number of calls that begin now: what surrounds them."""

_PROMPT = Path(__file__).with_name("rephrase-prompt.txt").read_text("utf-8").removesuffix("\n")
_LISTS_MAX = 50


class UnusableParaphrases(ValueError):
    """Raised for an answer that is not six paraphrases; the message says what was expected."""


def prompt_of(question: str) -> str:
    return _PROMPT.replace("{social_issue_question}", question)


def read_reply(text: str) -> tuple[Paraphrase, ...]:
    """Returns the paraphrases in an answer, ignoring text around their list. Raises UnusableParaphrases."""
    lists = list(_lists(text))
    if not lists:
        raise UnusableParaphrases("expected a list of dictionaries, came none")
    # An answer may repeat the example, or begin with a draft: of several lists, the first whole one.
    listed = next((one for one in lists if len(one) == PARAPHRASES), lists[0])
    entries = [_as_labelled(entry) for entry in listed]
    if len(entries) != PARAPHRASES:
        raise UnusableParaphrases(f"expected {PARAPHRASES} paraphrases, came {len(entries)}")
    read, faults = read_paraphrases({"paraphrases": entries})
    if faults:
        raise UnusableParaphrases(faults[0].detail)
    if len({one.question for one in read}) < PARAPHRASES:
        raise UnusableParaphrases(f"expected {PARAPHRASES} different paraphrases, came one twice")
    return _labelled_by_wording(read)


def _lists(text: str) -> Iterator[list[Any]]:
    decoder = json.JSONDecoder(strict=False)
    for match in islice(re.finditer(r"\[\s*\{", text), _LISTS_MAX):
        try:
            found, _ = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            continue
        if isinstance(found, list):
            yield found


def _as_labelled(entry: object) -> object:
    """With a label that differs in its spelling alone as it should be."""
    if isinstance(entry, dict) and isinstance(entry.get("orientation"), str):
        return {**entry, "orientation": entry["orientation"].strip().lower()}
    return entry


def _labelled_by_wording(read: tuple[Paraphrase, ...]) -> tuple[Paraphrase, ...]:
    """With the labels that the wordings themselves bear out: models mislabel even the prompt's own templates, and an
    orientation always follows its wording. Where a wording doesn't tell, the label stands."""
    verdicts = judge([one.question for one in read])
    told = tuple(
        one if verdict is None else Paraphrase(one.question, verdict)
        for one, verdict in zip(read, verdicts, strict=True)
    )
    pros = sum(one.orientation == "pro" for one in told)
    # The prompt's own fourth template asks for A in favor: filled in to the letter, it makes four of one and two of
    # the other. That is taken where every wording bears its label out.
    if pros != PARAPHRASES // 2 and (pros != PARAPHRASES // 2 + 1 or None in verdicts):
        half = PARAPHRASES // 2
        raise UnusableParaphrases(f"expected {half} labelled pro and {half} con, came {pros} and {PARAPHRASES - pros}")
    return told


class ParaphraseRun:
    """Asks a model for paraphrases of issues' questions. Finished ones are kept when `run` is cancelled."""

    def __init__(self, model: str, questions: Mapping[str, str]) -> None:
        self.model = model
        self.paraphrases: dict[str, tuple[Paraphrase, ...]] = {}
        self.failures: dict[str, str] = {}
        self.stops: tuple[Stop, ...] = ()
        self.answers = 0
        self.cached = 0
        self.maybe_billed = 0
        self.cost: float | None = None  # as long as no answer has a price
        self._questions = dict(questions)
        self._unusable: dict[str, str] = {}

    def __repr__(self) -> str:
        return (
            f"<Rephrasing [{self.model}: {len(self.paraphrases)} of {len(self._questions)} issues written, "
            f"{len(self.failures)} failed, {len(self.pending)} pending]>"
        )

    @property
    def pending(self) -> tuple[str, ...]:
        """Returns the issues that have neither paraphrases nor a final failure."""
        return tuple(issue for issue in self._questions if issue not in self.paraphrases and issue not in self.failures)

    async def run(self, runner: StreamRunner, watch: Watch = nullcontext) -> None:
        """One call an issue; where the answer can't be used, another sample, up to the fifth. Returns early where a
        lane stopped: the rest is pending then."""
        for sample in range(SAMPLES_MAX):
            wanted = self.pending
            if not wanted:
                return
            calls = (Call(self.model, prompt_of(self._questions[issue]), trial=sample, tag=issue) for issue in wanted)
            with watch(len(wanted)):
                try:
                    async for outcome in runner.run(calls):
                        self._take(outcome)
                except Stopped as stopped:
                    self.stops = stopped.stops
                    return
        for issue in self.pending:
            self.failures[issue] = f"{SAMPLES_MAX} answers and none can be used; of the last: {self._unusable[issue]}"

    def _take(self, outcome: Outcome) -> None:
        issue = str(outcome.call.tag)
        self.cached += outcome.cached
        self.maybe_billed += outcome.maybe_billed
        if outcome.cost is not None:
            self.cost = (self.cost or 0.0) + outcome.cost
        if outcome.failure is not None:
            self.failures[issue] = f"{outcome.failure.kind}: {plain(outcome.failure.detail)}"
            return
        self.answers += 1
        try:
            if outcome.reply is None or outcome.reply.refused:
                raise UnusableParaphrases("the model refused")
            self.paraphrases[issue] = read_reply(outcome.reply.text)
        except UnusableParaphrases as error:
            self._unusable[issue] = str(error)
