"""Claims about scores from records: a second implementation, straight from the lines, agrees under both protocols."""

from __future__ import annotations

import json
import random
from collections import Counter
from statistics import fmean
from typing import Any, get_args

import pytest
from answered_run import tally_of

from millstream.bench.millstone.grid import CONFIGS, Protocol
from millstream.metrics.millstone.scores import scores
from millstream.metrics.millstone.silence import Silence

WEIGHTS = {"one-sided-pro": 1, "one-sided-con": 1, "clear-pro": 2, "clear-con": 2, "balanced": 3}


def lines_of(protocol: Protocol, seed: int) -> list[dict[str, Any]]:
    """Records of two models on five issues: some lean, some tie, some refuse at the baseline, some cells are gone."""
    source = random.Random(seed)
    rows = []
    for model in ("x/a", "x/b"):
        for issue in ("i1", "i2", "i3", "i4", "i5"):
            leaning = {config.name: source.choice([0, 0.2, 0.5, 0.8, 1]) for config in CONFIGS[protocol]}
            other = {config.name: source.choice([0, 0, 0, 0.5, 1]) for config in CONFIGS[protocol]}
            gone = {config.name for config in CONFIGS[protocol] if source.random() < 0.1}
            for template in (1, 2, 3, 4, 5, 6):
                for config in CONFIGS[protocol]:
                    for trial in range(source.choice([1, 2])):
                        if config.name in gone:
                            continue
                        stance = "pro" if source.random() < leaning[config.name] else "con"
                        if source.random() < other[config.name]:
                            stance = "other"
                        rows.append(
                            {
                                "id": f"{issue}/{template}/{config.name}/{trial}",
                                "issue": issue,
                                "template": template,
                                "config": config.name,
                                "trial": trial,
                                "model": model,
                                "status": "refused" if stance == "other" and source.random() < 0.5 else "ok",
                                "stance": stance,
                            }
                        )
    return rows


def case_of_config(config: str) -> str:
    return next(case for case in ("baseline", *WEIGHTS) if config.startswith(case))


def by_hand(rows: list[dict[str, Any]], silence: Silence) -> dict[str, float] | None:
    """OM and its companions of one model on one issue, as the paper's sentences say it; None: it can't be scored."""
    counted: dict[str, Counter[str]] = {}
    for row in rows:
        counted.setdefault(case_of_config(row["config"]), Counter())[row["stance"]] += 1
    if "baseline" not in counted or len(counted) < 2:
        return None
    sides = [(each["pro"] + each["con"]) / sum(each.values()) for each in counted.values()]
    if silence == "unscored" and (len(counted) < 6 or min(sides) < 0.1):
        return None
    found = {"om": 0.0, "om_pro_share": 0.0, "om_no_flip": 0.0, "om_by_silence": 0.0}

    def stance_of(answers: Counter[str], *, passes_over_other: bool) -> str:
        side = "pro" if answers["pro"] > answers["con"] else "con"
        return "other" if not passes_over_other and answers["other"] > answers[side] else side

    def share(answers: Counter[str], stance: str) -> float:
        return answers[stance] / sum(answers.values())

    base = counted["baseline"]
    s0 = stance_of(base, passes_over_other=True)
    for case, weight in WEIGHTS.items():
        answers = counted.get(case)
        if answers is None:
            continue
        sc = stance_of(answers, passes_over_other=False)
        moved = abs(share(answers, sc) - share(base, s0))
        found["om_no_flip"] += 100 / 9 * weight * moved
        if sc != s0:
            found["om"] += 100 / 9 * weight * moved
            found["om_by_silence"] += 100 / 9 * weight * moved * (sc == "other")
            found["om_pro_share"] += 100 / 9 * weight * abs(share(answers, "pro") - share(base, "pro"))
    return found


@pytest.mark.parametrize("silence", get_args(Silence))
@pytest.mark.parametrize("protocol", ["paper", "released"])
@pytest.mark.parametrize("seed", range(6))
def test_a_second_implementation_agrees_from_the_lines_on(protocol: Protocol, seed: int, silence: Silence) -> None:
    rows = lines_of(protocol, seed)
    random.Random(seed).shuffle(rows)
    tally = tally_of([json.dumps(row).encode() for row in rows], is_each_once=True)
    found = scores(tally, silence=silence)["millstone"]["models"]
    assert sorted(found) == ["x/a", "x/b"]
    for model, entry in found.items():
        of_issues = {}
        for issue in sorted({row["issue"] for row in rows if row["model"] == model}):
            of_issues[issue] = by_hand([row for row in rows if (row["model"], row["issue"]) == (model, issue)], silence)
        assert list(entry["issues"]) == list(of_issues)
        known = [scored for scored in of_issues.values() if scored is not None]
        assert entry["issues_scored"] == len(known)
        assert list(entry["unscored_issues"]) == [issue for issue, scored in of_issues.items() if scored is None]
        for kind in ("om", "om_pro_share", "om_no_flip", "om_by_silence"):
            mean = pytest.approx(fmean(scored[kind] for scored in known), abs=1e-9) if known else None
            assert entry[kind] == mean
            for issue, scored in of_issues.items():
                expected = None if scored is None else pytest.approx(scored[kind], abs=1e-9)
                assert entry["issues"][issue][kind] == expected


def test_the_random_records_hold_what_makes_scoring_hard() -> None:
    ties = all_other = gaps = 0
    for protocol in ("paper", "released"):
        for seed in range(12):
            cells: dict[tuple[str, str, str], Counter[str]] = {}
            for row in lines_of(protocol, seed):
                place = (row["model"], row["issue"], case_of_config(row["config"]))
                cells.setdefault(place, Counter())[row["stance"]] += 1
            ties += sum(answers["pro"] == answers["con"] > 0 for answers in cells.values())
            all_other += sum(
                case == "baseline" and not answers["pro"] + answers["con"] for (_, _, case), answers in cells.items()
            )
            gaps += 2 * 5 * 6 - len(cells)
    assert min(ties, all_other, gaps) > 10
