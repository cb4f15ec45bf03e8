"""Spectra of percentiles, read back from the histograms of load.json."""

from __future__ import annotations

import base64
import zlib
from itertools import pairwise
from random import Random

import pytest
from msgspec.structs import replace
from queues import NOTHING, times_of

from millstream.bench.load.histogram import Histogram
from millstream.metrics.load.load_json import Times
from millstream.metrics.load.spectrum import IN_A_NINE, Unreadable, spectrum


def sample(calls: int = 20_000) -> tuple[Histogram, Times]:
    histogram, random = Histogram(), Random(4)
    for _ in range(calls):
        histogram.record(random.lognormvariate(-1.5, 0.8))
    return histogram, times_of(histogram)


def test_a_spectrum_says_what_the_histogram_says_at_every_point() -> None:
    histogram, times = sample()
    points = spectrum(times)
    for point in points[1:-1]:
        found = histogram.percentile(point.percent)
        assert found is not None and point.value_s == found.value_s
    for percent, nines in ((90.0, 1), (99.0, 2), (99.9, 3)):
        told = times.at(percent)
        assert told is not None
        point = points[nines * IN_A_NINE]
        assert point.nines == pytest.approx(nines) and point.percent == pytest.approx(percent)
        assert point.value_s == told.value_s


def test_a_spectrum_rises_to_the_longest_time_and_goes_as_far_as_there_are_calls() -> None:
    _, times = sample()
    points = spectrum(times)
    assert all(one.nines < other.nines and one.value_s <= other.value_s for one, other in pairwise(points))
    assert points[-1].nines == pytest.approx(4.301, abs=0.001)
    assert (points[-1].percent, points[-1].value_s) == (100.0, times.longest_s)
    assert len(points) < 100


def test_few_calls_have_a_spectrum_too() -> None:
    histogram = Histogram()
    histogram.record(0.25)
    points = spectrum(times_of(histogram))
    assert {point.value_s for point in points} == {0.25} and points[-1].percent == 100
    assert spectrum(NOTHING) == ()


def test_a_histogram_that_is_not_the_one_of_its_figures_is_not_believed() -> None:
    _, times = sample(500)
    with pytest.raises(Unreadable, match="does not hold the 501 times"):
        spectrum(replace(times, count=501))


def test_no_damage_to_a_histogram_does_more_than_say_so() -> None:
    _, times = sample(500)
    whole = spectrum(times)
    random = Random(6)
    raw = base64.b64decode(times.hdr)
    inner = zlib.decompress(raw[8:])
    said = 0
    for number in range(600):
        # Damaged outside its compression, inside it, or cut.
        body = bytearray(inner if number % 3 == 0 else raw)
        for _ in range(random.randint(1, 4)):
            body[random.randrange(len(body))] = random.randrange(256)
        if number % 3 == 0:
            packed = zlib.compress(bytes(body))
            encoded = base64.b64encode(raw[:4] + len(packed).to_bytes(4, "big") + packed).decode()
        elif number % 3 == 1:
            encoded = base64.b64encode(body).decode()
        else:
            encoded = times.hdr[: random.randrange(1, len(times.hdr))]
        try:
            spectrum(replace(times, hdr=encoded))
        except Unreadable:
            said += 1
    assert said > 400
    assert spectrum(times) == whole


@pytest.mark.parametrize("hdr", ["x", "AAAA", "=", "é", "A" * 300_000, "HISTFAAAAA=="])
def test_what_is_no_histogram_is_told(hdr: str) -> None:
    with pytest.raises(Unreadable):
        spectrum(replace(sample(10)[1], hdr=hdr))
