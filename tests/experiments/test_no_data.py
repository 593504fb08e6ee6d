"""Runs without data take the same times, packets and bytes as those with data, and no memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
import running
import torch
from running import run

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.sparse.sparcml import recursive_doubling
from ringleaf.core.arena import Store
from ringleaf.errors import ConfigError
from ringleaf.experiments.runs import sweep_report
from ringleaf.experiments.workloads.collective.experiment import CollectiveExperiment
from ringleaf.experiments.workloads.collective.kind import KIND, resolve
from ringleaf.experiments.workloads.collective.measuring import Measurement
from ringleaf.experiments.workloads.collective.results import CollectiveResults
from ringleaf.ina.registry import find_system
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.virtual.network import VirtualNetwork
from ringleaf.topologies.registry import build

GIVEN = {"topo": "leafspine,leaves=2,spines=1,hosts=2", "size": "40K,100"}


def measured(**options: str) -> list[Measurement]:
    return list(CollectiveExperiment(resolve({**GIVEN, **options})).run())


@pytest.mark.parametrize(
    "options",
    [
        {"algo": "ring,tree,halvingdoubling,doubletree,blueconnect"},
        {"algo": "ring,tree,halvingdoubling", "loss": "2%", "reorder": "1%", "duplicate": "1%"},
        {"algo": "ps", "servers": "1", "cc": "dcqcn"},
        {"algo": "alltoall", "mtu": "256", "message_overhead": "500ns"},
        {"algo": "broadcast", "dtype": "int32"},
    ],
)
def test_times_bytes_and_links_are_those_with_data(options: dict[str, str]) -> None:
    for with_data, without in zip(
        measured(**options), measured(**options, data="none"), strict=True
    ):
        was, now = with_data.row, without.row
        assert (was.wrong, now.wrong) == (0, None)
        names = set(was.__slots__) - {"wrong"}
        assert {n: getattr(was, n) for n in names} == {n: getattr(now, n) for n in names}
        assert with_data.outcome.finish_ps == without.outcome.finish_ps
        assert with_data.series.links == without.series.links
        assert np.array_equal(with_data.series.size_bytes, without.series.size_bytes)


def test_nothing_is_written_to_memory() -> None:
    """Whatever is in registered memory stays, in a halving-doubling's tensors and buffers."""
    graph = build("leafspine,leaves=2,spines=1,hosts=2", rate_bps=10**11, delay_ps=10**6)
    network = VirtualNetwork(graph, NetworkOptions(has_data=False))
    schedule = ALGORITHMS["halvingdoubling"].build(4, hierarchy=(2, 2))
    tensors = network.tensors(10_000, torch.float32, schedule)
    for rank, tensor in enumerate(tensors):
        tensor.fill_(rank + 1)
    before = network.store.arena.memory.copy()

    network.run(schedule, tensors)

    network.close()
    assert np.array_equal(network.store.arena.memory, before)


def test_memory_without_data_may_be_larger_than_the_machine() -> None:
    store = Store(has_data=False)
    first = store.register_memory(1 << 40)
    second = store.register_memory(1 << 41)  # it grows
    assert (first, second) == (0, 1 << 40)
    assert store.arena.memory.size >= (1 << 40) + (1 << 41)
    assert store.arena.memory[-1] == 0


def test_the_table_and_files_say_that_nothing_was_checked(tmp_path: Path) -> None:
    lines: list[str] = []
    asked = {"algo": "ring", "data": "none", "wide": "yes", "out": str(tmp_path)}
    done = run({**GIVEN, **asked}, emit=lines.append)

    assert done.wrong is None
    assert "# wrong values: not checked, as there was no data (data=none); schedules were" in lines
    row = next(line for line in lines if not line.startswith("#"))
    assert row.split()[12] == "-"
    assert "not checked" in (tmp_path / "report.html").read_text()
    assert '"wrong": null' in (tmp_path / "summary.json").read_text()
    again: CollectiveResults = running.read_run(tmp_path)
    assert again.wrong is None
    assert list(running.foot(again)) == list(running.foot(done))


def test_a_sweep_says_it_too() -> None:
    line = {"algo": "ring", "size_bytes": 4, "time_ps": 1, "bound_percent": 1.0}
    line |= {"retransmissions": 0, "drops": 0, "seed": "1"}
    page = page_of([line | {"wrong": None}])
    assert "Not checked" in page
    assert "<td>-</td>" in page
    lines = [line | {"wrong": wrong} for wrong in (None, 0)]
    page = page_of(lines)
    assert "values of the runs with data" in page
    page = page_of([line | {"wrong": 0}])
    assert "values of all runs" in page


def page_of(lines: Sequence[Mapping[str, object]]) -> str:
    places = [str(number) for number in range(len(lines))]
    return sweep_report.render(KIND, "x", places, lines, ["seed"], {}, {})


@pytest.mark.parametrize(
    ("options", "culprit"),
    [
        ({"algo": "ring,switchml"}, "algo=switchml"),
        ({"algo": "ring,ssar-double"}, "algo=ssar-double"),
        ({"algo": "dsar-split", "net": "flow"}, "algo=dsar-split"),
        ({"algo": "ring", "density": "1%"}, "density"),
        ({"algo": "ring", "compress": "topk:1%"}, "compress"),
        ({"algo": "ring", "net": "mininet"}, "net=mininet"),
    ],
)
def test_options_that_need_data_are_refused(options: dict[str, str], culprit: str) -> None:
    with pytest.raises(
        ConfigError, match=f"data: can't be none with {culprit}, got 'none'; take data=random"
    ):
        resolve({**GIVEN, **options, "data": "none"})


def test_codecs_and_systems_need_data() -> None:
    graph = build("leafspine,leaves=2,spines=1,hosts=2", rate_bps=10**11, delay_ps=10**6)
    network = VirtualNetwork(graph, NetworkOptions(has_data=False))
    schedule = recursive_doubling(4)
    with pytest.raises(ConfigError, match="run: messages must have data where a codec writes them"):
        network.run(schedule, network.tensors(100, torch.float32, schedule))
    with pytest.raises(ConfigError, match="options: packets must have data where switches add"):
        VirtualNetwork(graph, NetworkOptions(has_data=False, system=find_system("switchml")))


def test_estimates_leave_the_tensors_out() -> None:
    given = {"topo": "fattree,k=16", "size": "100M", "algo": "ring"}
    spec = (
        CollectiveExperiment(resolve(given)),
        CollectiveExperiment(resolve({**given, "data": "none"})),
    )
    with_data, without = (each.need.memory_bytes for each in spec)
    tensors = 1024 * (100 << 20)
    assert tensors < with_data - without < 1.5 * tensors
