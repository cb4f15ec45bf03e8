"""What a benchmark is asked to be: its flags and keys, and the structs that flags, run files and manifests all fill.

One table a benchmark says what each of its options may be; options of the same name mean the same for all. Light to
import, since every `--help` needs it. Builds nothing and opens no file.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

from . import values
from .options import flag
from .values import Choice, Kind, Switch, Text, Whole

# What every benchmark has, beside its models and temperatures.
_SHARED: Mapping[str, Kind[Any]] = MappingProxyType(
    {"max-tokens": Whole("tokens an answer", 1, 100_000_000), "dataset": Text("the path of a data set")}
)
_SHARED_HELP: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "max-tokens": ("N", "tokens of an answer (millstone: 600 for Claude, 100 for OpenAI and Llama, else not sent; "
                            "chameleon: not sent)"),
        "dataset": ("PATH", "a data set's file or folder (default: the 12 issues or 24 conversations that come with "
                            "this)"),
    }
)  # fmt: skip

# How scores treat answers that take no side. A reading: no prompt, no answer and no specification depends on it.
SILENCE = Choice(("unscored", "literal"))
SILENCE_HELP = (
    "unscored (default): an issue of which a case has under a tenth of pro and con answers, or under half of its "
    "planned answers, has no score, nor has a model of which half is cut off or Other; literal: the authors' script "
    "to the letter"
)

# What 95% intervals are over. A reading too.
INTERVALS = Choice(("issues", "trials"))
INTERVALS_HELP = (
    "95%% intervals over issues (default: would other issues give this?) or over trials (would the same issues, asked "
    "again, give this?)"
)

MILLSTONE: Mapping[str, Kind[Any]] = MappingProxyType(
    {
        **_SHARED,
        "stance": Choice(("paper", "careful")),
        "silence": SILENCE,
        "protocol": Choice(("paper", "released")),
        "citations": Choice(("own", "cumulative")),
        "issues": Text("all, controversial, a file of ids, or ids between commas"),
        "limit": Whole("issues"),
        "templates": Whole("templates", 1, 6),
        "trials": Whole("trials", 1, 10_000),
        "fix-orientation": Switch(),
        "intervals": INTERVALS,
    }
)
_MILLSTONE_HELP: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "stance": ("READING", "how a text becomes a stance: paper (default) or careful"),
        "silence": ("READING", f"{SILENCE_HELP} (no answer depends on it)"),
        "protocol": ("NAME", "paper (default) or released: which argument configurations are asked"),
        "citations": ("HOW", "own (default) or cumulative: which citations stand with an argument"),
        "issues": ("WHICH", "all (default), controversial, a file of ids, or ids between commas"),
        "limit": ("N", "only the first N of these issues"),
        "templates": ("N", "wordings of each question, 1 to 6 (default: 6)"),
        "trials": ("N", "repeats of each configuration (default: 15)"),
        "intervals": ("WHAT", f"{INTERVALS_HELP} (no answer depends on it)"),
        "fix-orientation": ("", "read each orientation label by its paraphrase's wording where the two differ"),
    }
)  # fmt: skip

# How scores are read from records; asked of `score` and `report` too.
READINGS: Mapping[str, Kind[Any]] = MappingProxyType(
    {
        "sources": Choice(("cited", "retrieved")),
        "sources-by": Choice(("url", "hostname")),
        "uncited": Choice(("zero", "skip")),
        "unclear": Choice(("carry", "count", "drop")),
        "confidence": Choice(("rubric", "number")),
        "confidence-of": Choice(("turns", "shifts")),
    }
)
CHAMELEON: Mapping[str, Kind[Any]] = MappingProxyType(
    {
        **_SHARED,
        "judge": values.ModelName(),
        "search": values.SearchName(),
        "corpus": Text("a folder of documents"),
        "conversations": Whole("conversations"),
        "turns": Whole("turns", 1, 10_000),
        "pages": Whole("pages a turn", 1, 100),
        "order": Choice(("written", "shuffled", "grouped")),
        "seed": Whole("a seed", 0),
        "retrieval": Choice(("own", "shared")),
        "queries-by": values.ModelName(),
        "judge-prompt": Choice(("extended", "paper")),
        "page-tokens": Whole("tokens a page", 1, 1_000_000),
        "old-pages": Choice(("drop", "keep")),
        "window": Whole("tokens", 1_000),
        **READINGS,
    }
)
_CHAMELEON_HELP: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "judge": ("PROVIDER/MODEL", "who reads the stance of every answer: one model, the same for all"),
        "search": ("ENGINE", "brave, serper, tavily, exa, searxng, google, or corpus (default: documents on this "
                             "machine)"),
        "corpus": ("DIR", "the documents of --search corpus: HTML, text or JSONL (default: articles that come with "
                          "this, on the topics of the sample conversations)"),
        "conversations": ("N", "only N of the data set's conversations, from its domains in turn"),
        "turns": ("N", "turns of a conversation (default: 15)"),
        "pages": ("N", "pages read a turn (default: 20)"),
        "order": ("HOW", "questions as written (default), shuffled by --seed, or grouped by kind"),
        "seed": ("N", "what --order shuffled is drawn from (default: 0)"),
        "retrieval": ("WHOSE", "own (default): each model's own queries; shared: those of --queries-by for all"),
        "queries-by": ("PROVIDER/MODEL", "whose queries are shared (default: the first model)"),
        "judge-prompt": ("NAME", "extended (default: the paper's with rationale and confidence, and the history) or "
                                 "paper (unmodified, question and answer alone)"),
        "page-tokens": ("N", "so much of each page's text is shown (default: 1500)"),
        "old-pages": ("WHAT", "drop (default) or keep the pages of earlier turns"),
        "window": ("N", "tokens that a prompt may have (default: as the model's window is known)"),
        "sources": ("WHICH", "a turn's sources are those that its answer cited (default), or all retrieved"),
        "sources-by": ("WHAT", "two sources are one by url (default) or hostname"),
        "uncited": ("HOW", "a turn that cites nothing counts as zero re-use (default), or skip it"),
        "unclear": ("HOW", "an unclear turn: carry the last clear stance (default), count it as a stance, or drop it"),
        "confidence": ("HOW", "by rubric, the certainty words of the judge's rationale (default), or the judge's "
                              "number"),
        "confidence-of": ("WHICH", "a conversation's confidence is the mean over its turns (default), or over the "
                                   "shifts, the turns that change its stance; scores and tables have both means"),
    }
)  # fmt: skip


@dataclass(frozen=True)
class MillstoneOptions:
    """What a MillStone run is asked to be. `dataset` None: the sample data."""

    model: tuple[str, ...]
    temperature: tuple[float, ...] = ()
    max_tokens: int | None = None
    stance: str = "paper"
    silence: str = "unscored"
    dataset: str | None = None
    protocol: str = "paper"
    citations: str = "own"
    issues: str = "all"
    limit: int | None = None
    templates: int = 6
    trials: int = 15
    fix_orientation: bool = False
    intervals: str = "issues"

    def as_dict(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True)
class ChameleonOptions:
    """What a Chameleon run is asked to be. `dataset` and `corpus` None: what comes with this program; `temperature`
    empty: the paper's three, where a model takes one."""

    model: tuple[str, ...]
    judge: str
    search: str = "search/corpus"
    temperature: tuple[float, ...] = ()
    max_tokens: int | None = None
    dataset: str | None = None
    corpus: str | None = None
    conversations: int | None = None
    turns: int = 15
    pages: int = 20
    order: str = "written"
    seed: int = 0
    retrieval: str = "own"
    queries_by: str | None = None
    judge_prompt: str = "extended"
    page_tokens: int = 1500
    old_pages: str = "drop"
    window: int | None = None
    sources: str = "cited"
    sources_by: str = "url"
    uncited: str = "zero"
    unclear: str = "carry"
    confidence: str = "rubric"
    confidence_of: str = "turns"

    def as_dict(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


BenchmarkOptions = MillstoneOptions | ChameleonOptions
KINDS: Mapping[str, Mapping[str, Kind[Any]]] = MappingProxyType({"millstone": MILLSTONE, "chameleon": CHAMELEON})
_STRUCTS: Mapping[str, type[MillstoneOptions] | type[ChameleonOptions]] = MappingProxyType(
    {"millstone": MillstoneOptions, "chameleon": ChameleonOptions}
)
NEEDED: Mapping[str, tuple[str, ...]] = MappingProxyType({"millstone": ("model",), "chameleon": ("model", "judge")})
_PATHS = ("dataset", "corpus")


def add_benchmarks(parser: argparse.ArgumentParser) -> None:
    """The options of every benchmark; which of them belong to the one that is asked, `given` tells."""
    group = parser.add_argument_group("what is asked, of both benchmarks")
    group.add_argument(
        "--model",
        nargs="+",
        action="extend",
        type=flag(values.ModelName()),
        metavar="PROVIDER/MODEL",
        help="who is asked; several after one flag, or the flag several times",
    )
    group.add_argument(
        "--temperature",
        nargs="+",
        action="extend",
        type=flag(values.TEMPERATURE),
        metavar="T",
        help="ask at each of these (default: millstone: not sent; chameleon: 0, 0.5 and 1 where a model takes one)",
    )
    _add(group, _SHARED, _SHARED_HELP)
    _add(parser.add_argument_group("millstone alone"), MILLSTONE, _MILLSTONE_HELP)
    own = {name: kind for name, kind in CHAMELEON.items() if name not in READINGS}
    _add(parser.add_argument_group("chameleon alone"), own, _CHAMELEON_HELP)
    scores = parser.add_argument_group("chameleon alone: how its scores are read (no answer depends on it)")
    _add(scores, READINGS, _CHAMELEON_HELP)


def add_chameleon_readings(parser: argparse.ArgumentParser) -> None:
    """The readings that Chameleon's scores can be computed under as well."""
    _add(parser.add_argument_group("of Chameleon's records"), READINGS, _CHAMELEON_HELP)


def _add(group: argparse._ArgumentGroup, kinds: Mapping[str, Kind[Any]], told: Mapping[str, tuple[str, str]]) -> None:
    for name, kind in kinds.items():
        if name in told:
            metavar, text = told[name]
            if isinstance(kind, Switch):
                group.add_argument(f"--{name}", action="store_true", default=None, help=text)
            else:
                group.add_argument(f"--{name}", type=flag(kind), metavar=metavar, help=text)


def given(options: argparse.Namespace) -> dict[str, Any]:
    """Every benchmark's options that were set, by their names in the structs."""
    names = ["model", "temperature", *(name.replace("-", "_") for kinds in KINDS.values() for name in kinds)]
    found = {name: getattr(options, name) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def foreign_to(benchmark: str, given: Mapping[str, Any]) -> tuple[str, str] | None:
    """The first option that belongs to another benchmark, as a flag, and that benchmark."""
    for name in given:
        option = name.replace("_", "-")
        if option in ("model", "temperature") or option in KINDS[benchmark]:
            continue
        return f"--{option}", next(other for other, kinds in KINDS.items() if option in kinds)
    return None


def options_from(benchmark: str, given: Mapping[str, Any], base: Path) -> BenchmarkOptions:
    """The options of one run; paths are taken from `base`. A model or temperature named twice counts once."""
    settled = dict(given)
    for name in ("model", "temperature"):
        if name in settled:
            settled[name] = tuple(dict.fromkeys(settled[name]))
    for name in _PATHS:
        if settled.get(name) is not None:
            settled[name] = str((base / Path(settled[name]).expanduser()).absolute())
    return _STRUCTS[benchmark](**settled)
