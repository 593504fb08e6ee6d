"""Experiments whose workload is training jobs, beside each other on one network.

A YAML file, in which lists of `counts`, `algo`, `order` and `entries` are swept:

    topo: fattree
    jobs:
      - {model: resnet50, ranks: 3, iterations: 3, start: 0us}
      - {model: vgg16, ranks: 3, iterations: 3, start: 100us, weight: 2}
    counts: [1, 2]          # how many of the jobs, from the first
    algo: [ring, ps, switchml, atp]
    order: [fifo, layers, tensorexpress, jpas]
    entries: [64, 256]      # slots or aggregators of a switch that all jobs share
"""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BeforeValidator, ValidationInfo, model_validator

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Collective
from ringleaf.errors import ConfigError
from ringleaf.experiments.spec import kinds
from ringleaf.experiments.spec.kinds import Text, label, option
from ringleaf.experiments.spec.network import VIRTUAL, WHERE, Checked, NetworkSpec
from ringleaf.hosts.scheduling.registry import SCHEDULERS
from ringleaf.hosts.training.model import Model, load_model, scaled
from ringleaf.units import parse_size

PLACEMENTS = ("spread", "packed")


class JobSpec(Checked):
    """One job; times in picoseconds."""

    model: Annotated[Model, Text(lambda text, where: load_model(text), {"type": "string"})] = (
        option("", "one of `ringleaf workload list`, or a YAML file")
    )
    ranks: Annotated[int, kinds.whole(1)] = option("4", "hosts that train")
    iterations: kinds.AnyCount = option("3", "how many; None in the background")
    start_ps: kinds.Time = option("0us", "when it begins", name="start")
    weight: kinds.Factor = option("1", "of its flows, for schedulers that have weights")
    size: kinds.AnyFactor = option("", "gradients are so many times as large as the model's")
    compute: kinds.AnyFactor = option("", "and computing takes so many times as long")
    background: kinds.Yes = option("no", "goes on as long as others do")


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


def _reducing(text: str, where: str) -> tuple[str, ...]:
    """Read names of algorithms for allreduce."""
    known = [name for name, each in ALGORITHMS.items() if each.collective is Collective.ALLREDUCE]
    return kinds.several(where, "algorithm", text, known)


class JobsSpec(NetworkSpec):
    """An experiment with jobs: every combination of `counts`, `algos`, `orders` and `entries`."""

    jobs: Annotated[tuple[JobSpec, ...], BeforeValidator(_jobs)] = option(
        "", "models, ranks, iterations and the like"
    )
    counts: kinds.Counts = option(
        "", "jobs: how many of them, from the first; all if nothing is said", flags="--counts"
    )
    algos: Annotated[tuple[str, ...], Text(_reducing, listed=True)] = option(
        "ring", "how they reduce gradients", flags="--algo", name="algo"
    )
    orders: Annotated[tuple[str, ...], kinds.several_of("order", SCHEDULERS)] = option(
        "fifo",
        f"jobs: who is first on the network: {', '.join(SCHEDULERS)}",
        flags="--order",
        name="order",
    )
    entries: kinds.Counts = option(
        "",
        "jobs: slots or aggregators of a switch, for all together; all it has if nothing is said",
        flags="--entries",
    )
    placement: Annotated[str, kinds.one_of("placement", PLACEMENTS)] = option(
        "spread", "jobs: hosts are dealt to them in turn, or packed", flags="--placement"
    )
    servers: Annotated[int, kinds.whole(0)] = option(
        "1", "hosts of each job that are servers", flags="--servers"
    )
    size: kinds.Factor = option("1", "gradients are so many times as large as their models'")
    compute: kinds.Factor = option(
        "1", "jobs: computing takes so many times as long", flags="--compute"
    )
    fuse_bytes: Annotated[int, Text(_room)] = option(
        "0", "jobs: small gradients go together, up to this size", flags="--fuse", name="fuse"
    )
    check: kinds.Yes = option("yes", "jobs: compare every sum with the reference", flags="--check")

    @property
    def needed_hosts(self) -> int:
        """The number of hosts that all jobs take together."""
        return sum(job.ranks + self.servers for job in self.jobs)

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
            raise ConfigError(f"{where}jobs: must not all be background, got none that ends")
        if self.net != VIRTUAL:
            raise ConfigError(
                f"{where}net: jobs run only in virtual time, got {self.net!r}; live, hosts are "
                "processes, and none of them orders the jobs of all yet"
            )
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
