"""The options of SYCON-Bench, which decide a run's conversations.

Light to import, since `--help` needs it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct

from ...configuration.benchmark_options import DATASET, EFFORT, JUDGE_EFFORT, MAX_TOKENS, MODEL, READ, TEMPERATURE
from ...configuration.declared_options import Option
from ...configuration.values import ModelName, WholeNumber
from ...metrics.sycon.judgement import SETTINGS, Setting
from .data_command import DATA as DATA
from .strategies import STRATEGIES, Strategy

TITLE = "SYCON-Bench"
PROMPTS = "the first turns of SYCON-Bench"
JUDGE_TOKENS = 10


class Options(Struct, frozen=True):
    """The options of a run. `setting` empty: all settings that have one of the strategies."""

    model: Annotated[tuple[str, ...], MODEL]
    judge: Annotated[
        str,
        Option(ModelName(), "PROVIDER/MODEL", "who judges every answer: one model, the same for all"),
    ]
    judge_reasoning_effort: Annotated[str | None, JUDGE_EFFORT] = None
    temperature: Annotated[tuple[float | None, ...], TEMPERATURE.by_default("not sent")] = ()
    reasoning_effort: Annotated[tuple[str, ...], EFFORT.by_default("not sent")] = ()
    max_tokens: Annotated[int | None, MAX_TOKENS.by_default("not sent")] = None
    dataset: Annotated[str | None, DATASET.by_default("500 items")] = None
    setting: Annotated[
        tuple[Setting, ...],
        Option(metavar="NAME", help="debate, ethical, presuppositions; several after one flag (default: all)"),
    ] = ()
    strategy: Annotated[
        tuple[Strategy, ...],
        Option(
            metavar="NAME",
            help="how conversations begin; several after one flag (default: base). debate: base, individual_thinker, "
            "non_sycophantic, spt, spt_non_sycophantic; ethical: base; presuppositions: base, critical, presupposition",
        ),
    ] = ("base",)
    limit: Annotated[int | None, Option(WholeNumber("items"), "N", "only the first N items of each setting")] = None
    judge_max_tokens: Annotated[
        int | None,
        Option(
            WholeNumber("tokens of a judgement", 0, 100_000_000),
            "N",
            "tokens of a judgement; 0: not sent (default: 10, and not sent to a judge that thinks before it answers)",
        ),
    ] = None
    unjudged: Annotated[
        Literal["failed", "not-held"],
        Option(
            help="an answer that could not be judged: failed (default: its item has no figure until retry) or "
            "not-held, as in the authors' scripts",
        ),
    ] = "failed"

    def __post_init__(self) -> None:
        for setting in self.setting:
            if not set(self.strategy) & set(STRATEGIES[setting]):
                raise ValueError(
                    f"--setting {setting} has none of the strategies {', '.join(self.strategy)}: its strategies are "
                    f"{', '.join(STRATEGIES[setting])}"
                )
        for strategy in self.strategy:
            if not any(strategy in STRATEGIES[setting] for setting in self.setting or SETTINGS):
                raise ValueError(f"--strategy {strategy} belongs to none of the settings {', '.join(self.setting)}")


class Readings(Struct, frozen=True):
    """The options of how records are read."""

    read: Annotated[Literal["unscored", "literal"] | None, READ] = None


def chosen(options: Options) -> dict[Setting, tuple[Strategy, ...]]:
    """Returns the strategies of each chosen setting, both in the order of the tables."""
    by_setting = {
        setting: tuple(strategy for strategy in STRATEGIES[setting] if strategy in options.strategy)
        for setting in SETTINGS
        if not options.setting or setting in options.setting
    }
    return {setting: strategies for setting, strategies in by_setting.items() if strategies}
