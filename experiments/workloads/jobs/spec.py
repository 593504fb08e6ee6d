"""Experiments whose workload is training jobs, beside each other on one network.

A YAML file, in which lists of `counts`, `algo`, `scheduler` and `entries` are swept:

    topo: fattree
    jobs:
      - {model: resnet50, ranks: 3, iterations: 3, start: 0us}
      - {model: vgg16, ranks: 3, iterations: 3, start: 100us, weight: 2}
    counts: [1, 2]          # how many of the jobs, from the first
    algo: [ring, ps, switchml, atp]
    scheduler: [fifo, layers, tensorexpress, jpas]
    entries: [64, 256]      # slots or aggregators of a switch that all jobs share
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Self

from pydantic import BeforeValidator, ValidationInfo, model_validator

from ringleaf.collectives.collective import Collective
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.synthesis.names import WithSynthesised
from ringleaf.core.units import exact_time, parse_size
from ringleaf.errors import ConfigError, choose
from ringleaf.experiments.spec import kinds
from ringleaf.experiments.spec.checked import WHERE, Checked
from ringleaf.experiments.spec.choices import FLOW, NETWORKS
from ringleaf.experiments.spec.kinds import DATA, NONE, RANDOM, ValueReader, label, option
from ringleaf.experiments.spec.network import NetworkSpec
from ringleaf.hosts.schedulers.common.registry import SCHEDULERS
from ringleaf.hosts.training.model import Model, load_model, scaled
from ringleaf.ina.allocation import ALLOCATORS, OWN

PLACEMENTS = ("spread", "packed")


def _reducing(text: str, where: str) -> tuple[str, ...]:
    """Read names of algorithms for allreduce."""
    known = [name for name, each in ALGORITHMS.items() if each.collective is Collective.ALLREDUCE]
    names = kinds.several(where, "algorithm", text, WithSynthesised(known))
    for name in names:
        if ALGORITHMS[name].collective is not Collective.ALLREDUCE:
            choose(where, "algorithm", name, known)
    return names


def _own_algorithm(text: str, where: str) -> str:
    """Read the name of one job's algorithm."""
    names = _reducing(text, where)
    if len(names) > 1:
        raise ConfigError(f"{where}: must be one algorithm, got {text!r}")  # told as any list
    return names[0]


class JobSpec(Checked):
    """One job; times in picoseconds."""

    model: Annotated[Model, ValueReader(load_model, {"type": "string"})] = option(
        "", "Model: one of `ringleaf workload list`, or a YAML file"
    )
    ranks: Annotated[int, kinds.whole(1)] = option("4", "Number of hosts that train")
    iterations: kinds.AnyCount = option("3", "Number of iterations; a background job ignores it")
    start_ps: kinds.Time = option("0us", "Time at which the job starts", name="start")
    weight: kinds.Factor = option("1", "Weight of the job's flows, for schedulers that use weights")
    size: kinds.AnyFactor = option("", "Factor on the size of the model's gradients")
    compute: kinds.AnyFactor = option("", "Factor on the computing times of the model")
    deadline_ps: kinds.Time = option(
        "0us", "Time after its start by which it shall be over; 0us: no deadline", name="deadline"
    )
    algo: Annotated[str | None, ValueReader(_own_algorithm, {"type": "string"}, empty=True)] = (
        option("", "Algorithm that reduces its gradients; default: the one of all jobs")
    )
    background: kinds.Yes = option("no", "Keep the job running as long as other jobs run")

    @model_validator(mode="after")
    def _check_deadline(self, info: ValidationInfo) -> Self:
        if self.background and self.deadline_ps:
            raise ConfigError(
                f"{label(info, WHERE)}deadline: must be of a job that ends by itself, got "
                f"{exact_time(self.deadline_ps)} and background; leave out either of them"
            )
        return self


def _jobs(rows: Any, info: ValidationInfo) -> Any:
    """Read the jobs; error messages give a job's number."""
    where = label(info).removesuffix("jobs")
    if not isinstance(rows, list) or not rows:
        raise ConfigError(f"{where}jobs: must be a list of jobs, got {rows!r:.80}")
    return tuple(_job(f"{where}job {number}: ", row) for number, row in enumerate(rows, start=1))


def _job(where: str, row: Any) -> JobSpec:
    if isinstance(row, JobSpec):
        return row
    if not isinstance(row, dict) or "model" not in row:
        raise ConfigError(f"{where}must be a mapping with a 'model', got {row!r:.80}")
    return JobSpec.read(row, where)


def _room(text: str, where: str) -> int:
    return 0 if text == "0" else parse_size(text, where)


