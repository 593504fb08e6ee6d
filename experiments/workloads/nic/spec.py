"""Experiments whose workload is computed by NICs, and by hosts for comparison."""

from __future__ import annotations

from typing import Annotated, ClassVar, Self

from pydantic import ValidationInfo, model_validator

from ringleaf.core.units import parse_flops, parse_time
from ringleaf.errors import ConfigError
from ringleaf.experiments.spec import kinds
from ringleaf.experiments.spec.checked import WHERE
from ringleaf.experiments.spec.kinds import ValueReader, label, option, whole_number
from ringleaf.experiments.spec.network import NetworkSpec

POLICIES = ("lru", "lfu")
NO, YES = POOLS = ("no", "yes")
UPDATE, INVALIDATE = COHERENCES = ("update", "invalidate")
MOST_ITERATIONS = 1000
MOST_BYTES = 4 << 30
"""The most memory of all ranks' NICs together."""


def _sizes(text: str, where: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    sizes = tuple(whole_number(where, part, 0) for part in parts)
    if not sizes:
        raise ConfigError(f"{where}: must be one number at least, got {text!r}; like 0,64,256")
    return sizes


def _times(text: str, where: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise ConfigError(f"{where}: must be one time at least, got {text!r}; like 5us,20us")
    return tuple(dict.fromkeys(parse_time(part, where) for part in parts))


def _rates(text: str, where: str) -> tuple[float, ...]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise ConfigError(f"{where}: must be one rate at least, got {text!r}; like 1T,4T")
    return tuple(dict.fromkeys(parse_flops(part, where) for part in parts))


def _exponent(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 10:
        raise ConfigError(f"{where}: must be a number from 0 to 10, got {text!r}")
    return value


class NicSpec(NetworkSpec):
    """The options of any workload on NICs."""

    defaults: ClassVar = {"topo": "leafspine,leaves=2,spines=2,hosts=4"}

    offload: Annotated[str, ValueReader(lambda text, where: text)] = option(
        "", "Workload of NICs: one of `ringleaf nic --help`"
    )

    @model_validator(mode="after")
    def _check_nic(self, info: ValidationInfo) -> Self:
        where = label(info, WHERE)
        refused = {"pcap": self.pcap, "record": self.record is not None}
        for name, is_set in refused.items():
            if is_set:
                got = getattr(self, name)
                raise ConfigError(
                    f"{where}{name}: not with NICs yet, got {str(got)!r}; leave it out"
                )
        return self

    @property
    def needed_hosts(self) -> int:
        """The number of hosts that must take part."""
        return 2


class EmbeddingSpec(NicSpec):
    """The exchange of embedding vectors, without NICs and with caches of several sizes."""

    rows: Annotated[int, kinds.whole(2, 1 << 24)] = option(
        "4096", "Rows of the embedding table", flags="--rows"
    )
    dim: Annotated[int, kinds.whole(1, 4096)] = option(
        "64", "Elements of a vector, float32", flags="--dim"
    )
    bags: Annotated[int, kinds.whole(1, 1 << 16)] = option(
        "32", "Bags of each rank's batch; the vectors of a bag are added up", flags="--bags"
    )
    per_bag: Annotated[int, kinds.whole(1, 1 << 12)] = option(
        "16", "Look-ups of each bag", flags="--per-bag"
    )
    zipf: Annotated[float, ValueReader(_exponent)] = option(
        "1.05", "Exponent of Zipf's law, by which rows are looked up; a choice", flags="--zipf"
    )
    caches: Annotated[tuple[int, ...], ValueReader(_sizes, listed=True)] = option(
        "0,64,256,1024,4096",
        "Rows of other ranks that a NIC caches: a run for each",
        flags="--cache",
        name="cache",
    )
    policies: Annotated[tuple[str, ...], kinds.several_of("policy", POLICIES)] = option(
        "lru,lfu", "Policies of caches: lru, lfu", flags="--policy", name="policy"
    )
    pools: Annotated[tuple[str, ...], kinds.several_of("answer", POOLS)] = option(
        "no,yes",
        "Whether owners' NICs add up the vectors of a bag: no, yes, or both, a run for each",
        flags="--pool",
        name="pool",
    )
    coherence: Annotated[str, kinds.one_of("answer", COHERENCES)] = option(
        UPDATE,
        "Copies in caches at an iteration's end: update or invalidate those that have changed",
        flags="--coherence",
    )
    local_cache: Annotated[int, kinds.whole(0)] = option(
        "0", "Rows of its own rank that a NIC caches", flags="--local-cache"
    )
    row_ps: kinds.Time = option(
        "0",
        "Time to reach a row in the host's memory, one after the other; a choice",
        flags="--row-time",
        name="row_time",
    )
    host_latency_ps: kinds.Delay = option(
        "10us",
        "Time from a message's arrival to the program, where the host computes in place of its "
        "NIC; a choice, 5us to 20us are usual",
        flags="--host-latency",
        name="host_latency",
    )
    iterations: Annotated[int, kinds.whole(1, MOST_ITERATIONS)] = option(
        "4", "Iterations that are measured", flags="--iterations"
    )
    warm_up: Annotated[int, kinds.whole(0, MOST_ITERATIONS)] = option(
        "2", "Iterations before these, which fill caches", flags="--warm-up"
    )


class PipelineSpec(NicSpec):
    """A network of integers whose layers are on neighbouring hosts, with and without NICs."""

    widths: Annotated[tuple[int, ...], ValueReader(_sizes, listed=True)] = option(
        "256,512,512,512,512,512,512,512,64",
        "Elements of a sample, then of each layer's output; a layer for each host at least",
        flags="--widths",
    )
    samples: Annotated[int, kinds.whole(1, 1 << 16)] = option(
        "64", "Samples that go through the network", flags="--samples"
    )
    tiles: Annotated[tuple[int, ...], ValueReader(_sizes, listed=True)] = option(
        "1,4,16,64", "Samples of a message: a run for each", flags="--tile", name="tile"
    )
    product_rates: Annotated[tuple[float, ...], ValueReader(_rates, listed=True)] = option(
        "4T",
        "Multiplications per second of a NIC, and of a host: a run for each; a choice. They are "
        "divided by SCALE, as rates of links are",
        flags="--products",
        name="products",
    )
    latencies: Annotated[tuple[int, ...], ValueReader(_times, listed=True)] = option(
        "5us,10us,20us",
        "Time from a message's arrival to the program, where the host computes in place of its "
        "NIC: a run for each; a choice",
        flags="--host-latency",
        name="host_latency",
    )
