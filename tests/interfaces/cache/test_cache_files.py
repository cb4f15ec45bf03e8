"""`cache export` and `cache import`: a run repeated from one file, and its pages as others' tools read them."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from command_line import SMALL, SMALL_PROMPTS, CommandLine, Provider
from warcio.archiveiterator import ArchiveIterator  # type: ignore[import-untyped]

from millstream.engine.call import Call
from millstream.engine.endpoint import Response
from millstream.engine.runs.run_folder import FORMAT, holding, manifest_hash
from millstream.engine.store.cache import Cache, StoredAnswer
from millstream.engine.store.entries import encode
from millstream.engine.store.lmdb_store import ANSWERS
from millstream.wiring import Settings
from millstream.wiring.engine import Engine

pytestmark = pytest.mark.needs_benchmark("millstone")

RUN = ("run", "millstone", "--model", "sim/open", *SMALL, "--no-report", "--no-progress")
HTML = b"<html><body><p>" + b"Whales are large. " * 400 + b"</p></body></html>"


@pytest.fixture
def run(cli: CommandLine, provider: Provider) -> tuple[str, ...]:
    """A finished run in `r` over the cache `c`; the command that made it, but for both."""
    command = (*RUN, "--base-url", provider.base_url)
    assert cli(*command, "--out", "r", "--cache", "c").code == 0
    provider.reset()
    return command


# A run repeated


def test_a_run_is_repeated_from_its_file_alone_to_the_same_scores(
    cli: CommandLine, provider: Provider, run: tuple[str, ...], tmp_path: Path
) -> None:
    told = cli("cache", "export", "r", "s")
    assert told.code == 0 and f"s: {SMALL_PROMPTS:,} answers" in told.out
    again = cli(*run, "--out", "again", "--cache", "other", "--snapshot", "s", "--mode", "strict")
    assert again.code == 0, again.err
    assert (tmp_path / "again/scores.json").read_bytes() == (tmp_path / "r/scores.json").read_bytes()
    assert provider.calls() == 0
    digest = told.out.split("digest ")[1].strip()
    for folder in ("r", "again"):
        manifest = json.loads((tmp_path / folder / "manifest.json").read_text())
        assert manifest["snapshot"] == digest and manifest["manifest_hash"] == manifest_hash(manifest)
        assert cli("verify", folder).code == 0
    # The same command once more changes nothing of what was exported.
    assert cli(*run, "--out", "r", "--cache", "c").code == 0
    assert json.loads((tmp_path / "r/manifest.json").read_text())["snapshot"] == digest


def test_a_snapshot_fills_another_cache_once(
    cli: CommandLine, provider: Provider, run: tuple[str, ...], tmp_path: Path
) -> None:
    exported = json.loads(cli("cache", "export", "r", "s", "--json").out)
    assert (exported["answers"], exported["missing"]) == (SMALL_PROMPTS, 0)
    taken = json.loads(cli("cache", "import", "s", "--cache", "new", "--json").out)
    assert taken["added"] == taken["records"] >= SMALL_PROMPTS and taken["digest"] == exported["digest"]
    assert f"{taken['records']:,} were there already" in cli("cache", "import", "s", "--cache", "new").out
    assert cli(*run, "--out", "again", "--cache", "new").code == 0
    assert provider.calls() == 0
    again = json.loads(cli("cache", "export", "again", "s2", "--json").out)
    assert again["digest"] == exported["digest"]


def test_what_the_cache_has_lost_is_told_and_the_exit_code_says_so(cli: CommandLine, run: tuple[str, ...]) -> None:
    cli("cache", "prune", "--all", "--cache", "c")
    done = cli("cache", "export", "r", "s")
    assert done.code == 3
    assert f"{SMALL_PROMPTS:,} calls of this run have no answer in" in done.err and "--cache" in done.err


def test_nothing_is_written_over_and_nothing_half(cli: CommandLine, run: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "s").write_text("mine")
    done = cli("cache", "export", "r", "s")
    assert done.code == 2 and "is there already" in done.err and (tmp_path / "s").read_text() == "mine"
    assert cli("cache", "export", "r", "nowhere/s").code == 2
    assert cli("cache", "export", "r", "whole").code == 0
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".") or path.suffix == ".new"] == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("export", "r"), "expected RUN FILE for a snapshot, or --warc FILE RUN"),
        (("export", "r", "s", "--warc", "w"), "expected RUN FILE for a snapshot, or --warc FILE RUN"),
        (("export", "no-run", "s"), "no-run does not exist"),
        (("import", "no-file"), "can't be read"),
        (("import", "r/manifest.json"), "is no snapshot"),
    ],
    ids=str,
)
def test_what_can_not_be_done_is_told_in_one_line(
    cli: CommandLine, run: tuple[str, ...], arguments: tuple[str, ...], said: str
) -> None:
    done = cli("cache", *arguments)
    assert done.code in (2, 5) and said in done.err
    assert "Traceback" not in done.err and len(done.err.strip().splitlines()) <= 2


def test_a_cut_snapshot_is_refused_whoever_reads_it(
    cli: CommandLine, provider: Provider, run: tuple[str, ...], tmp_path: Path
) -> None:
    cli("cache", "export", "r", "s")
    (tmp_path / "s").write_bytes((tmp_path / "s").read_bytes()[:-100])
    for command in (
        ("cache", "import", "s", "--cache", "new"),
        (*run, "--out", "again", "--cache", "other", "--snapshot", "s", "--mode", "strict"),
    ):
        done = cli(*command)
        assert done.code == 5 and "damaged: it has been cut short" in done.err and "Traceback" not in done.err
    assert provider.calls() == 0


def test_a_run_that_is_being_written_is_not_exported(cli: CommandLine, run: tuple[str, ...], tmp_path: Path) -> None:
    with holding(tmp_path / "r"):
        done = cli("cache", "export", "r", "s")
    assert done.code == 5 and "is being written by process" in done.err
    assert not (tmp_path / "s").exists()


# Pages for others' tools


async def fetched(folder: Path, urls: list[str]) -> list[str]:
    """The keys of hops to pages of a site of our own on loopback."""

    async def page(request: web.Request) -> web.StreamResponse:
        match request.path:
            case "/robots.txt":
                return web.Response(text="User-agent: *\nDisallow:\n")
            case "/moved":
                raise web.HTTPFound("/plain")
            case "/gone":
                return web.Response(status=404, text="not here")
            case "/packed":
                return web.Response(
                    body=gzip.compress(HTML), headers={"Content-Encoding": "gzip"}, content_type="text/html"
                )
            case "/cut":
                assert request.transport is not None
                request.transport.close()
                return web.Response()
        return web.Response(body=HTML, content_type="text/html", charset="utf-8")

    application = web.Application()
    application.router.add_get("/{path:.*}", page)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
    hosts = tuple(f"{name}.example=127.0.0.1:{port}" for name in ("one", "two", "three"))
    async with Engine(settings=Settings(cache=folder, allow_hosts=hosts)) as engine:
        found = await asyncio.gather(*(engine.ask(Call("web", url)) for url in urls))
    await runner.cleanup()
    return [outcome.key for outcome in found]


URLS = [
    "http://one.example/robots.txt",
    "http://one.example/plain",
    "http://two.example/moved",
    "http://two.example/plain",
    "http://three.example/packed",
    "http://three.example/gone",
    "http://one.example/cut",
]


@pytest.fixture(scope="module")
def read_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Hosts are spared, which takes its seconds."""
    home = tmp_path_factory.mktemp("read")
    keys = asyncio.run(fetched(home / "c", URLS))
    (home / "r").mkdir()
    (home / "r/manifest.json").write_text(json.dumps({"format": FORMAT, "specification": {}, "run_id": "7f"}))
    (home / "r/records.jsonl").write_text(json.dumps({"id": "c/1", "keys": [*keys, *keys]}) + "\n")
    return home


