"""Other clients beside ours, a row each: `python -m millstream.speed.rivals [--rounds N] [--json FILE] [--picture FILE]
[NAME…]`.

Every client sends prompts of the floor's length to one server, as many in flight, on one core. Its rate is what the
server saw between a tenth and nine tenths of the calls, so that nobody's start and end count. Rivals are installed once
into environments of their own below build/.rivals; one that can't be is left out, with a word. Ratios are to the
floor of the same round, since machines drift.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from math import log10
from pathlib import Path

import msgspec
from msgspec import Struct

from ..engine.version import VERSION
from .floor import IN_FLIGHT, PROMPT_CHARS
from .gateway import gateway
from .load_rivals import wrk
from .server import NoServer, nginx, python_on

ENVIRONMENTS = Path(__file__).parent.parent / "build" / ".rivals"
_CLIENT = Path(__file__).with_name("rival_client.py")
_LOOK_EVERY_S = 0.02
_WRK_S = 3.0


class Client(Struct, frozen=True):
    """A client: its name, how many calls it sends in a round (enough for some seconds), and what it is installed from;
    none: it is ours, or the system's."""

    name: str
    calls: int
    packages: tuple[str, ...] = ()


CLIENTS = (
    Client("wrk", 0),
    Client("floor", 50_000),
    Client("ms.Engine", 30_000),
    Client("ms.Engine, two processes", 30_000),
    Client("gateway", 10_000),
    Client("bare aiohttp", 30_000),
    Client("openai", 3_000, ("openai[aiohttp]",)),
    Client("openai-httpx", 2_000, ("openai",)),
    Client("litellm", 2_000, ("litellm",)),
    Client("lm-eval", 5_000, ("lm-eval[api]",)),
    Client("inspect-ai", 1_000, ("inspect-ai", "openai")),
    Client("aiperf", 3_000, ("aiperf",)),
    Client("guidellm", 3_000, ("guidellm",)),
)
OURS = ("ms.Engine", "ms.Engine, two processes", "gateway")


class Row(Struct):
    """The rounds of one client, in calls a second and microseconds of CPU a call, its start included."""

    name: str
    version: str
    calls: int
    rates: list[float] = []
    cpu_us: list[float] = []
    of_floor: list[float] = []


class Sent(Struct):
    """The calls that a server has answered, and its rate in the middle of them, a second."""

    calls: int = 0
    rate: float = 0.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="millstream.speed.rivals", description=__doc__)
    names = [client.name for client in CLIENTS]
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(names)} (default: all)")
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds (default 5)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="the table as JSON")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="the table as a picture (SVG)")
    options = parser.parse_args()
    if unknown := set(options.names) - {*names}:
        parser.error(f"unknown client {min(unknown)}: name {', '.join(names)}")
    cores = sorted(os.sched_getaffinity(0))
    core, other = cores[0], cores[-1]
    print(f"{len(cores)} cores; clients on core {core}, nginx on core {other}; Python {sys.version.split()[0]}")
    chosen = [client for client in CLIENTS if client.name in {*(options.names or names), "floor"}]
    os.sched_setaffinity(0, {other})
    try:
        with nginx(other if len(cores) > 1 else None) as url:
            rows = _measured([client for client in chosen if _is_there(client)], url, core, cores, options)
    except NoServer as error:
        print(f"millstream bench: {error}", file=sys.stderr)
        return 2
    print(f"\n{'client':<26}{'version':<20}{'calls/s':>28}{'CPU µs a call':>28}{'of the floor':>26}")
    for row in rows:
        rates, shares = _spread(row.rates, ",.0f"), _spread(row.of_floor, ".3f")
        print(f"{row.name:<26}{row.version:<20}{rates:>28}{_spread(row.cpu_us, ',.0f'):>28}{shares:>26}")
    if options.json is not None:
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(rows)))
    if options.picture is not None:
        options.picture.write_text(picture(rows), "utf-8")
    return 0


