"""Makes the pictures of README and site: a recorded terminal, and every kind of report on a desk, in the dark, on a
phone and on paper, from runs against the simulated outside.

`make pictures` runs it, `make pictures ARGS="view load"` for these views alone. Needs a chromium, as the tests of pages
do. Writes docs/pictures alone.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
COLUMNS, ROWS = 100, 40
WIDTH, HEIGHT = 1280, 900
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
# What moves a terminal's cursor or erases, of all that our displays write.
_MOVES = re.compile(r"(\n|\r|\x1b\[\d*A|\x1b\[[JK])")


def main() -> None:
    """Records the demo, then opens its report."""
    PICTURES.mkdir(exist_ok=True)
    chromium = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if chromium is None:
        sys.exit("pictures: no chromium here: sh tests/browser/install-browser.sh installs Debian's")
    chosen = sys.argv[1:]
    with tempfile.TemporaryDirectory() as home:
        reports = {}
        if not chosen or {"millstone", "chameleon"} & {*chosen}:
            # Ten issues and more have intervals.
            words = ["millstream", "demo", "--limit", "12"]
            output = recorded(words, Path(home))
            (report,) = Path(home).glob("runs/*/report.html")
            reports["millstone"] = (report.parent / "open" / "report.html").as_uri()
            reports["chameleon"] = (report.parent / "conversations" / "report.html").as_uri()
            if not chosen:
                write_terminal(" ".join(words), output)
                photograph(report, chromium)
        reports |= others(Path(home))
        fill_gallery(reports, chromium, chosen)
        with viewed(Path(home)) as views:
            fill_gallery(views, chromium, chosen)


TASK = """import millstream as ms

CAPITALS = {
    "Chile": "Santiago", "Cuba": "Havana", "Egypt": "Cairo", "France": "Paris", "Ghana": "Accra", "India": "New Delhi",
    "Italy": "Rome", "Japan": "Tokyo", "Kenya": "Nairobi", "Norway": "Oslo", "Peru": "Lima", "Spain": "Madrid",
}

task = ms.Task(
    data=[{"id": country, "country": country, "capital": capital} for country, capital in CAPITALS.items()],
    prompt="What is the capital of {country}? Answer with its name alone.",
    score=ms.match("{capital}"),
    trials=3,
)
"""

PROMPTS = (
    TASK.replace("task = ms.Task(", "common = dict(").replace(
        '    prompt="What is the capital of {country}? Answer with its name alone.",\n', ""
    )
    + """
