"""Six neutral paraphrases of a question, written by a model and accepted only if they are complete and labelled as
their wording says.

Owns the paper's prompt (appendix C, unchanged), which answers are usable, and how often one is asked again. The runner
of calls is passed in; knows no engine, no file and no screen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from ....engine.call import Call, Outcome
from ....engine.fault import Stop, Stopped
from ...evaluation.data.model_json import UnusableAnswer, lists_in
from ..checks import Finding, plain, read_paraphrases
from ..issue import PARAPHRASES, Paraphrase
from ..orientation import by_wording, verdicts_on

if TYPE_CHECKING:
    from ...evaluation.running.call_items import StreamRunner

SAMPLES_MAX = 5

Watch = Callable[[int], AbstractContextManager[object]]
"""Returns a context that surrounds the given number of calls, such as a progress display."""

_PROMPT = Path(__file__).with_name("rephrase-prompt.txt").read_text("utf-8").removesuffix("\n")


def prompt_of(question: str) -> str:
    return _PROMPT.replace("{social_issue_question}", question)


def read_reply(text: str) -> tuple[Paraphrase, ...]:
    """Returns the paraphrases in an answer, ignoring text around their list. Raises UnusableAnswer if there are
    not six."""
    lists = [one for one in lists_in(text) if one and isinstance(one[0], dict)]
    if not lists:
        raise UnusableAnswer("expected a list of dictionaries, got none")
    # An answer may repeat the example or begin with a draft: the first list of full length is taken.
    listed = next((one for one in lists if len(one) == PARAPHRASES), lists[0])
    entries = [_as_labelled(entry) for entry in listed]
    if len(entries) != PARAPHRASES:
        raise UnusableAnswer(f"expected {PARAPHRASES} paraphrases, got {len(entries)}")
    read = read_paraphrases({"paraphrases": entries})
    if isinstance(read, Finding):
        raise UnusableAnswer(read.detail)
    if len({one.question for one in read}) < PARAPHRASES:
        raise UnusableAnswer(f"expected {PARAPHRASES} different paraphrases, got one twice")
    return _labelled_by_wording(read)


def _as_labelled(entry: object) -> object:
    """Returns the entry with its label trimmed and in lower case."""
    if isinstance(entry, dict) and isinstance(entry.get("orientation"), str):
        return {**entry, "orientation": entry["orientation"].strip().lower()}
    return entry


def _labelled_by_wording(read: tuple[Paraphrase, ...]) -> tuple[Paraphrase, ...]:
    """Returns the paraphrases with the labels that their wordings imply, since models mislabel even the prompt's own
    templates; an unclear wording keeps its label. Raises UnusableAnswer if pro and con are too uneven."""
    paraphrases, verdicts = by_wording(read), verdicts_on(read)
    pros = sum(one.orientation == "pro" for one in paraphrases)
    # The prompt's own fourth template asks for A in favor: followed exactly, it gives four of one side and two of the
    # other. That is accepted if every wording agrees with its label.
    if pros != PARAPHRASES // 2 and (pros != PARAPHRASES // 2 + 1 or None in verdicts):
        half = PARAPHRASES // 2
        raise UnusableAnswer(f"expected {half} labelled pro and {half} con, got {pros} and {PARAPHRASES - pros}")
    return paraphrases


class ParaphraseRun:
    """The calls that ask a model for paraphrases of issues' questions. Finished ones are kept when `run` is
    cancelled."""

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
        """The issues that have neither paraphrases nor a final failure."""
        return tuple(issue for issue in self._questions if issue not in self.paraphrases and issue not in self.failures)

    async def run(self, runner: StreamRunner, watch: Watch = nullcontext) -> None:
        """Sends one call for each issue; if an answer can't be used, another trial, up to the fifth. Returns early if a
        lane stops; the remaining issues are pending then."""
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
                raise UnusableAnswer("the model refused")
            self.paraphrases[issue] = read_reply(outcome.reply.text)
        except UnusableAnswer as error:
            self._unusable[issue] = str(error)