def picture(rows: Sequence[Row]) -> str:
    """Returns the rates as bars on a logarithmic scale, ours in colour, as SVG for light and dark pages."""
    most = max(statistics.median(row.rates) for row in rows)
    bars = []
    for place, row in enumerate(sorted(rows, key=lambda row: -statistics.median(row.rates))):
        rate, top = statistics.median(row.rates), 44 + 26 * place
        width = max(2.0, 400 * log10(max(1.0, rate)) / log10(most))
        kind = "ours" if row.name in OURS else "other"
        is_own = row.name in OURS or row.version == VERSION
        name = row.name if is_own else f"{row.name} {row.version.removeprefix('debian/')}"
        bars.append(
            f'<text x="212" y="{top + 13}" text-anchor="end">{escape(name)}</text>'
            f'<rect class="{kind}" x="220" y="{top}" width="{width:.0f}" height="18" rx="3"/>'
            f'<text x="{226 + width:.0f}" y="{top + 13}">{rate:,.0f}</text>'
        )
    lines = "\n".join(bars)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 {56 + 26 * len(rows)}" role="img">
<title>Calls a second of each client on one core, on a logarithmic scale</title>
<style>
text {{ font: 13px system-ui, sans-serif; fill: #1f2328; }}
.ours {{ fill: #0a6cd6; }} .other {{ fill: #b4bcc6; }}
@media (prefers-color-scheme: dark) {{
  text {{ fill: #e6edf3; }} .ours {{ fill: #58a6ff; }} .other {{ fill: #57606a; }}
}}
</style>
<text x="220" y="24">calls a second, one core, {IN_FLIGHT} in flight, logarithmic</text>
{lines}
</svg>
"""


def _measured(clients: list[Client], url: str, core: int, cores: list[int], options: argparse.Namespace) -> list[Row]:
    rows = {client.name: Row(client.name, _version_of(client), client.calls) for client in clients}
    for turn in range(1, options.rounds + 1):
        for client in clients:
            row = rows[client.name]
            with tempfile.TemporaryDirectory(prefix="millstream-bench-") as folder:
                cpu_s, sent = _cpu_s(), Sent()
                try:
                    with _counted(url, sent):
                        _send(client, row.calls, url, core, cores, Path(folder))
                except (subprocess.CalledProcessError, NoServer) as error:
                    print(f"{client.name}: left out of round {turn} ({error})", file=sys.stderr)
                    continue
                row.rates.append(sent.rate)
                row.cpu_us.append(1e6 * (_cpu_s() - cpu_s) / sent.calls)
        floor = rows["floor"].rates[-1]
        for row in rows.values():
            row.of_floor += [row.rates[-1] / floor] if len(row.rates) > len(row.of_floor) else []
        print(f"round {turn}: " + ", ".join(f"{row.name} {row.rates[-1]:,.0f}" for row in rows.values() if row.rates))
    return [row for row in rows.values() if row.rates]


def _send(client: Client, calls: int, url: str, core: int, cores: list[int], folder: Path) -> None:
    """Runs a client to its end."""
    ours = [*python_on(core), "-m"]
    commands: dict[str, Callable[[], list[list[str]]]] = {
        "floor": lambda: [[*ours, "millstream.speed.floor", url, str(calls), str(PROMPT_CHARS)]],
        "ms.Engine": lambda: [[*ours, "millstream.speed.clients", url, str(calls), "engine"]],
        "ms.Engine, two processes": lambda: [
            [*python_on(each), "-m", "millstream.speed.clients", url, str(calls // 2), "engine", str(IN_FLIGHT // 2)]
            for each in (cores[0], cores[-1])
        ],
        "bare aiohttp": lambda: [[*ours, "millstream.speed.clients", url, str(calls), "bare"]],
    }
    if client.name == "wrk":
        wrk(url.removesuffix("/v1"), IN_FLIGHT, _WRK_S, folder, core)
        return
    if client.name == "gateway":
        with gateway(url, folder, core) as running:
            address = f"http://127.0.0.1:{running.port}/v1"
            _run([[*python_on(cores[-1]), "-m", "millstream.speed.clients", address, str(calls), "bare"]], folder)
        return
    if client.packages:
        python = str(_python_of(client))
        _run([[*python_on(core, python), str(_CLIENT), client.name, url, str(calls), str(folder)]], folder)
        return
    _run(commands[client.name](), folder)


def _run(commands: list[list[str]], folder: Path) -> None:
    """Runs commands side by side. Raises CalledProcessError for one that fails."""
    environment = {**os.environ, "OPENAI_API_KEY": "none"}
    with (folder / "printed").open("wb") as printed:
        running = [
            subprocess.Popen(command, cwd=folder, env=environment, stdout=printed, stderr=printed)
            for command in commands
        ]
        for process in running:
            process.wait()
    for process in running:
        if process.returncode:
            last = (folder / "printed").read_text(errors="replace").strip().rpartition("\n")[2]
            raise subprocess.CalledProcessError(process.returncode, last[:200])


@contextmanager
def _counted(url: str, sent: Sent) -> Iterator[None]:
    """Fills in, at the end, what the server was sent within the context."""
    is_over = threading.Event()
    looks: list[tuple[float, int]] = []

    def look() -> None:
        while not is_over.wait(_LOOK_EVERY_S):
            looks.append((time.perf_counter(), _requests(url) - len(looks)))

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield
    finally:
        is_over.set()
        watcher.join()
    first, sent.calls = looks[0][1], looks[-1][1] - looks[0][1]
    (begun, few), (ended, most) = (
        next((at, count) for at, count in looks if count >= first + share * sent.calls) for share in (0.1, 0.9)
    )
    sent.rate = (most - few) / max(ended - begun, _LOOK_EVERY_S)


def _requests(url: str) -> int:
    """Returns how many requests the server has had, looks included."""
    with urllib.request.urlopen(f"{url.removesuffix('/v1')}/sent", timeout=30) as answer:
        return int(answer.read().splitlines()[2].split()[2])


def _is_there(client: Client) -> bool:
    """Whether a client can run; a rival is installed if it is not yet."""
    if client.name == "wrk":
        return shutil.which("wrk") is not None or bool(print("wrk: left out, it is not installed"))
    if not client.packages or _python_of(client).exists():
        return True
    folder, uv = ENVIRONMENTS / client.name, Path(sys.executable).with_name("uv")
    fresh = folder.with_suffix(".new")
    shutil.rmtree(fresh, ignore_errors=True)
    print(f"installing {client.name} (once)", flush=True)
    for command in (
        [uv, "venv", "--quiet", "--relocatable", fresh],
        [uv, "pip", "install", "--quiet", "--python", fresh / "bin" / "python", *client.packages],
    ):
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        if done.returncode:
            shutil.rmtree(fresh, ignore_errors=True)
            print(f"{client.name}: left out, it can't be installed ({done.stderr.strip().splitlines()[-1][:200]})")
            return False
    fresh.rename(folder)
    return True


def _python_of(client: Client) -> Path:
    return ENVIRONMENTS / client.name / "bin" / "python"


def _version_of(client: Client) -> str:
    if client.name == "wrk":
        done = subprocess.run(["wrk", "-v"], capture_output=True, text=True)
        return next(iter(done.stdout.split()[1:2]), "")
    package = client.packages[0].partition("[")[0] if client.packages else "aiohttp"
    python = _python_of(client) if client.packages else Path(sys.executable)
    if not client.packages and client.name != "bare aiohttp":
        return VERSION
    code = f"from importlib.metadata import version; print(version({package!r}))"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def _cpu_s() -> float:
    times = os.times()
    return times.children_user + times.children_system


def _spread(figures: list[float], form: str) -> str:
    return f"{statistics.median(figures):{form}} ({min(figures):{form}} to {max(figures):{form}})"


if __name__ == "__main__":
    sys.exit(main())
