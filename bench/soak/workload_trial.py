"""Try a case of a workload: what it sums up is judged, by packets and by flows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from bench.soak.flow_trial import flow_options
from bench.soak.trial import (
    Finding,
    cut_off_by,
    may_deadlock,
    may_stay_away,
    try_run,
    with_faults,
)
from bench.soak.workload_cases import WorkloadCase, slows
from ringleaf.errors import RingleafError
from ringleaf.experiments.runs.checks import check_fits
from ringleaf.experiments.setup.ranks import count_nodes
from ringleaf.experiments.workloads.graph.experiment import WorkExperiment
from ringleaf.experiments.workloads.graph.kind import KIND
from ringleaf.experiments.workloads.graph.spec import WorkloadSpec

SEEN = ("iteration_ps", "retransmissions", "drops", "lost", "corrupted", "trims", "packet_hops",
        "times", "uses")  # fmt: skip
"""What a replay is compared by."""


def try_workloads(case: WorkloadCase) -> list[Finding]:
    """Run a case by packets, and twice by flows; return how each ended."""
    found = [_try(case, case.given, "packets")]
    try:
        by_flows = flow_options(case.given, _read, slows(case.given))
    except RingleafError as error:
        return [*found, Finding("refused", "flows", str(error))]
    return [*found, _try(case, by_flows, "flows", runs=2)]


def _read(given: Mapping[str, str]) -> WorkloadSpec:
    return KIND.fitted(KIND.resolve(given))


def _try(case: WorkloadCase, given: Mapping[str, str], net: str, runs: int = 1) -> Finding:
    where = f"{given.get('pattern', 'model')} by {net}"
    try:
        spec = _read(given)
        check_fits(KIND, spec, count_nodes(spec))
        experiment = WorkExperiment(spec)
    except RingleafError as error:
        return Finding("refused", where, str(error))
    graph, adds = experiment.graph, experiment.system is not None
    trouble = with_faults(case.trouble, spec, graph)
    may_end = cut_off_by(spec, graph) or any(
        may_stay_away(name, given, trouble) for name in spec.algos
    )
    judge = partial(_judge, experiment, where, runs)
    blocks = may_deadlock(spec, graph, switches_add=adds)
    return try_run(judge, where, may_end=may_end, may_block=blocks)


def _judge(experiment: WorkExperiment, where: str, runs: int) -> Finding:
    times = set()
    for _ in range(runs):
        done = experiment.run(lambda share, done, wanted: None, lambda hops: None)
        times.add(done.iteration_ps)
        if done.wrong or done.wrong is None:
            return Finding("wrong", where, f"{done.wrong} elements: {done.reason}")
    if len(times) > 1:
        return Finding("wrong", where, f"another time the second time: {sorted(times)} ps")
    spec = experiment.spec
    losing = spec.loss or spec.duplicate or spec.reorder or spec.network_faults
    overtakes = spec.circuits is not None and not spec.circuits.keeps_order
    if done.retransmissions and not (losing or overtakes or done.drops or done.trims):
        return Finding("resent", where, f"{done.retransmissions} packets, and none was lost")
    return Finding("ok", where, seen=[getattr(done, name) for name in SEEN])
