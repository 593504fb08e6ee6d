"""Sparse allreduces as algorithms of a run: packet by packet, judged, in virtual time and live."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from fake_network import FakeConnect

from bench.soak.cases import METHODS, Disturbances, SoakCase
from bench.soak.trial import try_case
from ringleaf.errors import ConfigError
from ringleaf.experiments.checking.methods import joined
from ringleaf.experiments.runs.checks import check
from ringleaf.experiments.runs.request import resolve as request
from ringleaf.experiments.workloads.collective.experiment import CollectiveExperiment
from ringleaf.experiments.workloads.collective.kind import resolve
from ringleaf.experiments.workloads.collective.measuring import Measurement
from ringleaf.networks.outcome import RECEIVE

FOUR = {"topo": "leafspine,leaves=2,spines=1,hosts=2", "size": "8K"}


def measure(algo: str, spoil: Callable[[list[torch.Tensor]], None] | None = None) -> Measurement:
    experiment = CollectiveExperiment(resolve(FOUR | {"algo": algo}))
    return next(experiment.run(FakeConnect(spoil)) if spoil else experiment.run())


def test_sums_are_right_under_losses_and_restarts() -> None:
    """All of the soak's; packets are lost, doubled and overtaken, and a switch restarts."""
    given = FOUR | {"algo": ",".join(METHODS), "seed": "5", "reorder": "2%"}
    case = SoakCase(0, given | {"loss": "2%", "duplicate": "2%"}, Disturbances(1, 1, 1))
    assert [each.what for each in try_case(case)] == ["ok"] * len(METHODS)


def test_exchanges_come_one_after_the_other() -> None:
    """Words of gTop-k at 4 ranks: two rounds to rank 0 and two back, each of a message or two."""
    done = measure("gtopk:10")
    receives = sorted(n.row for n in done.outcome.notes if n.kind == RECEIVE)
    assert receives == list(range(6))  # 2 + 1 sums up, 1 + 2 down
    assert done.schedule.columns.step.tolist() == [0, 0, 1, 2, 3, 3]
    ends = {n.row: n.end_ps for n in done.outcome.notes if n.kind == RECEIVE}
    assert max(ends[0], ends[1]) <= ends[2] <= ends[3] <= min(ends[4], ends[5])
    assert done.outcome.time_ps == max(done.outcome.finish_ps) >= done.row.bound_ps
    assert sum(map(np.sum, done.outcome.link_series.values())) == pytest.approx(
        sum(done.outcome.link_bytes.values()), rel=0.01
    )


def test_a_word_that_changes_on_the_way_is_wrong() -> None:
    def spoil(tensors: list[torch.Tensor]) -> None:
        tensors[1][0] += 1

    done = measure("topka:1%", spoil)
    assert done.row.wrong
    assert "exchange 0: " in done.row.reason


def test_a_right_exchange_with_a_wrong_method_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    from ringleaf.collectives.sparse_allreduces import topka

    monkeypatch.setattr(topka, "scatter", lambda pairs, elements: np.zeros(elements, np.float32))
    done = measure("topka:50", lambda _: None)
    assert done.row.wrong
    assert "by its definition" in done.row.reason


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"algo": "oktopk", "dtype": "int32"}, "dtype: can't go with algo=oktopk, which chooses"),
        ({"algo": "ring,topka:2%", "compress": "topk:1%"}, "compress: can't go with algo=topka:2%"),
        ({"algo": "topka", "data": "none"}, "data: can't be none with algo=topka"),
        ({"algo": "gtopk", "hosts": "3"}, "algo: gtopk: ranks must be a power of two, got 3"),
        ({"algo": "hitopk", "hosts": "3"}, "algo: hitopk: ranks must be whole nodes of 4, got 3"),
    ],
)
def test_what_does_not_suit_is_refused(given: dict[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        check(request(FOUR | given | {"out": str(tmp_path / "out")}))


@pytest.mark.parametrize(("algo", "compress"), [("vote", "signsgd"), ("tern", "terngrad")])
def test_systems_that_need_a_compressor_are_refused_before_any_row(
    algo: str, compress: str
) -> None:
    options = {"topo": FOUR["topo"], "algo": f"ring,{algo}"}
    message = f"algo: {algo} adds up compressed elements only, .*; take compress={compress}"
    with pytest.raises(ConfigError, match=message):
        CollectiveExperiment(resolve(options))
    CollectiveExperiment(resolve({**options, "compress": compress}))
    CollectiveExperiment(resolve(options), inputs=[np.ones(3, np.float32)] * 4)


def test_joined_schedules_keep_their_steps_apart() -> None:
    from ringleaf.collectives.algorithms.ring import ring_allreduce

    both = joined("two", [ring_allreduce(3), ring_allreduce(3)])
    assert both.steps == 8
    assert len(both.columns) == 24


@pytest.mark.live
def test_they_run_live_and_are_right(tmp_path: Path) -> None:
    from live_commands import COMMAND, run

    what = ("--algo", "oktopk:2%,gtopk:2%", "--net", "mininet", "--loss", "0.5%")
    given = ("--topo", FOUR["topo"], "--size", "64K", "--scale", "2000", "-o", str(tmp_path))
    done = run(*COMMAND, "run", *given, *what)
    assert done.returncode == 0, done.stderr
    assert "# wrong values: 0 OK" in done.stdout
