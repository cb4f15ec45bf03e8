"""The last minute's sends, checked against an exact log that knows no ticks, slots or shares."""

from __future__ import annotations

import os
import random
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from places import small_disk
from scripted import worst_minute
from torture import times

from millstream.engine.lanes.ledger import Ledger
from millstream.engine.limits import Limit, Quota, Tokens, quota_of


class ExactLog:
    """What every send of the last 60 s takes from the quota, to the microsecond it was sent at."""

    def __init__(self) -> None:
        self.sends: list[list[float]] = []
        self.debts: list[tuple[float, float]] = []

    def total(self, now: float) -> float:
        sent = sum(amount for at, amount in self.sends if at > now - 60)
        return sent + sum(amount for at, amount in self.debts if at > now - 60)


def wait_and_take(ledger: Ledger, now: float, tokens: int, patience_s: float) -> float:
    """The time at which the ledger lets the send through. It must not say "wait" and mean "for ever"."""
    until = now + patience_s
    while (wait := ledger.take(now, Tokens(tokens))[0]) > 0:
        now += max(wait, 1e-6)
        assert now <= until, f"still waiting for {tokens} tokens after {patience_s:.1f} s"
    return now


moves = st.lists(
    st.tuples(
        st.one_of(st.just(0.0), st.floats(0, 0.3), st.floats(0, 5), st.floats(0, 200)),
        st.floats(0, 1),  # the share of the quota that is reserved
        st.one_of(st.none(), st.just(0.0), st.floats(0, 1), st.floats(1, 3)),  # what an earlier one came to, of its own
        st.floats(0, 1),  # which earlier one
    ),
    min_size=1,
    max_size=150,
)


@settings(max_examples=times(80, 3000), deadline=None)
@given(moves, st.integers(1, 5000), st.floats(0, 1e6))
def test_no_true_minute_ever_holds_more_tokens_than_the_quota(
    moves: list[tuple[float, float, float | None, float]], tpm: int, begin: float
) -> None:
    ledger, log, now = Ledger(Quota(tpm=tpm)), ExactLog(), begin
    open_sends: list[tuple[int, int, float]] = []
    for pause, share, outcome, which in moves:
        now += pause
        if outcome is not None and open_sends:
            place, reserved, sent_at = open_sends.pop(int(which * (len(open_sends) - 1)))
            used = int(reserved * outcome)
            ledger.settle(sent_at, Tokens(reserved), Tokens(used))
            log.sends[place][1] = min(reserved, used)
            if used > reserved:
                log.debts.append((now, used - reserved))
        ledger.used(now)  # what was settled counts from now on
        tokens = max(1, int(share * tpm))
        now = wait_and_take(ledger, now, tokens, patience_s=125)
        log.sends.append([now, tokens])
        open_sends.append((len(log.sends) - 1, tokens, now))
        assert log.total(now) <= tpm


@settings(max_examples=times(80, 3000), deadline=None)
@given(
    st.lists(st.tuples(st.one_of(st.just(0.0), st.floats(0, 3), st.floats(0, 100)), st.booleans()), max_size=300),
    st.integers(1, 300),
    st.floats(0, 1e6),
)
def test_no_true_minute_ever_holds_more_requests_than_the_quota(
    moves: list[tuple[float, bool]], rpm: int, begin: float
) -> None:
    ledger, now = Ledger(Quota(rpm)), begin
    sends: list[tuple[float, int]] = []
    for pause, is_refunded in moves:
        now = wait_and_take(ledger, now + pause, 0, patience_s=125)
        if is_refunded:  # it never left this machine
            ledger.settle(now, Tokens(), Tokens(), requests=0)
        else:
            sends.append((now, 1))
    assert worst_minute(sends) <= rpm


