"""Train every case of a plan on an emulated network, and keep loss, bytes and time of each step."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing

from ringleaf.core.units import PS_PER_US
from ringleaf.experiments.spec.network import NetworkSpec
from ringleaf.experiments.workloads.converge.carrier import ExchangeCarrier
from ringleaf.experiments.workloads.converge.curve import Curve, TrainingCase
from ringleaf.experiments.workloads.converge.models import DealtModel
from ringleaf.experiments.workloads.converge.plan import ConvergencePlan, make_program
from ringleaf.experiments.workloads.converge.scheme import SCHEMES, Setup

JUDGED = 40
"""A case is judged on the test set at most about so many times."""


def train(plan: ConvergencePlan, case: TrainingCase, carrier: ExchangeCarrier) -> Curve:
    """Train one case on networks of its own; its curve starts with the first parameters."""
    assert carrier.ranks is not None
    training = DealtModel(case.model, carrier.ranks, plan.batch, plan.seed)
    setup = Setup(
        training,
        carrier,
        lambda rank, ranks: make_program(case.method, rank, ranks),
        case.rate,
        case.steps,
        plan.compute_ps,
    )
    curve = Curve(case)
    _note(curve, training.judge(training.start()), 0, 0, 0)
    every, time_ps, sent, last = case.steps / JUDGED, 0, None, 0.0
    for moment in SCHEMES[case.workload](setup):
        cost = carrier.take_cost()
        time_ps += moment.compute_ps + cost.time_ps
        if moment.elapsed_ps is not None:
            time_ps = moment.elapsed_ps
        sent = cost.wire_bytes if sent is None else sent + cost.wire_bytes
        curve.wrong += cost.wrong
        curve.longest_ps = max(curve.longest_ps, cost.longest_ps)
        if moment.step - last >= every or moment.step >= case.steps:
            last = moment.step
            judged = training.judge(moment.parameters)
            _note(curve, judged, moment.step, time_ps, int(sent.max()))
    return curve


def _note(curve: Curve, judged: tuple[float, float], step: float, time_ps: int, sent: int) -> None:
    curve.steps.append(step)
    curve.loss.append(judged[0])
    curve.right.append(judged[1])
    curve.time_us.append(time_ps / PS_PER_US)
    curve.bytes_sent.append(sent)


def run(plan: ConvergencePlan, network: NetworkSpec | None = None) -> Generator[Curve]:
    """Yield each case's curve as it is done; no case depends on those before it.

    Args:
        plan: The trainings.
        network: Options of the network; None: those that are usual, on the plan's topology.
    """
    for case in plan.cases:
        # Connections remember, so networks that a case before it had would change its times.
        carrier = ExchangeCarrier(case.algo, plan.topo, network=network)
        with closing(carrier):
            curve = train(plan, case, carrier)
        yield curve
