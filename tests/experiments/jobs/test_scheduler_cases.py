"""Flow schedulers that decide more than the order of gradients, in whole runs of jobs."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import pytest

from ringleaf.errors import ConfigError
from ringleaf.experiments.workloads.jobs.experiment import JobsExperiment
from ringleaf.experiments.workloads.jobs.kind import resolve_jobs
from ringleaf.experiments.workloads.jobs.results import JobsCase
from ringleaf.experiments.workloads.jobs.timeline import BACKWARD, FORWARD, WIRE, JobSpan

MODEL = """\
name: small
layers:
  - {name: a, elements: 9000, forward: 10us, backward: 20us}
  - {name: b, elements: 3000, forward: 10us, backward: 20us}
  - {name: c, elements: 3000, forward: 10us, backward: 20us, weights: 5us}
  - {name: d, elements: 0, forward: 10us, backward: 20us}
  - {name: e, elements: 6000, forward: 10us, backward: 20us}
  - {name: f, elements: 6000, forward: 10us, backward: 20us}
"""


def experiment(
    folder: Path, second: Mapping[str, object] | None = None, **options: str
) -> JobsExperiment:
    """Return an experiment of two jobs that share the only way between two leaves.

    The second one has `second` in place of what both have.
    """
    model = folder / "small.yaml"
    model.write_text(MODEL)
    job = {"model": str(model), "ranks": 2, "iterations": 4}
    jobs = [job, {**job, **(second or {})}]
    given = {"topo": "leafspine,leaves=2,spines=1,hosts=2", "rate": "10G", "servers": "0"}
    return JobsExperiment(resolve_jobs({**given, "jobs": jobs, **options}))


def run(
    folder: Path, scheduler: str, second: Mapping[str, object] | None = None, **options: str
) -> JobsCase:
    (case,) = experiment(folder, second, scheduler=scheduler, **options).run()
    assert [row.wrong for row in case.rows] == [0, 0]
    return case


def of_first_job(case: JobsCase, *kinds: str) -> list[JobSpan]:
    return [span for span in case.spans if span.job == 1 and span.kind in kinds]


def test_dear_gathers_in_forward_order_after_all_is_scattered(tmp_path: Path) -> None:
    case = run(tmp_path, "dear")

    wires = [span for span in of_first_job(case, WIRE) if span.iteration == 2]
    assert [span.layers for span in wires] == [(5, 4, 2, 1), (0,), (0,), (5, 4, 2, 1)]
    assert all(before.end_ps <= after.start_ps for before, after in pairwise(wires))
    end_ps = max(span.end_ps for span in of_first_job(case, BACKWARD) if span.iteration == 2)
    assert wires[2].start_ps >= end_ps


def test_dear_sends_no_byte_more(tmp_path: Path) -> None:
    loads = []
    for scheduler in ("fifo", "dear"):
        case = run(tmp_path, scheduler, fuse="1M")
        assert case.link_series is not None
        loads.append(int(case.link_series.sum()))
    assert loads[1] == pytest.approx(loads[0], rel=0.05)  # two groups, so more acknowledgements


def test_out_of_order_computes_front_layers_weights_last(tmp_path: Path) -> None:
    case = run(tmp_path, "ooo-backprop")

    steps = [span.layers[0] for span in of_first_job(case, BACKWARD) if span.iteration == 1]
    put_off = steps[6:]
    assert steps[:6] == [5, 4, 3, 2, 1, 0]
    assert put_off
    assert put_off == [0, 1, 2, 4, 5][: len(put_off)]  # layer 3 has no weights
    ends = [max(s.end_ps for s in of_first_job(case, FORWARD, BACKWARD) if s.iteration == 1)]
    assert ends == [6 * 30_000_000]  # as long as an ordinary iteration


def test_mg_wfbp_merges_what_is_too_small_to_go_alone(tmp_path: Path) -> None:
    """On links with a long way, starting a collective takes longer than a backward pass."""
    case = run(tmp_path, "mg-wfbp", delay="20us")

    pieces = {span.layers for span in of_first_job(case, WIRE)}
    assert 1 <= len(pieces) < 5
    assert sorted(layer for piece in pieces for layer in piece) == [0, 1, 2, 4, 5]


def test_cassini_shifts_the_second_job(tmp_path: Path) -> None:
    starts = {}
    for scheduler in ("fifo", "cassini"):
        case = run(tmp_path, scheduler, rate="2G")
        starts[scheduler] = [
            min(s.start_ps for s in case.spans if s.job == job and s.kind == FORWARD)
            for job in (1, 2)
        ]

    assert starts["fifo"] == [0, 0]
    assert starts["cassini"][0] == 0
    assert starts["cassini"][1] > 0


def test_mltcp_needs_a_controller_with_a_factor(tmp_path: Path) -> None:
    run(tmp_path, "mltcp", cc="dctcp")
    with pytest.raises(
        ConfigError, match=r"scheduler mltcp needs a congestion controller .* 'fixed'"
    ):
        experiment(tmp_path, scheduler="mltcp", cc="fixed")


def test_dear_needs_an_algorithm_with_two_halves(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"scheduler dear needs an algorithm .* got algo 'switchml'"
    ):
        experiment(tmp_path, scheduler="dear", algo="ring,switchml")


def test_dear_needs_two_halves_of_each_job(tmp_path: Path) -> None:
    """Also of one with an algorithm of its own, if it runs."""
    with pytest.raises(ConfigError, match=r"dear needs an algorithm .* got algo 'switchml'"):
        experiment(tmp_path, {"algo": "switchml"}, scheduler="dear")
    experiment(tmp_path, {"algo": "switchml"}, scheduler="dear", counts="1")


@pytest.mark.parametrize("scheduler", ["mltcp", "shares"])
def test_windows_and_rates_are_of_hosts_that_add(scheduler: str, tmp_path: Path) -> None:
    """Hosts of aggregation systems have windows of their own, and pace themselves by results."""
    wrong = rf"scheduler {scheduler} needs an algorithm by which hosts add, got algo 'atp'; use"
    with pytest.raises(ConfigError, match=wrong):
        experiment(tmp_path, scheduler=scheduler, cc="dctcp", algo="ring,atp")
    with pytest.raises(ConfigError, match=wrong):
        experiment(tmp_path, {"algo": "atp"}, scheduler=scheduler, cc="dctcp")
    experiment(tmp_path, {"algo": "ps"}, scheduler=scheduler, cc="dctcp")


def test_shares_are_by_weight(tmp_path: Path) -> None:
    """Weights 1 and 3 of 10 Gbit/s are 2.5 and 7.5; nothing is computed, so all time is sending.

    A gradient of 1.08 MB takes 3456 us and 1152 us, and a little more with headers.
    """
    case = run(tmp_path, "shares", {"weight": 3}, compute="0", fuse="2M", size="10")
    light_us, heavy_us = (row.iteration_ps / 1e6 for row in case.rows)
    assert light_us == pytest.approx(3456, rel=0.05)
    assert heavy_us == pytest.approx(1152, rel=0.06)


@pytest.mark.parametrize("scheduler", ["mercury", "tensorexpress"])
def test_switches_see_no_priorities_of_mercury(tmp_path: Path, scheduler: str) -> None:
    """They use class 0 alone, where TensorExpress's packets use others. Layer 3 of 6 sends nothing.

    Layer f has priority 7 - 8 f / 6, rounded up.
    """
    case = run(tmp_path, scheduler, algo="ps", servers="1", topo="leafspine,leaves=2,hosts=3")

    assert {span.priority for span in of_first_job(case, WIRE)} == {7, 6, 5, 2, 1}
    assert case.queue_series is not None
    used = {level for level, row in enumerate(case.queue_series) if row.any()}
    assert (used == {0}) == (scheduler == "mercury")
    depths = case.queue_series.sum(axis=0)
    assert depths.max() == case.rows[0].peak_queue_bytes


def test_traces_of_split_collectives_have_each_once(tmp_path: Path) -> None:
    case = run(tmp_path, "dear", chakra="yes")
    assert [len(times) for _, times in case.traces] == [4 * (6 + 6 + 2)] * 2


def test_tereis_jobs_compute_one_at_a_time_on_the_same_hosts(tmp_path: Path) -> None:
    """An iteration computes for 180 us. At 1 Gbit/s its 108 kB take twice as long, at least."""
    case = run(tmp_path, "tereis", rate="1G")

    passes = sorted(
        (span.start_ps, span.end_ps, span.job)
        for span in case.spans
        if span.kind in (FORWARD, BACKWARD)
    )
    assert all(before[1] <= after[0] for before, after in pairwise(passes))
    first = [span for span in passes if span[2] == 1]
    inside = [span for span in passes if span[2] == 2 and span[1] <= first[-1][0]]
    assert len(inside) > 6  # the second job did not wait for the end of the first
    used = {span.job for span in case.spans if span.kind == WIRE}
    assert used == {1, 2}


def test_tereis_packs_nothing_where_transfers_leave_no_room(tmp_path: Path) -> None:
    cases = [run(tmp_path, scheduler, rate="100G") for scheduler in ("fifo", "tereis")]

    assert cases[0].spans == cases[1].spans


def test_omgs_sgd_sends_few_of_the_elements_and_adds_them_right(tmp_path: Path) -> None:
    """A hundredth in pairs of twice the size, of which sums have up to two ranks': 4 % or less.

    Small pieces have headers and acknowledgements besides.
    """
    loads = []
    for scheduler in ("fifo", "omgs-sgd"):
        case = run(tmp_path, scheduler, algo="ring", size="10")
        assert case.link_series is not None
        loads.append(int(case.link_series.sum()))
    assert 0.01 * loads[0] < loads[1] < 0.06 * loads[0]


def test_omgs_sgd_needs_hosts_that_add(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"scheduler omgs-sgd needs an .* add, got algo 'switchml'"
    ):
        experiment(tmp_path, scheduler="omgs-sgd", algo="ring,switchml")
