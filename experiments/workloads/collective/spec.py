"""Experiments whose workload is a collective: algorithms, each at some sizes."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Annotated, Any, ClassVar, Self

from pydantic import model_validator

from ringleaf.collectives.compression.registry import COMPRESSORS, parse_compressor
from ringleaf.collectives.registry import ALGORITHMS as KNOWN
from ringleaf.core.units import exact_time, format_count, format_rate, parse_size
from ringleaf.errors import ConfigError
from ringleaf.experiments.spec import kinds
from ringleaf.experiments.spec.choices import FLOW, MAX_HOSTS, NETWORKS, VIRTUAL
from ringleaf.experiments.spec.kinds import (
    DATA,
    DTYPES,
    GIVEN,
    NONE,
    RANDOM,
    RANK_ORDERS,
    ValueReader,
    option,
)
from ringleaf.experiments.spec.network import NetworkSpec

ALGORITHMS = ("ring", "tree", "doubletree", "halvingdoubling", "blueconnect", "switchml")
"""The algorithms that are compared by default."""

MOST_QUEUE_PAIRS = 1024

_SWEEP = {"smallest": "min", "largest": "max", "factor": "factor"}

_As = Annotated[str, ValueReader(lambda text, where: text)]  # as it was typed
_Compressor = Annotated[str, kinds.checked(lambda text, where: text and parse_compressor(text))]


def _sizes(text: str, where: str) -> tuple[str, ...]:
    parts = re.split(r"\s*,\s*|\s+(?=\d)", text.strip().removesuffix(","))
    return tuple(part.strip() for part in parts)


MOST_S = 100_000
"""The most seconds that a rank's bytes may need on one link: 64-bit picoseconds end at 9.2 million.

