"""A task: data, a prompt and a way to score, declared in one place.

Owns the fields of `ms.Task` and their checks. Reads no file and sends nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from inspect import iscoroutinefunction
from typing import Any, TypeAlias, get_args

from msgspec import Struct
from msgspec.structs import force_setattr

from ...configuration.values import NONE
from ...engine.call import Call
from ...engine.content import Native, Tool
from ...metrics.task.trials import Combine
from ..evaluation.data.data_rows import Data
from .choices import Choice
from .figures import AnyFigure, Figure, figures_of
from .judge import Judge
from .likelihood import Loglikelihood
from .prompts import PromptFunction, Shots, prompts
from .rows import TaskError, shown
from .scorers import Function, ScoreFunction, Scorer
from .source import source_of

AnyScorer: TypeAlias = Scorer | Judge
Scoring: TypeAlias = AnyScorer | ScoreFunction | Mapping[str, AnyScorer | ScoreFunction]

MAIN = "score"
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,59}")
# For a text that is a scorer's name: how the scorer is written.
_SCORERS = {
    "match": 'ms.match("{column}")',
    "regex": 'ms.regex("pattern", "{column}")',
    "choice": 'ms.choice("{column}")',
    "numeric": 'ms.numeric("{column}")',
    "judge": 'ms.judge("provider/model", "Is the answer right?")',
}
_TRIALS_MAX = 10_000
_PARAMETERS = (
    "max_tokens", "top_p", "stop", "seed", "extra", "reasoning_effort", "json_schema", "logprobs", "tools",
    "tool_choice", "parallel_tools",
)  # fmt: skip


class Task(Struct, frozen=True, kw_only=True):
    """An evaluation of one's own: every row of `data` is asked as `prompt` says and its answer scored as `score` says.
    Models write answers, or weigh given ones (`loglikelihood`).

    data: a CSV, JSON lines, JSON or Parquet file, a folder in the layout of Hugging Face, or an iterable of mappings.
    prompt: a template with the row's columns in braces (`{{` is a brace), or a function of the row that gives a text or
    a list of messages; or a mapping of names to these: every row is asked in each of these variants.
    score: a scorer (`match`, `regex`, `choice`, `numeric`, `judge`, `win_rate`, `scorer`), a function of reply and row
    that gives a number, True or False, or a mapping of names to these; or a mapping of names to scorers: the first is
    the main one.
    name: the task's name in files and reports; default: that of its variable in a task file, else "task".
    system: a template of the system prompt.
    shots: questions with answers before the question: pairs of texts, or rows.
    shot_answer: the template of the answer of shots that are rows, as "{capital}".
    trials: how often each row is asked.
    combine: how the trials of a row combine: their "mean"; "majority": 1 where more than half score at least 0.5, else
    0; "any": the best of them.
    figures: figures over all answers of a model, by name: `f1`, `auroc`, `calibration_error`, `pass_at`, or a function
    of the list of records that gives a number.
    group: the column that groups the rows; default: the column `group`, where there is one.
    subset: the subset of a Hugging Face folder.
    split: the split of a Hugging Face folder, as "test".
    temperature: of the calls, or several to ask at each; "none": not sent; the command line's goes before it.
    max_tokens: the most tokens of an answer.
    top_p: of the calls.
    stop: texts at which an answer ends.
    seed: of the calls, for providers that take one.
    extra: what goes into the body of the calls as it is.
    reasoning_effort: the provider's word for how long the model thinks; the command line's go before it.
    json_schema: the shape of the answers, as JSON.
    logprobs: how many alternatives of each token are asked for.
    tools: what the model may ask for.
    tool_choice: "auto", "none", "required" or a tool's name.
    parallel_tools: whether the model may ask for several tools at once.
    """

    data: Data
    prompt: str | PromptFunction | Mapping[str, str | PromptFunction]
    score: Scoring
    name: str | None = None
    system: str | None = None
    shots: Shots = ()
    shot_answer: str | None = None
    trials: int = 1
    combine: Combine = "mean"
    figures: Mapping[str, AnyFigure] | None = None
    group: str | None = None
    subset: str | None = None
    split: str | None = None
    temperature: float | str | Sequence[float | str] | None = None
    max_tokens: int | None = None
    top_p: float | None = None
    stop: Sequence[str] | None = None
    seed: int | None = None
    extra: Mapping[str, Any] | None = None
    reasoning_effort: str | None = None
    json_schema: Mapping[str, Any] | None = None
    logprobs: int | None = None
    tools: Sequence[Tool | Native] | None = None
    tool_choice: str | None = None
    parallel_tools: bool | None = None

    def __post_init__(self) -> None:
        if self.name is not None:
            check_name(self.name)
        if isinstance(self.data, Iterator):
            # A task may be read more than once.
            force_setattr(self, "data", list(self.data))
        elif not isinstance(self.data, str | os.PathLike | Iterable):
            raise TaskError(f"data: expected a path, or an iterable of mappings, got {shown(self.data)}")
        if isinstance(self.shots, Iterator):
            force_setattr(self, "shots", list(self.shots))
        if not isinstance(self.trials, int) or isinstance(self.trials, bool) or not 1 <= self.trials <= _TRIALS_MAX:
            raise TaskError(f"trials: expected a whole number from 1 to {_TRIALS_MAX:,}, got {shown(self.trials)}")
        if self.combine not in get_args(Combine):
            raise TaskError(f"combine: expected one of {', '.join(get_args(Combine))}, got {shown(self.combine)}")
        for name in ("stop", "tools"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                force_setattr(self, name, tuple(value))
        self.prompts()
        self.shuffler()
        if self.weigher() is not None and (len(self.scorers()) > 1 or self.system is not None or self.shots):
            raise TaskError("loglikelihood: expected it as the only scorer, and a prompt without system and shots")
        main = next(iter(self.scorers().values()))
        for name, figure in self.own_figures().items():
            try:
                figure.check(main, self.trials)
            except TaskError as error:
                raise TaskError(f"figures: {name}: {error}") from error
        for temperature in self.temperatures() or (None,):
            try:
                Call("any/model", "", temperature=temperature, **self.parameters())
            except (TypeError, ValueError) as error:
                raise TaskError(str(error)) from error

    def prompts(self) -> Mapping[str, Any]:
        """Returns the prompt of each variant, parsed from `prompt`, `system` and `shots`; a single prompt has an empty
        name. Raises TaskError if one is malformed."""
        return {
            name: prompts(prompt, self.system, self.shots, self.shot_answer)
            for name, prompt in self._variants().items()
        }

    def shuffler(self) -> Choice | None:
        """Returns the scorer that shuffles the rows' options; None: none does."""
        found = [each for each in self.scorers().values() if isinstance(each, Choice) and each.shuffle is not None]
        if len({(each.shuffle, each.options) for each in found}) > 1:
            raise TaskError("choice: shuffle: expected one seed and one column of options for all scorers")
        return found[0] if found else None

    def weigher(self) -> Loglikelihood | None:
        """Returns the scorer that weighs given answers; None: the model writes answers."""
        main = next(iter(self.scorers().values()))
        return main if isinstance(main, Loglikelihood) else None

    def _variants(self) -> Mapping[str, str | PromptFunction]:
        if not isinstance(self.prompt, Mapping):
            return {"": self.prompt}
        if len(self.prompt) < 2:
            raise TaskError("prompt: expected two variants or more, by their names")
        for name in self.prompt:
            if not isinstance(name, str) or not NAME.fullmatch(name):
                raise TaskError(f"prompt: expected a name of letters, digits, - and _, got {shown(name)}")
        return self.prompt

    def scorers(self) -> dict[str, AnyScorer]:
        """Returns the scorers by name; the first is the main one."""
        named = self.score if isinstance(self.score, Mapping) else {MAIN: self.score}
        if not named:
            raise TaskError("score: expected at least one scorer, got an empty mapping")
        checked: dict[str, AnyScorer] = {}
        for name, scorer in named.items():
            if not isinstance(name, str) or not NAME.fullmatch(name):
                raise TaskError(f"score: expected a name of letters, digits, - and _, got {shown(name)}")
            if isinstance(scorer, Scorer | Judge):
                checked[name] = scorer
            elif iscoroutinefunction(scorer):
                raise TaskError(
                    f"score: {scorer.__name__} is async, as a scorer that asks models: name these, as "
                    f'ms.scorer({scorer.__name__}, models=["provider/model"])'
                )
            elif callable(scorer):
                checked[name] = Function(scorer)
            else:
                raise _no_scorer(scorer)
        return checked

    def own_figures(self) -> dict[str, Figure]:
        """Returns the figures by name."""
        return figures_of(self.figures or {})

    def temperatures(self) -> tuple[float | None, ...]:
        """Returns the temperatures to ask at; empty: calls set none."""
        return temperatures_of(self.temperature)

    def parameters(self) -> dict[str, Any]:
        """Returns the call parameters that the task sets, by name."""
        return {name: getattr(self, name) for name in _PARAMETERS if getattr(self, name) is not None}

    def specified(self) -> dict[str, Any]:
        """Returns what decides the prompts beside the data: `prompt` and `parameters`."""
        described = {
            name: {"text": prompt} if isinstance(prompt, str) else {"function": source_of(prompt)["name"]}
            for name, prompt in self._variants().items()
        }
        prompt: Mapping[str, Any] = described.get("", {"variants": described})
        return {"prompt": {**prompt, "system": self.system}, "parameters": self.parameters()}


def temperatures_of(value: Any) -> tuple[float | None, ...]:
    """Returns one temperature or several, of which `none` is not sent."""
    return tuple(None if each == NONE else each for each in several(value))


def several(value: Any) -> tuple[Any, ...]:
    """Returns the values of a field that has one, several or none."""
    if value is None:
        return ()
    return tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else (value,)


def _no_scorer(given: object) -> TaskError:
    meant = f", as {_SCORERS[given]}" if isinstance(given, str) and given in _SCORERS else ""
    return TaskError(f"score: expected a scorer or a function of reply and row{meant}, got {shown(given)}")


def check_name(name: str) -> None:
    """Raises TaskError if a text can't be a task's name."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise TaskError(f"name: expected a letter, then at most 59 letters, digits, - and _, got {shown(name)}")