short = ms.Task(prompt="What is the capital of {country}?", **common)
polite = ms.Task(prompt="Please tell me: what is the capital of {country}? Thank you!", **common)
"""
)

AGENT = '''import millstream as ms

SHOP = {"tea": (12, 3.5), "rice": (7, 2.0), "salt": (0, 1.25), "oil": (31, 6.75), "flour": (18, 1.8), "figs": (4, 9.9)}


def stock(product: str) -> int:
    """Returns how many packets of a product there are."""
    return SHOP[product][0]


def price(product: str) -> float:
    """Returns the price of a packet, in euros."""
    return SHOP[product][1]


class Shop(ms.Benchmark):
    data = [{"id": name, "product": name, "stock": stock, "price": price} for name, (stock, price) in SHOP.items()]
    tools = [stock, price]
    score = ms.judge("sim/grader", "Does the answer state the stock, {stock}, and the price, {price}?")

    async def run(self, item, ask):
        reply, talk = await ms.tool_loop(ask, f\'State stock and price of "{item["product"]}".\')
        return reply.text
'''


def others(home: Path) -> dict[str, str]:
    """Makes the reports of a task, of SYCON and of a load test, against a simulated provider of their own, and returns
    their addresses."""
    for name, text in (("capitals", TASK), ("prompts", PROMPTS), ("agent", AGENT)):
        (home / f"{name}.py").write_text(text)
    environment = environment_of(home)
    millstream = [sys.executable, "-P", "-m", "millstream"]
    ready = home / "port"
    # As far away as a provider is: at a millisecond a load test says, truly, that the client was the bottleneck.
    begin = [*millstream, "sim", "--port-file", str(ready), "--latency", "constant:0.15"]
    with subprocess.Popen(begin, cwd=home, env=environment, stdout=subprocess.DEVNULL) as outside:
        while not ready.exists():
            if outside.poll() is not None:
                sys.exit("pictures: the simulated provider needs port 8099, where something else listens")
            time.sleep(0.1)
        models = ["--model", "sim/scholar", "sim/pupil"]
        task = ["run", "capitals.py", *models, "--out", "capitals"]
        prompts = ["run", "prompts.py", *models, "--out", "prompts"]
        agent = ["run", "agent.py", "--model", "sim/scholar", "sim/tools", "--out", "agent"]
        sycon = ["run", "sycon", "--model", "sim/open", "--judge", "sim/grader", "--out", "sycon"]
        load = ["load", "sim/open", "--steps", "20,40,80", "--step-time", "5s", "--out", "load"]
        try:
            for words in (task, prompts, agent, sycon, load, ["report", "load"]):
                subprocess.run([*millstream, *words], cwd=home, env=environment, check=True, stdout=subprocess.DEVNULL)
        finally:
            outside.terminate()
    pages = {name: (home / name / "report.html").as_uri() for name in ("capitals", "agent", "sycon", "load")}
    items = f"{pages['capitals']}#items=task-matrix-table"
    steps = f"{pages['agent']}#items=task-matrix-table&item=oil"
    views = {"items": items, "item": f"{items}&item=Chile", "steps": steps}
    return {"task": pages["capitals"], **views, "sycon": pages["sycon"], "load": pages["load"]}


@contextmanager
def viewed(home: Path) -> Iterator[dict[str, str]]:
    """Yields the addresses of the live page's views of these runs, one of which goes on."""
    environment, millstream = environment_of(home), [sys.executable, "-P", "-m", "millstream"]
    port, prices = home / "live-port", home / "prices.toml"
    prices.write_text('[prices."sim/open"]\ninput = 1\noutput = 1\n')
    size = ["--limit", "5", "--max-tokens", "16", "--concurrency", "4", "--max-cost", "5", "--config", str(prices)]
    with ExitStack() as ended:

        def begin(*words: str) -> subprocess.Popen[str]:
            streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
            process = subprocess.Popen([*millstream, *words], cwd=home, env=environment, **streams)
            ended.enter_context(process)
            ended.callback(process.terminate)
            return process

        begin("sim", "--port-file", str(port), "--port", "0", "--latency", "constant:0.3")
        while not port.exists():
            time.sleep(0.1)
        where = ["--base-url", f"http://127.0.0.1:{port.read_text().strip()}/v1", "--out", "stances", "--no-report"]
        begin("run", "millstone", "--model", "sim/open", *size, *where)
        view = begin("view", "--port", "0", "--json")
        assert view.stdout is not None
        address = json.loads("".join(iter(view.stdout.readline, "}\n")) + "}")["address"]
        while not (home / "stances" / ".live" / "state.json").exists():
            time.sleep(0.1)
        begin("serve", "--base-url", where[1], "--port", "0", "--port-file", "gateway-port", "--config", str(prices))
        while not (home / "gateway-port").exists():
            time.sleep(0.1)
        gateway = f"http://127.0.0.1:{(home / 'gateway-port').read_text().strip()}"
        for model, number in (*product(("sim/open", "sim/scholar"), range(4)), ("sim/nobody", 0)):
            asked = {"model": model, "messages": [{"role": "user", "content": f"What is {number} + 25?"}]}
            subprocess.run(
                ["curl", "-s", f"{gateway}/v1/chat/completions", "--json", json.dumps(asked)],
                check=True,
                stdout=subprocess.DEVNULL,
            )
        time.sleep(10)
        yield {
            "view": address,
            "view-run": f"{address}#run=stances",
            "view-items": f"{address}#items=capitals&sort=apart",
            "view-two": f"{address}#items=prompts%2Fshort%0Aprompts%2Fpolite&sort=apart&item=Kenya",
            "view-load": f"{address}#run=load",
            "view-labels": f"{address}#label=capitals",
            "gateway": f"{gateway}/",
        }


