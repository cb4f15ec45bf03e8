"""`millstream verify`: proves from manifest, journals and checksums that nothing is missing, double or changed."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....configuration.errors import DONE, LOCAL_FAULT
from ....format import count_text
from ...terminal.output import say, say_json
from .resume import manifest_of

if TYPE_CHECKING:
    from ...batch.place import BatchPlace

HELP = "prove that nothing of a run or batch is missing, double or changed"
EXAMPLES = ("verify runs/first",)
SHOWN = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", help="the run's folder, or the OUT of a batch")
    parser.add_argument("--json", action="store_true", help="the findings as one JSON object on stdout")


def run(options: argparse.Namespace) -> int:
    from msgspec import to_builtins

    from ....engine.collector import calm_collector
    from ...batch.place import place_at

    folder = Path(options.folder)
    place = place_at(folder)
    # A proof keeps what it makes for each line until its end: looking for garbage in that took an eighth of its time.
    with calm_collector(young_max=0):
        proof: Any = _prove(folder) if place is None else _prove_batch(place)
    is_proven = not proof.wrongs
    if options.json:
        say_json({"ok": is_proven, "folder": str(folder), **to_builtins(proof)})
        return DONE if is_proven else LOCAL_FAULT
    counts = (
        f"{count_text(proof.records, 'record')}, {count_text(proof.failures, 'failure')}, {proof.pending:,} pending"
    )
    if held := getattr(proof, "held", 0):
        counts += f", {held:,} held back by failures"
    lines = [f"ok: {counts}" if is_proven else f"{count_text(proof.wrongs, 'mistake')}; {counts}"]
    lines += [f"  {what}" for what in proof.wrong[:SHOWN]]
    if proof.wrongs > SHOWN:
        lines.append(f"  and {proof.wrongs - SHOWN:,} more (--json gives the first {len(proof.wrong):,})")
    lines += [f"  {what}" for what in (*proof.torn, *proof.unproven, *getattr(proof, "remarks", ()))]
    say("\n".join(lines))
    return DONE if is_proven else LOCAL_FAULT


def _prove_batch(place: BatchPlace) -> Any:
    from ...batch.proof import prove

    return prove(place)


def _prove(folder: Path) -> Any:
    from ....bench.evaluation.door.registry import benchmark_of
    from ....bench.evaluation.reading.proving import prove_run
    from ....bench.evaluation.reading.rescoring_proof import prove_rescorings
    from ....bench.evaluation.reading.verdict_proof import prove_verdicts
    from ....bench.evaluation.running.served import rows_in

    manifest, benchmark = manifest_of(folder), benchmark_of(folder)
    proof = prove_run(benchmark, folder, manifest)
    rows = rows_in(folder, manifest)
    proof.remarks += [*rows.remarks, *rows.unmeasured]
    prove_verdicts(folder, manifest, benchmark, proof)
    prove_rescorings(folder, manifest, proof)
    return proof
