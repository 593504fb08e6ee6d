"""Sums that switches make, as flows: a job's tensors one after the other, along its tree."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import numpy.typing as npt

import ringleaf.networks.flow.fill_tables as f
import ringleaf.networks.flow.state as n
from ringleaf.core.arena import Arena, Store
from ringleaf.core.callbacks import Callback, weakly
from ringleaf.core.tensors import ElementType
from ringleaf.core.units import FOREVER_PS
from ringleaf.core.views import as_floats
from ringleaf.errors import ConfigError
from ringleaf.hosts.agent import HostAgent, complete
from ringleaf.ina.systems import AWAITED, JobRequest, System
from ringleaf.networks.flow.counting import count_stream
from ringleaf.networks.flow.messages import SUMMED, predict, push

if TYPE_CHECKING:
    from ringleaf.core.tensors import Array
    from ringleaf.ina.fluid import FluidStream
    from ringleaf.networks.flow.layout import Layout

DTYPES = (np.dtype(np.float32), np.dtype(np.int32))


@dataclass(slots=True)
class TensorSum:
    """A tensor that all workers give to the switches.

    Attributes:
        elements: Of each worker's part.
        dtype: Their type.
        priority: Of its packets.
        parts: By rank, address of the part, and the tag to report.
        is_begun: Whether it is under way.
    """

    elements: int
    dtype: ElementType
    priority: int
    parts: dict[int, tuple[int, int]] = field(default_factory=dict)
    is_begun: bool = False


class FluidSystem(System):
    """A system whose jobs are flows.

    Args:
        system: The system.
        sums: What carries its jobs' tensors.
    """

    def __init__(self, system: System, sums: FluidSums) -> None:
        self.name = system.name
        self._system, self._sums = system, sums

    def program(self, lanes: int) -> str:
        """Return the name of the program that its switches would run."""
        return self._system.program(lanes)

    def error_bound(self, parts: Array, lanes: int) -> npt.NDArray[np.float64]:
        """Return how far each float of the result may be from the exact sum."""
        return self._system.error_bound(parts, lanes)

    def join(self, graph: nx.Graph[str], store: Store, request: JobRequest) -> FluidJob:
        """Make a job.

        Raises:
            ConfigError: If the system has no fluid form, or the job does not fit the switches.
        """
        stream = self._system.fluid(graph, request)
        if stream is None:
            raise no_form(self.name)
        return FluidJob(self.name, stream, request.members, self._sums)


def no_form(name: str) -> ConfigError:
    """Return the error of a system that has no fluid form."""
    return ConfigError(f"algo: {name} has no fluid form, got net=flow; take net=virtual")


class FluidJob:
    """One job of a system, whose workers' tensors are summed one after the other.

    Args:
        system: The system's name, for errors.
        stream: Its blocks.
        members: The workers' hosts, in rank order.
        sums: What carries its tensors.
    """

    def __init__(
        self, system: str, stream: FluidStream, members: Sequence[str], sums: FluidSums
    ) -> None:
        self.system, self.stream, self.members, self._sums = system, stream, members, sums
        self.agents: Sequence[HostAgent] = ()
        self.entities: Mapping[str, Sequence[Any]] = {}
        self.mover = None
        self.awaited = AWAITED
        self.window_bytes = 4 * stream.slots * stream.values
        self.waiting: deque[TensorSum] = deque()  # those that are not all under way
        self.arriving: deque[TensorSum] = deque()
        self.flow = 0  # its number in the network
        sums.jobs.append(self)

    def start(
        self,
        arena: Arena,
        rank: int,
        address: int,
        elements: int,
        tag: int,
        dtype: ElementType,
        now_ps: int,
        priority: int = 0,
    ) -> int:
        """Take a rank's part of a sum; return the agent that reports `tag` when it is done.

        Raises:
            ConfigError: If the system can't add up this type.
        """
        if dtype not in DTYPES:
            names = " and ".join(str(each) for each in DTYPES)
            raise ConfigError(f"{self.system}: adds up {names}, got {dtype}")
        tensor = next((each for each in self.waiting if rank not in each.parts), None)
        if tensor is None:
            tensor = TensorSum(elements, dtype, priority)
            self.waiting.append(tensor)
        tensor.parts[rank] = address, tag
        tensor.priority = max(tensor.priority, priority)
        self._sums.go_on(self, now_ps)
        return self._sums.agent(self, rank)

    def raise_priority(self, arena: Arena, rank: int, priority: int) -> None:
        """Give the sums that are not yet under way at least this priority."""
        for tensor in self.waiting:
            if rank in tensor.parts:
                tensor.priority = max(tensor.priority, priority)


class FluidSums:
    """The sums of all jobs of a network.

    Args:
        store: The network's store.
    """

    def __init__(self, store: Store) -> None:
        self.jobs: list[FluidJob] = []
        self._store = store
        self._agents: Sequence[int] = ()
        self._by_flow: dict[int, FluidJob] = {}
        self._at = 0
        self._callback = Callback(weakly(self._heed), failed=-1)

    def lay_out(self, layout: Layout, agents: Sequence[int]) -> None:
        """Give jobs their flows in a network, whose hosts have these rc agents."""
        self._at, self._agents = layout.at, agents
        for job in self.jobs:
            job.flow = layout.add_stream(job.stream)
            self._by_flow[job.flow] = job
        self._store.arena.words[self._at + n.SUMS] = self._callback.address

    def agent(self, job: FluidJob, rank: int) -> int:
        """Return the agent of a rank's host."""
        return self._agents[int(job.members[rank][1:])]

    def check(self) -> None:
        """Raise the exception with which a sum has ended, if one has."""
        self._callback.check()

    def go_on(self, job: FluidJob, now_ps: int) -> None:
        """Begin a job's next sum, if none is under way and all workers have given their parts."""
        first = job.waiting[0] if job.waiting else None
        if first is None or first.is_begun or len(first.parts) < len(job.members):
            return
        first.is_begun = True
        words, filling = (
            self._store.arena.words,
            int(self._store.arena.words[self._at + n.FILLING_AT]),
        )
        row = int(n.flow_at(words, self._at, job.flow))
        is_on = words[row + n.IS_ON]
        blocks = -(-first.elements // job.stream.values)
        floats = as_floats(words)
        floats[row + n.REST] = floats[row + n.SIZE] = 8.0 * blocks * job.stream.packet_bytes
        words[row + n.FROM_PS] = words[row + n.BEGAN_PS] = now_ps
        words[row + n.IS_ON] = 1
        if is_on:
            predict(words, self._at, job.flow, now_ps)
            return
        words[f.flow_row(words, filling, job.flow) + f.LEVEL] = first.priority
        floats[row + n.RATE] = 0.0
        words[row + n.END_PS] = FOREVER_PS
        f.set_count(words, filling, job.flow, 1)

    def _heed(self, what: int) -> int:
        flow, is_there = divmod(what, 2)
        now_ps = int(self._store.arena.words[self._at + n.NOW_PS])
        job = self._by_flow[flow]
        if is_there:
            self._deliver(job, now_ps)
        else:
            self._end(job, now_ps)
        return 0

    def _end(self, job: FluidJob, now_ps: int) -> None:
        """Let a sum arrive later whose last bit has been carried, and go on with the next one."""
        words = self._store.arena.words
        row = int(n.flow_at(words, self._at, job.flow))
        tensor = job.waiting.popleft()
        job.arriving.append(tensor)
        blocks = -(-tensor.elements // job.stream.values)
        is_float = tensor.dtype == np.float32
        heads = is_float * min(blocks, job.stream.slots)
        size_bytes = blocks * job.stream.packet_bytes + heads * job.stream.float_bytes
        count_stream(self._store.arena, self._at, job.flow, size_bytes, blocks + heads, now_ps)
        tail_ps = int(words[row + n.TAIL_PS]) + is_float * job.stream.float_ps
        words[row + n.LAST_PS] = max(int(words[row + n.LAST_PS]), now_ps + tail_ps)
        push(words, self._at, int(words[row + n.LAST_PS]), SUMMED, job.flow)
        self.go_on(job, now_ps)
        if not (job.waiting and job.waiting[0].is_begun):
            words[row + n.IS_ON] = 0
            f.set_count(words, int(words[self._at + n.FILLING_AT]), job.flow, 0)

    def _deliver(self, job: FluidJob, now_ps: int) -> None:
        """Give all workers the sum that has arrived."""
        arena, tensor = self._store.arena, job.arriving.popleft()
        if self._store.has_data:
            size_bytes = tensor.elements * tensor.dtype.itemsize
            parts = [
                arena.memory[address : address + size_bytes].view(tensor.dtype)
                for address, _ in tensor.parts.values()
            ]
            wide = np.float64 if tensor.dtype == np.float32 else tensor.dtype
            total = np.sum(parts, axis=0, dtype=wide).astype(tensor.dtype)
            for part in parts:
                part[:] = total
        for rank, (_, tag) in sorted(tensor.parts.items()):
            complete(arena, self.agent(job, rank), 0, 0, tag, now_ps)
