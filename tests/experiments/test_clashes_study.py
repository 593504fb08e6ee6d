"""The study of clashes: what it runs, and what it divides."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace

import pytest

from ringleaf.collectives.collective import Collective
from ringleaf.experiments.commands.cli import perform_alone
from studies import clashes


def test_all_collectives_have_algorithms_that_take_any_tensor_and_order() -> None:
    found = {name for collective in Collective for name in clashes.names(collective)}

    assert {"ring", "ps", "atp", "switchml", "alltoall", "broadcast"} <= found
    assert not {"vote", "tern", "alltoall-2d"} & found


def test_where_there_is_one_path_nothing_clashes(capsys: pytest.CaptureFixture[str]) -> None:
    topo = ["--topo", "leafspine,leaves=1,spines=1,hosts=3", "--size", "4KiB", "--orders", "1"]
    names = ["--algo", "ring", "--algo", "ps", "--algo", "switchml"]
    assert perform_alone("clashes", clashes.clashes_command, [*topo, *names]) == 0

    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line[0] != "#"]
    assert sorted(row[0] for row in rows) == ["ps", "ring", "switchml"]
    assert all(row[2:] == ["1.00", "1.00", "1.00"] for row in rows)


def test_hashed_times_are_divided_by_dealt_ones_of_the_same_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Given: 30 over 20. Random orders: 22 over 10, 30 over 10, 11 over 10."""
    times_ps = {
        ("given", "1", "dealt"): 20_000_000,
        ("given", "1", "ecmp"): 30_000_000,
        ("random", "1", "ecmp"): 22_000_000,
        ("random", "2", "ecmp"): 30_000_000,
        ("random", "3", "ecmp"): 11_000_000,
    }

    def rows(given: Mapping[str, str]) -> dict[str, SimpleNamespace]:
        key = (given["rank_order"], given["seed"], given["routes"])
        return {"ring": SimpleNamespace(time_ps=times_ps.get(key, 10_000_000))}

    monkeypatch.setattr(clashes, "_rows", rows)

    (clash,) = clashes.measure({}, 3)

    assert clash.line.split() == ["ring", "20.00", "1.50", "2.20", "3.00"]
