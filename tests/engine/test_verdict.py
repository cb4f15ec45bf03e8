"""What follows from every fault: the table, row by row, and what no fault and no history may break."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from millstream.engine.attempts.retry import RetryPolicy
from millstream.engine.call import FailureKind
from millstream.engine.endpoint import Action, Fault, Quota
from millstream.engine.verdict import History, Tries, Verdict, verdict

ROOT = Path(__file__).parent.parent.parent
FIRST = History()
# Further on in a call's life: its fifth and sixth attempt, and its third that may have been billed.
FIFTH, SIXTH, BILLED_TWICE = History(attempts=4), History(attempts=5), History(attempts=2, maybe_billed=2)
# One more API key is healthy, and has not refused the call; this one has, or has not.
TWO_KEYS, REFUSED = History(has_another=True), History(has_another=True, is_refused=True)
SUSPECT, PROBED = History(is_suspect=True), History(is_suspect=True, is_probe=True)

REFUSES_CONNECTIONS = Fault("connect", "refused", "retry", quota="refund")
NAMELESS = Fault("dns", "no such host", "retry", quota="refund")
CLOSED_UNWRITTEN = Fault("disconnected", "closed", "retry", quota="refund", is_immediate=True)
CLOSED_WRITTEN = Fault("disconnected", "closed", "retry", is_billed_maybe=True, is_immediate=True)
CUT = Fault("incomplete", "broke off", "retry", is_billed_maybe=True)
SILENT = Fault("timeout", "no whole answer", "retry", is_billed_maybe=True)
BAD_JSON = Fault("bad_json", "ends in the middle", "retry", 200, is_billed_maybe=True)
TOLD = Fault("rate_limited", "429", "throttle", 429, retry_after_s=7.0)
TOLD_NOTHING = Fault("rate_limited", "429", "throttle", 429, retry_after_s=0.0)
UNTOLD = Fault("rate_limited", "429", "throttle", 429, cuts_rate=True)
UNPAID = Fault("rate_limited", "insufficient_quota", "stop", 429)
BROKEN = Fault("server_error", "500", "retry", 500)
OVERLOADED = Fault("server_error", "529", "retry", 529, cuts_rate=True, is_full=True)
BEHIND_A_GATEWAY = Fault("server_error", "502", "retry", 502, is_billed_maybe=True)
REJECTED = Fault("rejected", "400", "never", 400)
NO_PAGE = Fault("empty", "204", "never", 204)
FORBIDDEN = Fault("rejected", "401", "confirm", 401)
EMPTY = Fault("empty", "no choices", "retry", 200, quota="settle", is_repeated_once=True, usage_tokens=30)
TOO_LARGE = Fault("too_large", "100 MB", "never", 200, is_billed_maybe=True)
REDIRECT = Fault("redirect", "302", "stop", 302)
NO_FILES = Fault("connect", "out of file descriptors", "wait", quota="refund", retry_after_s=1.0)

TABLE: list[tuple[str, Fault, History, Verdict]] = [
    # Again after a back-off, at most 6 attempts, one more failure in a row.
    ("refused connection", REFUSES_CONNECTIONS, FIRST, Verdict("later", "failure", quota="refund")),
    ("no such host", NAMELESS, FIRST, Verdict("later", "failure", quota="refund")),
    ("500", BROKEN, FIRST, Verdict("later", "failure")),
    ("500, the fifth", BROKEN, FIFTH, Verdict("later", "failure")),
    ("500, the sixth", BROKEN, SIXTH, Verdict("never", "failure")),
    ("529", OVERLOADED, FIRST, Verdict("later", "failure", cuts_rate=True)),
    ("another key does not mend it", BROKEN, TWO_KEYS, Verdict("later", "failure")),
    # The same, and at most two repeats of what may have been billed.
    ("reset in the body", CUT, FIRST, Verdict("later", "failure", money="maybe")),
    ("reset, the third", CUT, BILLED_TWICE, Verdict("never", "failure", money="maybe")),
    ("truncated JSON", BAD_JSON, FIRST, Verdict("later", "failure", money="maybe")),
    ("502", BEHIND_A_GATEWAY, FIRST, Verdict("later", "failure", money="maybe")),
    ("silence", SILENT, FIRST, Verdict("later", "failure", money="maybe")),
    ("500 after two that may be billed", BROKEN, BILLED_TWICE, Verdict("later", "failure")),
    # A keepalive that was closed: the first repeat needs no back-off.
    ("closed before it was written", CLOSED_UNWRITTEN, FIRST, Verdict("soon", "failure", quota="refund")),
    ("closed after", CLOSED_WRITTEN, FIRST, Verdict("soon", "failure", money="maybe")),
    ("closed, the fifth", CLOSED_UNWRITTEN, FIFTH, Verdict("later", "failure", quota="refund")),
    # Empty choices: once more, and paid for.
    ("empty", EMPTY, FIRST, Verdict("later", "failure", quota="settle", money="sure")),
    ("empty, the second", EMPTY, History(attempts=1), Verdict("never", "failure", quota="settle", money="sure")),
    # 429 with a time: the lane pauses, no attempt.
    ("429 with a time", TOLD, FIRST, Verdict("now", "pause", counts=False, mark="refused", pause_s=7.0)),
    ("429 with no seconds", TOLD_NOTHING, FIRST, Verdict("now", "pause", counts=False, mark="refused", pause_s=1.0)),
    ("429 with a time, the sixth", TOLD, SIXTH, Verdict("now", "pause", counts=False, mark="refused", pause_s=7.0)),
    (
        "429 again after a pause",
        TOLD,
        History(is_again=True),
        Verdict("now", "pause", counts=False, mark="refused", cuts_rate=True, pause_s=7.0),
    ),
    (
        "429 whose time is in the limits",
        UNTOLD,
        History(pause_s=30.0),
        Verdict("now", "pause", counts=False, mark="refused", pause_s=30.0),
    ),
    (
        "429 with a time before limits",
        TOLD,
        History(pause_s=30.0),
        Verdict("now", "pause", counts=False, mark="refused", pause_s=7.0),
    ),
    # 429 without: an attempt, and the rate is cut; another key may take it at once.
    ("429 without", UNTOLD, FIRST, Verdict("later", "refusal", mark="refused", cuts_rate=True)),
    ("429 without, the sixth", UNTOLD, SIXTH, Verdict("never", "refusal", mark="refused", cuts_rate=True)),
    (
        "429 without, first elsewhere",
        UNTOLD,
        structs.replace(TWO_KEYS, attempts=5),
        Verdict("now", "refusal", counts=False, mark="refused", cuts_rate=True),
    ),
    ("429 without, refused before", UNTOLD, REFUSED, Verdict("now", "refusal", mark="refused", cuts_rate=True)),
    (
        "429 without, refused before, the sixth",
        UNTOLD,
        structs.replace(REFUSED, attempts=5),
        Verdict("never", "refusal", mark="refused", cuts_rate=True),
    ),
    # An empty account stops its key, a redirect the lane.
    ("insufficient_quota", UNPAID, FIRST, Verdict("now", "empty_account", mark="refused")),
    ("insufficient_quota, the sixth", UNPAID, SIXTH, Verdict("now", "empty_account", mark="refused")),
    ("another key pays", UNPAID, TWO_KEYS, Verdict("now", "empty_account", counts=False, mark="refused")),
    ("redirect", REDIRECT, FIRST, Verdict("never", "redirect")),
    ("redirect, with another key", REDIRECT, TWO_KEYS, Verdict("never", "redirect")),
    # 401 and 403: a probe confirms it, then the key stops.
    ("401", FORBIDDEN, FIRST, Verdict("now", "doubt", counts=False, mark="doubted")),
    ("401 while the probe is awaited", FORBIDDEN, SUSPECT, Verdict("now", "nothing", counts=False, mark="doubted")),
    ("401 of the probe", FORBIDDEN, PROBED, Verdict("now", "dead_key", counts=False, mark="doubted")),
    (
        "401 where others are answered",
        FORBIDDEN,
        History(is_refused=True, is_doubted=True),
        Verdict("now", "doubt", mark="doubted"),
    ),
    (
        "401 where others are answered, the sixth",
        FORBIDDEN,
        History(attempts=5, is_refused=True, is_doubted=True),
        Verdict("pending", "doubt", mark="doubted"),
    ),
    # Not again; the lane answers.
    ("400", REJECTED, FIRST, Verdict("never", "rejection")),
    ("400, with another key", REJECTED, TWO_KEYS, Verdict("never", "rejection")),
    ("an answer without a page", NO_PAGE, FIRST, Verdict("never", "success")),
    ("100 MB", TOO_LARGE, FIRST, Verdict("never", "success", money="maybe")),
    # Our own machine: never the failure of a call.
    ("no file descriptors", NO_FILES, SIXTH, Verdict("now", "rest", counts=False, pause_s=1.0, quota="refund")),
    # A tier of service without room, or without an answer in time.
    ("a full tier", OVERLOADED, History(has_instead=True), Verdict("otherwise", "nothing", counts=False)),
    (
        "a tier's silence",
        SILENT,
        History(attempts=5, maybe_billed=2, has_instead=True),
        Verdict("otherwise", "nothing", counts=False, money="maybe"),
    ),
    ("another fault of a tier", BROKEN, History(has_instead=True), Verdict("later", "failure")),
]


@pytest.mark.parametrize(("fault", "history", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_the_table(fault: Fault, history: History, expected: Verdict) -> None:
    assert verdict(fault, history) == expected


def test_what_a_row_leaves_out() -> None:
    assert {name: value for name, value in structs.asdict(FIRST).items() if value} == {"policy": RetryPolicy()}
    assert {name: value for name, value in structs.asdict(Verdict("never", "nothing")).items() if value} == {
        "again": "never",
        "learns": "nothing",
        "counts": True,
        "quota": "keep",
        "money": "none",
    }


FAULTS = st.builds(
    Fault,
    st.sampled_from(get_args(FailureKind)),
    st.just("what happened"),
    st.sampled_from(get_args(Action)),
    st.sampled_from([None, 200, 302, 400, 403, 413, 429, 500]),
    st.sampled_from([None, 0.0, 0.4, 3.0]),
    st.sampled_from(get_args(Quota)),
    is_billed_maybe=st.booleans(),
    is_immediate=st.booleans(),
    cuts_rate=st.booleans(),
    is_repeated_once=st.booleans(),
    usage_tokens=st.sampled_from([None, 0, 7]),
    is_full=st.booleans(),
)
HISTORIES = st.builds(
    History,
    st.integers(0, 8),
    st.integers(0, 4),
    st.builds(RetryPolicy, attempts_max=st.integers(1, 7), billed_repeats_max=st.integers(0, 3)),
    is_refused=st.booleans(),
    is_doubted=st.booleans(),
    has_another=st.booleans(),
    has_instead=st.booleans(),
    is_suspect=st.booleans(),
    is_probe=st.booleans(),
    is_again=st.booleans(),
    pause_s=st.sampled_from([0.0, 0.2, 30.0]),
)


@given(FAULTS, HISTORIES)
def test_an_attempt_after_a_failure_or_refusal_is_within_every_limit(fault: Fault, history: History) -> None:
    decided = verdict(fault, history)
    if decided.counts and decided.again != "never" and fault.action in ("retry", "throttle"):
        policy = history.policy
        assert history.attempts + 1 < (min(2, policy.attempts_max) if fault.is_repeated_once else policy.attempts_max)
        assert history.maybe_billed + fault.is_billed_maybe <= policy.billed_repeats_max


@given(FAULTS, HISTORIES)
def test_what_only_had_to_wait_does_not_count_and_is_sent_again(fault: Fault, history: History) -> None:
    decided = verdict(fault, history)
    if decided.learns in ("pause", "rest") or decided.again == "otherwise":
        assert not decided.counts and decided.again in ("now", "otherwise")
    assert (decided.pause_s > 0) == (decided.learns in ("pause", "rest"))
    if not decided.counts:
        assert decided.again in ("now", "otherwise")


@given(FAULTS, HISTORIES)
def test_a_rejection_and_a_redirect_are_never_sent_again(fault: Fault, history: History) -> None:
    decided = verdict(fault, history)
    if decided.again != "otherwise" and (fault.action == "never" or (fault.action, fault.kind) == ("stop", "redirect")):
        assert (decided.again, decided.counts, decided.mark) == ("never", True, "")
        assert decided.learns in ("success", "rejection", "redirect")
    assert history.has_instead or decided.again != "otherwise" or fault.action == "otherwise"


@given(FAULTS, HISTORIES)
def test_tokens_and_money_are_the_faults_alone(fault: Fault, history: History) -> None:
    decided = verdict(fault, history)
    assert decided.quota == fault.quota
    assert (decided.money == "maybe") == fault.is_billed_maybe
    assert (decided.money == "none") == (not fault.is_billed_maybe and fault.quota != "settle")


@given(FAULTS, HISTORIES)
def test_a_key_stops_only_for_an_account_or_after_the_probe(fault: Fault, history: History) -> None:
    decided = verdict(fault, history)
    if decided.learns == "dead_key":
        assert history.is_suspect and history.is_probe and fault.action == "confirm"
    if decided.learns in ("empty_account", "redirect"):
        assert fault.action == "stop"
    # Whose key stops is not lost: it waits for the next run, or goes to another key.
    if decided.learns in ("dead_key", "empty_account"):
        assert decided.again in ("now", "pending")


@given(
    st.lists(st.tuples(FAULTS, st.integers(0, 2), st.integers(0, 7)), min_size=60, max_size=120),
    st.integers(1, 7),
    st.integers(0, 3),
)
@settings(max_examples=40, deadline=None)
def test_a_call_ends_after_its_attempts_whatever_its_keys_do(
    faults: list[tuple[Fault, int, int]], attempts_max: int, billed_repeats_max: int
) -> None:
    """Three API keys, of which some are healthy now and then; nobody only asks for time, or for another account."""
    policy = RetryPolicy(attempts_max=attempts_max, billed_repeats_max=billed_repeats_max)
    tries, sent = Tries(policy), 0
    for fault, key, healthy in faults:
        bit = 1 << key
        history = History(
            tries.attempts,
            tries.maybe_billed,
            policy,
            is_refused=bool(tries.refused_by & bit),
            is_doubted=bool(tries.doubted_by & bit),
            has_another=bool(healthy & ~tries.refused_by & ~bit),
        )
        decided = verdict(fault, history)
        if decided.learns in ("pause", "rest", "empty_account") or decided.again == "otherwise":
            continue
        tries.note(decided, key)
        sent += 1
        assert tries.sent == sent
        assert tries.attempts <= attempts_max
        # Each key may refuse a call once for nothing, and doubt itself once.
        assert tries.sent - tries.attempts <= 6
        if decided.again in ("never", "pending"):
            return
    pytest.fail("the call never ended")


def test_nobody_else_asks_what_an_action_means() -> None:
    compares = re.compile(r"\.action\s*(?:==|!=|\bin\b|\bnot in\b)|match \w+\.action")
    rooms = ("engine", "providers", "wiring", "configuration", "interfaces", "bench", "report", "metrics", "fixtures")
    found = {
        path.relative_to(ROOT).as_posix()
        for room in rooms
        for path in (ROOT / room).rglob("*.py")
        if compares.search(text := path.read_text()) and re.search(r"\bFault\b", text)
    }
    assert found == {"engine/verdict.py"}
