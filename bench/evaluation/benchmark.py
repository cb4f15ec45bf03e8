"""The base class of benchmarks: the methods that the framework calls, from options to the part of the report.

Knows no benchmark by name; the registry does. A method that a benchmark does not implement raises a one-line error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct

from ...configuration.errors import UsageError

if TYPE_CHECKING:
    from ...configuration.benchmark_options import RunOptions
    from ...configuration.configuration import Configuration
    from ...configuration.options import SendingOptions
    from ...engine.call import Message
    from ...engine.runs.run_folder import WrongSpecification
    from ...report.sections import PageContents
    from .data_command import DataCommand
    from .forecast import Expected
    from .judging.judging import Judging
    from .labelling.label import Label, Labeller
    from .preparation import ItemsOfPilot, PreparedRun
    from .stored_calls import RunLine, StoredCall


class Order(Struct, frozen=True, kw_only=True):
    """The request for a run: its folder, options, and how to send it."""

    out: Path
    """The run's folder."""
    run: RunOptions
    """The benchmark's options and readings."""
    sending: SendingOptions
    """The options of how its calls are sent."""
    configuration: Configuration
    """Lanes, providers and prices."""
    needs_keys: bool = True
    """Whether the run will be sent; a plan alone needs no API key."""


class LoadPrompts(Struct, frozen=True):
    """The prompts that a load test takes from a data set."""

    prompts: Sequence[str | tuple[Message, ...]]
    """The prompts: texts, or conversations in texts."""
    text: str
    """A description of the prompts."""


class Benchmark:
    """The base class of every benchmark, those that come with this program included."""

    name: ClassVar[str]
    """Its name on the command line, and its key in scores.json."""
    title: ClassVar[str]
    """Its name in a sentence."""
    Options: ClassVar[type[Struct]]
    """The options that decide prompts and answers: flags, run-file keys, help and the manifest's options are made from
    them."""
    Readings: ClassVar[type[Struct]]
    """The options that decide how records are read; no prompt and no answer depends on them."""
    Record: ClassVar[type[Struct]]
    """The type of a line of records.jsonl."""
    prompts: ClassVar[str] = ""
    """A description of the prompts that `load --dataset` takes from its data sets. Empty: it offers none."""
    data: ClassVar[DataCommand | None] = None
    """The command `data NAME`, which builds, imports and checks data sets. None: it has none."""
    categories: ClassVar[tuple[str, ...]] = ()
    """The record's fields that have few different texts: an exported table stores them as categories."""
    unit_name: ClassVar[str] = "item"
    """The noun for what `unit_of` returns."""
    reads_counts: ClassVar[bool] = False
    """Whether `score --counts` and `report --counts` read published tables of this benchmark."""

    def __repr__(self) -> str:
        return f"<Benchmark {self.name}>"

    def prepare(self, order: Order) -> PreparedRun:
        """Checks a run completely and returns it ready to begin. Writes nothing."""
        raise self._lacks("run")

    def explain_other_run(self, folder: Path, dataset: Mapping[str, Any], error: WrongSpecification) -> str:
        """Returns the message that says why this command can't continue in a folder that holds another run. `dataset`
        describes this command's data as its manifest would."""
        return str(error)

    def owns(self, fields: Mapping[str, Any]) -> bool:
        """Returns whether a record that has no manifest is this benchmark's, judged by its fields."""
        return False

    def score(self, folder: Path, given: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        """Scores a folder's records with the given readings and returns the contents of scores.json, and what that file
        keeps in their place, for a remark (empty: these are the run's own readings)."""
        raise self._lacks("score")

    def score_table(self, source: str, scores: Mapping[str, Any]) -> str:
        """Returns scores as a table for people, with the name of their source above."""
        raise self._lacks("score")

    def check_counts_readings(self, given: Mapping[str, Any]) -> None:
        """Raises UsageError if a given reading needs more than a table of counts contains."""

    def score_counts(self, path: Path, given: Mapping[str, Any]) -> dict[str, Any]:
        """Returns scores, in the form of scores.json, computed from a published table of counts."""
        raise self._lacks("score --counts")

    def manner(self, source: Path, scores: Mapping[str, Any], given: Mapping[str, Any]) -> Mapping[str, str]:
        """Returns how a source's records were made, as names with texts; sources that differ in one are not compared.
        `given`: the readings used for scoring."""
        return {}

    def forecast(self, prepared: PreparedRun, *, looks_into_cache: bool) -> Expected:
        """Returns the calls and tokens that a run is expected to take on each lane. `looks_into_cache`: calls that the
        cache answers are left out."""
        raise self._lacks("plan")

    def pilot_items(self, prepared: PreparedRun, size: int) -> ItemsOfPilot:
        """Returns `size` of the run's own items, spread evenly over it."""
        raise self._lacks("plan --pilot")

    def read_run(self, path: Path, manifest: Mapping[str, Any] | None, given: Mapping[str, Any]) -> Any:
        """Returns a folder's records in the form that `report` takes; None: in that of the general part. Without a
        manifest, there must be records."""
        return None

    def read_counts(self, path: Path) -> Any:
        """Returns a published table of counts in the form that `report` takes beside the records of runs."""
        raise self._lacks("report --counts")

    def run_remarks(self, run: Any) -> Sequence[str]:
        """Returns sentences that a reader must know about the records of `read_run`."""
        return ()

    def report(self, runs: Sequence[Any], given: Mapping[str, Any], flags: Sequence[str]) -> PageContents | None:
        """Returns the benchmark's own part of a report page on these runs; None: the general one. `given` are the
        readings, `flags` the same as command-line words."""
        return None

    def prove(self, folder: Path, manifest: dict[str, Any]) -> Any:
        """Checks a run's manifest and journals and returns the proof: what is missing, duplicated or changed."""
        raise self._lacks("verify")

    def load_prompts(self, dataset: Path | None) -> LoadPrompts:
        """Returns prompts for a load test from a data set; None: from the sample that comes with this program. Raises
        DatasetError or OSError where the path holds no data set of this benchmark."""
        raise self._lacks("load --dataset")

    def label(self, record: Any) -> Label | None:
        """Returns the question that `review` asks people about a record; None: no question. A benchmark without this
        method has no review."""
        raise UsageError(f"review: {self.title} offers nothing to label")

    def labeller(self, manifest: Mapping[str, Any] | None, *, is_shown: bool) -> Labeller:
        """Returns the maker of labels for one run, where labels need more than a record. `is_shown`: whether a person
        will see the question; otherwise choices and readings are enough."""
        from .labelling.label import Labeller

        return Labeller(self.Record, self.label)

    def unit_of(self, record_id: str) -> str:
        """Returns the issue, conversation or item that a record belongs to, from its id."""
        return record_id.rpartition("/")[0] or record_id

    def judging(self, manifest: Mapping[str, Any]) -> Judging:
        """Returns how the kept answers of the run with this manifest are judged anew. A benchmark without this method
        has no judge."""
        raise UsageError(
            f"judge: no judge reads the answers of {self.title}: `millstream review` lets people check them"
        )

    def call_of(self, line: RunLine) -> StoredCall | None:
        """Returns the call behind a journal line, built as `resume` builds it. None: the line's own cache keys identify
        its calls. Raises UsageError if the run has no such line."""
        return None

    def own_readings(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Returns those of the given readings that this benchmark has."""
        return {name: value for name, value in given.items() if name in self.Readings.__struct_fields__}

    def _lacks(self, what: str) -> UsageError:
        return UsageError(f"{what}: the benchmark {self.name} does not offer it")
