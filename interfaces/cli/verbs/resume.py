"""`millstream resume`: continues a run from what its folder keeps; `retry` uses it to send failures again."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....configuration.errors import UsageError
from ....configuration.options import add_run_options
from ....format import command_text
from ...terminal.output import note

if TYPE_CHECKING:
    from ....bench.evaluation.door.prepared_run import PreparedRun

HELP = "continue a run that stopped"
EXAMPLES = ("resume runs/first",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", help="the run's folder; options not given here are those it ran with")
    parser.add_argument(
        "--set-aside-damaged",
        action="store_true",
        help="move lines that are not what was written to a file beside, and ask for them again",
    )
    add_run_options(parser)


def run(options: argparse.Namespace) -> int:
    from .run import carry_out

    prepared = prepared_of(Path(options.folder), options)
    return carry_out((prepared,), options, set_aside=options.set_aside_damaged)


def prepared_of(folder: Path, options: argparse.Namespace) -> PreparedRun:
    """Returns the run of a folder as its manifest describes it. Quotas, API keys, cache and mode may be given anew."""
    from msgspec import structs

    from ....bench.evaluation.door.benchmark import Order
    from ....bench.evaluation.door.registry import options_of
    from ....bench.evaluation.planning.item_plan import prepare
    from ....bench.evaluation.planning.preparation import in_sweep
    from ....configuration.configuration import read_configuration

    manifest = manifest_of(folder)
    try:
        run, kept = options_of(manifest)
        sweep = tuple(map(str, manifest["options"].get("sweep", ())))
    except (KeyError, TypeError) as error:
        raise UsageError(
            f"{folder}: its manifest.json keeps no options ({error}): start it with `run` again"
        ) from error
    sending = options.sending.over(kept)
    if sending.config is not None and options.sending.config is None:
        note(f"millstream: lanes, providers and prices as the run had them, from {sending.config}")
    configuration = read_configuration(sending.config, may_hold_runs=True)
    prepared = prepare(Order(out=folder.absolute(), run=run, sending=sending, configuration=configuration))
    digest, begun = prepared.specification["data"], manifest["specification"].get("data")
    if digest != begun:
        raise UsageError(
            f"{prepared.dataset['path']} is not the data set that this run began with: its digest is {digest[:12]}…, "
            f"it was {str(begun)[:12]}…; bring that one back, or start another run"
        )
    return structs.replace(in_sweep(prepared, sweep) if sweep else prepared, notes=())


def manifest_of(folder: Path) -> dict[str, Any]:
    """Returns the manifest of a run's folder. Raises UsageError if there is none, or it is a batch's."""
    from ....bench.load.folder import CALLS
    from ....engine.runs.run_folder import MANIFEST, no_run_at, read_manifest
    from ...batch.place import check_is_no_batch

    check_is_no_batch(folder)
    if (folder / MANIFEST).exists():
        return read_manifest(folder)
    inside = sorted(path.parent.name for path in folder.glob(f"*/{MANIFEST}")) if folder.is_dir() else []
    if inside:
        raise UsageError(f"{folder} holds several runs ({', '.join(inside)}): name one, as {folder / inside[0]}")
    if (folder / CALLS).exists():
        raise UsageError(f"{folder} holds a load test, not a run: {command_text('report', folder)} shows its figures")
    raise UsageError(no_run_at(folder) or f"{folder} holds no run: {MANIFEST} is missing")
