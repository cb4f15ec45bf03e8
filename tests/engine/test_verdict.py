"""What follows from every fault, beside what followed when each part of the engine decided for itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import get_args

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from millstream.engine.attempts.retry import RetryPolicy
from millstream.engine.call import FailureKind
from millstream.engine.endpoint import Action, Fault, Quota
from millstream.engine.verdict import History, Verdict, verdict

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
    attempts_max=st.sampled_from([None, 0, 1, 2, 9]),
    usage_tokens=st.sampled_from([None, 0, 7]),
    is_full=st.booleans(),
)


@dataclass(frozen=True)
class World:
    """The call, its API key, the others and the lane, before a fault."""

    attempts: int
    maybe_billed: int
    policy: RetryPolicy
    refused_by: int
    doubted_by: int
    key: int
    healthy: int
    is_stopped: bool
    others_stopped: bool
    is_suspect: bool
    is_probe: bool
    is_again: bool
    has_instead: bool
    pause_s: float

    @property
    def history(self) -> History:
        bit = 1 << self.key
        return History(
            self.attempts,
            self.maybe_billed,
            self.policy.attempts_max,
            self.policy.billed_repeats_max,
            is_refused=bool(self.refused_by & bit),
            is_doubted=bool(self.doubted_by & bit),
            has_another=bool(self.healthy & ~(self.refused_by | bit)),
            has_instead=self.has_instead,
            is_suspect=self.is_suspect,
            is_probe=self.is_probe,
            is_again=self.is_again,
            pause_s=self.pause_s,
        )


@st.composite
def worlds(draw: st.DrawFn) -> World:
    is_stopped = draw(st.booleans())
    others_stopped = is_stopped or draw(st.booleans())
    refused_by = draw(st.integers(0, 7))
    return World(
        draw(st.integers(0, 8)),
        draw(st.integers(0, 4)),
        RetryPolicy(attempts_max=draw(st.integers(1, 7)), billed_repeats_max=draw(st.integers(0, 3))),
        refused_by,
        refused_by & draw(st.integers(0, 7)),
        draw(st.integers(0, 2)),
        0 if others_stopped else draw(st.integers(0, 7)),
        is_stopped,
        others_stopped,
        draw(st.booleans()),
        draw(st.booleans()),
        draw(st.booleans()),
        draw(st.booleans()),
        draw(st.sampled_from([0.0, 0.2, 30.0])),
    )


@dataclass
class Effects:
    """What a fault did: to its call, and to its lane in this order."""

    lane: list[object] = field(default_factory=list)
    again: str = ""
    attempts: int = 0
    sent: int = 0
    maybe_billed: int = 0
    refused_by: int = 0
    doubted_by: int = 0
    is_stopped: bool = False
    is_own: bool = False


class Before:
    """The functions that decided, word for word but for what they acted on."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.effects = Effects(
            attempts=world.attempts,
            maybe_billed=world.maybe_billed,
            refused_by=world.refused_by,
            doubted_by=world.doubted_by,
            is_stopped=world.is_stopped,
        )

    def fail(self, fault: Fault) -> Effects:
        effects = self.effects
        fault = self.sent_otherwise(self.told_to_wait(fault))
        self.lane_failed(fault)
        if not self.may_repeat(fault) and not self.is_left_pending(fault):
            effects.again = "never"
        elif fault.action == "otherwise":
            effects.again = "otherwise"
        else:
            effects.again = self.wait_to_repeat(fault)
        effects.is_own = fault.action == "wait"
        return effects

    def told_to_wait(self, fault: Fault) -> Fault:
        if fault.action != "throttle" or fault.retry_after_s is not None:
            return fault
        wait_s = self.world.pause_s
        return fault if wait_s <= 0 else structs.replace(fault, retry_after_s=wait_s, cuts_rate=False)

    def sent_otherwise(self, fault: Fault) -> Fault:
        if not self.world.has_instead or not (fault.is_full or fault.kind == "timeout"):
            return fault
        return structs.replace(fault, action="otherwise")

    def has_another(self, refused_by: int) -> bool:
        return not self.effects.is_stopped and bool(self.world.healthy & ~(1 << self.world.key) & ~refused_by)

    # The call

    def may_repeat(self, fault: Fault) -> bool:
        key = self.world.key
        is_first = not self.effects.refused_by >> key & 1
        is_first_elsewhere = is_first and self.has_another(self.effects.refused_by | 1 << key)
        return self.tries_may_repeat(fault, key, is_first_elsewhere=is_first_elsewhere)

    def tries_may_repeat(self, fault: Fault, key: int, *, is_first_elsewhere: bool) -> bool:
        effects = self.effects
        effects.sent += 1
        if fault.is_billed_maybe:
            effects.maybe_billed += 1
        if fault.action in ("throttle", "confirm", "stop"):
            effects.refused_by |= 1 << key
        if self.is_uncounted(fault, key) or (is_first_elsewhere and fault.action in ("throttle", "confirm", "stop")):
            return True
        effects.attempts += 1
        if fault.action not in ("retry", "throttle", "confirm"):
            return False
        limit = min(self.world.policy.attempts_max, fault.attempts_max or self.world.policy.attempts_max)
        if effects.attempts >= limit:
            return False
        return effects.maybe_billed <= self.world.policy.billed_repeats_max

    def is_uncounted(self, fault: Fault, key: int) -> bool:
        if fault.action == "confirm":
            is_first_doubt = not self.effects.doubted_by >> key & 1
            self.effects.doubted_by |= 1 << key
            return is_first_doubt
        return fault.action in ("wait", "otherwise") or (fault.action == "throttle" and fault.retry_after_s is not None)

    def is_left_pending(self, fault: Fault) -> bool:
        if fault.action == "confirm":
            return self.effects.is_stopped
        return fault.action == "stop" and fault.kind != "redirect"

    def wait_to_repeat(self, fault: Fault) -> str:
        if fault.action != "retry" and not (fault.action == "throttle" and fault.retry_after_s is None):
            return "now"
        if fault.action == "throttle" and self.has_another(self.effects.refused_by):
            return "now"
        return "soon" if fault.is_immediate and self.effects.attempts == 1 else "later"

    # The lane and its API key

    def lane_failed(self, fault: Fault) -> None:
        lane = self.effects.lane
        if fault.action == "stop" and fault.kind == "redirect":
            lane.append(("stop lane", "redirect"))
            self.effects.is_stopped = True
        if fault.action == "never" and fault.kind == "rejected":
            lane.append("rejection")
        self.key_failed(fault)

    def key_failed(self, fault: Fault) -> None:
        lane, is_probe = self.effects.lane, self.world.is_probe
        if fault.action == "throttle":
            lane.append("make up less")
        if fault.quota == "refund":
            lane.append("refund")
        elif fault.quota == "settle" and fault.usage_tokens is not None:
            lane.append(("settle", fault.usage_tokens))
        if fault.action == "never":
            lane.append("success")
        elif fault.action == "otherwise":
            if is_probe:
                lane.append("abandon probe")
        elif fault.action == "stop":
            self.stop("redirect" if fault.kind == "redirect" else "empty_account")
        elif fault.action == "confirm":
            self.confirm()
        elif fault.action == "wait" or (fault.action == "throttle" and fault.retry_after_s is not None):
            if self.world.is_again and fault.action == "throttle":
                lane.append("cut again")
            lane.append(("pause", fault.retry_after_s or 1.0, fault.action == "wait"))
            if is_probe:
                lane.append("abandon probe")
        else:
            lane.append("failure")
            if fault.cuts_rate:
                lane.append("cut")
        is_billed = fault.is_billed_maybe or fault.quota == "settle"
        lane.append(("pay", None if is_billed else 0.0))

    def confirm(self) -> None:
        if self.world.is_suspect and self.world.is_probe:
            self.stop("dead_key")
        elif not self.world.is_suspect:
            self.effects.lane.append("suspect")
        elif self.world.is_probe:
            self.effects.lane.append("abandon probe")

    def stop(self, reason: str) -> None:
        if not self.effects.is_stopped:
            self.effects.lane.append(("stop key", reason))
            self.effects.is_stopped = self.world.others_stopped


