"""Claims about Chameleon's charts: they draw for any run, keep a model's colour, and bear any name."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import altair as alt
import pytest
from chameleon_records import PERSONAS, Persona, run_records, turn_record
from chameleon_run import panel_of, written_run
from hostile import hostile

from millstream.bench.chameleon.report.part import tables_and_figures
from millstream.report.colours import COLOURS
from millstream.report.pictures import svg
from millstream.report.table import Figure

NAMES = [text for text in hostile() if 0 < len(text.strip()) < 5_000]


def figures(folder: Path, personas: list[Persona], heats: tuple[float | None, ...] = (0.0, 1.0)) -> dict[str, Figure]:
    records = run_records(personas, heats, conversations=5, turns=4)
    found = tables_and_figures(panel_of(written_run(folder, records)))
    return {figure.name: figure for figure in found.figures}


def lines_of(figure: Figure) -> dict[str, tuple[str, list[int]]]:
    """Each model's colour and dashes."""
    assert figure.spec is not None
    found: dict[str, tuple[str, list[int]]] = {}

    def look(part: Any) -> None:
        if isinstance(part, dict):
            encoding = part.get("encoding", {})
            if "strokeDash" in encoding:
                paint, dash = encoding["color"]["scale"], encoding["strokeDash"]["scale"]
                named = zip(paint["domain"], paint["range"], dash["range"], strict=True)
                found.update({name: (colour, dashes) for name, colour, dashes in named})
            for each in part.values():
                look(each)
        elif isinstance(part, list):
            for each in part:
                look(each)

    look(figure.spec)
    return found


def test_the_three_figures_hold_to_the_schema_and_draw(tmp_path: Path) -> None:
    made = figures(tmp_path, list(PERSONAS))
    assert len(made) == 3
    for figure in made.values():
        assert figure.spec is not None
        alt.Chart.from_dict(figure.spec, validate=True)
        assert json.loads(json.dumps(figure.spec)) == figure.spec
        texts = [each.text or "" for each in ElementTree.fromstring(svg(figure)).iter() if each.tag.endswith("text")]
        assert {persona.model for persona in PERSONAS} <= {text.strip() for text in texts}


def test_a_model_has_one_colour_in_every_figure_and_its_own_dashes(tmp_path: Path) -> None:
    # The first is always equally sure, so it is not drawn in figure 3.
    sure = Persona("a/sure", sways=0.3, reuses=0.5, unclear=0, doubts=0)
    made = figures(tmp_path, [sure, *PERSONAS])
    of_figures = [lines_of(figure) for figure in made.values()]
    assert len(of_figures[0]) == 3 and len(of_figures[1]) == len(of_figures[2]) == 4
    assert of_figures[0].items() <= of_figures[1].items()
    assert of_figures[1] == of_figures[2]
    assert len({str(look) for look in of_figures[1].values()}) == 4
    assert "all their conversations have the same: a/sure at 0.67" in made["chameleon-figure-3-confidence"].caption


def test_ten_models_are_told_apart_by_colour_and_dash_as_far_as_these_go(tmp_path: Path) -> None:
    made = figures(tmp_path, [Persona(f"m{number}", 0.4, 0.5) for number in range(10)], (None,))
    looks = list(lines_of(made["chameleon-figure-4-reuse"]).values())
    assert len({colour for colour, _ in looks}) == 8
    assert all(re.fullmatch(r"var\(--chart-line-[1-8], #[0-9a-f]{6}\)", colour) for colour, _ in looks)
    assert sum(name.startswith("line-") for name in COLOURS) == 8


def test_figure_5_has_a_panel_for_each_temperature_and_one_for_all(tmp_path: Path) -> None:
    spec = figures(tmp_path, list(PERSONAS), (0.0, 0.5, None))["chameleon-figure-5-turns"].spec
    assert spec is not None
    panels = {row["panel"]: row["place"] for row in spec["datasets"]["rows"]}
    assert sorted(panels, key=lambda name: panels[name]) == [
        "Temperature 0",
        "Temperature 0.5",
        "Default temperature",
        "All temperatures",
    ]
    single = figures(tmp_path, list(PERSONAS), (0.5,))["chameleon-figure-5-turns"].spec
    assert single is not None
    assert {row["panel"] for row in single["datasets"]["rows"]} == {"Temperature 0.5"}


@pytest.mark.parametrize(
    ("personas", "heats", "said"),
    [
        (PERSONAS, (0.5,), "mean over conversations."),
        (PERSONAS, (0.5, 1.0), "mean over conversations: a panel for each temperature, and one for all of them"),
    ],
)
def test_figure_5_promises_the_panels_that_it_has(
    tmp_path: Path, personas: tuple[Persona, ...], heats: tuple[float, ...], said: str
) -> None:
    caption = figures(tmp_path, list(personas), heats)["chameleon-figure-5-turns"].caption
    assert said in caption and ("panel" in caption) is (len(heats) > 1)


@pytest.mark.parametrize("records", [[], [turn_record()]])
def test_where_nothing_can_be_drawn_a_sentence_says_why(tmp_path: Path, records: list[dict[str, Any]]) -> None:
    for figure in tables_and_figures(panel_of(written_run(tmp_path, records))).figures:
        assert figure.spec is None
        assert re.match(r"[A-Z][^\n]+\.$", figure.empty)


@pytest.mark.long
def test_any_name_can_be_drawn(tmp_path: Path) -> None:
    for at in range(0, len(NAMES), 48):
        personas = [Persona(name, 0.4, 0.5) for name in NAMES[at : at + 48]]
        for figure in figures(tmp_path / str(at), personas, (None,)).values():
            assert ElementTree.fromstring(svg(figure)) is not None
            assert figure.caption.count("\n") == 0
