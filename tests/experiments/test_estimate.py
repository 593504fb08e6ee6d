"""Estimates of memory and time, beside what whole commands took on two cores of a cloud server."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.experiments.estimates import estimate as estimates
from ringleaf.experiments.estimates.estimate import Estimate, estimate, need
from ringleaf.experiments.setup.network import MakeNetwork
from ringleaf.experiments.setup.ranks import count_nodes
from ringleaf.experiments.workloads.collective.experiment import CollectiveExperiment
from ringleaf.experiments.workloads.collective.kind import resolve
from ringleaf.experiments.workloads.collective.spec import CollectiveSpec

MB = 1_000_000
DISTANCES = {4: 5.333, 8: 5.732, 12: 5.847, 16: 5.898, 24: 5.931, 32: 5.942}
"""Mean number of links between two hosts of a fat-tree."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A whole command: its wall clock, the most memory of its process, and its packet-hops."""

    options: str
    k: int
    wall_s: float
    peak_mb: int
    packet_hops: int

    @property
    def spec(self) -> CollectiveSpec:
        words = self.options.split()
        names = ("algo", "size", "data") if len(words) == 3 else ("algo", "size", "threads", "data")
        return resolve({"topo": f"fattree,k={self.k}", **dict(zip(names, words, strict=False))})


MEASURED = (
    Measured("ring 1M 1 random", 4, 3.2, 266, 29_960),
    Measured("ring 64M 1 random", 4, 5.0, 625, 1_798_328),
    Measured("ring 64M 1 none", 4, 4.4, 236, 1_798_328),
    Measured("ring 64M random", 4, 4.7, 625, 1_798_328),
    Measured("ring 16M random", 8, 6.6, 1044, 2_932_608),
    Measured("ring 1M 1 none", 16, 8.5, 555, 9_579_936),
    Measured("ring 16M 1 none", 16, 14.6, 510, 24_535_008),
    Measured("ring 16M none", 16, 8.6, 564, 24_535_008),
    Measured("ring 64K none", 24, 47.3, 1939, 104_215_344),
    Measured("ring 64K none", 32, 582.9, 8891, 572_609_856),
    Measured("allgather 16M none", 16, 6.0, 510, 12_261_664),
    Measured("halvingdoubling 256K 1 random", 8, 2.8, 346, 58_880),
    Measured("halvingdoubling 256K 1 random", 16, 7.4, 1361, 512_000),
    Measured("halvingdoubling 256K 1 none", 16, 5.4, 922, 512_000),
    Measured("halvingdoubling 4M 1 random", 8, 3.3, 861, 716_800),
    Measured("halvingdoubling 1M 1 random", 16, 9.2, 2166, 1_413_120),
    Measured("halvingdoubling 64K 1 none", 12, 4.3, 405, 86_816),
    Measured("halvingdoubling 64K 1 none", 24, 28.8, 2896, 817_280),
    Measured("blueconnect 4M random", 8, 3.2, 859, 725_248),
    Measured("tree 16M 1 random", 4, 4.7, 544, 559_290),
    Measured("tree 4M 1 random", 8, 7.0, 988, 874_096),
    Measured("tree 64K 1 none", 16, 2.9, 480, 171_878),
    Measured("tree 64K none", 32, 18.2, 3351, 1_252_224),
    Measured("doubletree 4M random", 8, 6.3, 1102, 876_832),
    Measured("allgather 4M random", 8, 6.7, 862, 397_488),
    Measured("alltoall 1M 1 random", 8, 6.0, 797, 371_712),
    Measured("alltoall 16M 1 random", 4, 4.2, 759, 352_928),
    Measured("ps 4M random", 4, 4.3, 437, 178_432),
    Measured("switchml 16M 1 random", 4, 5.1, 271, 937_776),
    Measured("switchml 1M 1 random", 8, 5.8, 694, 465_696),
    Measured("atp 16M 1 random", 4, 4.8, 374, 1_179_648),
    Measured("omnireduce 16M 1 random", 4, 5.5, 517, 2_752_512),
    Measured("omnireduce 1M 1 random", 8, 7.6, 538, 1_490_944),
)


