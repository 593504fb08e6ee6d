"""Steps of a layer-by-layer workload of ASTRA-sim 1.0 or SimAI, as nodes of each rank.

Source:
    ASTRA-sim 1.0, workload/Workload.cc, whose state machines these are, and SimAI's fork of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from ringleaf.core.units import PS_PER_NS, format_count
from ringleaf.errors import ConfigError
from ringleaf.hosts.workload.graph import CalledCollective, CallGroup, NodeKind, WorkNode

MOST_NODES = 4_000_000  # of all ranks together

UPDATE_STREAM = 1
"""The first stream of the delays after collectives, which keep nobody from computing."""

TP, DP, EP, DP_EP, ALL = "tp", "dp", "ep", "dp_ep", "world"
"""The kinds of groups: of tensor and data parallelism; of experts, and replicas of experts."""


class GradientWait(Enum):
    """When the collective of inputs' gradients is waited for."""

    NEVER = "it has none"
    AT_ONCE = "before weights' gradients are computed"
    LATER = "after that"


@dataclass(frozen=True, slots=True)
class Policy:
    """What a kind of parallelism does with layers.

    Attributes:
        forward: Whether collectives of the forward pass are called.
        inputs: When those of inputs' gradients are waited for.
        first_inputs: Whether the first layer calls for them too.
        weights: Whether those of weights' gradients are called; nobody waits for them.
        weights_first: Whether weights' gradients come before those of inputs.
        backward: Whether there is a backward pass.
        divided: Whether ranks are divided into groups.
    """

    forward: bool = True
    inputs: GradientWait = GradientWait.NEVER
    first_inputs: bool = False
    weights: bool = False
    weights_first: bool = False
    backward: bool = True
    divided: bool = False


_TRANSFORMER = Policy(inputs=GradientWait.LATER, first_inputs=True, weights=True, divided=True)

POLICIES = {
    "MICRO": Policy(forward=False, weights=True),
    "DATA": Policy(forward=False, weights=True, weights_first=True),
    "MODEL": Policy(inputs=GradientWait.LATER),
    "DISTRIBUTED_INFERENCE": Policy(backward=False),
    "HYBRID_TRANSFORMER": _TRANSFORMER,
    "HYBRID_TRANSFORMER_FWD_IN_BCKWD": _TRANSFORMER,
}
"""The kinds that are read. Others divide ranks by the dimensions of a network, which the file does
not have."""

_SIMAI_S_OWN = dict.fromkeys(
    ("HYBRID_TRANSFORMER", "HYBRID_TRANSFORMER_FWD_IN_BCKWD"),
    replace(_TRANSFORMER, inputs=GradientWait.AT_ONCE),
)
"""The kinds that SimAI's fork has changed: inputs' collectives became blocking ones."""

MICRO = "MICRO"


@dataclass(frozen=True, slots=True)
class AstraStep:
    """A computation (ns), and the collective after it, with the kind of its group; None: none."""

    time_ns: int
    call: CalledCollective | None = None
    group: str = ALL
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class AstraLayer:
    """A line of the file."""

    name: str
    forward: AstraStep
    inputs: AstraStep
    weights: AstraStep
    update_ns: int


@dataclass(frozen=True, slots=True)
class AstraHeader:
    """The first line: the kind, sizes of groups, and layers whose forward pass runs again.

    Attributes:
        is_simai_s: Whether it has words of SimAI's: sizes of all-gathers are then those of the
            whole result, and inputs' gradients are waited for before those of weights.
        unknown: Its words that are not known.
    """

    kind: str
    sizes: Mapping[str, int]
    checkpoints: frozenset[int] = frozenset()
    initiates: frozenset[int] = frozenset()
    is_simai_s: bool = False
    unknown: tuple[str, ...] = ()

    @property
    def policy(self) -> Policy:
        """What the kind does."""
        own = _SIMAI_S_OWN if self.is_simai_s else POLICIES
        return own.get(self.kind, POLICIES[self.kind])


