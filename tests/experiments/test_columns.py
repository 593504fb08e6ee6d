"""Tables have the columns that fit, and rows stay awk-able."""

from __future__ import annotations

import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.experiments.records import columns
from ringleaf.experiments.records.columns import Columns, fold
from ringleaf.experiments.workloads.collective import table
from ringleaf.experiments.workloads.graph import table as of_work
from ringleaf.experiments.workloads.graph.accounts import WorkRow
from ringleaf.experiments.workloads.jobs import table as of_jobs

SOME = (("name", "", 6), ("size", "(B)", 8), ("time", "(us)", 8), ("more", "", 4))


def test_the_least_important_columns_go_first() -> None:
    """By hand: 6 + 8 + 8 + 4 letters and three blanks are 29; without `more` 24, and `size` 15."""
    spare = ("more", "size")
    assert Columns.fitting(SOME, spare, None).kept == (0, 1, 2, 3)
    assert Columns.fitting(SOME, spare, 29).kept == (0, 1, 2, 3)
    assert Columns.fitting(SOME, spare, 28).kept == (0, 1, 2)
    assert Columns.fitting(SOME, spare, 23).kept == (0, 2)
    assert Columns.fitting(SOME, spare, 1).kept == (0, 2)


def test_names_units_and_cells_stand_below_one_another() -> None:
    chosen = Columns.fitting(SOME, ("more", "size"), 23)
    lines = [*chosen.titles(), chosen.line(("ring", "64", "1.50", "x"))]
    assert lines == ["# name     time", "#          (us)", "  ring     1.50"]


@given(most=st.integers(60, 200), algo=st.text("abc", min_size=1, max_size=24))
def test_tables_fit_wherever_they_go(most: int, algo: str) -> None:
    from test_figures import make_run

    run = make_run("leafspine,leaves=1,spines=1,hosts=2", (algo,), (1 << 22,))
    run.options["algos"], run.versions = [algo], {"ringleaf": "1.0"}
    chosen = table.columns_of(run, most)
    lines = [*fold(table.head(run, chosen), most), table.line(run.rows[0], chosen)]
    assert max(map(len, lines)) <= most
    names, cells = lines[-3][1:].split(), lines[-1].split()
    assert len(names) == len(cells)
    assert {"algo", "size", "time", "#wrong"} <= set(names)
    assert cells[names.index("algo")] == algo


@pytest.mark.parametrize(("terminal", "width"), [(60, 60), (137, 137), (20, 40)])
def test_a_terminal_s_table_is_as_wide_as_it(
    terminal: int, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(terminal))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert columns.letters(wide=False) == width
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False, raising=False)
    assert columns.letters(wide=False) == 100
    assert columns.letters(wide=True) is None


def test_comments_go_on_in_the_next_line() -> None:
    long = "# " + " ".join(["word"] * 30)
    lines = list(fold([long, "# short"], 60))
    assert all(len(line) <= 60 for line in lines)
    assert lines[0].startswith("# word")
    assert all(line.startswith("#   word") for line in lines[1:-1])
    assert re.sub(r"\n#  ", "", "\n".join(lines[:-1])) == long
    assert list(fold([long], None)) == [long]


def test_tables_of_jobs_and_workloads_fit_too() -> None:
    for every, spare in ((of_jobs._COLUMNS, of_jobs._SPARE), (of_work._COLUMNS, of_work._SPARE)):
        chosen = Columns.fitting(every, spare, 100)
        assert len(next(chosen.titles())) <= 100
        assert {name for name, _, _ in every} >= set(spare)
    row = WorkRow("flow", "message", "direct", 2, 1 << 18, 7, 7 << 18, 10**6, 10**6, 0, 0)
    assert len(of_work.line(row, of_work.columns_of(100))) <= 100
