"""Every fault of the simulated provider over a real socket, one attempt each: what it is taken for."""

from __future__ import annotations

import pytest
from endpoints import CANARY, ask, endpoint, transport
from loops import on_each_loop, run_on

from millstream.engine.call import Reply
from millstream.engine.endpoint import Fault
from millstream.fixtures.provider import ModelProvider, Options
from millstream.fixtures.provider.faults import FAULTS

# fault: kind, action, quota, maybe billed
BROKEN = ("incomplete", "retry", "keep", True)
BAD_JSON = ("bad_json", "retry", "keep", True)
LATE = ("timeout", "retry", "keep", True)
HUNG_UP = ("disconnected", "retry", "keep", True)
THROTTLED = ("rate_limited", "throttle", "keep", False)
EMPTY_ACCOUNT = ("rate_limited", "stop", "keep", False)
SERVER = ("server_error", "retry", "keep", False)
GATEWAY = ("server_error", "retry", "keep", True)
REJECTED = ("rejected", "never", "keep", False)
DEAD_KEY = ("rejected", "confirm", "keep", False)
REDIRECT = ("redirect", "stop", "keep", False)
Row = tuple[str, str, str, bool]

FAULTY: dict[str, Row] = {
    "refuse": HUNG_UP,
    "refuse=reset": HUNG_UP,
    "reset_body": BROKEN,
    "short_content_length": BROKEN,
    "cut_chunk": BROKEN,
    "slow_headers": LATE,
    "silence": LATE,
    "slow_body": LATE,
    "truncated_json": BAD_JSON,
    "truncated_json=length": BAD_JSON,
    "error_200": SERVER,
    "error_200=server_error": SERVER,
    "error_200=rate_limit_exceeded": THROTTLED,
    "error_200=insufficient_quota": EMPTY_ACCOUNT,
    "error_200=invalid_api_key": DEAD_KEY,
    "error_200=context_length_exceeded": REJECTED,
    "empty_choices": ("empty", "retry", "settle", False),
    "huge_body=17": ("too_large", "never", "keep", True),
    "stream_cut": BROKEN,
    "rate_limited": THROTTLED,
    "rate_limited_after": THROTTLED,
    "rate_limited_date": THROTTLED,
    "rate_limited_ms": THROTTLED,
    "rate_limited_both": THROTTLED,
    "insufficient_quota": EMPTY_ACCOUNT,
    "spend_cap": EMPTY_ACCOUNT,
    "payment_required": EMPTY_ACCOUNT,
    "server_error": SERVER,
    "server_error=503": SERVER,
    "server_error=529": SERVER,
    "server_error=408": SERVER,
    "server_error=409": SERVER,
    "bad_gateway=502": GATEWAY,
    "bad_gateway=504": GATEWAY,
    "rejected": REJECTED,
    "rejected=404": REJECTED,
    "rejected=413": REJECTED,
    "rejected=422": REJECTED,
    "unauthorized": DEAD_KEY,
    "forbidden": DEAD_KEY,
    "redirect": REDIRECT,
    "redirect=301": REDIRECT,
    "redirect=302": REDIRECT,
    "redirect=308": REDIRECT,
}
# A stream that is cut says nothing else, whatever cut it; a head that never came is no stream.
STREAMED: dict[str, Row] = {"truncated_json": BROKEN, "truncated_json=length": BROKEN}
# fault: refused, truncated, whether the bytes are kept
SOUND: dict[str, tuple[bool, bool, bool]] = {
    "": (False, False, False),
    "reset_keepalive": (False, False, False),
    "early_close": (False, False, False),
    "long_body": (False, False, False),
    "length": (False, True, False),
    "bad_utf8": (False, False, True),
    "lone_surrogate": (False, False, True),
    "content_filter": (True, False, False),
    "served_as=another": (False, False, False),
    "content_filter=200": (True, False, False),
}
SOUND_STREAMED = {**SOUND, "stream_cut=after": (False, False, False)}
WAITS = {"rate_limited_after": 2.0, "rate_limited_date": 2.0, "rate_limited_ms": 0.5, "rate_limited_both": 0.5}
SLOW = ("slow_headers", "silence", "slow_body")


async def attempt(fault: str, *, stream: bool) -> Reply | Fault:
    async with ModelProvider(Options(keys=(CANARY,))) as provider, transport() as over:
        timeout_s = 0.3 if fault in SLOW else 5.0
        return await ask(endpoint(over, provider.base_url, timeout_s=timeout_s, fault=fault), stream=stream)


def test_every_fault_that_the_provider_knows_has_a_row() -> None:
    assert {name.partition("=")[0] for name in (*FAULTY, *SOUND) if name} == set(FAULTS)


@on_each_loop
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("fault", FAULTY)
def test_a_fault_is_taken_for_what_the_table_says(fault: str, stream: bool, loop: str) -> None:
    result = run_on(loop, attempt(fault, stream=stream))
    assert isinstance(result, Fault), result
    row = (STREAMED if stream else {}).get(fault, FAULTY[fault])
    assert (result.kind, result.action, result.quota, result.is_billed_maybe) == row
    assert result.retry_after_s == WAITS.get(fault)
    assert result.cuts_rate == (fault in ("rate_limited", "server_error=529", "error_200=rate_limit_exceeded"))
    assert result.is_immediate == (result.kind == "disconnected")
    assert CANARY not in repr(result)


@on_each_loop
@pytest.mark.parametrize(
    ("fault", "stream"),
    [*((fault, False) for fault in SOUND), *((fault, True) for fault in SOUND_STREAMED)],
)
def test_a_whole_answer_is_an_answer_whatever_comes_with_it(fault: str, stream: bool, loop: str) -> None:
    result = run_on(loop, attempt(fault, stream=stream))
    assert isinstance(result, Reply), result
    assert (result.refused, result.truncated, result.raw is not None) == SOUND_STREAMED[fault]
    assert ("\ufffd" in result.text) == (fault in ("bad_utf8", "lone_surrogate"))
    assert (result.usage is None) == (fault in ("content_filter", "stream_cut=after"))
