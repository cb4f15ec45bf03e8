"""`millstream cache`: what is stored, why a call is or is not answered from it, dropping what is old, and files of it.

Owns the arguments and the opening and closing of the cache. `stats` and `why` open it for reading alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from .. import values
from ..options import flag
from ..output import say, say_json
from ..refusal import DONE, UsageError

if TYPE_CHECKING:
    from ...bench.millstone.grid import Grid, Protocol
    from ...bench.millstone.prompts import Citations
    from ...engine.cache import Cache
    from ...engine.call import Call
    from ...wiring import Settings
    from ..benchmark_options import BenchmarkOptions, MillstoneOptions
    from ..options import Sending

HELP = "the stored answers: stats, why, prune, export, import"
_VERBS = "stats|why|prune|export|import"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="cache_verb", metavar=_VERBS, required=True)
    stats = _sub(verbs, "stats", "how many answers are stored, by endpoint and model")
    stats.add_argument("--json", action="store_true", help="as one JSON object")
    _add_why(_sub(verbs, "why", "why a call is, or is not, answered from the cache"))
    prune = _sub(verbs, "prune", "drop stored answers")
    which = prune.add_mutually_exclusive_group()
    which.add_argument("--older-than", type=flag(values.Age()), metavar="AGE", help="those older: 90m, 12h, 30d, 8w")
    which.add_argument("--all", action="store_true", help="all of them")
    _add_export(_sub(verbs, "export", "write every response of a run into one file, to repeat it from that or to keep"))
    taking = _sub(verbs, "import", "take every response of a snapshot into a cache")
    taking.add_argument("file", metavar="FILE", help="what `cache export` wrote")
    taking.add_argument("--json", action="store_true", help="the summary as one JSON object")


def _sub(verbs: Any, name: str, told: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(name, help=told, description=told, allow_abbrev=False)
    parser.add_argument(
        "--cache",
        type=flag(values.CacheFolder()),
        metavar="DIR",
        help="where answers are kept (default: the run's, or the user's cache folder)",
    )
    return parser


def _add_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="a run's folder")
    parser.add_argument("file", nargs="?", metavar="FILE", help="the snapshot to write, for `run --snapshot FILE`")
    parser.add_argument("--warc", metavar="FILE", help="the run's pages alone, as WARC; compressed if it ends with .gz")
    parser.add_argument("--json", action="store_true", help="the summary as one JSON object")


def _add_why(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("item", nargs="*", metavar="DIR ID", help="a run's folder and the id of one of its items")
    parser.add_argument("--model", type=flag(values.ModelName()), metavar="PROVIDER/MODEL")
    parser.add_argument("--temperature", type=flag(values.TEMPERATURE), metavar="T")
    alone = parser.add_argument_group("without a run: a call from its parts")
    alone.add_argument("--prompt", metavar="TEXT|@FILE", help="the prompt, or the file that holds it")
    alone.add_argument("--max-tokens", type=flag(values.Whole("tokens an answer")), metavar="N")
    alone.add_argument("--trial", type=flag(values.Whole("a trial", 0)), default=0, metavar="K")
    alone.add_argument("--base-url", type=flag(values.BaseUrl()), metavar="URL")
    alone.add_argument("--config", metavar="FILE", help="a file with [providers]")


def run(options: argparse.Namespace) -> int:
    verbs = {"stats": _stats, "why": _why, "prune": _prune, "export": _export, "import": _import}
    return verbs[options.cache_verb](options)


def _stats(options: argparse.Namespace) -> int:
    from ..cache_contents import take_stock, told

    with _opened(_folder(options.cache), read_only=True) as cache:
        contents = take_stock(cache.entries(), cache.statistics())
    if options.json:
        say_json(contents.as_dict())
    else:
        say(told(contents))
    return DONE


def _prune(options: argparse.Namespace) -> int:
    if options.older_than is None and not options.all:
        raise UsageError("cache prune: expected --older-than AGE or --all, got neither: nothing was dropped")
    with _opened(_folder(options.cache), read_only=False) as cache:
        before = cache.statistics()
        dropped = cache.prune(older_than_s=options.older_than)
    kept = before.entries + before.private_entries - dropped.answers
    besides = [
        f"{count:,} {what}"
        for count, what in ((dropped.failures, "failures"), (dropped.bodies, "bodies"), (dropped.texts, "texts"))
        if count
    ]
    also = f" (and {', '.join(besides)})" if besides else ""
    say(
        f"{before.path}: {dropped.answers:,} answers dropped{also}, {kept:,} kept; the file keeps its size and uses "
        f"the room again"
    )
    return DONE


def _export(options: argparse.Namespace) -> int:
    from ..cache_files import export_snapshot, export_warc
    from .resume import manifest_of

    if (options.file is None) == (options.warc is None):
        raise UsageError("cache export: expected RUN FILE for a snapshot, or --warc FILE RUN for its pages")
    export = export_snapshot if options.warc is None else export_warc
    file = Path(options.file or options.warc).expanduser()
    run = Path(options.run).expanduser()
    return export(run, manifest_of(run), file, options.cache, as_json=options.json)


def _import(options: argparse.Namespace) -> int:
    from ..cache_files import import_snapshot

    return import_snapshot(Path(options.file).expanduser(), options.cache, as_json=options.json)


def _why(options: argparse.Namespace) -> int:
    from ..cache_why import asked_for, explain

    if len(options.item) == 2:
        call, settings, remarks = _call_of_run(options)
    elif options.item:
        raise UsageError(f"cache why: expected a run's folder and an id, got {options.item[0]!r} alone")
    else:
        call, settings, remarks = _call_of_parts(options)
    asked = asked_for(call, settings)
    with _opened(settings.cache_folder(), read_only=True) as cache:
        lines = explain(cache, asked)
    say("\n".join([*lines, *remarks]))
    return DONE


def _call_of_parts(options: argparse.Namespace) -> tuple[Call, Settings, list[str]]:
    from ...engine.call import Call
    from ..configuration import read_configuration, settings_for
    from ..options import Sending

    if options.model is None or options.prompt is None:
        raise UsageError("cache why: expected DIR ID, or --model and --prompt")
    sending = Sending(base_url=options.base_url, cache=options.cache)
    call = Call(options.model, _prompt(options.prompt), options.temperature, options.max_tokens, trial=options.trial)
    return call, settings_for((options.model,), sending, read_configuration(options.config)), []


def _prompt(given: str) -> str:
    if not given.startswith("@"):
        return given
    try:
        return Path(given[1:]).expanduser().read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--prompt {given}: expected a readable file of UTF-8, got: {error}") from error


def _call_of_run(options: argparse.Namespace) -> tuple[Call, Settings, list[str]]:
    """The call of one item, made as `resume` would make it."""
    from ...bench.millstone.grid import calls
    from ...bench.millstone.sweep import Asked
    from ..benchmark_options import MillstoneOptions
    from ..options import Sending
    from .resume import manifest_of

    for name in ("prompt", "max_tokens", "base_url", "config"):
        if getattr(options, name) is not None:
            raise UsageError(
                f"--{name.replace('_', '-')} belongs to a call without a run: a run's folder knows its own"
            )
    folder, item_id = Path(options.item[0]).expanduser(), options.item[1]
    manifest = manifest_of(folder)
    run, kept = _options_of(folder, manifest)
    if not isinstance(run, MillstoneOptions):
        raise UsageError(
            f"cache why: expected a MillStone run, got {folder}; a turn's record names the keys of its calls"
        )
    sending = Sending(cache=options.cache).over(kept)
    model = _one("--model", options.model, run.model)
    temperature = _one("--temperature", options.temperature, run.temperature or (None,))
    grid = _grid(run)
    limits = manifest["specification"].get("max_tokens") or {}
    max_tokens = Asked(run.model, max_tokens=run.max_tokens, unset=limits).max_tokens_of(model)
    call = next(calls(grid, model, temperature, max_tokens, lambda other: other != item_id), None)
    if call is None:
        raise UsageError(
            f"{folder} has no item {item_id!r}: expected issue/template/config/trial, as {next(grid.ids())}"
        )
    remarks = []
    if grid.dataset.digest != manifest["specification"].get("data"):
        remarks.append("the data set has changed since the run began, and its prompts may have")
    if sending.mode == "live":
        remarks.append("the run's mode is live: it takes no answer that another run stored")
    return call, _settings(run, sending), remarks


def _options_of(folder: Path, manifest: dict[str, Any]) -> tuple[BenchmarkOptions, Sending]:
    from ..benchmarks import options_of

    try:
        return options_of(manifest)
    except (KeyError, TypeError) as error:
        raise UsageError(f"{folder}: its manifest.json keeps no options: give --model and --prompt") from error


def _settings(run: MillstoneOptions, sending: Sending) -> Settings:
    from ..configuration import Configuration, configuration_of, settings_for
    from ..documents import Document

    found = Configuration() if sending.config is None else configuration_of(Document(Path(sending.config)))
    return settings_for(run.model, sending, found)


def _grid(run: MillstoneOptions) -> Grid:
    from ...bench.millstone.dataset import load, select
    from ...bench.millstone.grid import Grid
    from ..millstone_work import SAMPLE

    dataset = select(load(SAMPLE if run.dataset is None else Path(run.dataset)), run.issues)
    return Grid(dataset, cast("Protocol", run.protocol), run.templates, run.trials, cast("Citations", run.citations))


def _one(option: str, given: Any, known: tuple[Any, ...]) -> Any:
    if given is None and len(known) == 1:
        return known[0]
    if given not in known or given is None:
        listed = ", ".join("none" if one is None else str(one) for one in known)
        raise UsageError(f"{option}: expected one of the run's ({listed}), got {'none' if given is None else given}")
    return given


def _folder(cache: str | None) -> Path:
    from ...wiring import Settings

    return Settings(cache=None if cache is None else Path(cache).expanduser()).cache_folder()


@contextmanager
def _opened(folder: Path, *, read_only: bool) -> Iterator[Cache]:
    from ...engine.cache import Cache
    from ...engine.fault import LocalFault

    if not (folder / "data.mdb").exists():
        raise LocalFault(f"cache {folder} does not exist: nothing has been stored there")
    cache = Cache(folder, read_only=read_only)
    try:
        yield cache
    finally:
        cache.close()
