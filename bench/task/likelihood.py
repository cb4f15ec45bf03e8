"""The scorer of log-likelihoods: which of a row's given answers has the highest log-probability.

Owns the calls that weigh the answers, and the text that a record holds of their log-probabilities, from which it is
scored. Sends nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ...engine.call import Call, Reply
from ...engine.pairs import Pair
from ...providers.llm.openai.echoed_text import CantScore, score
from .choices import Choice
from .rows import TaskError, TaskRow
from .scorers import Score
from .template import template

WEIGHS = "openai-completions"
"""The wire protocol by which a model's log-probabilities of a given text are asked for."""


class Loglikelihood(Choice, frozen=True):
    """The scorer that compares the log-probabilities of given answers: see `loglikelihood`."""

    def score(self, reply: Reply, row: TaskRow) -> Score:
        try:
            weighed = [json.loads(line) for line in reply.text.splitlines()]
            sums = [float(each["logprob"]) for each in weighed]
            means = [value / len(each["choice"]) for value, each in zip(sums, weighed, strict=True)]
        except (ValueError, KeyError, TypeError):
            return Score(None, problem="the answers were not weighed: " + reply.text[:200])
        _, letters = self._options(row)
        wanted = self.wanted(row)
        read, by_length = (letters[values.index(max(values))] for values in (sums, means))
        right = float(read == wanted)
        return Score(right, read, parts={"sum": Score(right), "by_length": Score(float(by_length == wanted))})

    def calls(self, prompt: Any, row: TaskRow, pair: Pair, sample: int) -> list[Call]:
        """Returns the call that weighs each of the row's answers after the prompt. Raises TaskError for a prompt that
        is no text."""
        if not isinstance(prompt, str):
            raise TaskError(f"loglikelihood: {row.where}: expected a prompt of one text, without system and shots")
        return [
            Call(
                pair.model,
                prompt + continuation,
                temperature=pair.temperature,
                max_tokens=1,
                logprobs=1,
                extra={"echo": True},
                trial=sample,
            )
            for continuation in self._continuations(prompt, row)
        ]

    def weighed(self, prompt: str, row: TaskRow, replies: Sequence[Reply]) -> Reply:
        """Returns the log-probabilities as a text, a line of JSON for each answer; the reason if one has none."""
        lines = []
        for choice, continuation, reply in zip(
            self._options(row)[0], self._continuations(prompt, row), replies, strict=True
        ):
            try:
                if reply.logprobs is None:
                    raise CantScore("the server gave no log-probabilities: it must take echo and logprobs together")
                logprob = score(reply.logprobs, prompt, continuation).logprob
            except CantScore as error:
                return Reply(str(error))
            lines.append(json.dumps({"choice": choice, "logprob": logprob}, ensure_ascii=False))
        return Reply("\n".join(lines))

    def describe(self) -> dict[str, Any]:
        described = super().describe()
        return {"scorer": "loglikelihood", "choices": described["options"], "expected": described["expected"]}

    def _continuations(self, prompt: str, row: TaskRow) -> list[str]:
        space = "" if prompt[-1:].isspace() else " "
        return [space + option for option in self._options(row)[0]]


def loglikelihood(choices: str, expected: str) -> Loglikelihood:
    """Returns a scorer that gives 1 where the right one of the given answers has the highest log-probability after the
    prompt. The model writes nothing; it must be of a provider of kind "openai-completions", such as vLLM.

    choices: a template of one column that lists the answers, as "{choices}".
    expected: a template of the right one: its letter, its place from 0, or its text, as of `choice`.

    An answer follows the prompt after a space. Its log-probability is the sum over its tokens; the score `by_length`
    beside the main one divides it by the number of the answer's characters. Each answer is one call.
    """
    return Loglikelihood(template(expected, "score"), options=template(choices, "score"))