@settings(max_examples=times(80, 3000), deadline=None)
@given(
    st.lists(
        st.tuples(
            st.one_of(st.just(0.0), st.floats(0, 0.3), st.floats(0, 5), st.floats(0, 200)),
            st.tuples(st.floats(0, 1), st.floats(0, 1)),  # the shares of both quotas that are reserved
            st.one_of(st.none(), st.tuples(st.floats(0, 2), st.floats(0, 2))),  # what an earlier one came to
            st.floats(0, 1),  # which earlier one
        ),
        min_size=1,
        max_size=100,
    ),
    st.integers(1, 5000),
    st.integers(1, 5000),
    st.one_of(st.none(), st.integers(1, 10_000)),
)
def test_no_true_minute_ever_holds_more_input_output_or_both_than_their_quotas(
    moves: list[tuple[float, tuple[float, float], tuple[float, float] | None, float]],
    itpm: int,
    otpm: int,
    tpm: int | None,
) -> None:
    quota = Quota(tpm=tpm, itpm=itpm, otpm=otpm)
    ledger, logs, now = Ledger(quota), (ExactLog(), ExactLog()), 500.0
    open_sends: list[tuple[int, Tokens, float]] = []
    for pause, shares, outcome, which in moves:
        now += pause
        if outcome is not None and open_sends:
            place, reserved, sent_at = open_sends.pop(int(which * (len(open_sends) - 1)))
            used = Tokens(int(reserved.input * outcome[0]), int(reserved.output * outcome[1]))
            ledger.settle(sent_at, reserved, used)
            amounts = ((reserved.input, used.input), (reserved.output, used.output))
            for log, (before, after) in zip(logs, amounts, strict=True):
                log.sends[place][1] = min(before, after)
                if after > before:
                    log.debts.append((now, after - before))
        ledger.used(now)
        tokens = quota.cut_to_fit(Tokens(int(shares[0] * itpm), int(shares[1] * otpm)))
        until = now + 250
        while (wait := ledger.take(now, tokens)[0]) > 0:
            now += wait
            assert now <= until, f"still waiting for {tokens}"
        for log, amount in zip(logs, (tokens.input, tokens.output), strict=True):
            log.sends.append([now, amount])
        open_sends.append((len(logs[0].sends) - 1, tokens, now))
        read, written = (log.total(now) for log in logs)
        # A debt may exceed a minute by itself; what is sent under it never adds to that.
        assert not tokens.input or read <= itpm
        assert not tokens.output or written <= otpm
        assert tpm is None or not tokens.total or read + written <= tpm


def test_input_and_output_are_used_up_each_by_itself() -> None:
    ledger, now, sends = Ledger(Quota(itpm=60_000, otpm=6_000)), 0.0, []
    while now < 300:
        while (wait := ledger.take(now, Tokens(100, 40))[0]) > 0:
            now += wait
        sends.append((now, 40))
    # Output is what runs out: a hundred and fifty a minute, though the input would bear six hundred.
    assert worst_minute(sends) <= 6_000
    assert sum(amount for _, amount in sends) >= 0.98 * 6_000 * 5
    assert ledger.used(now)[1].input <= 60_000


@pytest.mark.parametrize(("count", "window_s"), [(1, 1.0), (5, 1.0), (20, 10.0)])
def test_a_limit_for_less_than_a_minute_is_kept_even_by_requests_that_arrive_late(count: int, window_s: float) -> None:
    ledger, now, chance = Ledger(quota_of([Limit("requests", window_s, float(count))])), 0.0, random.Random(6)
    arrivals = []
    while now < 300:
        while (wait := ledger.take(now, Tokens())[0]) > 0:
            now += max(wait, 1e-6)
        arrivals.append((now + chance.uniform(0, 0.1), 1))
    arrivals.sort()
    assert worst_minute(arrivals, window_s) <= count
    assert len(arrivals) >= 0.85 * count / window_s * 300


def test_a_lower_quota_counts_what_the_minute_holds_already() -> None:
    ledger = Ledger(Quota())
    for _ in range(200):
        assert ledger.take(100.0, Tokens(50, 5)) == (0.0, "")
    ledger.set_quota(Quota(rpm=60, tpm=10_000))
    wait, _ = ledger.take(101.0, Tokens(50, 5))
    assert 58 <= wait <= 61
    ledger.set_quota(Quota(rpm=60_000))
    assert ledger.take(101.0, Tokens(50, 5)) == (0.0, "")
    assert ledger.used(101.0) == (201, Tokens(201 * 50, 201 * 5))