@pytest.fixture
def conversations(read_once: Path, tmp_path: Path) -> Path:
    """A run's folder whose one turn read these pages, and the cache `c` that has them."""
    shutil.copytree(read_once, tmp_path, dirs_exist_ok=True)
    return tmp_path / "r"


@pytest.mark.parametrize("name", ["pages.warc", "pages.warc.gz"])
def test_the_pages_of_a_run_are_read_by_others_tools(
    cli: CommandLine, conversations: Path, tmp_path: Path, name: str
) -> None:
    done = cli("cache", "export", "--warc", name, "r", "--cache", "c")
    assert done.code == 0 and "6 responses of pages" in done.out and "1 more hosts gave none" in done.out
    found: dict[str, tuple[str, str | None, bytes]] = {}
    with (tmp_path / name).open("rb") as file:
        for record in ArchiveIterator(file, check_digests="raise"):
            if record.rec_type == "response":
                url = record.rec_headers.get_header("WARC-Target-URI")
                assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", record.rec_headers.get_header("WARC-Date"))
                told = record.http_headers
                found[url] = (told.statusline, told.get_header("Location"), record.content_stream().read())
    assert found == {
        "http://one.example/robots.txt": ("200 OK", None, b"User-agent: *\nDisallow:\n"),
        "http://one.example/plain": ("200 OK", None, HTML),
        "http://two.example/moved": ("302 Found", "/plain", b"302: Found"),
        "http://two.example/plain": ("200 OK", None, HTML),
        "http://three.example/packed": ("200 OK", None, HTML),
        "http://three.example/gone": ("404 Not Found", None, b"not here"),
    }


def test_no_stored_address_writes_header_lines_of_its_own(cli: CommandLine, tmp_path: Path) -> None:
    key = b"k" * 32
    hostile = StoredAnswer(
        "h", b"{}", 0, 0, 1.0, Response(200, b"x"), url="http://h.test/a b\r\nWARC-Type: warcinfo\u2028"
    )
    cache = Cache(tmp_path / "c")
    cache.add([(ANSWERS, key, encode(hostile))])
    cache.close()
    (tmp_path / "r").mkdir()
    (tmp_path / "r/manifest.json").write_text(json.dumps({"format": FORMAT, "specification": {}, "run_id": "7f"}))
    (tmp_path / "r/records.jsonl").write_text(json.dumps({"id": "c/1", "keys": [key.hex()]}) + "\n")
    assert cli("cache", "export", "--warc", "w", "r", "--cache", "c").code == 0
    assert (
        b"\r\nWARC-Target-URI: http://h.test/a%20b%0D%0AWARC-Type:%20warcinfo%E2%80%A8\r\n"
        in (tmp_path / "w").read_bytes()
    )


def test_a_run_without_pages_says_so(cli: CommandLine, run: tuple[str, ...]) -> None:
    done = cli("cache", "export", "--warc", "w.warc", "r")
    assert done.code == 0 and "0 responses" in done.out and "fetched no page" in done.err


def test_stats_tell_of_pages_too(cli: CommandLine, conversations: Path) -> None:
    told: dict[str, Any] = json.loads(cli("cache", "stats", "--cache", "c", "--json").out)
    assert (told["entries"], told["failures"], told["bodies"]) == (5, 2, 1)
    assert [(group["endpoint"], group["model"]) for group in told["groups"]] == [("web", "")]
    assert "2 failures of searches and pages, 1 bodies" in cli("cache", "stats", "--cache", "c").out
