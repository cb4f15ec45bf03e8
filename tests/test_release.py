"""The list of parts in a release is valid and whole, and a copy of the advisories is read as it is meant."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from ci_programs import ci_program
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

ROOT = Path(__file__).parent.parent
LOCK = f"""aiohttp==3.14.5 \\
    --hash=sha256:{"0" * 64}
    # via millstream
uvloop==1.2 ; sys_platform != 'win32' \\
"""


@pytest.fixture(scope="module")
def audit() -> ModuleType:
    return ci_program("audit")


def test_the_list_of_parts_has_every_pinned_package_with_its_hashes_and_is_valid() -> None:
    lock = (ROOT / "requirements.txt").read_text("utf-8")
    text = json.dumps(ci_program("sbom").document(lock, "1.0"))
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    parts = json.loads(text)["components"]
    assert [part["name"] for part in parts] == re.findall(r"^([a-z0-9-]+)==", lock, re.MULTILINE)
    assert sum(len(part["hashes"]) for part in parts) == lock.count("--hash=sha256:")
    assert all(part["hashes"] for part in parts)


def test_a_part_for_some_systems_alone_says_which() -> None:
    aiohttp, uvloop = ci_program("sbom").components(LOCK)
    assert (aiohttp["version"], len(aiohttp["hashes"]), "properties" in aiohttp) == ("3.14.5", 1, False)
    assert uvloop["properties"][0]["value"] == "sys_platform != 'win32'"


def advisory(*events: dict[str, str], name: str = "aiohttp", **more: Any) -> dict[str, Any]:
    package = {"ecosystem": "PyPI", "name": name}
    affected = {"package": package, "ranges": [{"type": "ECOSYSTEM", "events": list(events)}], **more}
    return {"id": "PYSEC-1", "modified": "2026-11-01T00:00:00Z", "affected": [affected]}


BEGIN = {"introduced": "0"}


@pytest.mark.parametrize(
    ("found", "is_bad"),
    [
        (advisory(BEGIN, {"fixed": "3.14.6"}), True),
        (advisory(BEGIN, {"fixed": "3.14.5"}), False),
        (advisory(BEGIN, {"fixed": "3.2"}, {"introduced": "3.14"}), True),
        (advisory(BEGIN, {"fixed": "3.2"}, {"introduced": "3.15"}), False),
        (advisory(BEGIN, {"last_affected": "3.14.4"}), False),
        (advisory(BEGIN, {"last_affected": "3.14.5"}), True),
        (advisory(BEGIN, {"fixed": "3.9"}, versions=["3.14.5"]), True),
        (advisory(BEGIN, name="AioHTTP"), True),
        (advisory(BEGIN, name="another"), False),
        (advisory(BEGIN, {"fixed": "no version"}), True),
        ({**advisory(BEGIN), "withdrawn": "2026-11-02T00:00:00Z"}, False),
    ],
)
def test_a_copy_of_the_advisories_is_read_as_it_is_meant(
    found: dict[str, Any], is_bad: bool, audit: ModuleType, tmp_path: Path
) -> None:
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("PYSEC-1.json", json.dumps(found))
    passed, text = audit.verdict_of_copy(tmp_path / "all.zip", LOCK)
    assert passed is not is_bad, text
    assert ("aiohttp 3.14.5: PYSEC-1" in text.replace("AioHTTP", "aiohttp")) is is_bad
    assert is_bad or "the newest of 1 advisories is of 2026-11-01" in text


@pytest.mark.parametrize("content", [b"", b"no archive", None])
def test_what_is_no_copy_is_no_pass(content: bytes | None, audit: ModuleType, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "all.zip").write_bytes(content)
    assert audit.verdict_of_copy(tmp_path / "all.zip", LOCK)[0] is False