def test_a_refund_gives_a_request_back_at_once() -> None:
    ledger = Ledger(Quota(2))
    times = [wait_and_take(ledger, 100.0, 0, 200)]
    times.append(wait_and_take(ledger, times[-1], 0, 200))
    assert ledger.used(times[-1]) == (2, Tokens())
    ledger.settle(times[-1], Tokens(), Tokens(), requests=0)
    assert ledger.used(times[-1]) == (1, Tokens())
    # What left the window long ago can't be given back twice.
    ledger.settle(times[0], Tokens(), Tokens(), requests=0)
    assert ledger.used(times[0] + 500) == (0, Tokens())


def test_a_debt_of_many_minutes_holds_back_the_next_minute_alone() -> None:
    ledger = Ledger(Quota(tpm=1000))
    assert ledger.take(10.0, Tokens(300)) == (0.0, "")
    ledger.settle(10.0, Tokens(300), Tokens(30_000))
    assert ledger.used(20.0) == (1, Tokens(30_000))
    wait, why = ledger.take(20.0, Tokens(1))
    assert why == "tokens" and 59 <= wait <= 62
    assert 79 <= wait_and_take(ledger, 20.0, 1, patience_s=70) <= 82


def test_what_a_minute_held_is_told() -> None:
    ledger = Ledger(Quota(600, 100_000))
    now = 1000.0
    for _ in range(20):
        now = wait_and_take(ledger, now, 50, 10)
    assert ledger.used(now) == (20, Tokens(1000))
    assert ledger.used(now + 61) == (0, Tokens())


def test_an_hour_without_a_send_is_no_debt_and_no_credit() -> None:
    ledger = Ledger(Quota(60))
    sends = []
    now = 0.0
    for number in range(200):
        now = wait_and_take(ledger, now + (3600 if number == 50 else 0), 0, 70)
        sends.append((now, 1))
    assert worst_minute(sends) <= 60
    assert 50 <= len([at for at, _ in sends if now - 60 < at]) <= 60


SENDER = """
import sys, time
from pathlib import Path
from millstream.engine.lanes.ledger import Ledger
from millstream.engine.limits import Quota, Tokens
path, rpm, begin, end = Path(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
ledger = Ledger(Quota(rpm), path)
print("ready", flush=True)
time.sleep(max(0, begin - time.monotonic()))
while (now := time.monotonic()) < end:
    wait, _ = ledger.take(now, Tokens())
    if wait > 0:
        time.sleep(min(wait, end - now))
    else:
        print(repr(now), flush=True)
"""


