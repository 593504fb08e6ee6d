"""The study of the best algorithms: candidates, and times within a tenth of the floor."""

from __future__ import annotations

import pytest

from ringleaf.collectives.collective import Collective
from ringleaf.experiments.commands.cli import perform_alone
from studies import best


def test_blink_is_a_candidate_where_it_has_the_collective() -> None:
    blink = {
        collective: [name for name in best.names(collective) if name.startswith("blink")]
        for collective in Collective
    }
    assert blink == {each: [] for each in Collective} | {
        Collective.ALLREDUCE: ["blink"],
        Collective.REDUCE: ["blink-reduce"],
        Collective.BROADCAST: ["blink-broadcast"],
    }


def test_reductions_of_16_mib_are_within_a_tenth_of_the_floor_by_trees(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Chains pass 15 hops, each of two links between boards, and are not."""
    names = ["reduce-rings", "blink-reduce"]
    monkeypatch.setattr(best, "names", lambda _: names)
    monkeypatch.setattr(best, "Collective", [Collective.REDUCE])
    trees, chains = best.measure("hammingmesh", Collective.REDUCE, "16MiB")
    assert (trees.algo, chains.algo) == ("blink-reduce", "reduce-rings")
    assert trees.floor_ps < trees.time_ps < 1.1 * trees.floor_ps < chains.time_ps

    names.remove("reduce-rings")
    words = ["--topo", "torus2d", "--size", "1MiB", "--why"]
    assert perform_alone("best", best.best_command, words) == 0
    _, _, line, *_ = capsys.readouterr().out.splitlines()
    *_, time_us, floor_us, _, headers_us, pieces_us, waits_us, _ = line.split("|")
    beyond_us = float(headers_us) + float(pieces_us) + float(waits_us)
    assert beyond_us == pytest.approx(float(time_us) - float(floor_us), abs=2.5)
    assert float(headers_us) > 0 < float(pieces_us)
