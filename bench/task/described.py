"""A task in words, from what its run's manifest keeps: prompt, rubric, scorers and parameters.

Runs none of the task's own code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .task import MAIN

_HASHES = ("sha256", "prompt_sha256")
_DIGITS = 12
# Where `match` looks for the expected text.
_STANDS = {
    "all": "the whole answer equals",
    "start": "the answer begins with",
    "end": "the answer ends with",
    "anywhere": "as whole words, the answer has",
}


def options_of(specification: Mapping[str, Any], *, has_all_scorers: bool = True) -> dict[str, str]:
    """Returns what decides a task's answers and scores, beside its rows and models, as names with texts. Without
    `has_all_scorers`, the main score alone."""
    prompt = specification.get("prompt") or {}
    variants = prompt.get("variants") or {"": prompt}
    options = {f"prompt {name}".strip(): _prompt_text(each) for name, each in variants.items()} if prompt else {}
    if "class" in prompt:
        options = {"code of run": f"{prompt['class']} ({prompt['sha256'][:_DIGITS]})"}
    if prompt.get("system"):
        options["system"] = str(prompt["system"])
    options |= {"trials": str(specification.get("trials"))}
    options |= {name: _value_text(value) for name, value in (specification.get("parameters") or {}).items()}
    options |= {f"--set {name}": _value_text(value) for name, value in (specification.get("set") or {}).items()}
    for name, figure in (specification.get("figures") or {}).items() if has_all_scorers else ():
        others = {key: value for key, value in figure.items() if key not in ("figure", *_HASHES) and value is not None}
        options[f"figure {name}"] = _listed(str(figure.get("figure")), others, figure.get("sha256"))
    scorers = {name: each for name, each in specification["score"].items() if "scorer" in each}
    if not has_all_scorers:
        scorers = dict(zip((MAIN,), scorers.values(), strict=False))
    for name, scorer in scorers.items():
        options |= dict(_scorer_texts("" if name == MAIN and len(scorers) == 1 else f" {name}", scorer))
    return options


def _prompt_text(prompt: Mapping[str, Any]) -> str:
    return str(prompt["text"]) if "text" in prompt else f"the function {prompt.get('function')}"


def _scorer_texts(name: str, scorer: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields a scorer's options: its kind with most of them, and apart a judge's model and rubric."""
    options = {key: value for key, value in scorer.items() if key not in ("scorer", *_HASHES) and value is not None}
    kind = str(scorer.get("scorer"))
    if kind == "match" and scorer.get("at") in _STANDS:
        yield f"scorer{name}", _match_text(scorer)
        return
    if kind == "judge":
        of = f" of{name}" if name else ""
        yield f"judge{of}", str(options.pop("model", None))
        yield f"rubric{of}", str(options.pop("rubric", ""))
    yield f"scorer{name}", _listed(kind, options, scorer.get("sha256"))


def _match_text(scorer: Mapping[str, Any]) -> str:
    expected = " or ".join(map(str, scorer.get("expected") or ()))
    how = "to the last character" if scorer.get("exact") else "case, spaces and punctuation at the ends ignored"
    return f"match: {_STANDS[scorer['at']]} {expected}; {how}"


def _listed(kind: str, options: Mapping[str, Any], digest: object = None) -> str:
    texts = [f"{key} {_value_text(value)}" for key, value in options.items()]
    if digest:
        texts.append(f"code {str(digest)[:_DIGITS]}")
    return f"{kind}: {', '.join(texts)}" if texts else kind


def _value_text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_value_text(each)}" for key, each in value.items())
    return ", ".join(map(_value_text, value)) if isinstance(value, list | tuple) else str(value)
