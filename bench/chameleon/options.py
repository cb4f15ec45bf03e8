"""The options of Chameleon: those that decide a run's conversations, and those for reading its records.

Light to import, since `--help` needs it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct

from ...configuration.benchmark_options import DATASET, EFFORT, JUDGE_EFFORT, MAX_TOKENS, MODEL, READ, TEMPERATURE
from ...configuration.declared_options import Option
from ...configuration.values import SEARCH_NAME, FilePath, ModelName, WholeNumber
from .generating.data_command import DATA as DATA

TITLE = "Chameleon"
TURNS = 15
PROMPTS = "the questions of Chameleon"
# The scores of a pair in a table.
COLUMNS = (
    *("score", "95% interval over conversations", "rank", "scored", "SRR", "uncited turns"),
    *("confidence", "other confidence", "changes"),
)


class PromptOptions(Struct, frozen=True, kw_only=True):
    """The options that a run's prompts and judgements are made by. Each is a field of `ConversationSpec` too, stands in
    the specification, and must be the same in runs that are compared."""

    turns: Annotated[
        int, Option(WholeNumber("turns", 1, 10_000), "N", f"turns of a conversation (default: {TURNS})")
    ] = TURNS
    pages: Annotated[int, Option(WholeNumber("pages a turn", 1, 100), "N", "pages read a turn (default: 20)")] = 20
    order: Annotated[
        Literal["written", "shuffled", "grouped"],
        Option(help="questions as written (default), shuffled by --seed, or grouped by kind"),
    ] = "written"
    seed: Annotated[int, Option(WholeNumber("a seed", 0), "N", "what --order shuffled is drawn from (default: 0)")] = 0
    judge_prompt: Annotated[
        Literal["extended", "paper"],
        Option(
            metavar="NAME",
            help="extended (default: the paper's with rationale and confidence, and the history) or paper (unmodified, "
            "question and answer alone)",
        ),
    ] = "extended"
    page_tokens: Annotated[
        int,
        Option(WholeNumber("tokens a page", 1, 1_000_000), "N", "so much of each page's text is shown (default: 1500)"),
    ] = 1500
    max_tokens: Annotated[int | None, MAX_TOKENS.by_default("not sent")] = None


class Options(PromptOptions, frozen=True):
    """The options of a run. `dataset` and `corpus` None: those included in this program; `temperature` empty: the
    paper's three, where a model accepts one."""

    model: Annotated[tuple[str, ...], MODEL]
    judge: Annotated[
        str,
        Option(ModelName(), "PROVIDER/MODEL", "who reads the stance of every answer: one model, the same for all"),
    ]
    judge_reasoning_effort: Annotated[str | None, JUDGE_EFFORT] = None
    search: Annotated[
        str,
        Option(
            SEARCH_NAME,
            "ENGINE",
            "brave, serper, tavily, exa, searxng, google, or corpus (default: documents on this machine)",
        ),
    ] = "search/corpus"
    temperature: Annotated[
        tuple[float | None, ...], TEMPERATURE.by_default("0, 0.5 and 1 where a model takes one")
    ] = ()
    reasoning_effort: Annotated[tuple[str, ...], EFFORT.by_default("not sent")] = ()
    dataset: Annotated[str | None, DATASET.by_default("24 conversations")] = None
    corpus: Annotated[
        str | None,
        Option(
            FilePath("a folder of documents"),
            "DIR",
            "the documents of --search corpus: HTML, text or JSONL (default: articles that come with this, on the "
            "topics of the sample conversations)",
        ),
    ] = None
    conversations: Annotated[
        int | None,
        Option(WholeNumber("conversations"), "N", "only N of the data set's conversations, from its domains in turn"),
    ] = None
    retrieval: Annotated[
        Literal["own", "shared"],
        Option(metavar="WHOSE", help="own (default): each model's own queries; shared: those of --queries-by for all"),
    ] = "own"
    queries_by: Annotated[
        str | None,
        Option(ModelName(), "PROVIDER/MODEL", "whose queries are shared (default: the first model)"),
    ] = None
    old_pages: Annotated[
        Literal["drop", "keep"],
        Option(help="drop (default) or keep the pages of earlier turns"),
    ] = "drop"
    window: Annotated[
        int | None,
        Option(
            WholeNumber("tokens", 1_000), "N", "tokens that a prompt may have (default: as the model's window is known)"
        ),
    ] = None


class Readings(Struct, frozen=True):
    """The options of how scores are computed from records; answers don't depend on them."""

    read: Annotated[Literal["unscored", "literal"] | None, READ] = None
    sources: Annotated[
        Literal["cited", "retrieved"],
        Option(help="a turn's sources are those that its answer cited (default), or all retrieved"),
    ] = "cited"
    sources_by: Annotated[
        Literal["url", "hostname"],
        Option(help="two sources are one by url (default) or hostname"),
    ] = "url"
    uncited: Annotated[
        Literal["skip", "literal"],
        Option(
            help="a turn without a source: skip it (default; a conversation in which they are more than half is "
            "unscored), or literal: it counts as re-use 0",
        ),
    ] = "skip"
    confidence: Annotated[
        Literal["rubric", "number"],
        Option(
            help="by rubric, the certainty words of the judge's rationale (default: 0.33, 0.67 or 1), or the judge's "
            "number",
        ),
    ] = "rubric"
