"""`millstream score`: scores from the records of run folders, ours or another program's, or from published counts."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ..benchmark_options import add_chameleon_readings
from ..options import add_readings
from ..output import note, say, say_json
from ..refusal import DONE, WITH_FAILURES, UsageError

HELP = "score again, from records or from published counts"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folders", nargs="*", metavar="DIR", help="folders that hold a records.jsonl")
    parser.add_argument(
        "--counts",
        nargs="+",
        action="extend",
        default=[],
        metavar="CSV",
        help="tables with the columns issue, issue_stance, count, case, model",
    )
    add_readings(parser)
    add_chameleon_readings(parser)
    parser.add_argument("--json", action="store_true", help="the scores as one JSON object on stdout")


def run(options: argparse.Namespace) -> int:
    if not options.folders and not options.counts:
        raise UsageError("score: expected at least one DIR, or --counts CSV, got none")
    if options.fix_orientation and options.counts:
        raise UsageError("--fix-orientation: expected records, which tell their letters, got --counts, which have none")
    if options.stance and options.counts:
        raise UsageError("--stance: expected records, whose texts can be read anew, got --counts, which have none")
    from ..unlike_sources import unlike

    scored = {folder: _score(Path(folder), options) for folder in options.folders}
    if options.counts:
        from ..millstone_scores import left_out, score_counts

        scored |= {
            path: score_counts(Path(path), left_out(options), options.silence, options.intervals)
            for path in options.counts
        }
    if options.json:
        say_json(scored)
    else:
        say("\n\n".join(_told(source, scores) for source, scores in scored.items()))
    if len(scored) > 1 and (told := unlike(scored, is_recorded=options.stance is None)):
        note(f"millstream: {told}")
    has_unmeasured = any(part["unmeasured"] for scores in scored.values() for part in scores.values())
    return WITH_FAILURES if has_unmeasured else DONE


def _score(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    from .. import chameleon_scores, millstone_scores
    from ..which import benchmark_of, refuse_readings_of_others

    benchmark = benchmark_of(folder)
    refuse_readings_of_others(benchmark, folder, options)
    if benchmark == "chameleon":
        return chameleon_scores.score_folder(folder, options)
    return millstone_scores.score_folder(folder, options)


def _told(source: str, scores: dict[str, Any]) -> str:
    from .. import chameleon_scores, millstone_scores

    return chameleon_scores.told(source, scores) if "chameleon" in scores else millstone_scores.told(source, scores)
