"""The graph of one training iteration of a model in parallel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import chain, pairwise
from typing import Any

from ringleaf.hosts.workload.graph import CalledCollective, Graph, NodeKind, RankWork, WorkNode
from ringleaf.hosts.workload.llm import layout, traffic
from ringleaf.hosts.workload.llm.layout import IterationLayout, RankLayout, RankPlace
from ringleaf.hosts.workload.llm.pipeline import SCHEDULES, MicroBatchPass, Order, Part
from ringleaf.hosts.workload.llm.sizes import Split, TransformerSizes, check

BACKWARD_TIMES = 2
"""The length of a backward pass, in forward passes: gradients of inputs, and of weights."""


def generate(name: str, sizes: TransformerSizes, split: Split, where: str = "") -> Graph:
    """Return the graph of one iteration.

    Forward and backward passes of a stage are chains of computation and of the exchange inside
    layers. Activations go to the next stage beside them, and a layer's gradient is reduced as soon
    as its last micro-batch is through.

    Args:
        name: The graph's name.
        sizes: The model.
        split: Its division among ranks.
        where: The beginning of error messages.

    Raises:
        ConfigError: If the model can't be divided so.
    """
    check(sizes, split, where)
    order = SCHEDULES[split.schedule](split.pp, split.micro_batches, split.chunks)
    return generate_for(name, sizes, split, RankLayout(sizes, split), order)


def generate_for(
    name: str, sizes: TransformerSizes, split: Split, numbers: IterationLayout, order: Order
) -> Graph:
    """Return the graph of one iteration whose ranks have such layers and peers.

    Args:
        name: The graph's name.
        sizes: The model.
        split: Its division among ranks, as far as the layout does not say otherwise.
        numbers: Who has which layers, and exchanges with whom.
        order: By worker, its passes.
    """
    first: dict[int, _Rank] = {}  # by worker
    for at in numbers.places:
        if at.pp not in first:
            first[at.pp] = _Rank(sizes, split, numbers, at, order[at.pp])
    ranks = tuple(RankWork(first[at.pp].nodes_at(at)) for at in numbers.places)
    return Graph(name, ranks, tuple(numbers.groups))


class _Rank:
    """One rank's nodes, made pass by pass. `_last` are the nodes that the next one follows.

    Other ranks of its worker have the same, but for groups and peers.
    """

    def __init__(
        self,
        sizes: TransformerSizes,
        split: Split,
        numbers: IterationLayout,
        at: RankPlace,
        tasks: list[MicroBatchPass],
    ) -> None:
        self._sizes, self._split, self._numbers, self._at = sizes, split, numbers, at
        self._names: dict[tuple[Callable[..., Any], tuple[Any, ...]], Any] = {}
        self._made: dict[tuple[int, int], WorkNode] = {}  # by number, and group or peer
        self.nodes: list[WorkNode] = []
        self._last: tuple[int, ...] = ()
        self._activation = traffic.activation_bytes(sizes, split)
        first = {_kind(task): task for task in reversed(tasks)}
        last = {_kind(task): task for task in tasks}
        for task in tasks:
            self._pass(task, is_first=first[_kind(task)] is task, is_last=last[_kind(task)] is task)
        for layer in reversed(numbers.mirrored(at)):
            self._reduce_gradients(0, layer, ())

    def nodes_at(self, at: RankPlace) -> tuple[WorkNode, ...]:
        """Return the nodes of a rank of its worker; those that are equal are the same objects."""
        names = {
            (name is _group, here): name(self._numbers, at, *about)
            for (name, about), here in self._names.items()
        }
        return tuple(self._renamed(node, names) for node in self.nodes)

    def _renamed(self, node: WorkNode, names: Mapping[tuple[bool, int | None], int]) -> WorkNode:
        """Return a node of this rank as another one has it."""
        if node.kind is NodeKind.COMPUTE:
            return node
        calls = node.kind is NodeKind.COLLECTIVE
        name = names[calls, node.group if calls else node.peer]
        if (node.id, name) not in self._made:
            other = replace(node, group=name) if calls else replace(node, peer=name)
            self._made[node.id, name] = other
        return self._made[node.id, name]

    def _name(self, name: Callable[..., Any], *about: Any) -> Any:
        """Return the number of a group or peer of this rank, which is another one for others."""
        if (name, about) not in self._names:
            self._names[name, about] = name(self._numbers, self._at, *about)
        return self._names[name, about]

    def _add(self, kind: NodeKind, name: str, after: Iterable[int], **more: Any) -> int:
        number = len(self.nodes)
        self.nodes.append(WorkNode(number, kind, name, after=tuple(after), **more))
        return number

    def _compute(self, name: str, time_ps: int) -> None:
        self._last = (self._add(NodeKind.COMPUTE, name, self._last, duration_ps=time_ps),)

    def _call(
        self,
        label: str,
        call: CalledCollective,
        size_bytes: int,
        after: Iterable[int],
        stage: int = 0,
        layer: int = 0,
    ) -> tuple[int, ...]:
        """Add a collective, if there is anybody to call it with; return what to wait for."""
        group = self._name(_group, label, stage, layer)
        if group is None or not size_bytes:
            return tuple(after)
        name = f"{label} {call.value}"
        more = {"call": call, "group": group, "size_bytes": size_bytes, "label": label}
        return (self._add(NodeKind.COLLECTIVE, name, after, **more),)

    def _shares(self, label: str, stage: int) -> int:
        """Return the number of ranks of this rank's group."""
        group = self._name(_group, label, stage, 0)
        return 1 if group is None else len(self._numbers.groups[group].ranks)

    def _pass(self, task: MicroBatchPass, *, is_first: bool, is_last: bool) -> None:
        name = f"{'B' if task.backward else 'F'}{task.micro} s{task.stage}"
        step = -1 if task.backward else 1
        exchanges = task.part in (Part.WHOLE, Part.INPUT)
        before = self._name(_peer, task, task.stage - step) if exchanges else None
        if before is not None:
            self._last += self._receive(task, before, name)
        earlier = self._last  # parameters are gathered while the layer before computes
        for layer in self._numbers.layers(self._at, task)[::step]:
            here = self._last
            if self._split.zero == 3 and (is_first or self._split.reduces_each):
                self._last += self._gather_parameters(task.stage, earlier)
            earlier = here
            if task.backward:
                self._backward(f"{name} l{layer}", task, layer, is_last=is_last)
            else:
                self._forward(f"{name} l{layer}")
        then = self._name(_peer, task, task.stage + step) if exchanges else None
        if then is not None:
            tag = self._numbers.tag(task)
            self._exchange(NodeKind.SEND, then, tag, f"{name} out", self._last)

    def _receive(self, task: MicroBatchPass, before: int, name: str) -> tuple[int, ...]:
        tag = self._numbers.tag(task._replace(stage=task.stage + (1 if task.backward else -1)))
        after: tuple[int, ...] = (self._exchange(NodeKind.RECEIVE, before, tag, f"{name} in", ()),)
        if self._split.scatter_gather and not self._split.sequence_parallel:
            size = traffic.boundary_bytes(self._sizes, self._split)
            after = self._call(layout.TENSOR, CalledCollective.ALL_GATHER, size, after)
        return after

    def _exchange(
        self,
        kind: NodeKind,
        peer: int,
        tag: int,
        name: str,
        after: Iterable[int],
    ) -> int:
        """Add a message to, or from, the worker that has another stage of the same pipeline."""
        return self._add(
            kind,
            name,
            after,
            size_bytes=traffic.boundary_bytes(self._sizes, self._split),
            peer=peer,
            tag=tag,
            label=layout.PIPELINE,
        )

    def _forward(self, name: str) -> None:
        self._enter()
        self._attention(f"{name} attention", times=1)
        self._leave()
        if self._sends_parts:
            self._feed(f"{name} ffn", times=1)
            return
        self._enter()
        self._feed(f"{name} ffn", times=1)
        self._leave()

    def _backward(self, name: str, task: MicroBatchPass, layer: int, *, is_last: bool) -> None:
        """Add a layer's backward pass; gradients of weights alone are nothing but computation."""
        times = BACKWARD_TIMES if task.part is Part.WHOLE else BACKWARD_TIMES // 2
        if task.part is Part.WEIGHT:
            sizes, split = self._sizes, self._split
            time_ps = traffic.ffn_ps(sizes, split) + traffic.attention_ps(sizes, split)
            again = (self._inputs_again() for _ in range(1 if self._sends_parts else 2))
            self._last = (*self._last, *chain.from_iterable(again))
            self._compute(f"{name} dW", times * time_ps)
            computed = self._last
        else:
            for part, what in ((self._feed, "ffn"), (self._attention, "attention")):
                if what == "ffn" and self._sends_parts:
                    part(f"{name} {what}", times=times)  # whose inputs are kept whole
                    continue
                self._enter()
                inputs = self._inputs_again() if task.part is Part.WHOLE else ()
                part(f"{name} {what}", times=times)
                self._last += inputs
                computed = self._last
                self._leave()
        if task.part is not Part.INPUT and (is_last or self._split.reduces_each):
            self._reduce_gradients(task.stage, layer, computed, is_last=is_last)

    @property
    def _sends_parts(self) -> bool:
        """Whether each rank sends its part of the tokens alone to experts.

        The ranks that share an expert bring together what has come for it, and keep that.

        Source:
            Megatron-LM, core/transformer/moe/token_dispatcher.py, MoEAlltoAllTokenDispatcher.
        """
        return self._split.sequence_parallel and self._sizes.experts > 0

    def _enter(self) -> None:
        """Bring the activation together, if tensor parallelism shares it between layers."""
        if self._split.sequence_parallel:
            size = self._activation // self._split.tp
            self._last = self._call(layout.TENSOR, CalledCollective.ALL_GATHER, size, self._last)

    def _inputs_again(self) -> tuple[int, ...]:
        """Gather the parts of a matrix's inputs once more, for its weights' gradient.

        Ranks keep no more than their parts of it; it comes while gradients of inputs are computed.

        Source:
            Korthikanti et al., "Reducing activation recomputation in large transformer models",
            MLSys 2023, section 4.2.2.
        """
        if not self._split.sequence_parallel or self._split.tp == 1:
            return ()
        size = self._activation // self._split.tp
        return self._call(layout.TENSOR, CalledCollective.ALL_GATHER, size, self._last)

    def _leave(self) -> None:
        """Add up the parts of a result that the ranks of tensor parallelism have."""
        call = (
            CalledCollective.REDUCE_SCATTER
            if self._split.sequence_parallel
            else CalledCollective.ALLREDUCE
        )
        self._last = self._call(layout.TENSOR, call, self._activation, self._last)

    def _feed(self, name: str, *, times: int) -> None:
        """Add the feed-forward network; tokens go to the ranks of their experts, and back.

        They may go in parts: experts compute for one while the next is on its way, and send it back
        while they compute for the next. All parts are on their way before the first one is back.

        Source:
            ScheMoE, EuroSys 2024, released code, which also compresses tokens, and splits each
            all-to-all into one inside nodes and one between them; both are left out here.
        """
        count = self._split.expert_parts
        size = traffic.expert_bytes(self._sizes, self._split) if self._sizes.experts else 0
        sizes = _parts(size, count)
        sent = [
            self._call(layout.EXPERT, CalledCollective.ALL_TO_ALL, part, self._last)
            for part in sizes
        ]
        back: tuple[int, ...] = ()
        times_ps = _parts(times * traffic.ffn_ps(self._sizes, self._split), count)
        for number, (part, after, time_ps) in enumerate(zip(sizes, sent, times_ps, strict=True)):
            self._last = after
            self._expert(f"{name} {number}" if count > 1 else name, time_ps, part)
            back += self._call(layout.EXPERT, CalledCollective.ALL_TO_ALL, part, self._last)
        self._last = back

    def _expert(self, name: str, time_ps: int, part_bytes: int) -> None:
        """Add an expert's computation; the ranks that share it have a part of its tokens each."""
        if not self._sends_parts:
            self._compute(name, time_ps)
            return
        gather, scatter = CalledCollective.ALL_GATHER, CalledCollective.REDUCE_SCATTER
        self._last = self._call(layout.TENSOR, gather, part_bytes, self._last)
        self._compute(name, time_ps)
        whole_bytes = part_bytes * self._split.tp
        self._last = self._call(layout.TENSOR, scatter, whole_bytes, self._last)

    def _attention(self, name: str, *, times: int) -> None:
        """Add attention; blocks of keys and values go round the ranks that share a sequence.

        Each rank works on the block that it has while the next one comes (ring attention).
        Backward, their gradients go with them.

        Source:
            Liu, Zaharia and Abbeel, "Ring attention with blockwise transformers", 2023.
        """
        parts = self._split.cp
        time_ps = times * traffic.attention_ps(self._sizes, self._split) // parts
        size = times * traffic.ring_bytes(self._sizes, self._split)
        block = self._last
        for part in range(parts):
            self._last = tuple(dict.fromkeys((*self._last, *block)))
            if part < parts - 1:
                more: dict[str, Any] = {"size_bytes": size, "label": layout.CONTEXT, "tag": _RING}
                ahead, behind = self._name(_neighbour, 1, parts), self._name(_neighbour, -1, parts)
                self._add(NodeKind.SEND, f"{name} out", block, peer=ahead, **more)
                arrived = self._add(NodeKind.RECEIVE, f"{name} in", block, peer=behind, **more)
                block = (arrived,)
            self._compute(f"{name} {part}" if parts > 1 else name, time_ps)

    def _gather_parameters(self, stage: int, after: Iterable[int]) -> tuple[int, ...]:
        calls: tuple[int, ...] = ()
        for label, size in self._gradients():
            if self._shares(label, stage) > 1:
                share = size // self._shares(label, stage)
                calls += self._call(label, CalledCollective.ALL_GATHER, share, after, stage)
        return calls

    def _reduce_gradients(
        self, stage: int, layer: int, after: tuple[int, ...], *, is_last: bool = True
    ) -> None:
        """Add up a layer's gradients; ZeRO's stages 1 and 2 share the new parameters at last."""
        zero = self._split.zero
        for label, size in self._gradients():
            call = CalledCollective.REDUCE_SCATTER if zero else CalledCollective.ALLREDUCE
            reduced = self._call(label, call, size, after, stage, layer)
            if is_last and zero in (1, 2):
                share = size // self._shares(label, stage)
                self._call(label, CalledCollective.ALL_GATHER, share, reduced, stage)

    def _gradients(self) -> tuple[tuple[str, int], ...]:
        sizes, split = self._sizes, self._split
        return (
            (layout.DATA, traffic.dense_gradient_bytes(sizes, split)),
            (layout.EXPERT_DATA, traffic.expert_gradient_bytes(sizes, split)),
        )


def _group(
    numbers: IterationLayout, at: RankPlace, label: str, stage: int, layer: int
) -> int | None:
    return numbers.group(label, numbers.rank(at), stage, layer)


def _peer(numbers: IterationLayout, at: RankPlace, task: MicroBatchPass, stage: int) -> int | None:
    place = numbers.peer(at, task, stage)
    return None if place is None else numbers.rank(place)


def _neighbour(numbers: IterationLayout, at: RankPlace, step: int, parts: int) -> int:
    """Return the rank that has the part of a sequence that is so many on, in the ring."""
    return numbers.rank(at._replace(cp=(at.cp + step) % parts))


_RING = 0  # the tag of ring attention, whose messages are in the order of nodes


def _parts(whole: int, count: int) -> list[int]:
    """Return a number cut into parts that are as equal as whole numbers can be."""
    if count == 1:
        return [whole]
    edges = [whole * part // count for part in range(count + 1)]
    return [after - before for before, after in pairwise(edges)]


def _kind(task: MicroBatchPass) -> tuple[bool, int, int, Part]:
    return task.backward, task.stage, task.replica, task.part
