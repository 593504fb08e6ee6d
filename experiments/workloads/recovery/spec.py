"""Options of trainings that lose hosts, and recover.

workload: gpt13b
recovery: [checkpoint, oobleck, bamboo, recycle, swarm]
faults: h3 down at 2s, h40 down at 5s for 10s
iterations: 20
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, ClassVar, Self

from pydantic import ValidationInfo, model_validator

from ringleaf.core.faults import DOWN, NetworkFault
from ringleaf.core.units import parse_number
from ringleaf.errors import ConfigError
from ringleaf.experiments.spec import kinds
from ringleaf.experiments.spec.checked import WHERE
from ringleaf.experiments.spec.choices import FLOW, VIRTUAL
from ringleaf.experiments.spec.kinds import ValueReader, label, option
from ringleaf.experiments.workloads.graph.names import LLM
from ringleaf.experiments.workloads.graph.spec import WorkloadSpec
from ringleaf.hosts.recoveries.common.course import RecoveryPauses
from ringleaf.hosts.recoveries.common.plan import PipelineShape
from ringleaf.hosts.recoveries.common.rates import FailureRates, find_rates, rate_names
from ringleaf.hosts.recoveries.common.registry import RECOVERIES
from ringleaf.hosts.workload.llm.pipeline import ONE_F_ONE_B

MOST_ITERATIONS = 1_000_000

MOST_OFTEN = 1e12
"""How many times as often as counted hosts may fail; small runs are over in milliseconds."""

USUAL_INTERVAL = 10
"""Iterations between checkpoints, if nothing is known of the mean time to a failure."""


def _failures(text: str, where: str) -> str:
    if text:
        find_rates(text, where)
    return text


def _times(text: str, where: str) -> float:
    times = parse_number(text, where)
    if not 0 < times <= MOST_OFTEN:
        raise ConfigError(f"{where}: must be above 0, up to {MOST_OFTEN:g}, got {text!r}")
    return times


_HOST = re.compile(r"h\d+")


def is_host_loss(fault: NetworkFault) -> bool:
    """Return whether a fault takes a host away, which recoveries know of."""
    return fault.kind == DOWN and _HOST.fullmatch(fault.place) is not None


class RecoverySpec(WorkloadSpec):
    """A model in pipelines whose hosts fail, and recoveries that are compared."""

    networks: ClassVar[Sequence[str]] = (VIRTUAL, FLOW)

    recovery: Annotated[tuple[str, ...], kinds.several_of("recovery", RECOVERIES)] = option(
        "checkpoint",
        f"Models: recoveries from hosts that are lost, which are compared: {', '.join(RECOVERIES)}",
        flags="--recovery",
    )
    iterations: Annotated[int, kinds.whole(1, MOST_ITERATIONS)] = option(
        "20", "Recoveries: iterations that must be done", flags="--iterations"
    )
    spares: Annotated[int, kinds.whole(0)] = option(
        "0", "Recoveries: spare workers, of tp times cp hosts each", flags="--spares"
    )
    least_workers: kinds.AnyCount = option(
        "",
        "Recoveries: the fewest workers whose memory holds the model; default: half of pp",
        flags="--least-workers",
    )
    detect_ps: kinds.Time = option(
        "1s",
        "Recoveries: time from a loss until it is detected",
        flags="--detect",
        name="detect",
    )
    regroup_ps: kinds.Time = option(
        "1s",
        "Recoveries: time to make communicators anew",
        flags="--regroup",
        name="regroup",
    )
    restart_ps: kinds.Time = option(
        "30s",
        "Recoveries: time to begin anew from a checkpoint, which is read meanwhile",
        flags="--restart",
        name="restart",
    )
    checkpoint_cost_ps: kinds.Time = option(
        "1s",
        "Recoveries: time that a checkpoint takes",
        flags="--checkpoint-cost",
        name="checkpoint_cost",
    )
    checkpoint_interval_ps: kinds.AnyTime = option(
        "",
        "Recoveries: time between checkpoints; default: by Young's formula if failures are drawn, "
        f"else {USUAL_INTERVAL} iterations",
        flags="--checkpoint-interval",
        name="checkpoint_interval",
    )
    state_bytes: Annotated[int, kinds.whole(1)] = option(
        "14",
        "Recoveries: bytes of a parameter's state that is copied: the parameter, and the "
        "optimiser's",
        flags="--state-bytes",
    )

    failures: Annotated[str, ValueReader(_failures)] = option(
        "",
        f"Recoveries: rates that losses of hosts are drawn from: {', '.join(rate_names())}, a YAML "
        "file, or a number per 1,000 nodes of 8 hosts and day; default: none",
        flags="--failures",
    )
    failures_times: Annotated[float, ValueReader(_times)] = option(
        "1",
        "Recoveries: how many times as often hosts fail as the rates say",
        flags="--failures-times",
    )
    repair_ps: kinds.AnyTime = option(
        "",
        "Recoveries: time until a host that failed is there again; default: never",
        flags="--repair",
        name="repair",
    )

    @model_validator(mode="after")
    def _check_recovery(self, info: ValidationInfo) -> Self:
        where = label(info, WHERE)
        if self.workload != LLM:
            raise ConfigError(
                f"{where}recovery: is of models in pipelines, got workload {self.workload!r}; "
                "take gpt13b, or sizes of a model"
            )
        sizes, split = self.model_sizes(where)
        for name, value, only, why in (
            ("experts", sizes.experts, 0, "experts are on one replica only"),
            ("zero", split.zero, 0, "replicas share a state that recoveries copy from peers"),
            ("schedule", split.schedule, ONE_F_ONE_B, "plans have an order of their own"),
            ("layers_per_stage", split.layers_per_stage, 0, "stages change"),
        ):
            if value != only:
                raise ConfigError(
                    f"{where}{name}: must be {only} with recoveries, as {why}, got {value!r}"
                )
        if self.shape.least > split.pp:
            raise ConfigError(
                f"{where}least_workers: must be at most pp, {split.pp}, got {self.least_workers}"
            )
        for name in ("pcap", "record", "chakra"):
            if getattr(self, name):
                raise ConfigError(
                    f"{where}{name}: not with recoveries, whose iterations are many, got "
                    f"{str(getattr(self, name))!r}; leave it out"
                )
        return self

    @property
    def network_faults(self) -> tuple[NetworkFault, ...]:
        """The faults that are the network's: hosts that are down are the recoveries'."""
        return tuple(each for each in super().network_faults if not is_host_loss(each))

    @property
    def shape(self) -> PipelineShape:
        """The model in pipelines."""
        sizes, split = self.model_sizes()
        least = self.least_workers or -(-split.pp // 2)
        return PipelineShape(sizes.layers, split.pp, split.dp, split.micro_batches, least)

    @property
    def rates(self) -> FailureRates | None:
        """The rates that failures are drawn from, if they are."""
        return find_rates(self.failures, "failures") if self.failures else None

    @property
    def workers(self) -> int:
        """The workers, spare ones included."""
        return self.shape.workers + self.spares

    def pauses(self, interval_ps: int) -> RecoveryPauses:
        """Return the times that are not simulated, with that between checkpoints."""
        return RecoveryPauses(
            self.detect_ps,
            self.regroup_ps,
            self.restart_ps,
            self.checkpoint_cost_ps,
            interval_ps,
        )
