"""The table of other clients: who is in it, and that its rates are the server's."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from command_line import environment

from millstream.speed.rivals import CLIENTS, Row, picture

HAS_NGINX = bool(shutil.which("nginx") or Path("/usr/sbin/nginx").exists())


def rivals(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "millstream.speed.rivals", *words]
    return subprocess.run(command, env=environment(folder), cwd=folder, capture_output=True, text=True, timeout=110)


@pytest.mark.long
@pytest.mark.skipif(not HAS_NGINX, reason="nginx is not installed")
def test_each_client_that_is_there_has_a_row_beside_the_floor(tmp_path: Path) -> None:
    done = rivals(tmp_path, "--rounds", "1", "--json", "table.json", "--picture", "table.svg", "bare aiohttp")
    assert done.returncode == 0, done.stderr
    floor, bare = json.loads((tmp_path / "table.json").read_text())
    assert (floor["name"], bare["name"], floor["of_floor"]) == ("floor", "bare aiohttp", [1.0])
    assert floor["calls"] == 50_000 and 500 < bare["rates"][0] < floor["rates"][0]
    assert bare["of_floor"] == [bare["rates"][0] / floor["rates"][0]]
    assert "bare aiohttp" in (tmp_path / "table.svg").read_text()


def test_an_unknown_client_is_named(tmp_path: Path) -> None:
    done = rivals(tmp_path, "curl")
    assert done.returncode == 2
    assert f"unknown client curl: name {', '.join(client.name for client in CLIENTS)}" in " ".join(done.stderr.split())


def test_the_picture_has_the_fastest_first_and_every_rate() -> None:
    rows = [Row("litellm", "1.2 <b>", 10, [80.0, 90.0, 100.0]), Row("ms.Engine", "0.1", 10, [9_000.0])]
    drawn = ElementTree.fromstring(picture(rows))
    texts = [element.text for element in drawn.iter("{http://www.w3.org/2000/svg}text")][1:]
    assert texts == ["ms.Engine", "9,000", "litellm 1.2 <b>", "90"]
    ours, other = drawn.iter("{http://www.w3.org/2000/svg}rect")
    assert ours.get("class") == "ours" and float(ours.get("width") or 0) > float(other.get("width") or 0)