@pytest.mark.parametrize(("rpm", "in_blocks"), [(120, 0), (24_000, 4 * 120 // 16)])
def test_four_processes_together_keep_one_quota_and_one_burst(rpm: int, in_blocks: int, tmp_path: Path) -> None:
    seconds = 4.0
    begin = time.monotonic() + 1.5
    command = [sys.executable, "-c", SENDER, str(tmp_path / "l"), str(rpm), str(begin), str(begin + seconds)]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    sends: list[float] = []
    for one in started:
        sends += map(float, one.communicate(timeout=60)[0].split()[1:])
        assert one.returncode == 0
    sends.sort()
    # 99.5% of the quota over 60.5 s, 1 + 1/200 of it at once, and blocks of a sixteenth of that, sent a little later.
    spacing, burst = 60.5 / (0.995 * rpm), 1 + rpm / 200 + in_blocks
    for first in range(len(sends)):
        for last in range(first, len(sends)):
            count = last - first + 1
            assert count <= burst + (sends[last] - sends[first]) / spacing + 0.01
    assert len(sends) >= 0.8 * seconds / spacing


FILLER = """
import os, signal, sys, time
from pathlib import Path
from millstream.engine.lanes.ledger import Ledger
from millstream.engine.limits import Quota, Tokens
ledger = Ledger(Quota(60, 6000), Path(sys.argv[1]))
now = time.monotonic() - 50
taken = 0
while True:
    wait, _ = ledger.take(now, Tokens(10))
    taken += wait <= 0
    now += wait
    if now > time.monotonic():
        print(taken, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_after_a_kill_the_minute_is_still_held(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FILLER, str(tmp_path / "l")], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == -signal.SIGKILL
    taken = int(done.stdout)
    assert taken >= 48
    ledger = Ledger(Quota(60, 6000), tmp_path / "l")
    assert ledger.used(time.monotonic()) == (taken, Tokens(taken * 10))
    # A lower quota after the restart finds its minute taken already.
    lower = Ledger(Quota(10), tmp_path / "l")
    assert lower.take(time.monotonic(), Tokens())[0] > 5
    lower.close()
    ledger.close()


def words_of(path: Path) -> list[int]:
    data = path.read_bytes()
    return list(struct.unpack(f"={len(data) // 8}q", data))


def write_words(path: Path, words: list[int]) -> None:
    path.write_bytes(struct.pack(f"={len(words)}q", *words))


def used_ledger(path: Path, now: float) -> None:
    ledger = Ledger(Quota(60, 6000), path)
    for _ in range(30):
        now = wait_and_take(ledger, now, 100, 10)
    ledger.close()


def test_a_ledger_from_before_a_reboot_starts_empty(tmp_path: Path) -> None:
    path = tmp_path / "l"
    used_ledger(path, 1000.0)
    again = Ledger(Quota(60, 6000), path)
    assert again.used(1030.0) == (30, Tokens(3000))
    again.close()
    words = words_of(path)
    boot = int(Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", "")[:15], 16)
    # The mark of this boot, but for the few bits that tell how the file is laid out.
    (place,) = (place for place, word in enumerate(words) if word >> 8 == boot >> 8)
    words[place] ^= 1 << 40
    write_words(path, words)
    after = Ledger(Quota(60, 6000), path)
    assert after.used(1030.0) == (0, Tokens())
    after.close()


def test_a_clock_that_begins_again_starts_an_empty_minute() -> None:
    ledger = Ledger(Quota(60))
    wait_and_take(ledger, 10_000.0, 0, 10)
    assert ledger.used(5.0) == (0, Tokens())
    assert 5.0 <= wait_and_take(ledger, 5.0, 0, 2) <= 7.0


@pytest.mark.parametrize("content", [b"", b"x", b"\xff" * 4160, random.Random(2).randbytes(100_000), bytes(4160)])
def test_a_file_of_something_else_starts_afresh(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "lanes" / "l"
    path.parent.mkdir()
    path.write_bytes(content)
    ledger = Ledger(Quota(60, 6000), path)
    now = time.monotonic()
    assert ledger.used(now) == (0, Tokens())
    assert ledger.take(now, Tokens(100)) == (0.0, "")
    assert ledger.used(now) == (1, Tokens(100))
    ledger.close()


def test_a_damaged_ledger_never_makes_a_lane_wait_for_ever(tmp_path: Path) -> None:
    path = tmp_path / "l"
    used_ledger(path, 1000.0)
    sound = words_of(path)
    chance = random.Random(4)
    for _ in range(400):
        words = list(sound)
        for _ in range(chance.choice([1, 1, 3])):
            place = chance.randrange(10) if chance.random() < 0.5 else chance.randrange(len(words))
            words[place] = chance.choice(
                [words[place] ^ 1 << chance.randrange(63), -(words[place]), chance.randrange(-(2**63), 2**63)]
            )
        write_words(path, words)
        ledger = Ledger(Quota(60, 6000), path)
        sends = []
        now = 1031.0
        for _ in range(5):
            now = wait_and_take(ledger, now, 6000, patience_s=190)
            sends.append((now, 6000))
        assert worst_minute(sends) <= 6000
        ledger.close()


def test_a_full_disk_is_an_error_and_not_the_end_of_the_process(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 64 << 10) as disk:
        with (disk / "filler").open("wb", buffering=0) as filler, pytest.raises(OSError, match="No space"):
            while True:
                filler.write(bytes(4096))
        before = len(os.listdir("/proc/self/fd"))
        with pytest.raises(OSError, match="No space left"):
            Ledger(Quota(60), disk / "l")
        assert len(os.listdir("/proc/self/fd")) == before


def test_what_is_owed_when_a_ledger_closes_is_known_to_the_next(tmp_path: Path) -> None:
    first = Ledger(Quota(tpm=10_000), tmp_path / "l")
    assert first.take(1_000.0, Tokens(306)) == (0.0, "")
    first.settle(1_000.0, Tokens(306), Tokens(9_050))
    first.close()
    second = Ledger(Quota(tpm=10_000), tmp_path / "l")
    assert second.used(1_000.5)[1].total == 9_050
    assert second.take(1_000.5, Tokens(5_000))[0] > 30
    second.close()
