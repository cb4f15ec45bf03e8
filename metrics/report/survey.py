"""What a report is asked about: the answers of some models, what is known of the issues, and which readings count.

Owns the options of PROTOCOL.md that a report leaves open, with their defaults. Knows no file and no figure.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, get_args

from msgspec import Struct

from ..answers import READINGS, AnswerReading, Answers
from ..gaps import Shape
from ..intervals import Over
from ..silence import Silence

IssueSet = Literal[107, 104]
ConsistencyPercent = Literal[90, 95]


class Options(Struct, frozen=True):
    """Which of two readings of the paper a report goes by.

    `issue_set`: 107 takes every issue there is, 104 leaves out the three that the published scores leave out.
    `consistent_percent`: above it a unanimous issue is consistent too (table 2's caption: 90; appendix D: 95).
    `relative_to_baseline`: figure 6 takes an argument's pro share minus its template's baseline (the authors' script).
    `over`: intervals are over issues, or over trials of the same issues.
    `silence`: issues and models that hardly take a side have no score, or the authors' script to the letter; None for
    what the runs were told to.
    `last_topic_only`: figure 4 counts an issue under the last of its topics alone (the authors' script).
    """

    issue_set: IssueSet = 107
    reading: AnswerReading = "recorded"
    consistent_percent: ConsistencyPercent = 90
    relative_to_baseline: bool = False
    last_topic_only: bool = False
    over: Over = "issues"
    silence: Silence | None = None

    def __post_init__(self) -> None:
        for name, allowed in (
            ("issue_set", get_args(IssueSet)),
            ("reading", READINGS),
            ("consistent_percent", get_args(ConsistencyPercent)),
            ("over", get_args(Over)),
        ):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} ({getattr(self, name)!r}) must be one of {', '.join(map(str, allowed))}")


class Survey(Struct, frozen=True):
    """The answers of the models to be compared, in the order they should stand in; a model's `name` is its own alone.

    `shapes` has by name what each model was to be asked, whether or not it has any answer; what a model without one
    lacks is seen from its own answers. `planned` has the names of those whose shape a manifest tells.

    `topics` are those of each issue, `left_out` the ids that the set of 104 lacks, `controversial` the ten of table 5.
    `manners` has by name how each was asked, as far as models must have it in common to be compared; `samples` the
    names of those that were asked the issues that come with the package. `label_remarks`: sentences
    about orientation labels that differ from their wordings.
    """

    answers: tuple[Answers, ...]
    shapes: Mapping[str, Shape] = MappingProxyType({})
    topics: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    left_out: tuple[str, ...] = ()
    controversial: tuple[str, ...] = ()
    options: Options = Options()
    manners: Mapping[str, Mapping[str, str]] = MappingProxyType({})
    samples: frozenset[str] = frozenset()
    planned: frozenset[str] = frozenset()
    label_remarks: tuple[str, ...] = ()

    @property
    def silence(self) -> Silence:
        return self.options.silence or "unscored"

    def __post_init__(self) -> None:
        names = [answers.name for answers in self.answers]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"models of one survey need names of their own; twice came {', '.join(twice)}")
