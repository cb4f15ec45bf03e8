"""A page in a real browser, of another site or under a name that was led here, gets nothing of a gateway."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from axe import needs_axe, violations_in
from browser import QUIET, Watched, executable
from gateways import gateway
from playwright.sync_api import Browser, sync_playwright

PAGE = b"""<!doctype html><title>a page</title><body><iframe name="sink"></iframe>"""
ATTEMPTS = """async (gateway) => {
  const got = {};
  const body = JSON.stringify({model: "lab/open", messages: [{role: "user", content: "hi"}]});
  const ask = async (name, path, options) => {
    try { const answer = await fetch(gateway + path, options);
          got[name] = answer.type === "opaque" ? "opaque" : answer.status; }
    catch (error) { got[name] = "refused"; }
  };
  const json = {"Content-Type": "application/json"};
  await ask("post", "/v1/chat/completions", {method: "POST", headers: json, body});
  await ask("key", "/v1/chat/completions", {method: "POST", headers: {...json, Authorization: "Bearer x"}, body});
  await ask("simple", "/v1/chat/completions", {method: "POST", body});
  await ask("plain", "/v1/chat/completions", {method: "POST", mode: "no-cors", body});
  await ask("blob", "/v1/chat/completions", {method: "POST", mode: "no-cors", body: new Blob([body])});
  await ask("get", "/v1/models", {});
  await ask("opaque", "/v1/models", {mode: "no-cors"});
  await ask("health", "/health", {});
  await ask("metrics", "/metrics", {credentials: "include"});
  navigator.sendBeacon(gateway + "/v1/chat/completions", new Blob([body], {type: "text/plain"}));
  const heard = (target, good) => new Promise(resolve => {
    target.addEventListener(good, () => resolve("got"));
    target.addEventListener("error", () => resolve("refused"));
    setTimeout(() => resolve("nothing"), 3000);
  });
  const add = (tag, attribute, path) => {
    const element = document.createElement(tag);
    element[attribute] = gateway + path;
    const told = heard(element, "load");
    document.body.append(element);
    return told;
  };
  got.image = await add("img", "src", "/v1/models");
  got.script = await add("script", "src", "/v1/models");
  const events = new EventSource(gateway + "/v1/models");
  got.events = await heard(events, "open");
  events.close();
  const socket = new WebSocket(gateway.replace("http", "ws") + "/v1/chat/completions");
  got.socket = await heard(socket, "open");
  for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]) {
    const form = document.createElement("form");
    Object.assign(form, {method: "POST", enctype: type, target: "sink", action: gateway + "/v1/chat/completions"});
    form.innerHTML = `<input name='${body.slice(0, -1)}, "x": "' value='"}'>`;
    document.body.append(form);
    form.submit();
    await new Promise(resolve => setTimeout(resolve, 200));
  }
  return got;
}"""


class _Site(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


@contextmanager
def site() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Site) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


class _Gateway(threading.Thread):
    """One in a loop of its own, since the browser has this thread's."""

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self.calls = self.requests = 0
        self.told = ""
        self.port = 0
        self.is_open, self._may_end = threading.Event(), threading.Event()
        self._folder = folder

    def run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        async with gateway(self._folder) as both:
            self.port = both.port
            self.is_open.set()
            await asyncio.to_thread(self._may_end.wait)
            self.calls, self.requests = both.calls, both.running.metrics.requests
            self.told = both.running.metrics.page()[0].decode()

    def end(self) -> None:
        self._may_end.set()
        self.join(20)


@pytest.mark.parametrize("name", ["http://127.0.0.1:{}", "http://localhost:{}", "http://gateway.evil.test:{}"])
def test_a_page_that_tries_everything_gets_nothing(tmp_path: Path, name: str) -> None:
    path = executable()
    served = _Gateway(tmp_path)
    served.start()
    assert served.is_open.wait(20)
    rules = "--host-resolver-rules=MAP *.evil.test 127.0.0.1"
    with site() as port, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[*QUIET, rules])
        try:
            page = browser.new_page()
            page.goto(f"http://page.evil.test:{port}/")
            got = page.evaluate(ATTEMPTS, name.format(served.port))
            # A page that was loaded from the rebound name itself is of the same site as what it asks.
            page.goto(f"http://gateway.evil.test:{served.port}/health")
            shown = page.content()
        finally:
            browser.close()
    served.end()
    assert {got[one] for one in ("post", "key", "simple", "get", "health", "metrics")} == {"refused"}, got
    assert {got[one] for one in ("image", "script", "events", "socket")} == {"refused"}, got
    assert (served.calls, served.requests) == (0, 0)
    # They came, and were refused here, not in the browser alone.
    refused = [line for line in served.told.splitlines() if line.startswith("millstream_refused_total")]
    assert sum(float(line.split()[-1]) for line in refused) > 10, served.told
    assert "is none of this gateway" in shown and '"ok"' not in shown


@pytest.mark.parametrize("look", [{}, {"color_scheme": "dark"}, {"viewport": {"width": 390, "height": 844}}])
def test_the_gateways_page_writes_in_what_is_new_and_axe_finds_nothing(
    browser: Browser, tmp_path: Path, look: dict[str, Any]
) -> None:
    needs_axe()
    served = _Gateway(tmp_path)
    served.start()
    assert served.is_open.wait(20)
    address = f"http://127.0.0.1:{served.port}/"
    try:
        page = browser.new_context(bypass_csp=True, **look).new_page()
        page.goto(address)
        assert violations_in(page) == []
        page.locator("[role=region]").first.focus()
        page.evaluate("window.stayed = true")
        asked = Request(f"{address}<img src=x onerror=alert(1)>".replace(" ", "%20"))
        with suppress(HTTPError):
            urlopen(asked, timeout=10)
        page.get_by_role("heading", name="Last requests without an answer").wait_for(timeout=10_000)
        page.get_by_role("cell", name="404", exact=True).first.wait_for(timeout=10_000)
        assert page.evaluate("window.stayed") and page.locator("img").count() == 0
        assert violations_in(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    finally:
        served.end()


def test_the_gateways_page_runs_its_script_alone(browser: Browser, tmp_path: Path) -> None:
    served = _Gateway(tmp_path)
    served.start()
    assert served.is_open.wait(20)
    try:
        page = browser.new_page()
        watched = Watched(page)
        page.goto(f"http://127.0.0.1:{served.port}/")
        with page.expect_response(lambda one: one.url.endswith("/") and one.status == 200, timeout=10_000):
            pass
        other = "Object.assign(document.createElement('script'), {text: 'window.ran = 1'})"
        page.evaluate(f"() => {{ document.body.append({other}); }}")
        assert page.evaluate("window.ran ?? null") is None
        assert {request.split("/")[2] for request in watched.requests} == {f"127.0.0.1:{served.port}"}
    finally:
        served.end()
