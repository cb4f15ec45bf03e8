"""Whole small surveys for reports: models asked about issues with arguments, by chance or by published counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from random import Random

from millstream.bench.millstone.options import Readings
from millstream.bench.millstone.report.survey import ReportSurvey
from millstream.engine.pairs import Pair
from millstream.metrics.millstone.answers import AnswerRows, AnswerTally
from millstream.metrics.millstone.counts import CountRow

PUBLISHED_COUNTS = Path(__file__).parent.parent / "metrics" / "millstone" / "data" / "millstone-counts-gpt-4o.csv"

CONTROVERSIAL = ("drones", "Olympics", "US-penny")
LEFT_OUT = ("tablets-vs-textbooks",)
ISSUES = (*CONTROVERSIAL, *LEFT_OUT, "abortion", "golf", "milk", "zoos")
TOPICS: Mapping[str, tuple[str, ...]] = {
    "drones": ("Law & Order", "Technology"),
    "Olympics": ("Sports",),
    "US-penny": ("Economy & Taxes",),
    "golf": ("Sports",),
    "milk": ("Health & Medicine",),
    "zoos": ("Society & Holidays",),
}
# How strongly each configuration pulls towards pro.
_PULL = {
    "baseline": 0.0,
    "one-sided-pro": 0.5,
    "one-sided-con": -0.5,
    "clear-pro-1": 0.3,
    "clear-con-1": -0.3,
    "balanced-1": 0.05,
}


def polled(
    name: str,
    issues: Iterable[str] = ISSUES,
    *,
    seed: int = 0,
    trials: int = 3,
    refuses: Iterable[str] = (),
    skipped: Iterable[tuple[str, str]] = (),
) -> AnswerRows:
    """One model's answers; it refuses at the baseline of some issues, and (issue, configuration) can be left out."""
    tally, chance = AnswerTally(), Random(seed)
    refused, gone = set(refuses), set(skipped)
    for issue in issues:
        leaning = chance.choice((0.1, 0.3, 0.5, 0.7, 0.95))
        for config, pull in _PULL.items():
            if (issue, config) in gone:
                continue
            for template in range(1, 7):
                for trial in range(trials):
                    arguments = _arguments(config, chance)
                    stance = "pro" if chance.random() < leaning + pull else "con"
                    refuses_here = config == "baseline" and issue in refused and chance.random() < 0.6
                    stance = "other" if refuses_here else stance
                    careful = "other" if chance.random() < 0.02 else stance
                    stances = (stance, stance, careful)
                    tally.add(Pair(name, None), issue, template, config, trial, stances, refuses_here, arguments)
    [answers] = tally.models()
    return answers


def _arguments(config: str, chance: Random) -> tuple[str, ...]:
    pro, con = [f"pro-{number}" for number in range(1, 5)], [f"con-{number}" for number in range(1, 5)]
    shown = {
        "baseline": [],
        "one-sided-pro": pro,
        "one-sided-con": con,
        "clear-pro-1": [*chance.sample(pro, 3), chance.choice(con)],
        "clear-con-1": [*chance.sample(con, 3), chance.choice(pro)],
        "balanced-1": [*pro, *con],
    }[config]
    return tuple(chance.sample(shown, len(shown)))


def counted(rows: Iterable[CountRow]) -> list[AnswerRows]:
    """Answers that add up to published counts; which template and trial each was is made up."""
    configs = {"clear-pro": "clear-pro-1", "clear-con": "clear-con-1", "balanced": "balanced-1"}
    tally, places = AnswerTally(), dict[tuple[str, str, str], int]()
    for row in rows:
        for _ in range(row.answers):
            at = places.setdefault((row.model, row.issue, row.case), 0)
            places[row.model, row.issue, row.case] += 1
            config = configs.get(row.case, row.case)
            tally.add(Pair(row.model, None), row.issue, at % 6 + 1, config, at // 6, (row.stance, None, None))
    return tally.models()


def survey_of(*answers: AnswerRows, readings: Readings | None = None) -> ReportSurvey:
    return ReportSurvey(
        answers, topics=TOPICS, left_out=LEFT_OUT, controversial=CONTROVERSIAL, readings=readings or Readings()
    )


def realistic(readings: Readings | None = None) -> ReportSurvey:
    """Two large models of one family, one that refuses, and one that was asked about the controversial issues only."""
    return survey_of(
        polled("lab/great-2-large", seed=1),
        polled("lab/great-2-mini", seed=2),
        polled("other/shy-1", seed=3, refuses=("abortion", "zoos")),
        polled("third/part-3", CONTROVERSIAL, seed=4),
        readings=readings,
    )
