"""Tasks and scorers declared as data: the tables of a TOML file, and the descriptions that a manifest keeps.

Owns which keys a table may have. A function can't be declared this way: it needs the task's own file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from inspect import signature
from typing import Any

from msgspec import structs

from ...engine.near_names import nearest
from .choices import choice
from .figures import figures_from
from .judge import judge
from .likelihood import loglikelihood
from .rows import TaskError, shown
from .scorers import match, numeric, regex
from .task import AnyScorer, Task
from .win_rate import win_rate

_SCORERS: Mapping[str, Callable[..., AnyScorer]] = {
    "match": match,
    "regex": regex,
    "choice": choice,
    "numeric": numeric,
    "judge": judge,
    "loglikelihood": loglikelihood,
    "win_rate": win_rate,
}
# The keys of a description that are no options of the scorer.
_NOTED = frozenset({"scorer", "prompt_sha256"})
_FIELDS = frozenset(field.name for field in structs.fields(Task))
_KEYS = (_FIELDS - {"tools"}) | {"expected"}
_UNEXPECTED = re.compile(r"(?:(\w+)\(\) got an u|U)nexpected keyword argument '(\w+)'")


def task_from(table: Mapping[str, Any], where: str) -> Task:
    """Returns the task of a `[task]` table. `score` is a scorer's name with `expected` beside it, a scorer's table, or
    a table of such tables by name. `where` begins error messages."""
    fields = dict(table)
    check_known(fields, _KEYS, where)
    for name in ("data", "prompt", "score"):
        if name not in fields:
            raise TaskError(f"{where}: {name}: expected it, got none")
    expected, score = fields.pop("expected", None), fields.pop("score")
    if isinstance(fields["data"], Mapping):
        raise TaskError(f"{where}: data: expected a path or a list of rows, got a table")
    if isinstance(score, str):
        score = {"scorer": score} if expected is None else {"scorer": score, "expected": expected}
    elif expected is not None:
        raise TaskError(f"{where}: expected stands in the table of its scorer where score is a table")
    scoring = _scoring(score, f"{where}: score")
    try:
        if isinstance(fields.get("figures"), Mapping):
            fields["figures"] = figures_from(fields["figures"])
        return Task(**fields, score=scoring)
    except TaskError as error:
        raise TaskError(f"{where}: {error}") from error


def scorers_from(described: Mapping[str, Mapping[str, Any]]) -> dict[str, AnyScorer]:
    """Returns the scorers that a manifest describes. Raises TaskError if one is a function."""
    return {name: scorer_from(each, f"score {name}") for name, each in described.items()}


def scorer_from(table: Mapping[str, Any], where: str) -> AnyScorer:
    """Returns the scorer of a table: `scorer` is its name, the other keys are its options. Raises TaskError for a
    function."""
    name = table.get("scorer")
    if name == "function":
        raise TaskError(f"{where}: {table.get('name', 'it')} is a function: it is in the task's own file")
    if not isinstance(name, str) or name not in _SCORERS:
        near = nearest(name, _SCORERS) if isinstance(name, str) else ""
        raise TaskError(f"{where}: expected one of {', '.join(_SCORERS)}, got {shown(name)}{near}")
    # A None of a manifest is a value that was chosen, such as a temperature that is not sent.
    options = {key: value for key, value in table.items() if key not in _NOTED}
    check_known(options, signature(_SCORERS[name]).parameters, f"{where}: {name}")
    if name == "match":
        texts = options.pop("expected", ())
        expected = [texts] if isinstance(texts, str) else texts
        if not isinstance(expected, list | tuple) or not all(isinstance(each, str) for each in expected):
            raise TaskError(f"{where}: match: expected: expected a text or a list of texts, got {shown(texts)}")
        return match(*expected, **options)
    if name == "judge" and options.get("scale") is not None:
        options["scale"] = tuple(options["scale"])
    try:
        return _SCORERS[name](**options)
    except TypeError as error:
        # Known options only are passed, so one must be missing.
        raise TaskError(f"{where}: {name}: {error}".replace(f"{name}() ", "")) from error


def check_known(given: Iterable[str], known: Iterable[str], where: str) -> None:
    """Raises TaskError for an unknown key, listing the known ones."""
    names = sorted(known)
    for key in given:
        if key not in names:
            hint = nearest(key, names) or f" (known: {', '.join(names)})"
            raise TaskError(f"{where}: unknown key {shown(key)}{hint}")


def nearest_argument(error: Exception) -> str:
    """Returns ` (nearest: prompt)` for the TypeError of a Task, or of a scorer, that got an argument of an unknown
    name; nothing for any other error."""
    unexpected = _UNEXPECTED.search(str(error)) if isinstance(error, TypeError) else None
    if unexpected is None:
        return ""
    scorer, name = unexpected.groups()
    if scorer is None:
        return nearest(name, _FIELDS)
    return nearest(name, signature(_SCORERS[scorer]).parameters) if scorer in _SCORERS else ""


def _scoring(score: Any, where: str) -> AnyScorer | dict[str, AnyScorer]:
    if not isinstance(score, Mapping) or not score:
        raise TaskError(f"{where}: expected the name of a scorer or a table, got {shown(score)}")
    if "scorer" in score:
        return scorer_from(score, where)
    for name, each in score.items():
        if not isinstance(each, Mapping):
            raise TaskError(f"{where}: {name}: expected the table of a scorer, got {shown(each)}")
    return {name: scorer_from(each, f"{where}: {name}") for name, each in score.items()}
