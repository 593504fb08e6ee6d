"""When circuits were up, from their changes, as a file and as a figure."""

from __future__ import annotations

import csv
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ringleaf.experiments.figures.style import matplotlib_style
from ringleaf.experiments.records.circuit_spells import (
    DARK,
    DRAINING,
    FILE,
    UP,
    Spell,
    as_csv,
    read_spells,
    spells_of,
)
from ringleaf.experiments.runs.drawing import read_results
from ringleaf.experiments.runs.python import run
from ringleaf.experiments.workloads.collective.circuit_figures import draw_circuits, panels_of
from ringleaf.networks.outcome import CircuitChange, CircuitUse

A, B, C = ("s0", "s1"), ("s1", "s2"), ("s2", "s0")


def use(*changes: CircuitChange, time_ps: int = 100) -> CircuitUse:
    return CircuitUse(changes, 0, 0, time_ps, first=(A, B))


def test_a_circuit_is_up_until_it_goes_dark_and_one_that_stays_is_up_all_the_while() -> None:
    change = CircuitChange(30, 40, 55, pairs=(B, C), stayed=(B,))

    assert spells_of(use(change)) == [
        Spell(UP, "s0-s1", 0, 40),
        Spell(UP, "s1-s2", 0, 100),
        Spell(UP, "s2-s0", 55, 100),
        Spell(DRAINING, "", 30, 40),
        Spell(DARK, "", 40, 55),
    ]


def test_a_circuit_of_another_rate_is_dark_meanwhile() -> None:
    change = CircuitChange(30, 30, 55, pairs=(A, B), stayed=(B,))

    assert [each for each in spells_of(use(change)) if each.circuit == "s0-s1"] == [
        Spell(UP, "s0-s1", 0, 30),
        Spell(UP, "s0-s1", 55, 100),
    ]


def test_a_change_that_the_run_s_end_cuts_off_is_told_as_far_as_it_came() -> None:
    draining, dark = CircuitChange(90), CircuitChange(80, 95, stayed=(B,))

    assert spells_of(use(draining))[2:] == [Spell(DRAINING, "", 90, 100)]
    assert spells_of(use(dark)) == [
        Spell(UP, "s0-s1", 0, 95),
        Spell(UP, "s1-s2", 0, 100),
        Spell(DRAINING, "", 80, 95),
        Spell(DARK, "", 95, 100),
    ]


@given(
    st.dictionaries(
        st.tuples(st.sampled_from(["ring", "hierring"]), st.integers(1, 99)),
        st.lists(
            st.builds(
                Spell,
                st.sampled_from([UP, DARK]),
                st.sampled_from(["s0-s1", ""]),
                st.integers(0, 9),
                st.integers(10, 20),
            ),
            min_size=1,
        ),
    )
)
def test_the_file_says_the_same(spells: dict[tuple[str, int], list[Spell]]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, FILE)
        path.write_text(as_csv(spells))
        assert read_spells(path) == spells
        assert read_spells(Path(folder, "none")) == {}


def test_a_run_keeps_and_draws_what_its_circuits_did(tmp_path: Path) -> None:
    done = run(
        topo="circuits,racks=4,hosts=2,optical=2",
        circuits="helios,period=30us,dead=5us",
        algo="hierring,halvingdoubling",
        size="512K,1M",
        figures="no",
        out=str(tmp_path),
    )
    results = read_results(tmp_path)
    panels = panels_of(results)  # type: ignore[arg-type]

    assert [row.algo for row, _ in panels] == ["hierring", "halvingdoubling"]
    with (tmp_path / FILE).open() as file:
        rows = list(csv.DictReader(file))
    for row in done.rows:
        own = [r for r in rows if (r["algo"], int(r["of_bytes"])) == (row.algo, row.size_bytes)]
        dark_ps = [int(r["end_ps"]) - int(r["start_ps"]) for r in own if r["state"] == DARK]
        assert sum(dark_ps) == row.dark_ps
    with matplotlib_style():
        figure = draw_circuits(results, panels)  # type: ignore[arg-type]
    for axes, (row, spells) in zip(figure.axes, panels, strict=True):
        up = [spell for spell in spells if spell.state == UP]
        bars = [patch for bars in axes.containers for patch in bars]
        assert axes.get_title(loc="left") == row.algo
        assert len(bars) == len(up)
        ends = {round(bar.get_x() + bar.get_width(), 3) for bar in bars}
        assert ends == {round(spell.end_ps / 1e6, 3) for spell in up}
