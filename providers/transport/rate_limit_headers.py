"""Reads the provider's quotas from the headers of an answer, whose names and numbers differ by provider.

Pure: no clock but the time that is passed in and the answer's own Date. A header that is not understood is ignored;
none is ever an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime

from ...engine.limits import DAY_S, MINUTE_S, Amount, Limit
from ..llm.errors import duration_s

_HOUR_S, _MONTH_S = 3_600.0, 30 * DAY_S
_WINDOWS = {"second": 1.0, "minute": MINUTE_S, "hour": _HOUR_S, "day": DAY_S, "month": _MONTH_S}
_ROLES = frozenset({"limit", "remaining", "reset", "renewalperiod", "policy"})
_AMOUNTS: dict[tuple[str, ...], Amount] = {
    ("requests",): "requests",
    ("req",): "requests",
    ("tokens",): "tokens",
    ("input", "tokens"): "input",
    ("tokens", "input"): "input",
    ("output", "tokens"): "output",
    ("tokens", "output"): "output",
    ("tokens", "prompt"): "input",
    ("tokens", "generated"): "output",
}
# The start of a header's name, before the words for role, amount and window, and the amount if these words name none.
_FAMILIES: tuple[tuple[re.Pattern[str], Amount | None], ...] = (
    (re.compile(r"anthropic-ratelimit-(.+)"), None),
    (re.compile(r"x-tokenlimit-(.+)"), "tokens"),
    (re.compile(r"(?:x-)?ratelimitbysize-(.+)"), "tokens"),
    (re.compile(r"(?:x-)?rate-?limit-(.+)"), "requests"),
)
# Groq's limit of requests is for a day; Fireworks states tokens per second and counts them per minute.
_REQUESTS_A_DAY = frozenset({"groq"})
_SPOKEN_A_SECOND = frozenset({"tokens-prompt", "tokens-generated"})
_WINDOW = re.compile(r";\s*w(?:indow)?=(\d{1,9})\b", re.ASCII)
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?", re.ASCII)
# From these values on a number is a date: in seconds since 1970, or in milliseconds.
_EPOCH_S, _EPOCH_MS = 1e9, 1e12
# The largest relative difference between a bucket's figures and a window for which they count as that window's.
_CLOSE = 0.05


def is_quota_name(name: str) -> bool:
    """Returns whether a header can be about quotas. Its name is in lower case."""
    return "ratelimit" in name or "rate-limit" in name or "tokenlimit" in name


def limits_of(headers: Mapping[str, str], now: float, provider: str = "") -> tuple[Limit, ...]:
    """Returns every limit in the headers, whose names are in lower case. `now`, in seconds since 1970, is what dates
    are compared with if the answer has no Date of its own."""
    groups: dict[tuple[Amount, str], dict[str, str]] = {}
    for name, value in headers.items():
        if is_quota_name(name) and (meant := _meaning_of(name)) is not None:
            role, amount, words = meant
            groups.setdefault((amount, words), {})[role] = value
    now = _date(headers.get("date", "")) or now
    limits = [
        limit for (amount, words), values in groups.items() for limit in _limits(amount, words, values, now, provider)
    ]
    return tuple(limit for limit in limits if limit.limit is not None or limit.reset_s is not None)


def _meaning_of(name: str) -> tuple[str, Amount, str] | None:
    """Returns what a header's name, in lower case, says of a quota: the role (such as `remaining`), the amount (such as
    tokens), and its other words joined by hyphens, which distinguish several limits of one amount; None if the
    header is not about quotas."""
    for pattern, default in _FAMILIES:
        match = pattern.fullmatch(name)
        if match is None:
            continue
        words = match[1].split("-")
        roles = [word for word in words if word in _ROLES]
        others = tuple(word for word in words if word not in _ROLES)
        amount = _AMOUNTS.get(tuple(word for word in others if word not in _WINDOWS), default if not others else None)
        if amount is None and others and others[0] in _WINDOWS:
            amount = default
        if len(roles) != 1 or amount is None:
            return None
        return roles[0], amount, "-".join(others)
    return None


def _limits(amount: Amount, words: str, values: Mapping[str, str], now: float, provider: str) -> list[Limit]:
    """Returns the limits of one family of headers, several if they hold lists. `values` has the headers by role."""
    items = _items(values.get("limit", ""))
    if any(window_s is not None for _, window_s in items):
        # The first entry of such a list repeats the limit that is nearest to its end.
        items = [item for item in items if item[1] is not None]
    count = max(1, len(items))
    windows = [window_s for _, window_s in items]
    if items and windows[0] is None:
        windows = _windows_beside(words, values, count)
    left = [number for number, _ in _items(values.get("remaining", ""))]
    until = values.get("reset", "")
    # A date may have a comma in it.
    resets = [_reset_s(text, now) for text in (until.split(",") if count > 1 else [until])]
    limits = []
    for place in range(count):
        limit = items[place][0] if items else None
        if limit is not None and limit <= 0:
            continue  # 0 or less means that there is no limit
        remaining, reset_s = (each[place] if place < len(each) else None for each in (left, resets))
        if remaining is not None and remaining < 0:
            remaining = None
        window_s = windows[place] if place < len(windows) else None
        if words in _SPOKEN_A_SECOND and limit is not None:
            limit, window_s = limit * MINUTE_S, MINUTE_S
        if window_s is None:
            window_s = _guessed_window(amount, words, Limit(amount, 0.0, limit, remaining, reset_s), provider)
        limits.append(Limit(amount, window_s, limit, remaining, reset_s))
    return limits


def _windows_beside(words: str, values: Mapping[str, str], count: int) -> list[float | None]:
    """Returns the window of each of `count` limits, in seconds, from the header's name or another header; `[None]` for
    a single limit without one."""
    named = [_WINDOWS[word] for word in words.split("-") if word in _WINDOWS]
    if named:
        return [named[0]] * count
    stated = [window_s for _, window_s in _items(values.get("policy", ""))]
    if len(stated) == count and None not in stated:
        return stated
    period = _number(values.get("renewalperiod", ""))
    if period is not None and period > 0:
        return [period] * count
    # Two limits without stated windows: the first is for a second, the other for a month.
    return [1.0, *[_MONTH_S] * (count - 1)] if count > 1 else [None]


def _items(text: str) -> list[tuple[float | None, float | None]]:
    """Returns the numbers of a comma-separated list, each with its window in seconds; None for what is missing."""
    if not text:
        return []
    items = []
    for part in text.split(","):
        window = _WINDOW.search(part)
        items.append((_number(part.partition(";")[0]), float(window[1]) if window and int(window[1]) else None))
    return items


def _guessed_window(amount: Amount, words: str, stated: Limit, provider: str) -> float:
    """Returns the window in seconds where no header names it: a minute, but longer if the limit resets later than that,
    and a second for providers that send `x-ratelimit-limit` alone. A reset within a minute is no evidence: for some
    it is when a bucket is full, for others when the window ends."""
    limit, remaining, reset_s = stated.limit, stated.remaining, stated.reset_s
    if amount == "requests" and provider in _REQUESTS_A_DAY:
        return DAY_S
    if reset_s is not None and reset_s > 1.5 * MINUTE_S:
        if limit is not None and remaining is not None and limit > remaining:
            # A bucket that fills evenly is full again after the share of its window that was used.
            whole_s = reset_s * limit / (limit - remaining)
            if abs(whole_s - DAY_S) <= _CLOSE * DAY_S:
                return DAY_S
        return next((window_s for window_s in (_HOUR_S, DAY_S) if reset_s <= window_s), _MONTH_S)
    return MINUTE_S if words or (reset_s is not None and reset_s > 1) else 1.0


def _number(text: str) -> float | None:
    """Returns a header's number; None for anything else, such as digits of other scripts, which float() reads too."""
    text = text.strip()
    if _NUMBER.fullmatch(text) is None:
        return None
    number = float(text)
    return number if -1e15 < number < 1e15 else None


def _reset_s(text: str, now: float) -> float | None:
    """Returns the seconds from now until a reset that is written as a number, a duration such as 6m0s or 20ms, or a
    date; None if it can't be read."""
    text = text.strip()
    number = _number(text)
    if number is not None:
        if number >= _EPOCH_MS:
            number = number / 1000 - now
        elif number >= _EPOCH_S:
            number -= now
        return max(0.0, number)
    if (seconds := duration_s(text)) is not None:
        return seconds
    date = _date(text)
    return None if date is None else max(0.0, date - now)


def _date(text: str) -> float | None:
    """Returns the seconds since 1970 of a date as RFC 3339 or HTTP writes it; None without a date or a time zone."""
    if not text:
        return None
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            date = read(text)
            if date.tzinfo is not None:
                return date.timestamp()
        except (ValueError, TypeError, OverflowError, IndexError):
            continue
    return None
