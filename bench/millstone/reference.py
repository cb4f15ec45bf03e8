"""The published issues: their ids, their topics, and the ones that the paper treats separately.

Owns `data/issues.txt` and `data/topics.csv`, facts only. Holds no question, no argument and no published figure; any
data set may have other issues, which are then in no topic.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

_DATA = Path(__file__).parent / "data"


def _flags() -> Mapping[str, str]:
    lines = (_DATA / "issues.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.partition("\t") for line in lines if not line.startswith("#")]
    return MappingProxyType({issue: flag for issue, _, flag in pairs})


_FLAGS = _flags()

# The 107 issues, in order of their names.
ISSUES = tuple(_FLAGS)
# The three that tables 1 and 4 leave out: their figures fit the other 104.
LEFT_OUT = tuple(issue for issue, flag in _FLAGS.items() if flag == "left-out")
# The ten on which GPT and Grok models were evaluated (appendix E of the paper, without the refused ones).
CONTROVERSIAL = tuple(issue for issue, flag in _FLAGS.items() if flag == "controversial")


def topics() -> Mapping[str, tuple[str, ...]]:
    """Returns each issue's topics, in the order of the published table (the authors count the last one); none for
    issues that are not published."""
    by_issue: dict[str, tuple[str, ...]] = {}
    with (_DATA / "topics.csv").open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            by_issue[row["issue"]] = (*by_issue.get(row["issue"], ()), row["topic"])
    return MappingProxyType(by_issue)
