"""Experiments whose workload is a graph of work: a model in parallel, or an execution trace.

workload: llm
preset: gpt13b          # sizes that are not given are the preset's
micro_batches: 4
layers_per_stage: 2

workload: trace
files: traces/gpt.*.et  # Chakra, a file per rank; or a GOAL file
algo: halvingdoubling, alltoall

workload: flows
pattern: incast         # or files: flows.csv
cc: [dctcp, swift]

workload: incast        # the same: a preset, a pattern or a file, as the command takes it
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import ValidationInfo, model_validator

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.synthesis.names import WithSynthesised
from ringleaf.core.faults import SLOW, NetworkFault
from ringleaf.core.files import find_file
from ringleaf.core.units import parse_flops, parse_fraction, parse_size
from ringleaf.errors import ConfigError, choose
from ringleaf.experiments.spec import kinds
from ringleaf.experiments.spec.checked import WHERE
from ringleaf.experiments.spec.choices import NETWORKS
from ringleaf.experiments.spec.kinds import DATA, ValueReader, label, option
from ringleaf.experiments.spec.network import NetworkSpec
from ringleaf.experiments.workloads.graph.names import FLOWS, LLM, NAMES, TRACE, WORKLOADS
from ringleaf.hosts.workload.flow_sizes import DISTRIBUTIONS, read_distribution
from ringleaf.hosts.workload.flows import AT_RANDOM, PATTERNS, Traffic
from ringleaf.hosts.workload.llm.pipeline import SCHEDULES
from ringleaf.hosts.workload.llm.presets import PRESETS, Preset
from ringleaf.hosts.workload.llm.sizes import Split, TransformerSizes, check

PACKED, SCATTERED = PLACEMENTS = ("packed", "scattered")

AUTO = "auto"

RANKS = 32
"""Ranks of a pattern of flows, by default."""

LOAD = 0.3
"""The load of patterns that draw sizes, by default."""

MOST_FLOWS = 100_000


def _kind(text: str, where: str) -> str:
    return choose(where, "workload", text, WORKLOADS)


def _sizes(text: str, where: str) -> tuple[int, ...] | str:
    """Read sizes of flows, or the name or the file of their distribution."""
    if text in DISTRIBUTIONS or find_file(text):
        return text
    sizes = tuple(
        parse_size(each.strip(), where) for each in text.strip().removesuffix(",").split(",")
    )
    if min(sizes) < 1:
        raise ConfigError(f"{where}: sizes must be 1 B or more, got {text!r}")
    return sizes


def _load(text: str, where: str) -> float:
    load = parse_fraction(text, where)
    if not load:
        raise ConfigError(f"{where}: must be above 0, got {text!r}; write it like 30%")
    return load


def _algorithms(text: str, where: str) -> tuple[str, ...]:
    """Read names of algorithms, of a different collective each."""
    names = kinds.several(where, "algorithm", text, WithSynthesised(list(ALGORITHMS)))
    taken: dict[object, str] = {}
    for name in names:
        other = taken.setdefault(ALGORITHMS[name].collective, name)
        if other != name:
            raise ConfigError(
                f"{where}: one algorithm for each collective, got {other!r} and {name!r} for "
                f"{ALGORITHMS[name].collective.value}"
            )
    return names


def _count(help: str, flags: str) -> Any:
    return option("", f"Models: {help}; default: the preset's", flags=flags)


DRAWN = ("flow_sizes", "flows", "interval")
"""Options of flows that a pattern has, and no file."""


class WorkloadSpec(NetworkSpec):
    """An experiment that replays a graph of work, every value checked and defaults filled in."""

    networks: ClassVar[Sequence[str]] = NETWORKS
    defaults: ClassVar = {"topo": "leafspine"}

    workload: Annotated[str, ValueReader(_kind, {"type": "string", "examples": list(NAMES)})] = (
        option(
            LLM,
            "Workload: llm (a model in parallel, by its sizes), trace (files of a trace) or flows "
            "(a pattern, or a file of flows); or a preset, a pattern or a file, as "
            "`ringleaf workload` takes it",
        )
    )
    files: Annotated[str, ValueReader(lambda text, where: text)] = option(
        "",
        "Traces: a GOAL file, or Chakra's files, one per rank: gpt.*.et. Flows: a CSV file with "
        "source, target, size, start",
    )
    pattern: Annotated[str, ValueReader(lambda text, where: text)] = option(
        "", f"Flows: {', '.join(PATTERNS)}; default: incast, unless there is a file"
    )
    ranks: kinds.AnyCount = option("", f"Flows: ranks; default: {RANKS}", flags="--ranks")
    flow_sizes: Annotated[tuple[int, ...] | str, ValueReader(_sizes, listed=True)] = option(
        "64KiB,64KiB,64KiB,1MiB",
        "Flows: sizes, which go round among the flows in a random order; or a distribution that "
        f"they are drawn from: {', '.join(DISTRIBUTIONS)}, or a file with sizes and percentages",
        flags="--flow-sizes",
    )
    load: Annotated[float | None, ValueReader(_load, empty=True)] = option(
        "",
        "Flows: mean share of their links' rate that hosts send, in place of an interval: 30%; "
        f"default: 30% for {' and '.join(DISTRIBUTIONS)}",
        flags="--load",
    )
    flows: Annotated[int, kinds.whole(1, MOST_FLOWS)] = option(
        "1000", "Flows: the number of them, if their pattern is random", flags="--flows"
    )
    interval: kinds.SomeTime = option(
        "1us",
        "Flows: mean time between two starts, if their pattern is random",
        flags="--interval",
        name="interval",
    )
    groups: Annotated[str, ValueReader(lambda text, where: text)] = option(
        "",
        "Traces: JSON file of Chakra's process groups; default: NAME.groups.json or "
        "comm_group.json beside the trace",
        flags="--groups",
    )
    preset: Annotated[str, ValueReader(lambda text, where: text)] = option(
        "", f"Models: sizes to begin with: {', '.join(PRESETS)}"
    )
    layers: kinds.AnyCount = _count("number of layers", "--layers")
    hidden: kinds.AnyCount = _count("width of a token's activation", "--hidden")
    heads: kinds.AnyCount = _count("attention heads", "--heads")
    kv_heads: kinds.AnyCount = _count("heads of keys and values", "--kv-heads")
    ffn: kinds.AnyCount = _count("inner width of the feed-forward network", "--ffn")
    ffn_matrices: kinds.AnyCount = _count("its matrices: 2, or 3 if it is gated", "--ffn-matrices")
    sequence: kinds.AnyCount = _count("tokens of a sequence", "--sequence")
    experts: kinds.AnyCount = _count("experts of each layer", "--experts")
    topk: kinds.AnyCount = _count("experts that each token is sent to", "--topk")
    tp: kinds.AnyCount = _count("ranks of tensor parallelism", "--tp")
    pp: kinds.AnyCount = _count("ranks of pipeline parallelism", "--pp")
    dp: kinds.AnyCount = _count("replicas of data parallelism", "--dp")
    ep: kinds.AnyCount = _count("of these, replicas that share experts", "--ep")
    expert_parts: kinds.AnyCount = _count(
        "parts in which tokens go to experts and back", "--expert-parts"
    )
    cp: kinds.AnyCount = _count("ranks that share each sequence", "--cp")
    micro_batch: kinds.AnyCount = _count("sequences of a micro-batch", "--micro-batch")
    micro_batches: kinds.AnyCount = _count("micro-batches of an iteration", "--micro-batches")
    schedule: Annotated[str, ValueReader(lambda text, where: text)] = option(
        "", f"Models: the pipeline's: {', '.join(SCHEDULES)}; default: 1f1b", flags="--schedule"
    )
    chunks: kinds.AnyCount = _count("parts of the model on a rank, if interleaved", "--chunks")
    zero: Annotated[int | None, kinds.whole(0, 3, empty=True)] = option(
        "", "Models: stage of ZeRO, 0 to 3; default: the preset's", flags="--zero"
    )
    sequence_parallel: Annotated[
        bool | None, ValueReader(lambda text, where: kinds.parse_yes(where, text), empty=True)
    ] = option(
        "",
        "Models: yes: tensor parallelism by reduce-scatters and all-gathers",
        flags="--sequence-parallel",
    )
    scatter_gather: Annotated[
        bool | None, ValueReader(lambda text, where: kinds.parse_yes(where, text), empty=True)
    ] = option(
        "",
        "Models: yes: each rank of tensor parallelism sends its part of an activation only",
        flags="--scatter-gather",
    )
    layers_per_stage: kinds.AnyCount = option(
        "",
        "Models: layers of each stage that are simulated; default: all",
        flags="--layers-per-stage",
    )
    flops: Annotated[float | None, ValueReader(parse_flops, empty=True)] = option(
        "",
        "Operations per second of a rank, as it really computes: 150T. Traces: for computations "
        "that have operations and no time",
        flags="--flops",
    )
    eager_limit: kinds.AnySize = option(
        "",
        "Models and traces: the longest message that is eager, and leaves when its sender has "
        "reached it; longer ones wait for their receivers (rendezvous); default: all are eager",
        flags="--eager-limit",
    )
    algos: Annotated[tuple[str, ...], ValueReader(_algorithms, listed=True)] = option(
        "ring",
        "Algorithms, one for each collective at most; collectives without one have their usual",
        flags="--algo",
        name="algo",
    )
    data: Annotated[str, kinds.one_of("data", (AUTO, *DATA))] = option(
        AUTO,
        "Data of messages: random, and all results are checked; none: sizes only; auto: random "
        "for small workloads",
        flags="--data",
    )
    placement: Annotated[str, kinds.one_of("placement", PLACEMENTS)] = option(
        PACKED,
        "Place of ranks: packed (in their order, so neighbours share switches) or scattered "
        "(at random, by the seed)",
        flags="--placement",
    )

    chakra: kinds.Yes = option(
        "no", "Write Chakra traces of what ran: a file per rank, with its times", flags="--chakra"
    )

    @model_validator(mode="after")
    def _check_workload(self, info: ValidationInfo) -> Self:
        where = label(info, WHERE)
        self._check_flows(where)
        if self.workload == FLOWS:
            self._refuse_sizes(where, "flows")
        elif self.workload == TRACE:
            if not self.files:
                raise ConfigError(f"{where}files: a trace has files, got none; like gpt.*.et")
            self._refuse_sizes(where, "a trace")
        else:
            for name in ("files", "groups"):
                if getattr(self, name):
                    raise ConfigError(
                        f"{where}{name}: are of traces, got {getattr(self, name)!r}; take "
                        "workload: trace"
                    )
            sizes, split = self.model_sizes(where)
            check(sizes, split, where)
        return self

    @property
    def network_faults(self) -> tuple[NetworkFault, ...]:
        """The faults that are the network's: hosts that are slow are the replay's."""
        return tuple(each for each in self.faults if each.kind != SLOW)

    def _check_flows(self, where: str) -> None:
        """Check the options of flows, and refuse them for other workloads."""
        if self.workload != FLOWS:
            own = ("pattern", "ranks", *DRAWN, "load")
            for name in (name for name in own if name in self.model_fields_set):
                if getattr(self, name) and (name, self.workload) != ("ranks", TRACE):
                    raise ConfigError(
                        f"{where}{name}: is of flows, got {getattr(self, name)!r} for workload: "
                        f"{self.workload}; leave it out"
                    )
            return
        if self.eager_limit is not None:
            raise ConfigError(
                f"{where}eager_limit: is of models and traces, got {self.eager_limit!r} for "
                "workload: flows, all of which are eager; leave it out"
            )
        drawn = [name for name in DRAWN if name in self.model_fields_set]
        if self.files and (self.pattern or self.ranks or drawn):
            names = " or ".join(("a pattern", "ranks", *drawn))
            raise ConfigError(
                f"{where}files: has the flows and their ranks, got {self.files!r} and {names}; "
                "leave these out"
            )
        for name in ("groups", "flops"):
            if getattr(self, name):
                raise ConfigError(
                    f"{where}{name}: is of traces, got {getattr(self, name)!r} for flows; leave it "
                    "out"
                )
        self._check_pattern(where)

    def _check_pattern(self, where: str) -> None:
        """Check a pattern of flows, and when they start."""
        if self.pattern:
            choose(f"{where}pattern", "pattern", self.pattern, PATTERNS)
        if self.load and self.pattern not in AT_RANDOM:
            raise ConfigError(
                f"{where}load: is of flows that start at random, got {self.load} for pattern: "
                f"{self.pattern or 'none'}; take {' or '.join(AT_RANDOM)}"
            )
        if self.load and "interval" in self.model_fields_set:
            raise ConfigError(f"{where}load: can't go with interval, got {self.load}; give either")

    def _refuse_sizes(self, where: str, what: str) -> None:
        """Refuse options of models for another workload."""
        for name in (*_names(TransformerSizes), *_names(Split), "preset"):
            if name != "flops" and getattr(self, name, None):
                raise ConfigError(
                    f"{where}{name}: is of models, got {getattr(self, name)!r} for {what}"
                )

    @property
    def mean_load(self) -> float | None:
        """The load that flows bring on average; None: they start at an interval, or at once."""
        is_usual = self.pattern in DISTRIBUTIONS and "interval" not in self.model_fields_set
        return self.load or (LOAD if is_usual else None)

    @property
    def traffic(self) -> Traffic:
        """The sizes of a pattern of flows; the interval is not that of a load.

        Raises:
            ConfigError: If the file of a distribution can't be read.
        """
        sizes = self.flow_sizes
        name = sizes if isinstance(sizes, str) else self.pattern
        drawn = DISTRIBUTIONS.get(name)
        if drawn is None and isinstance(sizes, str):
            drawn = read_distribution(Path(sizes))
        return Traffic(
            pattern=self.pattern or "incast",
            ranks=self.ranks or RANKS,
            sizes_bytes=() if isinstance(sizes, str) else sizes,
            flows=self.flows,
            interval_ps=self.interval,
            seed=self.seed,
            drawn=drawn,
        )

    def model_sizes(self, where: str = "") -> tuple[TransformerSizes, Split]:
        """Return the sizes of the model and of its division, the preset's where none are given."""
        base = _preset(self.preset, f"{where}preset")
        options = {
            name: getattr(self, name, None) for name in (*_names(TransformerSizes), *_names(Split))
        }
        sizes = {name: value for name, value in options.items() if value not in (None, "")}
        if base is None:
            base = _from_sizes(sizes, where)
        own = {name: sizes[name] for name in _names(TransformerSizes) if name in sizes}
        if base.sizes.kv_heads == base.sizes.heads and "heads" in own:
            own = {"kv_heads": own["heads"], **own}  # each still has keys and values of its own
        split = {name: sizes[name] for name in _names(Split) if name in sizes}
        return replace(base.sizes, **own), replace(base.split, **split)

    def plain(self) -> dict[str, Any]:
        """Return the spec as for JSON, with the sizes of a model that were worked out."""
        values = super().plain()
        if self.workload == LLM:
            sizes, split = self.model_sizes()
            for each in (sizes, split):
                values |= {name: getattr(each, name) for name in _names(type(each))}
        return values


def _names(kind: type[TransformerSizes] | type[Split]) -> list[str]:
    return [field.name for field in fields(kind)]


def _preset(name: str, where: str) -> Preset | None:
    return PRESETS[choose(where, "preset", name, PRESETS)] if name else None


def _from_sizes(sizes: dict[str, Any], where: str) -> Preset:
    """Return the sizes of a model that has no preset; some must be given."""
    for name in ("layers", "hidden", "heads"):
        if name not in sizes:
            raise ConfigError(
                f"{where}{name}: must be given where there is no preset, got none; "
                f"presets: {', '.join(PRESETS)}"
            )
    hidden, heads = sizes["hidden"], sizes["heads"]
    return Preset("", TransformerSizes(sizes["layers"], hidden, heads, heads, 4 * hidden), Split())
