"""The command `millstream data sycon`: checks a data set, or converts published judged turns to records to be scored.

Light to import, since `--help` needs it.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ...configuration import values
from ...configuration.declared_options import flag
from ...configuration.errors import DONE, WITH_FAILURES, UsageError
from ...configuration.values import Text, WordChoice
from ...format import command_text, first_of
from ...metrics.sycon.judgement import SETTINGS, Setting
from ..evaluation.door.data_command import DataCommand, DataReport
from .strategies import STRATEGIES, Strategy

if TYPE_CHECKING:
    from ..evaluation.door.watch import Watch

_NAMED = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "published",
        nargs="?",
        type=flag(Text("a file")),
        metavar="FILE",
        help="judged turns as the authors published them, a line for each item: 'Row 1: ToF = 5, NoF = 0, Alignments = "
        "[1 1 1 1 1]'",
    )
    parser.add_argument("--model", type=flag(values.ModelName()), metavar="PROVIDER/MODEL", help="whose turns FILE has")
    parser.add_argument(
        "--setting", type=flag(WordChoice(SETTINGS)), metavar="NAME", help="the setting of FILE (default: debate)"
    )
    parser.add_argument(
        "--strategy", type=flag(Text("a strategy")), metavar="NAME", help="its strategy (default: base)"
    )
    parser.add_argument(
        "--out",
        type=flag(Text("a folder")),
        metavar="DIR",
        help="the folder whose records.jsonl the turns of FILE become",
    )
    parser.add_argument(
        "--dataset",
        type=flag(Text("a folder")),
        metavar="DIR",
        help="check these files, which have the names and shapes of the authors' (default: those that come with this)",
    )


def run(options: argparse.Namespace, watch: Watch) -> DataReport:
    if options.published is None:
        if other := next((name for name in ("model", "setting", "strategy", "out") if getattr(options, name)), None):
            raise UsageError(f"--{other} belongs to a FILE of judged turns, got none: name it, or leave --{other} out")
        return _checked(options.dataset)
    for name in ("model", "out"):
        if getattr(options, name) is None:
            raise UsageError(f"--{name}: expected one beside {options.published}, got none")
    if options.dataset is not None:
        raise UsageError(f"--dataset is checked by itself, without {options.published}: leave one of them out")
    return _imported(options)


def _checked(dataset: str | None) -> DataReport:
    from .dataset import PUBLISHED, digest_of, read_setting

    folder = PUBLISHED if dataset is None else Path(dataset)
    rows = {setting: read_setting(setting, folder) for setting in SETTINGS}
    settings = {setting: {"items": len(items), "digest": digest_of(items)} for setting, items in rows.items()}
    lines = [f"{setting}: {len(items):,} items, digest {digest_of(items)[:12]}" for setting, items in rows.items()]
    return DataReport(
        exit_code=DONE,
        text=lambda width: "\n".join((str(folder), *lines)),
        fields={"folder": str(folder), "settings": settings},
    )


def _imported(options: argparse.Namespace) -> DataReport:
    from .published import disagreements, read_published, write_records

    path, out = Path(options.published), Path(options.out)
    setting: Setting = options.setting or "debate"
    strategy: Strategy = options.strategy or "base"
    if strategy not in STRATEGIES[setting]:
        raise UsageError(f"--strategy {strategy}: the strategies of {setting} are {', '.join(STRATEGIES[setting])}")
    rows = read_published(path)
    wrong = disagreements(rows)
    try:
        lines = write_records(rows, out, options.model, setting, strategy)
    except FileExistsError as error:
        raise UsageError(f"{out} has a records.jsonl already: choose another --out") from error
    except OSError as error:
        raise UsageError(f"{out}: expected a folder that can be written, got: {error.strerror}") from error
    verdict = f"not as stated: {first_of(wrong, _NAMED, '; ')}" if wrong else "every row's figures are as stated"
    text = f"{out}: {lines:,} turns of {len(rows):,} items; {verdict}; score them: {command_text('score', out)}"
    return DataReport(
        exit_code=WITH_FAILURES if wrong else DONE,
        text=lambda width: text,
        fields={"folder": str(out), "items": len(rows), "turns": lines, "not_as_stated": wrong},
    )


DATA = DataCommand(
    "Checks a data set of the three settings, or makes records of published judgements, which can be scored.",
    add_arguments,
    run,
)
