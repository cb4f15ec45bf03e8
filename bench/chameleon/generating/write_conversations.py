"""Carries out `data chameleon`: generates conversations from the command's options and writes the file.

Owns option conflicts, the exit code, and the twelve domains with their numbers of topics in the paper's table 2. A
stopped command goes on from the cache, which has every answer.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct

from ....configuration.configuration import read_configuration, settings_for
from ....configuration.data_files import found_at, make_room, out_file, path_of, write_once
from ....configuration.errors import DONE, RESUMABLE, SIGNAL, WITH_FAILURES, UsageError
from ....engine.remarks import remark
from ....wiring.lane_names import unused_lanes
from ....wiring.running import RunEnd
from ...evaluation.data.ask_all import ask_all
from ...evaluation.door.data_command import from_the_cache
from ...evaluation.door.watch import Watch, unwatched
from ...evaluation.planning.preparation import check_cost_is_bounded
from ..dataset import ConversationSet, load
from .generation import ConversationGeneration, encode
from .topics import read_topics


class WritingResult(Struct, frozen=True, kw_only=True):
    """The result of the command: what was generated, and its exit code. `dataset` is the data set in the file `out`
    (None: there is no file); `is_written`: the file was written now; `interrupted_by`: the signal's number."""

    generation: ConversationGeneration
    exit_code: int
    out: Path
    dataset: ConversationSet | None = None
    is_written: bool = False
    interrupted_by: int | None = None

    @property
    def is_unfinished(self) -> bool:
        return self.exit_code == RESUMABLE or self.exit_code > SIGNAL


def write_conversations(options: argparse.Namespace, watch: Watch = unwatched) -> WritingResult:
    if options.model is None:
        raise UsageError("--model: expected who writes the conversations as provider/model, got none")
    if options.topics is not None and options.topics_from is not None:
        raise UsageError("--topics counts topics that the model finds, --topics-from names them: give one of them")
    out = out_file(options.out)
    topics = None if options.topics_from is None else _topics(options.topics_from)
    counts = counts_of(options.topics) if topics is None else {domain: len(names) for domain, names in topics.items()}
    is_there, sending = out.exists(), options.sending
    if is_there:
        # An existing file is never overwritten, so nothing is paid for that would be discarded.
        sending = from_the_cache(sending, out)
    else:
        make_room(out)
    settings = settings_for((options.model,), sending, read_configuration(sending.config))
    check_cost_is_bounded({options.model: None}, settings, has_option=False)
    for sentence in unused_lanes([settings]):
        remark(sentence)
    generation = ConversationGeneration(options.model, counts, topics, options.questions)
    end = ask_all(generation.run, settings, f"data {out}", watch)
    return _concluded(generation, out, end, is_there=is_there)


def _topics(text: str) -> Mapping[str, Sequence[str]]:
    path = path_of(text)
    expected = f"--topics-from {path}: expected a file of topics by domain, as JSON or CSV"
    if found_at(path, expected) is None:
        raise UsageError(f"{expected}, got nothing there")
    return read_topics(path)


def _concluded(generation: ConversationGeneration, out: Path, end: RunEnd, *, is_there: bool) -> WritingResult:
    is_lacking = bool(generation.pending or generation.lacking)
    if is_there and _missing(generation):
        raise UsageError(
            f"--out {out} exists, and this would have to be asked anew: nothing was sent or overwritten; choose "
            f"another --out, or move it away"
        )
    if is_lacking and (end.signal is not None or generation.stops):
        code = end.exit_code(is_pending=True, has_failures=False)
        return WritingResult(generation=generation, exit_code=code, out=out, interrupted_by=end.signal)
    code = WITH_FAILURES if generation.failures or generation.lacking else DONE
    contents = generation.contents()
    if not contents:
        return WritingResult(generation=generation, exit_code=code, out=out)
    is_written = write_once(out, encode(contents))
    return WritingResult(generation=generation, exit_code=code, out=out, dataset=load(out), is_written=is_written)


def _missing(generation: ConversationGeneration) -> bool:
    """Returns whether mode strict found some answer missing in the cache."""
    reasons = [*generation.failures.values(), *(refused.reason for refused in generation.refused)]
    return any(reason.startswith("not_cached") for reason in reasons)


DOMAINS: Mapping[str, int] = MappingProxyType(
    {
        "AI Ethics": 97,
        "Climate Change": 95,
        "Cybersecurity": 99,
        "Data Privacy": 104,
        "Economic Inequality": 99,
        "Education Policy": 98,
        "Gene Editing": 95,
        "GMO Safety": 99,
        "Mental Health Interventions": 97,
        "Nutrition": 101,
        "Renewable Energy": 96,
        "Vaccine Effectiveness": 100,
    }
)


def counts_of(topics: int | None = None) -> dict[str, int]:
    """Returns the number of topics by domain: the paper's, or `topics` in all, distributed in the paper's shares, with
    at least one for each domain while there are enough."""
    if topics is None:
        return dict(DOMAINS)
    if topics < 1:
        raise ValueError(f"topics ({topics}) must be >= 1")
    whole = sum(DOMAINS.values())
    shares = {domain: topics * count / whole for domain, count in DOMAINS.items()}
    counts = {domain: int(share) for domain, share in shares.items()}
    # The remainder of rounding down goes to the domains that lost most by it.
    by_loss = sorted(DOMAINS, key=lambda domain: (counts[domain] > 0, counts[domain] - shares[domain]))
    for domain in by_loss[: topics - sum(counts.values())]:
        counts[domain] += 1
    return {domain: count for domain, count in counts.items() if count}
