"""The input of a report's numbers: the answers of several models, facts about their issues, and the chosen readings.

Knows no file and no figure.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct

from ....metrics.millstone.answers import AnswerReading, AnswerRows
from ....metrics.millstone.counts import ModelCounts
from ....metrics.millstone.gaps import Shape
from ....metrics.millstone.silence import Silence
from ..options import Readings


class ReportSurvey(Struct, frozen=True):
    """The answers of the models to be compared, in the order of the report; a model's `name` is unique. The mappings
    are by name, except `topics`, which is by issue.

    `shapes`: the planned grid of each model, with or without answers; without one, missing answers are inferred from
    the others. `planned`: the models whose shape is from a manifest. `left_out`: the ids that the set of 104 lacks;
    `controversial`: the ten of table 5. `manners`: the settings that models must share to be compared. `samples`: the
    models that were asked the issues that come with the package; `alone`: those without a rank. `label_remarks`:
    sentences about orientation labels that differ from their wordings. `counts`: published counts, each under a unique
    name too; how they were asked and read is not known.
    """

    answers: tuple[AnswerRows, ...]
    shapes: Mapping[str, Shape] = MappingProxyType({})
    topics: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    left_out: tuple[str, ...] = ()
    controversial: tuple[str, ...] = ()
    readings: Readings = Readings()
    manners: Mapping[str, Mapping[str, str]] = MappingProxyType({})
    samples: frozenset[str] = frozenset()
    planned: frozenset[str] = frozenset()
    alone: frozenset[str] = frozenset()
    label_remarks: tuple[str, ...] = ()
    counts: tuple[ModelCounts, ...] = ()

    @property
    def silence(self) -> Silence:
        return self.readings.silence or "unscored"

    @property
    def stance(self) -> AnswerReading:
        """The reading by which texts become stances; "recorded" if none was chosen."""
        return self.readings.stance or "recorded"