def environment_of(home: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(ROOT / ".types")}


def recorded(command: list[str], home: Path) -> str:
    """Returns what a command writes to a terminal of COLUMNS by ROWS, with its colours."""
    words = [sys.executable, "-P", "-m", *command]
    terminal = {"COLUMNS": str(COLUMNS), "LINES": str(ROWS), "TERM": "xterm-256color"}
    environment = {**environment_of(home), **terminal}
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    with subprocess.Popen(words, cwd=home, env=environment, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        pieces = []
        while True:
            try:
                piece = os.read(ours, 65_536)
            except OSError:  # its other end is closed
                break
            if not piece:
                break
            pieces.append(piece)
    if process.returncode:
        sys.exit(f"pictures: the demo ended with {process.returncode}")
    return b"".join(pieces).decode("utf-8", "replace").replace(str(home), "")


def write_terminal(title: str, output: str) -> None:
    """Draws the last lines of a recorded terminal."""
    lines = [line for line in left_on_screen(output) if line.strip()]
    with open(os.devnull, "w") as nowhere:
        console = Console(record=True, width=COLUMNS, file=nowhere, force_terminal=True, color_system="truecolor")
        console.print(Text("$ ", "green") + Text(title, "bold"))
        for line in lines[-ROWS:]:
            console.print(Text.from_ansi(line), soft_wrap=True)
        svg = console.export_svg(title="", clear=False)
    # Fonts are the reader's: a picture asks no server for one.
    svg = re.sub(r"@font-face \{.*?\}\n", "", svg, flags=re.DOTALL)
    (PICTURES / "terminal.svg").write_text(svg.replace("Fira Code, monospace", "monospace"))


def left_on_screen(output: str) -> list[str]:
    """Returns the lines of a terminal as they stand at the end: what was drawn over is gone."""
    lines, row, is_fresh = [""], 0, True
    for part in _MOVES.split(output):
        if part == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
            is_fresh = True
        elif part == "\r":
            is_fresh = True
        elif part.endswith("A") and part.startswith("\x1b["):
            row, is_fresh = max(0, row - int(part[2:-1] or 1)), True
        elif part == "\x1b[J":
            lines = [*lines[:row], "" if is_fresh else lines[row]]
        elif part and part != "\x1b[K":
            lines[row] = part if is_fresh else lines[row] + part
            is_fresh = False
    return lines


def photograph(report: Path, chromium: str) -> None:
    """Writes the first screen of a report, light and dark."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=scheme)
            page.goto(report.as_uri())
            page.wait_for_timeout(500)
            page.screenshot(path=str(PICTURES / f"report-{scheme}.png"))
            page.close()
        browser.close()


def fill_gallery(reports: Mapping[str, str], chromium: str, chosen: Sequence[str]) -> None:
    """Writes the first screen of each report on a desk, in the dark, on a phone and on paper, or of the chosen ones."""
    looks: dict[str, dict[str, Any]] = {
        "desk": {"viewport": {"width": WIDTH, "height": HEIGHT}},
        "dark": {"viewport": {"width": WIDTH, "height": HEIGHT}, "color_scheme": "dark"},
        "phone": {"viewport": {"width": 390, "height": 844}},
        "paper": {"viewport": {"width": 794, "height": 1123}},
    }
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, report in reports.items():
            if chosen and name not in chosen:
                continue
            for look, options in looks.items():
                page = browser.new_page(**options)
                page.goto(report)
                page.wait_for_timeout(1_500 if name.startswith("view") else 500)
                if name == "view-labels":
                    page.fill("#rater", "Ann")
                    page.keyboard.press("Enter")
                    page.locator("#question button").first.wait_for()
                if name == "steps":
                    page.get_by_text("What was said and done").last.click()
                if name in ("view-items", "view-two"):
                    page.evaluate("scrollTo(0, document.querySelector('#items-title').offsetTop)")
                if look == "paper":
                    page.emulate_media(media="print")
                path = PICTURES / f"{name}-{look}.jpg"
                page.screenshot(path=str(path), type="jpeg", quality=45)
                page.close()
        browser.close()


if __name__ == "__main__":
    main()