def carried_out(world: World, fault: Fault, found: Verdict) -> Effects:
    lane, is_stopped = list[object](), world.is_stopped
    if found.learns == "redirect":
        lane.append(("stop lane", "redirect"))
        is_stopped = True
    if found.learns == "rejection":
        lane.append("rejection")
    if found.learns in ("pause", "refusal"):
        lane.append("make up less")
    if found.quota == "refund":
        lane.append("refund")
    elif found.quota == "settle" and fault.usage_tokens is not None:
        lane.append(("settle", fault.usage_tokens))
    match found.learns:
        case "success" | "rejection":
            lane.append("success")
        case "pause" | "rest":
            lane += ["cut again"] if found.cuts_rate else []
            lane.append(("pause", found.pause_s, found.learns == "rest"))
        case "failure" | "refusal":
            lane.append("failure")
            lane += ["cut"] if found.cuts_rate else []
        case "doubt":
            lane.append("suspect")
        case "dead_key" | "empty_account" if not is_stopped:
            lane.append(("stop key", found.learns))
            is_stopped = world.others_stopped
    if world.is_probe and found.learns in ("nothing", "pause", "rest"):
        lane.append("abandon probe")
    lane.append(("pay", 0.0 if found.money == "none" else None))
    again = found.again
    if again == "pending":
        again = "now" if is_stopped else "never"
    bit = 1 << world.key
    return Effects(
        lane,
        again,
        world.attempts + found.counts,
        1,
        world.maybe_billed + (found.money == "maybe"),
        world.refused_by | (bit if found.mark else 0),
        world.doubted_by | (bit if found.mark == "doubted" else 0),
        is_stopped,
        found.learns == "rest",
    )


@settings(max_examples=3000)
@given(FAULTS, worlds())
def test_a_verdict_is_what_the_parts_decided(fault: Fault, world: World) -> None:
    expected = Before(world).fail(fault)
    effects = carried_out(world, fault, verdict(fault, world.history))
    if expected.again == "never":
        # Nobody reads a call's notes on API keys after its end.
        for ended in (expected, effects):
            ended.refused_by = ended.doubted_by = 0
    assert effects == expected
