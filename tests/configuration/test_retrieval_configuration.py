"""What a file declares of searches and pages: engines led elsewhere, lanes of engines, of hosts, of every host."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.configuration.configuration import configuration_of, settings_for
from millstream.configuration.documents import Document
from millstream.configuration.errors import UsageError
from millstream.configuration.options import SendingOptions
from millstream.wiring import Settings, access_to

GOOD = """
[searches.searxng]
base_url = "http://127.0.0.1:8888/"
identity = "lab"

[searches.tavily]
key = "env:LAB_KEY"

[lanes."search/tavily"]
rpm = 1_000

[lanes.web]
rpm = 1_800
concurrency = 100

[lanes."web/*"]
rpm = 30

[lanes."web/docs.example.org"]
concurrency = 8
"""


def settings(tmp_path: Path, text: str, **environment: str) -> Settings:
    path = tmp_path / "c.toml"
    path.write_text(text)
    found = configuration_of(Document(path))
    made = settings_for(("search/tavily",), SendingOptions(), found)
    return Settings(lanes=made.lanes, searches=made.searches, environment=environment)


def test_an_engine_is_led_elsewhere_and_known_by_its_name(tmp_path: Path) -> None:
    made = settings(tmp_path, GOOD, SEARXNG_BASE_URL="http://elsewhere:1", LAB_KEY="k", TAVILY_API_KEY="other")
    target = access_to("search/searxng", made).target
    assert (target.base_url, target.specified) == ("http://127.0.0.1:8888", "lab")
    tavily = access_to("search/tavily", made)
    assert (tavily.variable, tavily.target.base_url) == ("LAB_KEY", "https://api.tavily.com")
    assert tavily.target.specified == tavily.target.base_url
    # What no file changes goes by its own variable.
    plain = settings(tmp_path, "", SEARXNG_BASE_URL="http://elsewhere:1")
    assert access_to("search/searxng", plain).target.specified == "http://elsewhere:1"


def test_every_host_has_the_lane_that_is_declared_for_all_but_where_it_has_its_own(tmp_path: Path) -> None:
    made = settings(tmp_path, GOOD)
    one = made.lane_of("web/a.example.org")
    assert (one.model, one.rpm, one.spacing_s, one.concurrency) == ("web/a.example.org", 30, 0.0, 2)
    own = made.lane_of("web/docs.example.org")
    assert (own.rpm, own.spacing_s, own.concurrency) == (None, 1.0, 8)
    together = made.lane_of("web")
    assert (together.rpm, together.concurrency) == (1_800, 100)
    assert made.lane_of("search/tavily").rpm == 1_000
    # Without a file, a host is spared: two at once, and a second between two.
    bare = Settings().lane_of("web/a.example.org")
    assert (bare.rpm, bare.spacing_s, bare.concurrency) == (None, 1.0, 2)
    # Documents of the corpus have no host to be spared.
    assert made.lane_of("web/").rpm is None


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ('[searches.serxng]\nbase_url = "http://a"', 1, "known are brave, serper, tavily, exa, searxng, google"),
        ('[searches.searxng]\nkey = "env:A"', 2, "unknown key"),
        ('[searches.brave]\nkey = "secret-value"', 2, "expected env:NAME"),
        ('[searches.brave]\nbase_url = "ftp://a"', 2, "expected an address"),
        ("[lanes.web]\ntpm = 5", 2, "unknown key"),
        ('[lanes."web/a.org"]\nkeys = ["env:A"]', 2, "unknown key"),
        ('[lanes."search/brave"]\ntpm = 5', 2, "unknown key"),
        ('[lanes."web/A.org"]\nrpm = 5', 1, "web/HOST in lower case, or web/* for every host"),
        ('[lanes."web/"]\nrpm = 5', 1, "web/HOST in lower case, or web/* for every host"),
    ],
)
def test_what_is_wrong_is_told_with_file_and_line(tmp_path: Path, text: str, line: int, said: str) -> None:
    with pytest.raises(UsageError) as told:
        settings(tmp_path, text)
    assert f"c.toml: line {line}: " in str(told.value)
    assert said in str(told.value) and "secret" not in str(told.value)
