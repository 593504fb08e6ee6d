"""What an experiment with training jobs is made of.

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

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ringleaf.disciplines import parse_scheduler
from ringleaf.errors import ConfigError, choose
from ringleaf.experiments.options import LANES, MTUS, PROGRAMS, ROUTES, parse_yes
from ringleaf.hosts.scheduling.registry import SCHEDULERS
from ringleaf.hosts.training.model import Model, load_model, scaled
from ringleaf.marking import Marking, parse_marking
from ringleaf.topologies.injection import divide_ports
from ringleaf.units import parse_fraction, parse_rate, parse_size, parse_time
from ringleaf.yaml_file import read_yaml

PLACEMENTS = ("spread", "packed")

LARGEST_FACTOR = 1e6
"""The largest weight, and factor of sizes and compute times: products don't overflow."""

_JOB_KEYS = ("model", "ranks", "iterations", "start", "weight", "size", "compute", "background")
_KEYS: dict[str, Any] = {
    "topo": "fattree",
    "rate": "100G",
    "delay": "1us",
    "switch_delay": "0",
    "host_delay": "0",
    "message_overhead": "0",
    "inject": None,
    "routes": "dealt",
    "jobs": None,
    "counts": None,  # all jobs
    "algo": ["ring"],
    "order": ["fifo"],
    "placement": "spread",
    "servers": 1,
    "size": 1.0,
    "compute": 1.0,
    "fuse": "0",
    "lanes": 256,
    "mtu": 4096,
    "entries": None,
    "queue": None,
    "ecn": 0,
    "scheduler": "strict",
    "program": "forward",
    "loss": 0.0,
    "seed": 1,
    "check": True,
    "pcap": False,
}


@dataclass(frozen=True, slots=True)
class JobSpec:
    """One job; times in picoseconds."""

    model: Model
    ranks: int
    iterations: int | None  # None: background, as long as others run
    start_ps: int
    weight: float


@dataclass(frozen=True, slots=True)
class JobsSpec:
    """The experiment: every combination of `counts`, `algos`, `orders` and `entries`."""

    topo: str
    rate_bps: int
    delay_ps: int
    switch_delay_ps: int
    host_delay_ps: int
    message_overhead_ps: int
    jobs: tuple[JobSpec, ...]
    counts: tuple[int, ...]
    algos: tuple[str, ...]
    orders: tuple[str, ...]
    routes: str
    placement: str
    servers: int  # hosts of each job that are servers
    fuse_bytes: int
    lanes: int
    mtu_bytes: int
    entries: tuple[int | None, ...]  # of each switch, for all jobs together; None: all it has
    queue_bytes: int | None
    ecn: Marking
    scheduler: str  # of the switches' queues
    program: str  # of switches that aggregate nothing
    loss: float
    seed: int
    check: bool
    pcap: bool  # capture every port

    @property
    def hosts(self) -> int:
        """Hosts that all jobs take together."""
        return sum(job.ranks + self.servers for job in self.jobs)


def read_jobs(path: Path) -> JobsSpec:
    """Read an experiment.

    Raises:
        ConfigError: Saying what is wrong with the file.
    """
    where = f"spec {path}"
    data = read_yaml(path, "spec")
    if not isinstance(data, dict) or not isinstance(data.get("jobs"), list) or not data["jobs"]:
        raise ConfigError(f"{where}: must be a mapping with a list 'jobs', got {data!r:.80}")
    return parse_jobs(data, where)