@dataclass(slots=True)
class Maker:
    """The nodes of one rank, which does one thing after the other."""

    header: AstraHeader
    layers: Sequence[AstraLayer]
    groups: Sequence[CallGroup]
    own: Mapping[str, int]  # by kind, the place of the rank's group
    most: int  # nodes
    nodes: list[WorkNode] = field(default_factory=list)
    last: tuple[int, ...] = ()

    def run(self) -> list[WorkNode]:
        """Return all nodes.

        Raises:
            ConfigError: If there are too many.
        """
        policy = self.header.policy
        if self.header.kind == MICRO:
            for layer in self.layers:
                self._call(layer, layer.weights, "weights")
            return self.nodes
        for layer in self.layers:
            self._forward(layer)
        if policy.backward:
            for place in range(len(self.layers) - 1, -1, -1):
                if place in self.header.initiates:
                    self._forward_again(place)
                self._backward(place)
        return self.nodes

    def _forward(self, layer: AstraLayer) -> None:
        self._compute(layer, layer.forward, "forward")
        if self.header.policy.forward:
            self.last = self._call(layer, layer.forward, "forward")

    def _forward_again(self, place: int) -> None:
        """Compute again what was not kept, from the last checkpoint on."""
        start = max((each for each in self.header.checkpoints if each <= place), default=0)
        for layer in self.layers[start:place]:
            self._forward(layer)

    def _backward(self, place: int) -> None:
        layer, policy = self.layers[place], self.header.policy
        if policy.weights_first:
            self._weights(layer)
            if place:
                self._compute(layer, layer.inputs, "inputs")
            return
        self._compute(layer, layer.inputs, "inputs")
        waits = self.last
        if policy.inputs is GradientWait.AT_ONCE:
            self.last = waits = self._call(layer, layer.inputs, "inputs")
        elif place or policy.first_inputs:
            waits = self._call(layer, layer.inputs, "inputs")
        self._weights(layer)
        self.last = tuple(dict.fromkeys((*self.last, *waits)))

    def _weights(self, layer: AstraLayer) -> None:
        self._compute(layer, layer.weights, "weights")
        if self.header.policy.weights:
            self._call(layer, layer.weights, "weights")

    def _compute(self, layer: AstraLayer, part: AstraStep, what: str) -> None:
        if part.time_ns:
            name = f"{layer.name} {what}"
            self.last = (self._add(name, NodeKind.COMPUTE, duration_ps=part.time_ns * PS_PER_NS),)

    def _call(self, layer: AstraLayer, part: AstraStep, what: str) -> tuple[int, ...]:
        """Add a part's collective, and the delay after it; return what has its result."""
        if part.call is None:
            return self.last
        name, group, size = f"{layer.name} {what}", self.own[part.group], part.size_bytes
        ranks = self.groups[group].ranks
        if part.call is CalledCollective.ALL_GATHER and self.header.is_simai_s:
            size = -(-size // len(ranks))
        about = {"size_bytes": size, "call": part.call, "group": group, "root": ranks[0]}
        called = self._add(name, NodeKind.COLLECTIVE, **about)
        if not layer.update_ns:
            return (called,)
        delay = {"duration_ps": layer.update_ns * PS_PER_NS, "stream": UPDATE_STREAM + called}
        return (self._add(f"{name}, update", NodeKind.COMPUTE, after=(called,), **delay),)

    def _add(self, name: str, kind: NodeKind, **more: object) -> int:
        number = len(self.nodes)
        if number == self.most:
            raise ConfigError(
                f"ranks: {format_count(len(self.layers), 'layer')} must have {MOST_NODES} nodes "
                f"at most, together on all ranks, got more; take fewer ranks"
            )
        self.nodes.append(WorkNode(number, kind, name, **{"after": self.last} | more))  # type: ignore[arg-type]
        return number