An algorithm may need many times as long.
"""


class CollectiveSpec(NetworkSpec):
    """An experiment with a collective, every value checked and every default filled in."""

    networks: ClassVar = NETWORKS

    algos: Annotated[
        tuple[str, ...],
        kinds.several_of("algorithm", KNOWN, shown=False, files=KNOWN.files),
    ] = option(
        ",".join(ALGORITHMS),
        "Algorithms of one collective, or files with schedules, separated by commas: "
        f"{', '.join(KNOWN)}",
        flags="--algo",
        name="algo",
    )
    sizes: Annotated[tuple[str, ...] | None, ValueReader(_sizes, listed=True, empty=True)] = option(
        "", "Bytes per rank: 4MiB, 64K; several sizes: 1K,1M", flags="--size", name="size"
    )
    smallest: _As = option(
        "1K", "Smallest size of the sweep (nccl-tests' -b)", flags="--min -b", name="min"
    )
    largest: _As = option("16M", "Largest size of the sweep (-e)", flags="--max -e", name="max")
    factor: Annotated[int, kinds.whole(2)] = option(
        "4", "Factor from one size of the sweep to the next (-f)", flags="--factor -f"
    )
    servers: Annotated[int, kinds.whole(0, MAX_HOSTS)] = option(
        "0",
        "Number of servers: the last of the hosts, which have no rank and help the others",
        flags="--servers",
    )
    rank_order: Annotated[str, kinds.one_of("rank order", RANK_ORDERS)] = option(
        GIVEN,
        "Order of ranks on a ring or tree. given: by number; topology: neighbours are near one "
        "another, by the graph; random: by the seed",
        flags="--rank-order",
    )
    queue_pairs: Annotated[int, kinds.whole(1, MOST_QUEUE_PAIRS)] = option(
        "1",
        "Queue pairs from one rank to another, among which each message is cut; ROUTES=ecmp sends "
        "them by different ways",
        flags="--queue-pairs",
    )
    dtype: Annotated[str, kinds.one_of("element type", DTYPES)] = option(
        "float32", "Element type of the tensors: float32 or int32", flags="--dtype"
    )
    data: Annotated[str, kinds.one_of("data", DATA)] = option(
        RANDOM,
        "Data of the tensors: random; or none: sizes only, nothing is added up or checked",
        flags="--data",
    )
    density: kinds.Share = option(
        "100%", "Share of each rank's elements that are not zero: 1%", flags="--density"
    )
    cluster: Annotated[int, kinds.whole(1)] = option(
        "1",
        "Length of each run of non-zero elements; 1: elements are placed at random",
        flags="--cluster",
    )
    overlap: kinds.Share = option(
        "0%",
        "Share of the runs of non-zero elements that are at the same place on all ranks: 50%",
        flags="--overlap",
    )
    compress: _Compressor = option(
        "",
        "Compressor of each rank's tensor, whose codec writes messages: topk:1%, qsgd:127, "
        f"...: {', '.join(COMPRESSORS)}",
        flags="--compress",
    )
    skip: kinds.AnyShare = option(
        "",
        "Skip what repeats, a ring's steps or slots of switches that add, once times differ by no "
        "more than this: 0.1%. Hosts add up all data the same; default: every packet is simulated, "
        "and every message of flows, but of rings of tens of thousands (0% for those, too)",
        flags="--skip",
    )
    check_packets: kinds.Yes = option(
        "no",
        "net=flow: run packets as well, where that takes less than a minute, and print both times "
        "and the error of flows",
        flags="--check-packets",
    )
    explain: kinds.Yes = option(
        "no",
        "Explain each row: where its time beyond the bound went, and messages over time "
        "(docs/why.md). One thread simulates then",
        flags="--explain",
    )
    shrink_ps: kinds.AnyTime = option(
        "",
        "Time from when a host is lost for good ('h3 down at 20us' in faults) until the others "
        "have a communicator without it, and begin again: 1ms; default: the run ends with an error",
        flags="--shrink",
        name="shrink",
    )
    slots: kinds.AnyCount = option(
        "",
        "Slots, or packets in flight, per worker; default: as many as the links need",
        flags="--slots",
    )

    @cached_property
    def sizes_bytes(self) -> tuple[int, ...]:
        """The sizes, each once: those given, or from the smallest to the largest."""
        if self.sizes is not None:
            return tuple(dict.fromkeys(self._size("size", text) for text in self.sizes))
        size, last = self._size("min", self.smallest), self._size("max", self.largest)
        if last < size:
            raise ConfigError(f"max: must not be below min ({self.smallest}), got {self.largest!r}")
        sizes = []
        while size <= last:
            sizes.append(size)
            size *= self.factor
        return tuple(sizes)

    def _size(self, where: str, text: str) -> int:
        size_bytes, unit_bytes = parse_size(text, where), DTYPES[self.dtype]
        if size_bytes < unit_bytes or size_bytes % unit_bytes:
            raise ConfigError(
                f"{where}: must be whole elements of {format_count(unit_bytes, 'byte')} and at "
                f"least one, got {text!r}"
            )
        if 8 * size_bytes > MOST_S * self.rate_bps:
            raise ConfigError(
                f"{where}: needs more than {MOST_S} s at {format_rate(self.rate_bps)}, got "
                f"{text!r}; take less, or a higher rate"
            )
        return size_bytes

    @model_validator(mode="after")
    def _check_sizes(self) -> Self:
        swept = [name for field, name in _SWEEP.items() if field in self.model_fields_set]
        if self.sizes is not None and swept:
            raise ConfigError(
                f"size: can't go with {', '.join(swept)}, got {','.join(self.sizes)!r}; give either"
            )
        self.sizes_bytes  # noqa: B018 - which says what is wrong with them
        return self

    @property
    def has_data(self) -> bool:
        """Whether tensors have contents, which are checked in the end."""
        return self.data != NONE

    @model_validator(mode="after")
    def _check_data(self) -> Self:
        if self.has_data:
            return self
        needing = [
            f"algo={name}"
            for name, algorithm in ((name, KNOWN[name]) for name in self.algos)
            if algorithm.sparse or (algorithm.in_network and self.net != FLOW)
        ]
        if self.density < 1:
            needing.append("density")
        if self.compress:
            needing.append("compress")
        if self.is_live:
            needing.append(f"net={self.net}")
        if needing:
            raise ConfigError(
                f"data: can't be none with {needing[0]}, got {self.data!r}; take data={RANDOM}"
            )
        return self

    @model_validator(mode="after")
    def _check_compress(self) -> Self:
        if not self.compress or self.dtype == "float32":
            return self
        if not getattr(parse_compressor(self.compress), "takes_integers", True):
            raise ConfigError(
                f"compress: {self.compress} needs elements of type float32, got {self.dtype!r}; "
                "leave out dtype"
            )
        return self

    @model_validator(mode="after")
    def _check_shrink(self) -> Self:
        if self.shrink_ps is None:
            return self
        got = f"got shrink={exact_time(self.shrink_ps) if self.shrink_ps else 0}"
        if self.explain or self.circuits is not None:
            name = "explain" if self.explain else "circuits"
            raise ConfigError(
                f"shrink: {name} has one communicator from start to end, {got}; leave out either "
                "of them"
            )
        methods = [name for name in self.algos if KNOWN[name].method is not None]
        if methods:
            raise ConfigError(
                f"shrink: algo={methods[0]} has several exchanges, whose ranks stay, {got}; leave "
                "it out"
            )
        return self

    @model_validator(mode="after")
    def _check_methods(self) -> Self:
        methods = [name for name in self.algos if KNOWN[name].method is not None]
        clashes = [("dtype", self.dtype)] if self.dtype != "float32" else []
        clashes += [
            (name, value) for name in ("compress", "skip") if (value := getattr(self, name))
        ]
        if methods and clashes:
            name, value = clashes[0]
            raise ConfigError(
                f"{name}: can't go with algo={methods[0]}, which chooses elements of type float32 "
                f"itself, got {value!r}; leave it out"
            )
        return self

    @model_validator(mode="after")
    def _check_skip(self) -> Self:
        if self.skip and self.unskippable:
            raise ConfigError(
                f"skip: steps do not repeat, or are wanted whole, with {self.unskippable[0]}, got "
                f"{self.skip:.3%}; leave out either"
            )
        return self

    @property
    def unskippable(self) -> list[str]:
        """The options with which nothing can be skipped."""
        asked = [name for name in ("loss", "duplicate", "reorder") if getattr(self, name)]
        asked += ["cross_traffic"] * (self.cross_traffic is not None)
        asked += ["pcap"] * self.pcap + ["record"] * (self.record is not None)
        asked += [f"net={self.net}"] * (self.net not in (VIRTUAL, FLOW))
        return asked + ["ecn"] * self.ecn.is_random

    @model_validator(mode="after")
    def _check_comparison(self) -> Self:
        if self.check_packets and self.net != FLOW:
            raise ConfigError(f"check_packets: is for net={FLOW}, got {self.net!r}; leave it out")
        return self

    @model_validator(mode="after")
    def _check_explain(self) -> Self:
        if not self.explain:
            return self
        if self.net != VIRTUAL:
            raise ConfigError(
                f"explain: needs the packets' times in virtual time, got net={self.net!r}; "
                f"take net={VIRTUAL}"
            )
        methods = [name for name in self.algos if KNOWN[name].method is not None]
        if methods:
            raise ConfigError(
                f"explain: tells of one exchange, got algo={methods[0]}, which has several; "
                "leave out either"
            )
        if self.skip:
            raise ConfigError(
                f"explain: needs all packets, got skip={self.skip:.3%}; leave out either"
            )
        return self

    def plain(self) -> dict[str, Any]:
        """Return the spec as for JSON, with sizes in bytes."""
        typed = ("sizes", "smallest", "largest", "factor")
        values = {name: value for name, value in super().plain().items() if name not in typed}
        return values | {"sizes_bytes": list(self.sizes_bytes)}
