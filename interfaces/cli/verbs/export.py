"""`millstream export`: the records of runs and batches as tables for other tools."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ....configuration.data_files import make_room
from ....configuration.declared_options import flag
from ....configuration.errors import DONE, UsageError
from ....configuration.values import Text, WholeNumber
from ....format import count_text
from ...terminal.output import say, say_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...export.rows import RecordSource

HELP = "write the records of runs and batches as Parquet, for pandas, polars, DuckDB and others"
EXAMPLES = (
    "export runs/first",
    "export runs/first runs/second --out tables",
    "export runs/first --rows-per-file 100000 --out first.parquet",
)
_SUFFIX = ".parquet"
_OTHER_SUFFIXES = (".csv", ".tsv", ".json", ".jsonl", ".xlsx")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "places", nargs="+", metavar="DIR", help="run folders, a folder of several, or the OUT of a batch"
    )
    # Parquet is the one format there is.
    parser.add_argument("--parquet", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument(
        "--out",
        type=flag(Text("a file or folder")),
        metavar="FILE|FOLDER",
        help="a .parquet file for one run, a folder for any number (default: records.parquet in each run's folder, "
        "OUT.parquet beside a batch's OUT)",
    )
    parser.add_argument(
        "--rows-per-file",
        type=flag(WholeNumber("rows")),
        metavar="N",
        help="instead of each file, write a folder of that name, with files of N rows: part-00000.parquet, "
        "part-00001.parquet and so on (the last one has the rest)",
    )
    parser.add_argument("--json", action="store_true", help="what was written as one JSON object on stdout")


def run(options: argparse.Namespace) -> int:
    try:
        import pyarrow  # type: ignore[import-untyped]  # noqa: F401
    except ImportError as error:
        raise UsageError(f"export needs pyarrow, which is not installed here ({error}): pip install pyarrow") from error
    from ...export.parquet import check_is_free, export
    from ...export.rows import sources_at

    try:
        sources = [source for place in options.places for source in sources_at(Path(place))]
        targets = _targets(sources, options.out)
        for target in targets:
            check_is_free(target)
    except OSError as error:
        raise UsageError(f"{error.filename}: expected something to read or write, got: {error.strerror}") from error
    done = [export(source, target, options.rows_per_file) for source, target in zip(sources, targets, strict=True)]
    if options.json:
        say_json(
            {
                "files": [
                    {
                        "run": str(each.source.place),
                        "file": str(each.target),
                        "benchmark": each.source.benchmark,
                        "rows": each.rows,
                        "statuses": dict(sorted(each.statuses.items())),
                        **({} if each.parts is None else {"parts": each.parts}),
                    }
                    for each in done
                ]
            }
        )
        return DONE
    for each in done:
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in sorted(each.statuses.items()))
        parts = "" if each.parts is None else f" in {count_text(each.parts, 'file')}"
        say(f"{each.target}: {count_text(each.rows, 'row')}{parts}{f' ({kinds})' if kinds else ''}")
    return DONE


def _targets(sources: Sequence[RecordSource], out: str | None) -> list[Path]:
    folder = None
    if out is None:
        targets = [source.default_target for source in sources]
    elif out.endswith(_SUFFIX):
        if len(sources) > 1:
            raise UsageError(f"--out: expected a folder for {len(sources)} runs, got the file {out}")
        targets = [Path(out)]
        if not targets[0].parent.is_dir():
            raise UsageError(f"--out: expected a file in a folder that exists, got {out}")
    else:
        folder = Path(out)
        if folder.suffix in _OTHER_SUFFIXES and not folder.is_dir():
            raise UsageError(
                f"--out: expected a file that ends in {_SUFFIX}, or a folder, got {out}: export writes Parquet alone; "
                f"`millstream report` writes tables as CSV"
            )
        if folder.exists() and not folder.is_dir():
            raise UsageError(f"--out: expected a file that ends in {_SUFFIX}, or a folder, got the file {out}")
        targets = [folder / f"{source.place.resolve().name}{_SUFFIX}" for source in sources]
    twice = next((target for target in targets if targets.count(target) > 1), None)
    if twice is not None:
        raise UsageError(f"{twice}: two runs would be written there: export them one by one, each with its own --out")
    if folder is not None:
        make_room(targets[0])
    return targets
