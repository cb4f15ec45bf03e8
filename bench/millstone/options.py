"""The options of MillStone: those that decide a run's prompts and answers, and those of how records are read.

Light to import, since `--help` needs it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct

from ...configuration.benchmark_options import DATASET, EFFORT, MAX_TOKENS, MODEL, READ, TEMPERATURE
from ...configuration.declared_options import Option
from ...configuration.values import Text, WholeNumber
from .importing.data_command import DATA as DATA

TITLE = "MillStone"
PROMPTS = "the prompts of MillStone's grid"


class GridOptions(Struct, frozen=True, kw_only=True):
    """The options that a grid's prompts are made by, beside the data set. Each stands in the specification, and must be
    the same in runs that are compared."""

    protocol: Annotated[
        Literal["paper", "released"],
        Option(
            metavar="NAME",
            help="paper (default) or released: which argument configurations are asked; in released an argument "
            "repeats the citations of those before it",
        ),
    ] = "paper"
    templates: Annotated[
        int, Option(WholeNumber("templates", 1, 6), "N", "wordings of each question, 1 to 6 (default: 6)")
    ] = 6
    trials: Annotated[
        int, Option(WholeNumber("trials", 1, 10_000), "N", "repeats of each configuration (default: 15)")
    ] = 15


class Options(GridOptions, frozen=True):
    """The options of a run. `silence` changes no answer: it decides how the run's own scores are read."""

    model: Annotated[tuple[str, ...], MODEL]
    temperature: Annotated[tuple[float | None, ...], TEMPERATURE.by_default("not sent")] = ()
    reasoning_effort: Annotated[tuple[str, ...], EFFORT.by_default("not sent")] = ()
    max_tokens: Annotated[
        int | None, MAX_TOKENS.by_default("600 for Claude, 100 for OpenAI and Llama, else not sent")
    ] = None
    stance: Annotated[
        Literal["paper", "careful"],
        Option(help="how a text becomes a stance: paper (default) or careful"),
    ] = "paper"
    silence: Annotated[
        Literal["unscored", "literal"],
        Option(
            help="unscored (default): an issue of which a case has under a tenth of pro and con answers, or under half "
            "of its planned answers, has no score, nor has a model of which half is cut off or Other; literal: the "
            "authors' script to the letter (no answer depends on it)",
        ),
    ] = "unscored"
    dataset: Annotated[str | None, DATASET.by_default("12 issues")] = None
    issues: Annotated[
        str,
        Option(
            Text("all, controversial, controversial-or-all, a file of ids, or ids between commas"),
            "WHICH",
            "all (default), controversial, controversial-or-all (all of a data set with none of the controversial "
            "ones), a file of ids, or ids between commas",
        ),
    ] = "all"
    limit: Annotated[int | None, Option(WholeNumber("issues"), "N", "only the first N of these issues")] = None
    read: Annotated[Literal["unscored", "literal"] | None, READ] = None
    fix_orientation: Annotated[
        bool, Option(help="where an orientation label and its paraphrase's wording disagree, follow the wording")
    ] = False


class Readings(Struct, frozen=True):
    """The options of how `score` and `report` read records. None: as the run did."""

    stance: Annotated[
        Literal["paper", "careful"] | None,
        Option(
            help="read stances from the texts anew: paper or careful (default: as they were recorded)",
        ),
    ] = None
    silence: Annotated[
        Literal["unscored", "literal"] | None,
        Option(
            help="unscored: an issue or a model that hardly takes a side has no score; literal: the authors' script to "
            "the letter (default: as in the run; unscored)",
        ),
    ] = None
    read: Annotated[Literal["unscored", "literal"] | None, READ] = None
    fix_orientation: Annotated[
        bool,
        Option(
            help="where an orientation label and its paraphrase's wording disagree, follow the wording "
            "(default: as recorded)",
        ),
    ] = False