@pytest.mark.parametrize("run", MEASURED, ids=lambda run: f"{run.options}, k={run.k}")
def test_estimates_are_within_a_factor_of_two_of_whole_commands(
    run: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimates, "count_cores", lambda: 2)
    needed = need(run.spec, count_nodes(run.spec), DISTANCES[run.k])
    assert run.wall_s / 2 < needed.known_s < 2 * run.wall_s
    assert run.peak_mb * MB / 2 < needed.memory_bytes < 2 * run.peak_mb * MB


@pytest.mark.parametrize("run", MEASURED, ids=lambda run: f"{run.options}, k={run.k}")
def test_packet_hops_are_within_a_factor_of_little_more_than_two(run: Measured) -> None:
    (name,), (size_bytes,) = run.spec.algos, run.spec.sizes_bytes
    found = estimates.hops(run.spec, ALGORITHMS[name], run.k**3 // 4, size_bytes, DISTANCES[run.k])
    assert run.packet_hops / 2.2 < found < 2.2 * run.packet_hops


@pytest.mark.parametrize("ranks", [2, 3, 16, 54, 100])
@pytest.mark.parametrize("name", ["halvingdoubling", "ring", "alltoall", "blueconnect"])
def test_rows_are_those_of_the_schedule(name: str, ranks: int) -> None:
    algorithm = ALGORITHMS[name]
    schedule = algorithm.build(ranks, size_bytes=1 << 20, hierarchy=(ranks,))
    assert estimates.rows(algorithm, ranks, 1 << 20) == len(schedule.rows)


@pytest.mark.parametrize(("algo", "share"), [("switchml", 10 / 256), ("atp", 1)])
def test_sums_are_stretched_where_as_many_packets_are_in_flight_all_the_time(
    algo: str, share: float
) -> None:
    given = {"topo": "fattree", "algo": algo, "size": "100M"}
    short, whole = (resolve({**given, "skip": skip}) for skip in ("0.1%", "0"))
    hops = [
        estimate(spec, ALGORITHMS[algo], count_nodes(spec), 100 << 20, 5.3).packet_hops
        for spec in (short, whole)
    ]
    assert hops[0] == pytest.approx(share * hops[1], rel=0.01)


def ring(**options: str) -> Estimate:
    spec = resolve({"topo": "fattree,k=8", "algo": "ring", **options})
    return estimate(spec, ALGORITHMS["ring"], count_nodes(spec), spec.sizes_bytes[0], 5.7)


def test_only_what_takes_long_is_simulated_by_all_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimates, "count_cores", lambda: 8)
    assert ring(size="64K").threads == 1
    assert ring(size="64M").threads == 8
    assert ring(size="64M", threads="3").threads == 3


def test_more_cores_make_packets_faster_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimates, "count_cores", lambda: 4)
    alone, together = ring(size="64M", threads="1"), ring(size="64M")
    assert alone.run_s == alone.packets_s == together.packets_s
    assert alone.packets_s / 4 < together.run_s < alone.packets_s / 2
    assert alone.time_s - alone.run_s == pytest.approx(together.time_s - together.run_s)
    assert ring(size="64M", threads="64").run_s == together.run_s  # there are but four cores


@pytest.mark.parametrize("threads", [1, 2])
def test_a_run_has_the_threads_of_its_estimate(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimates, "LONG_S", 0.0 if threads == 2 else 1e9)
    monkeypatch.setattr(estimates, "count_cores", lambda: 2)
    asked = []

    def see(spec: CollectiveSpec, *args: object, **options: object) -> MakeNetwork:
        asked.append(spec.threads)
        raise KeyboardInterrupt

    experiment = CollectiveExperiment(resolve({"topo": "fattree", "algo": "ring", "size": "1K"}))
    with pytest.raises(KeyboardInterrupt):
        list(experiment.run(see))  # type: ignore[arg-type]
    assert asked == [threads]


def test_a_large_network_is_let_through_where_its_schedule_is_small() -> None:
    """Of 1,024 hosts' halving and doubling, two million rows take less than a GiB."""
    spec = resolve(
        {"topo": "fattree,k=16", "algo": "halvingdoubling", "size": "256K", "data": "none"}
    )
    assert need(spec, count_nodes(spec), 1.0).memory_bytes < 1 << 30