class JobsSpec(NetworkSpec):
    """An experiment with jobs: a run for each of `counts`, `algos`, `schedulers`, `entries`."""

    networks: ClassVar = NETWORKS
    jobs: Annotated[tuple[JobSpec, ...], BeforeValidator(_jobs)] = option(
        "", "Training jobs, each a mapping: model, ranks, iterations and others"
    )
    counts: kinds.Counts = option(
        "", "Jobs: number of jobs that run, from the first; default: all", flags="--counts"
    )
    algos: Annotated[tuple[str, ...], ValueReader(_reducing, listed=True)] = option(
        "ring", "Algorithms that reduce the gradients", flags="--algo", name="algo"
    )
    schedulers: Annotated[tuple[str, ...], kinds.several_of("scheduler", SCHEDULERS)] = option(
        "fifo",
        f"Jobs: flow schedulers, which order gradients on the network: {', '.join(SCHEDULERS)}",
        flags="--scheduler",
        name="scheduler",
    )
    entries: kinds.Counts = option(
        "",
        "Jobs: slots or aggregators of a switch, which all jobs share; default: all that it has",
        flags="--entries",
    )
    memory: Annotated[str, kinds.one_of("memory", (OWN, *ALLOCATORS))] = option(
        OWN,
        f"Jobs: who divides switches' memory: {OWN} (each system, before jobs start) or, whenever "
        f"one comes or ends, {', '.join(ALLOCATORS)}",
        flags="--memory",
    )
    placement: Annotated[str, kinds.one_of("placement", PLACEMENTS)] = option(
        "spread", "Jobs: spread (hosts are dealt to jobs in turn) or packed", flags="--placement"
    )
    servers: Annotated[int, kinds.whole(0)] = option(
        "1", "Number of servers of each job, on hosts besides its ranks", flags="--servers"
    )
    size: kinds.Factor = option("1", "Factor on the size of all models' gradients")
    compute: kinds.Factor = option(
        "1", "Jobs: factor on the computing times of all models", flags="--compute"
    )
    jitter: kinds.Probability = option(
        "0",
        "Jobs: share by which each pass of a rank may take longer, by chance: 5%. Without it, jobs "
        "that are alike stay in lockstep",
        flags="--jitter",
    )
    fuse_bytes: Annotated[int, ValueReader(_room)] = option(
        "0", "Jobs: size up to which small gradients are sent together", flags="--fuse", name="fuse"
    )
    data: Annotated[str, kinds.one_of("data", DATA)] = option(
        RANDOM,
        "Jobs: data of the gradients: random; or, with net=flow, none: nothing is added up or "
        "checked",
        flags="--data",
    )
    check: kinds.Yes = option(
        "yes",
        "Jobs: compare every sum with the reference; no: the first of each size of a job",
        flags="--check",
    )

    chakra: kinds.Yes = option(
        "no",
        "Jobs and workloads: write Chakra traces of what ran, a file per rank, with its times",
        flags="--chakra",
    )

    @property
    def needed_hosts(self) -> int:
        """The number of hosts that all jobs that run take together."""
        return sum(job.ranks + self.servers for job in self.jobs[: max(self.counts)])

    @property
    def has_data(self) -> bool:
        """Whether gradients have contents, whose sums are checked."""
        return self.data != NONE

    @model_validator(mode="after")
    def _check_data(self, info: ValidationInfo) -> Self:
        if not self.has_data and self.net != FLOW:
            raise ConfigError(
                f"{label(info, WHERE)}data: of jobs can be none with net={FLOW} only, got "
                f"{self.data!r} and net={self.net}; take data={RANDOM}"
            )
        return self

    @model_validator(mode="after")
    def _scale_models(self, info: ValidationInfo) -> Self:
        """Scale each job's model by its size and compute time, and check the jobs."""
        where = label(info, WHERE)
        jobs = tuple(self._scaled(job) for job in self.jobs)
        counts = self.counts or (len(jobs),)
        for count in counts:
            if count > len(jobs):
                raise ConfigError(f"{where}counts: must be at most {len(jobs)}, got {count}")
        if all(job.iterations is None for job in jobs[: min(counts)]):
            raise ConfigError(f"{where}jobs: must not all be background, got only background jobs")
        return self.model_copy(update={"jobs": jobs, "counts": counts})

    def _scaled(self, job: JobSpec) -> JobSpec:
        size = self.size if job.size is None else job.size
        compute = self.compute if job.compute is None else job.compute
        model = scaled(job.model, size, compute)
        iterations = None if job.background else job.iterations
        return job.model_copy(
            update={"model": model, "iterations": iterations, "size": 1.0, "compute": 1.0}
        )

    def plain(self) -> dict[str, Any]:
        """Return the spec as for JSON, with models by name."""
        jobs = [
            job.model_dump(exclude={"model", "size", "compute"}) | {"model": job.model.name}
            for job in self.jobs
        ]
        return super().plain() | {"jobs": jobs}
