"""The engine inside somebody's program: what belongs to the process and not to us is as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Provider, run_program

# Ends of processes are awaited for seconds only.
pytestmark = pytest.mark.alone


# Everything of a process that a library may change without being asked, before and after; and what modules hold.
UNCHANGED = """
import asyncio, atexit, gc, io, logging, os, signal, sys, threading, warnings
import millstream as ms
from millstream import Engine, SyncEngine, Settings, open_sink
import millstream.engine.run, millstream.wiring.sync_engine, uvloop, aiohttp

base_url = sys.argv[1]

def held(value):
    if isinstance(value, dict):
        return ("dict", tuple((repr(name), held(each)) for name, each in value.items()))
    if isinstance(value, (list, set, tuple)):
        return (type(value).__name__, len(value), tuple(map(id, value)) if not isinstance(value, set) else None)
    return id(value)

def process():
    root = logging.getLogger()
    own = [name for name in sorted(sys.modules) if name.split(".")[0] == "millstream"]
    ours = {name: held(dict(vars(sys.modules[name]))) for name in own}
    loggers = {name: (logger.level, list(logger.handlers), logger.propagate) for name, logger in
               logging.root.manager.loggerDict.items() if isinstance(logger, logging.Logger)}
    return {
        "signals": [signal.getsignal(number) for number in signal.valid_signals()],
        "root": (list(root.handlers), root.level, list(root.filters), logging.root.manager.disable, logging.lastResort),
        "loggers": loggers,
        "warnings": list(warnings.filters),
        "hooks": (sys.excepthook, sys.unraisablehook, threading.excepthook, sys.displayhook, sys.breakpointhook),
        "asyncgen": sys.get_asyncgen_hooks(),
        "streams": (sys.stdin, sys.stdout, sys.stderr),
        "policy": asyncio.get_event_loop_policy(),
        "wakeup": signal.set_wakeup_fd(signal.set_wakeup_fd(-1)),
        "threads": [thread.name for thread in threading.enumerate()],
        "descriptors": len(os.listdir("/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd")),
        "environment": dict(os.environ),
        "collector": (gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()),
        "umask and folder": (os.umask(os.umask(0o22)) and None, os.getcwd()),
        "recursion": (sys.getrecursionlimit(), sys.getswitchinterval()),
        "modules": ours,
    }

async def work():
    asyncio.get_running_loop().slow_callback_duration = 60  # a busy machine is no finding
    async with Engine(base_url=base_url, cache="cache") as engine:
        inside = [signal.getsignal(number) for number in signal.valid_signals()]
        calls = [ms.Call("openai/open", f"{n}?") for n in range(50)]
        assert [o.status async for o in engine.run(calls)] == ["ok"] * 50
        await engine.read("http://127.0.0.1/")
        return inside

def work_in(make):
    with asyncio.Runner(loop_factory=make) as runner:
        return runner.run(work())

def everything():
    inside = [work_in(make) for make in (asyncio.new_event_loop, uvloop.new_event_loop)]
    with SyncEngine(base_url=base_url, cache="cache") as engine:
        engine.ask(ms.Call("openai/open", "A?"))
        list(engine.run(ms.Call("openai/open", f"{n}!") for n in range(50)))
    gc.collect()
    return inside

everything()  # modules are loaded on first use
before = process()
everything()
after = process()
for name in before:
    if before[name] != after[name]:
        if isinstance(before[name], dict):
            for each in before[name]:
                if before[name][each] != after[name].get(each):
                    print("changed", name, each)
            print("new", name, sorted(set(after[name]) - set(before[name])))
        else:
            print("changed", name, before[name], after[name])
print("compared", len(before), len(before["modules"]) > 50)
"""


def test_nothing_of_the_process_is_changed_and_no_module_keeps_anything(provider: Provider, tmp_path: Path) -> None:
    done = run_program(tmp_path, UNCHANGED, provider.base_url, flags=("-X", "dev", "-W", "error"))
    assert (done.code, done.out, done.err) == (0, "compared 16 True\n", "")


FRESH = """
import logging, signal, sys, warnings, asyncio, threading
seen = lambda: ([signal.getsignal(n) for n in signal.valid_signals()], list(logging.getLogger().handlers),
                logging.getLogger().level, list(warnings.filters), sys.excepthook, sys.stdout, sys.stderr,
                asyncio.get_event_loop_policy().__class__, threading.active_count())
before = seen()
import millstream as ms
with ms.SyncEngine(base_url=sys.argv[1], cache="cache") as engine:
    assert engine.ask(ms.Call("openai/open", "A?")).status == "ok"

async def main():
    async with ms.Engine(base_url=sys.argv[1], cache="cache") as engine:
        return (await engine.ask(ms.Call("openai/open", "B?"))).status

print(asyncio.run(main()), before == seen())
"""


def test_the_first_use_changes_nothing_either(provider: Provider, tmp_path: Path) -> None:
    done = run_program(tmp_path, FRESH, provider.base_url)
    assert (done.code, done.out, done.err) == (0, "ok True\n", "")


MODELS_ONLY = """
import asyncio, sys
import millstream as ms

async def main():
    async with ms.Engine(base_url=sys.argv[1], cache="cache") as engine:
        print((await engine.ask(ms.Call("openai/open", "A?"))).status)

asyncio.run(main())
unused = {"aiolimiter", "charset_normalizer", "importlib.metadata", "lxml", "pebble", "protego"}
print(*sorted(unused & set(sys.modules)))
"""


def test_a_program_that_asks_only_models_loads_no_library_for_pages(provider: Provider, tmp_path: Path) -> None:
    done = run_program(tmp_path, MODELS_ONLY, provider.base_url)
    assert (done.code, done.out, done.err) == (0, "ok\n\n", "")


LIMITED = """
import asyncio, resource, sys
import millstream as ms

soft, hard = int(sys.argv[2]), int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
with ms.SyncEngine(ms.Lane("openai/open", rpm=6000), base_url=sys.argv[1], cache="cache") as engine:
    engine.ask(ms.Call("openai/open", "A?"))
    print(*resource.getrlimit(resource.RLIMIT_NOFILE), engine.statistics().lanes[0].concurrency)
"""


@pytest.mark.parametrize(
    ("soft", "hard", "after"), [(256, 1024, "1024 1024 128"), (200, 200, "200 200 72"), (512, 4096, "4096 4096 128")]
)
def test_the_soft_limit_of_open_files_is_raised_and_calls_in_flight_stay_below_it(
    soft: int, hard: int, after: str, provider: Provider, tmp_path: Path
) -> None:
    done = run_program(tmp_path, LIMITED, provider.base_url, str(soft), str(hard))
    assert (done.code, done.out.strip(), done.err) == (0, after, "")
