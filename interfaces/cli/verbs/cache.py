"""`millstream cache`: what is stored, why a call is or is not answered from it, dropping old entries, export and
import.

Owns the arguments and the opening and closing of the cache. `stats` and `why` open it for reading alone.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....configuration import values
from ....configuration.declared_options import flag
from ....configuration.errors import DONE, UsageError
from ...terminal.output import say, say_result

if TYPE_CHECKING:
    from ....bench.evaluation.door.benchmark import ItemBenchmark
    from ....bench.evaluation.door.run_line import RunLine, StoredCall
    from ....configuration.options import SendingOptions
    from ....engine.call import Call
    from ....wiring import Settings

HELP = "look into the stored answers, prune, export and import them"
EXAMPLES = (
    "cache stats",
    "cache export runs/first first.snapshot",
    "cache prune --older-than 30d",
)
_VERBS = "stats|why|prune|export|import"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="cache_verb", metavar=_VERBS, required=True)
    stats = _sub(verbs, "stats", "how many answers are stored, by endpoint and model")
    stats.add_argument("--json", action="store_true", help="as one JSON object")
    _add_why(_sub(verbs, "why", "why a call is, or is not, answered from the cache"))
    prune = _sub(verbs, "prune", "drop stored answers")
    which = prune.add_mutually_exclusive_group()
    which.add_argument("--older-than", type=flag(values.AGE), metavar="AGE", help="those older: 90m, 12h, 30d, 8w")
    which.add_argument("--all", action="store_true", help="all of them")
    _add_export(_sub(verbs, "export", "write every response of a run into one file, to repeat it from that or to keep"))
    taking = _sub(verbs, "import", "take every response of a snapshot into a cache")
    taking.add_argument("file", metavar="FILE", help="what `cache export` wrote")
    taking.add_argument("--json", action="store_true", help="the summary as one JSON object")


def _sub(verbs: Any, name: str, text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(name, help=text, description=text, allow_abbrev=False)
    parser.add_argument(
        "--cache",
        type=flag(values.CACHE_FOLDER),
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
    parser.add_argument("--temperature", type=flag(values.TEMPERATURE), metavar="T", default=argparse.SUPPRESS)
    parser.add_argument("--reasoning-effort", type=flag(values.EFFORT), metavar="LEVEL")
    alone = parser.add_argument_group("without a run: a call from its parts")
    alone.add_argument("--prompt", metavar="TEXT|@FILE", help="the prompt, or the file that holds it")
    alone.add_argument("--max-tokens", type=flag(values.WholeNumber("tokens an answer")), metavar="N")
    alone.add_argument("--trial", type=flag(values.WholeNumber("a trial", 0)), default=0, metavar="K")
    alone.add_argument("--base-url", type=flag(values.BASE_URL), metavar="URL")
    alone.add_argument("--config", metavar="FILE", help="a file with [providers]")


def run(options: argparse.Namespace) -> int:
    verbs = {"stats": _stats, "why": _why, "prune": _prune, "export": _export, "import": _import}
    return verbs[options.cache_verb](options)


def _stats(options: argparse.Namespace) -> int:
    from ...cache.contents import as_json, groups_of, tell
    from ...cache.files import cache_at, opened

    with opened(cache_at(options.cache)) as cache:
        statistics, groups = cache.statistics(), groups_of(cache.entries())
    say_result(options.json, lambda: as_json(statistics, groups), lambda: tell(statistics, groups))
    return DONE


def _prune(options: argparse.Namespace) -> int:
    if options.older_than is None and not options.all:
        raise UsageError("cache prune: expected --older-than AGE or --all, got neither: nothing was dropped")
    from ...cache.files import cache_at, opened

    with opened(cache_at(options.cache), read_only=False) as cache:
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
    from ...cache.files import export_snapshot, export_warc
    from .resume import manifest_of

    if (options.file is None) == (options.warc is None):
        raise UsageError("cache export: expected RUN FILE for a snapshot, or --warc FILE RUN for its pages")
    export = export_snapshot if options.warc is None else export_warc
    file = Path(options.file or options.warc).expanduser()
    run = Path(options.run).expanduser()
    return export(run, manifest_of(run), file, options.cache, as_json=options.json)


def _import(options: argparse.Namespace) -> int:
    from ...cache.files import import_snapshot

    return import_snapshot(Path(options.file).expanduser(), options.cache, as_json=options.json)


def _why(options: argparse.Namespace) -> int:
    if len(options.item) == 2:
        return _why_of_run(options)
    if options.item:
        raise UsageError(f"cache why: expected a run's folder and an id, got {options.item[0]!r} alone")
    say("\n".join(_explained(*_call_of_parts(options))))
    return DONE


def _explained(call: Call, settings: Settings) -> list[str]:
    from ...cache.files import opened
    from ...cache.why import encoded_call, explain

    encoded = encoded_call(call, settings)
    with opened(settings.cache_folder()) as cache:
        return explain(cache, encoded)


def _why_of_run(options: argparse.Namespace) -> int:
    """Explains a record by its call, if that can be made again, else by its cache keys. Returns the exit code."""
    from ....bench.evaluation.reading.stored_calls import call_of

    benchmark, line, sending = _line_of(options)
    stored = call_of(benchmark, line)
    lines = _keys_explained(line, sending) if stored is None else _call_explained(stored, sending)
    if sending.mode == "live":
        lines.append("the run's mode is live: it takes no answer that another run stored")
    say("\n".join(lines))
    return DONE


def _call_explained(stored: StoredCall, sending: SendingOptions) -> list[str]:
    from ....configuration.configuration import read_configuration, settings_for

    configuration = read_configuration(sending.config, may_hold_runs=True)
    return [*_explained(stored.call, settings_for((stored.call.model,), sending, configuration)), *stored.remarks]


def _keys_explained(line: RunLine, sending: SendingOptions) -> list[str]:
    from ....bench.evaluation.reading.stored_calls import first_id, keyed_lines
    from ...cache.files import cache_at, opened
    from ...cache.why import explain_keys

    lines = keyed_lines(line)
    if not lines:
        whose = "" if line.model is None else f" of {line.model}"
        counts = line.manifest.get("counts")
        if counts and not any(each.get("pending") for each in counts):
            raise UsageError(f"{line.folder} has no record {line.id!r}{whose}: its ids are as {first_id(line.folder)}")
        return [f"{line.folder} has no record {line.id!r}{whose} yet: its calls are known once it has one"]
    with opened(cache_at(sending.cache)) as cache:
        return [text for each in lines for text in explain_keys(cache, each)]


def _call_of_parts(options: argparse.Namespace) -> tuple[Call, Settings]:
    from ....configuration.configuration import read_configuration, settings_for
    from ....configuration.options import SendingOptions
    from ....engine.call import Call

    if options.model is None or options.prompt is None:
        raise UsageError("cache why: expected DIR ID, or --model and --prompt")
    sending = SendingOptions(base_url=options.base_url, cache=options.cache)
    call = Call(
        options.model,
        _prompt(options.prompt),
        getattr(options, "temperature", None),
        options.max_tokens,
        reasoning_effort=options.reasoning_effort,
        trial=options.trial,
    )
    return call, settings_for((options.model,), sending, read_configuration(options.config))


def _prompt(word: str) -> str:
    if not word.startswith("@"):
        return word
    try:
        return Path(word[1:]).expanduser().read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--prompt {word}: expected a readable file of UTF-8, got: {error}") from error


def _line_of(options: argparse.Namespace) -> tuple[ItemBenchmark[Any], RunLine, SendingOptions]:
    from ....bench.evaluation.door.registry import benchmark_of, options_of
    from ....bench.evaluation.door.run_line import RunLine
    from ....configuration.options import SendingOptions
    from .resume import manifest_of

    for name in ("prompt", "max_tokens", "base_url", "config"):
        if getattr(options, name) is not None:
            raise UsageError(
                f"--{name.replace('_', '-')} belongs to a call without a run: a run's folder knows its own"
            )
    folder, name = Path(options.item[0]).expanduser(), options.item[1]
    manifest = manifest_of(folder)
    try:
        run, kept = options_of(manifest)
    except (KeyError, TypeError) as error:
        raise UsageError(f"{folder}: its manifest.json keeps no options: give --model and --prompt") from error
    line = RunLine(
        folder=folder,
        manifest=manifest,
        options=run.options,
        id=name,
        model=options.model,
        effort=options.reasoning_effort,
        **({"temperature": options.temperature} if "temperature" in options else {}),
    )
    return benchmark_of(folder), line, SendingOptions(cache=options.cache).over(kept)
