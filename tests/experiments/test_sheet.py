"""Figures in a paper's column: as wide as that, fonts as ever, and no text on another."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from drawn import collisions
from matplotlib.figure import Figure
from matplotlib.text import Text
from test_figures import TWELVE, make_run

from ringleaf.core.plausible import parse_column
from ringleaf.core.wrapping import wrapped
from ringleaf.errors import ConfigError
from ringleaf.experiments.figures import sheet
from ringleaf.experiments.figures.style import matplotlib_style
from ringleaf.experiments.workloads.collective import link_figures
from ringleaf.experiments.workloads.collective.figures import draw_busbw, draw_time
from ringleaf.experiments.workloads.collective.link_figures import draw_links, draw_spread
from ringleaf.topologies import registry
from ringleaf.topologies.draw import make_figure


@pytest.mark.parametrize(
    ("text", "inches"),
    [
        ("3.3in", 3.3), ("3.3 in", 3.3), ("84mm", 3.307), ("8.4cm", 3.307), ("240pt", 3.321),
        ("7", 7.0), ("3.3IN", 3.3),
    ],
)  # fmt: skip
def test_columns_are_read(text: str, inches: float) -> None:
    assert parse_column(text) == pytest.approx(inches, abs=1e-3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("wide", "column: not understood, got 'wide'; write it like 3.3in or 84mm"),
        ("3.3px", "column: not understood, got '3.3px'"),
        ("3.3.3in", "column: not understood"),
        ("84", "column: must be from 2.5in to 30in, got '84'"),
        ("1in", "column: must be from 2.5in to 30in, got '1in'"),
        ("", "column: not understood, got ''"),
    ],
)
def test_other_columns_are_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_column(text)


def smallest_font(figure: Figure) -> float:
    texts = [each for each in figure.findobj(Text) if isinstance(each, Text)]
    return min(float(each.get_fontsize()) for each in texts if each.get_text())


@pytest.mark.parametrize("column", [3.3, 7.0])
@pytest.mark.parametrize("sizes", [(1 << 22,), (1024, 4096, 16384, 65536)])
def test_figures_fit_a_column(column: float, sizes: tuple[int, ...]) -> None:
    run = make_run("leafspine,leaves=2,spines=2,hosts=4", TWELVE[:4], sizes)
    graph = registry.build(run.topology)
    panels = link_figures.largest(run)
    with matplotlib_style(), sheet.in_column(column):
        drawn = [draw_time(run), draw_busbw(run)]
        if len(sizes) == 1:
            drawn += [draw_links(run, graph, panels), draw_spread(run, graph, panels)]
        for figure in drawn:
            assert figure.get_figwidth() == column
            assert collisions(figure) == []
            assert smallest_font(figure) >= 8
        plt.close("all")


def test_a_map_fits_a_column_and_its_names_can_be_read() -> None:
    graph = registry.build("fattree,k=4")
    figure = make_figure(graph, edge_values={}, value_label="% of the time", top=100, width=3.3)
    assert figure.get_figwidth() == pytest.approx(3.3, abs=0.4)
    assert collisions(figure) == []
    assert smallest_font(figure) >= 6


def test_a_run_s_own_column_is_that_of_its_options_unless_another_is_asked_for(
    tmp_path: Path,
) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"given": {"column": "84mm"}}))
    given = sheet.given_to(tmp_path)
    with sheet.in_column_of(given):
        assert round(sheet.size(9, 2)[0], 3) == 3.307
    with sheet.in_column(5), sheet.in_column_of(given):
        assert sheet.size(9, 2) == (5, 2)
    assert sheet.size(9, 2) == (9, 2)
    assert sheet.given_to(tmp_path / "nothing") == {}


def test_titles_break_behind_commas() -> None:
    assert wrapped("on leafspine,leaves=2,spines=1,hosts=4, 64 KiB", 22) == [
        "on leafspine,leaves=2,", "spines=1,hosts=4, 64", "KiB",
    ]  # fmt: skip
    assert wrapped("ring, 4 MiB on fattree,k=4", 99) == ["ring, 4 MiB on fattree,k=4"]