def parse_jobs(data: Mapping[str, Any], where: str) -> JobsSpec:
    """The experiment that a mapping describes.

    Raises:
        ConfigError: Naming the key, what was got and what is valid.
    """
    for key in data:
        choose(where, "key", str(key), _KEYS)
    given = _KEYS | dict(data)
    jobs = tuple(_job(f"{where}: job {i + 1}", row, given) for i, row in enumerate(data["jobs"]))
    counts = tuple(_whole(where, "counts", n, 1, len(jobs)) for n in _list(given["counts"]))
    if all(job.iterations is None for job in jobs[: min(counts, default=None)]):
        raise ConfigError(f"{where}: jobs must not all be background, got none that ends")
    topo, rate_bps = _topology(where, given, "rate" in data)
    return JobsSpec(
        topo=topo,
        rate_bps=rate_bps,
        **{
            f"{key}_ps": parse_time(str(given[key]), f"{where}: {key}")
            for key in ("delay", "switch_delay", "host_delay", "message_overhead")
        },
        jobs=jobs,
        counts=counts or (len(jobs),),
        algos=_algorithms(where, _list(given["algo"])),
        orders=tuple(choose(where, "order", str(n), SCHEDULERS) for n in _list(given["order"])),
        routes=choose(where, "routes", str(given["routes"]), ROUTES),
        placement=choose(where, "placement", str(given["placement"]), PLACEMENTS),
        servers=_whole(where, "servers", given["servers"], 0),
        fuse_bytes=parse_size(str(given["fuse"]), f"{where}: fuse") if given["fuse"] != "0" else 0,
        lanes=_one_of(where, "lanes", given["lanes"], LANES),
        mtu_bytes=_one_of(where, "mtu", given["mtu"], MTUS),
        entries=tuple(_whole(where, "entries", n, 1) for n in _list(given["entries"])) or (None,),
        queue_bytes=given["queue"] and parse_size(str(given["queue"]), f"{where}: queue"),
        ecn=parse_marking(str(given["ecn"]), f"{where}: ecn"),
        scheduler=_scheduler(where, str(given["scheduler"])),
        program=choose(where, "program", str(given["program"]), PROGRAMS),
        loss=parse_fraction(str(given["loss"]), f"{where}: loss"),
        seed=_whole(where, "seed", given["seed"], 0),
        check=parse_yes(f"{where}: check", str(given["check"])),
        pcap=parse_yes(f"{where}: pcap", str(given["pcap"])),
    )


def _topology(where: str, given: Mapping[str, Any], has_rate: bool) -> tuple[str, int]:
    """The topology's text, and its links' rate: as given, or as `inject` makes it."""
    if given["inject"] is None:
        return str(given["topo"]), parse_rate(str(given["rate"]), f"{where}: rate")
    if has_rate:
        raise ConfigError(f"{where}: inject can't go with rate, got {given['inject']!r}")
    inject_bps = parse_rate(str(given["inject"]), f"{where}: inject")
    return divide_ports(str(given["topo"]), inject_bps)


def _list(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _job(where: str, row: Any, given: Mapping[str, Any]) -> JobSpec:
    if not isinstance(row, dict) or "model" not in row:
        raise ConfigError(f"{where}: must be a mapping with a 'model', got {row!r}")
    for key in row:
        choose(where, "key", str(key), _JOB_KEYS)
    size, compute = (_number(where, key, row.get(key, given[key])) for key in ("size", "compute"))
    iterations = None
    if not row.get("background", False):
        iterations = _whole(where, "iterations", row.get("iterations", 3), 1)
    return JobSpec(
        scaled(load_model(str(row["model"])), size, compute),
        _whole(where, "ranks", row.get("ranks", 4), 1),
        iterations,
        parse_time(str(row.get("start", "0us")), f"{where}: start"),
        _number(where, "weight", row.get("weight", 1.0)),
    )


def _algorithms(where: str, names: list[Any]) -> tuple[str, ...]:
    from ringleaf.collectives.registry import ALGORITHMS
    from ringleaf.collectives.schedule import Collective

    known = {n: a for n, a in ALGORITHMS.items() if a.collective is Collective.ALLREDUCE}
    return tuple(choose(where, "algo", str(name), known) for name in names)


def _one_of(where: str, key: str, value: Any, valid: tuple[int, ...]) -> int:
    return int(choose(f"{where}: {key}", "value", str(value), [str(each) for each in valid]))


def _scheduler(where: str, text: str) -> str:
    parse_scheduler(text, f"{where}: scheduler")
    return text


def _whole(where: str, key: str, value: Any, least: int, most: int | None = None) -> int:
    limit = "" if most is None else f" and at most {most}"
    if not isinstance(value, int) or value < least or (most is not None and value > most):
        raise ConfigError(
            f"{where}: {key} must be a whole number, at least {least}{limit}, got {value!r}"
        )
    return value


def _number(where: str, key: str, value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= LARGEST_FACTOR:  # nor is it not a number
        raise ConfigError(
            f"{where}: {key} must be a number from 0 to {LARGEST_FACTOR:g}, got {value!r}"
        )
    return float(value)
