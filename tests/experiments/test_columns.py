"""Tables have the columns that fit, and rows stay awk-able."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Sequence
from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.experiments.records import columns
from ringleaf.experiments.records.columns import (
    Column,
    as_us,
    fitting,
    fold,
    grouped,
    line,
    titles,
)
from ringleaf.experiments.records.results import Results
from ringleaf.experiments.records.table import RunTable
from ringleaf.experiments.runs.registry import WORKLOADS
from ringleaf.experiments.workloads.nic.workload import workload_of
from ringleaf.hosts.nic.registry import OFFLOADS

SOME = (
    Column("name", "name", width=6),
    Column("size_bytes", "size", "B", 8),
    Column("time_ps", "time", "us", 8, as_us),
    Column("more", "more", width=4),
)


def names(columns: Sequence[Column]) -> str:
    return " ".join(each.title for each in columns)


def test_the_least_important_columns_go_first() -> None:
    """By hand: 6 + 8 + 8 + 4 letters and three blanks are 29; without `more` 24, and `size` 15."""
    spare = ("more", "size_bytes")
    assert names(fitting(SOME, spare, None)) == "name size time more"
    assert names(fitting(SOME, spare, 29)) == "name size time more"
    assert names(fitting(SOME, spare, 28)) == "name size time"
    assert names(fitting(SOME, spare, 23)) == "name time"
    assert names(fitting(SOME, spare, 1)) == "name time"


def test_names_units_and_cells_stand_below_one_another() -> None:
    chosen = fitting(SOME, ("more", "size_bytes"), 23)
    row = {"name": "ring", "size_bytes": 64, "time_ps": 1_500_000, "more": "x"}
    cells = line((each.text(row) for each in chosen), chosen)
    assert [*titles(chosen), cells] == ["# name     time", "#          (us)", "  ring     1.50"]


def test_pages_group_digits_and_name_units() -> None:
    row = {"size_bytes": 65_536, "time_ps": 12_345_678_901}
    assert [each.cell(row) for each in SOME[1:3]] == ["65,536", "12,345.68"]
    assert [each.heading for each in SOME[1:3]] == ["size (B)", "time (µs)"]
    assert [grouped(text) for text in ("999", "-1000.5", "2025a", "v1000")] == [
        "999", "-1,000.5", "2025a", "v1000",
    ]  # fmt: skip


def test_a_value_that_is_missing_is_said_to_be() -> None:
    column = Column("entries", "entries", show=lambda value: f"{value:d}", missing="all")
    assert (column.text({"entries": None}), column.cell({"entries": None})) == ("all", "all")


@given(most=st.integers(60, 200), algo=st.text("abc", min_size=1, max_size=24))
def test_tables_fit_wherever_they_go(most: int, algo: str) -> None:
    from test_figures import make_run

    run = make_run("leafspine,leaves=1,spines=1,hosts=2", (algo,), (1 << 22,))
    run.options["algos"] = [algo]
    table = RunTable(run, most)
    lines = [*table.head(None), *table.rows()]
    assert max(map(len, lines)) <= most
    names, cells = lines[-3][1:].split(), lines[-1].split()
    assert len(names) == len(cells)
    assert {"algo", "size", "time", "#wrong"} <= set(names)
    assert cells[names.index("algo")] == algo
    assert list(table.rows()) == []  # each row is told once


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


@pytest.mark.parametrize("name", WORKLOADS.shipped())
def test_tables_of_all_kinds_fit_too(name: str) -> None:
    module = import_module(f"ringleaf.experiments.workloads.{name}.results")
    [kind] = [
        each
        for each in vars(module).values()
        if inspect.isclass(each) and issubclass(each, Results) and each is not Results
    ]
    columns = getattr(module, "TABLE", getattr(module, "COLUMNS", None))
    if columns is None:  # a kind whose workloads have columns of their own
        columns = [each for offload in OFFLOADS for each in workload_of(offload).columns]
        assert {each.name for each in columns} >= set(kind.spare)
        return
    assert {each.name for each in columns} >= set(kind.spare)
    if kind.spare:
        assert len(next(titles(fitting(columns, kind.spare, 100)))) <= 100
