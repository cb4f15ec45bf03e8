"""The first screen of a part: sorted dots with intervals in per cents, hollow ones for published figures."""

from __future__ import annotations

import re

from millstream.report.headline import Headline, HeadlineScore, headline_html


def headline(*scores: HeadlineScore, **more: object) -> Headline:
    return Headline(**{"sentence": "What it is.", "score": "OM", "kind": "score", "scores": scores, **more})  # type: ignore[arg-type]


def rows(html: str) -> list[str]:
    return re.findall(r"<tr[^>]*><th scope=\"row\">.*?</tr>", html)


def test_scores_are_sorted_and_drawn_on_a_scale_from_0_to_the_largest_number_shown() -> None:
    low, high = HeadlineScore("low", 10.0, 5.0, 20.0), HeadlineScore("high", 30.0, 20.0, 40.0)
    first, second = rows(headline_html(headline(low, high), "h"))
    assert ">high<" in first and ">low<" in second
    # From 3% for 0 to 97% for 40: 30 lies at 3 + 94 * 30 / 40, 20 at 50%, 10 at 26.5%, 5 at 14.75%.
    assert 'cx="73.50%"' in first and 'x1="50.00%" x2="97.00%"' in first
    assert 'cx="26.50%"' in second and 'x1="14.75%" x2="50.00%"' in second
    assert "30.00" in first and "20.00 to 40.00" in first


def test_the_scale_ends_at_the_largest_possible_score_and_begins_below_0_where_a_score_does() -> None:
    (row,) = rows(headline_html(headline(HeadlineScore("m", 0.5), most=1.0), "h"))
    assert 'cx="50.00%"' in row and 'class="span"' not in row
    first, second = rows(headline_html(headline(HeadlineScore("m", -1.0), HeadlineScore("n", 1.0)), "h"))
    assert 'cx="97.00%"' in first and 'cx="3.00%"' in second


def test_published_scores_are_marked_and_models_without_a_score_stand_last() -> None:
    html = headline_html(
        headline(HeadlineScore("m", 1.0), HeadlineScore("p", 2.0, is_published=True), HeadlineScore("x", None)), "h"
    )
    assert re.findall(r'<tr class="theirs"><th scope="row">p \(published\)', html) and len(rows(html)) == 3
    assert ">x<" in rows(html)[2] and "circle" not in rows(html)[2] and ">–<" in rows(html)[2]
    assert "A model without a score stands last." in html
    assert "Hollow dots are the paper’s figures, on its own data." in html
    assert "Hollow" not in headline_html(headline(HeadlineScore("m", 1.0)), "h")


def test_without_a_score_the_sentence_stands_alone_and_names_do_nothing() -> None:
    assert headline_html(headline(HeadlineScore("m", None)), "h") == '<p class="lead">What it is.</p>'
    html = headline_html(
        headline(HeadlineScore("<script>", 1.0), paper=("A <b>", 'https://x/"'), facts="cost <i>"), "h"
    )
    assert "<script" not in html and "<b>" not in html and "<i>" not in html and "style=" not in html
    assert re.findall(r'href="([^"]*)"', html) == ["https://x/&quot;"]


def test_equal_scores_of_nothing_have_a_scale() -> None:
    (row,) = rows(headline_html(headline(HeadlineScore("m", 0.0)), "h"))
    assert 'cx="3.00%"' in row
