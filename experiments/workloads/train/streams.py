"""Streams of a rank, as a GPU has them: what a script puts on another stream does not stop it.

PyTorch gives CPUs streams and events that do nothing (`torch.cpu.Stream`). In their place come
these, which have times. A rank's clock is that of its usual stream, on which it computes. A call
that is made and waited for on another stream begins when that stream is free, and the usual stream
goes on; it stops where it waits for the other one, or for an event recorded there. The process that
makes calls takes no time itself and runs ahead, as does a process that feeds a GPU.

Only real data stop the process. Where an operation on another stream reads results that are not
there, the process waits for them, and the rank's clock does not. The network's time has gone on
then, so later calls begin no earlier.

Source:
    CUDA C++ Programming Guide, "Asynchronous Concurrent Execution": streams and events.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Self

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from ringleaf.core.units import PS_PER_MS
from ringleaf.experiments.workloads.train.link import RankConnection
from ringleaf.experiments.workloads.train.works import FabricWork


class RankStreams:
    """All streams of a rank.

    Args:
        link: The rank's link.
    """

    def __init__(self, link: RankConnection) -> None:
        self.link = link
        self.usual = RankStream(self)
        self.current = self.usual
        self._unsettled: dict[int, FabricWork] = {}  # by the address of what they write to

    def defer(self, work: FabricWork) -> bool:
        """Take a wait for a work, if another stream waits, and not the usual one."""
        if self.current is self.usual:
            return False
        self.current.add(work)
        for tensor in work.writes:
            self._unsettled[_address(tensor)] = work
        return True

    def time_for(self, group: str, tensors: Iterable[Any]) -> int:
        """Return the time at which a call on these tensors is made on the current stream.

        What the stream waits for goes before; calls of the same group take turns anyway.
        """
        self.touch(tensors)
        stream = self.current
        if stream is self.usual:
            return self.link.clock.now_ps
        for work in stream.works:
            if work.group != group:
                work.settle(quietly=True)
        stream.works = [work for work in stream.works if not stream.has_seen(work)]
        return stream.ready_ps

    def touch(self, values: Iterable[Any]) -> None:
        """Wait for the results that lie in these values, without the rank's clock."""
        if self._unsettled:
            for each in values:
                work = self._unsettled.get(_address(each))
                if work is not None:
                    work.settle(quietly=True)
                    self._forget()

    def wait_for_all(self) -> None:
        """Have the usual stream wait for all that other streams have been given."""
        self.usual.follow(0, list(self._unsettled.values()))

    def wait_for_device(self) -> None:
        """Wait for all that the rank has begun, as for a GPU: also for calls nobody waits for."""
        self.wait_for_all()
        with self.link.clock:
            self.link.wait(self.link.calls_under_way)

    def _forget(self) -> None:
        left = {at: work for at, work in self._unsettled.items() if not work.is_success()}
        self._unsettled = left


class RankStream:
    """A stream of a rank.

    Attributes:
        ready_ps: The time before which nothing on it begins.
        works: Calls that were made on it, or that it waits for, and may not be over.
    """

    def __init__(self, streams: RankStreams, *_: Any, **__: Any) -> None:
        self.ready_ps = 0
        self.works: list[FabricWork] = []
        self._streams = streams

    def add(self, work: FabricWork) -> None:
        """Have what follows wait for a work."""
        self.works.append(work)

    def has_seen(self, work: FabricWork) -> bool:
        """Return whether a work is over; if it is, what follows begins no earlier."""
        if work.is_success():
            self.ready_ps = max(self.ready_ps, work.end_ps)
        return work.is_success()

    def state(self) -> tuple[int, list[FabricWork]]:
        """Return the time, and the works, that who waits for this stream waits for."""
        clock = self._streams.link.clock
        return (clock.now_ps, []) if self is self._streams.usual else (self.ready_ps, [*self.works])

    def follow(self, ready_ps: int, works: list[FabricWork]) -> None:
        """Wait for a time, and for works."""
        if self is not self._streams.usual:
            self.ready_ps = max(self.ready_ps, ready_ps)
            self.works += [work for work in works if work not in self.works]
            return
        for work in works:
            work.settle()
        with self._streams.link.clock:
            self._streams.link.reach(ready_ps)
        self._streams._forget()

    # As PyTorch names them.

    def wait_stream(self, stream: Any) -> None:
        """Have what follows wait for all that a stream has been given."""
        if isinstance(stream, RankStream):
            self.follow(*stream.state())

    def wait_event(self, event: Any) -> None:
        """Have what follows wait for an event."""
        if isinstance(event, StreamEvent):
            self.follow(event.ready_ps, event.works)

    def record_event(self, event: Any = None) -> Any:
        """Record an event: the end of all that this stream has been given."""
        stream_event = StreamEvent(self._streams) if event is None else event
        stream_event.record(self)
        return stream_event

    def synchronize(self) -> None:
        """Have the process wait, as opposed to a stream."""
        for work in self.works:
            work.settle(quietly=True)

    def query(self) -> bool:
        """Return whether all is over; a look that finds it is not takes some time."""
        return all(work.is_completed() for work in self.works)


class StreamEvent:
    """A place in a stream."""

    def __init__(self, streams: RankStreams, *_: Any, **__: Any) -> None:
        self.ready_ps = 0
        self.works: list[FabricWork] = []
        self._streams = streams

    def record(self, stream: Any = None) -> None:
        """Be the place at which a stream is, by default the current one."""
        self.ready_ps, self.works = (stream or self._streams.current).state()

    def wait(self, stream: Any = None) -> None:
        """Have a stream wait, by default the current one."""
        (stream or self._streams.current).wait_event(self)

    def synchronize(self) -> None:
        """Have the process wait, as opposed to a stream."""
        for work in self.works:
            work.settle(quietly=True)

    def query(self) -> bool:
        """Return whether the stream has come here; a look that finds it has not takes some time."""
        return all(work.is_completed() for work in self.works)

    def elapsed_time(self, end: StreamEvent) -> float:
        """Return the rank's virtual time from this event to another, in milliseconds."""
        return (end.reached_ps() - self.reached_ps()) / PS_PER_MS

    def reached_ps(self) -> int:
        """Return the time at which the stream comes here; the process waits until it is known."""
        self.synchronize()
        return max([self.ready_ps, *(work.end_ps for work in self.works)])


class _Careful(TorchDispatchMode):
    """Has operations wait for the results of calls that they read; views read nothing."""

    def __init__(self, streams: RankStreams) -> None:
        super().__init__()
        self._streams = streams

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not getattr(func, "is_view", False):
            self._streams.touch(tree_leaves((args, kwargs or {})))
        return func(*args, **(kwargs or {}))


class _On:
    """A context in which a stream is the current one; of None, the one that is it anyway."""

    def __init__(self, streams: RankStreams, stream: RankStream | None) -> None:
        self._streams = streams
        self._stream = stream
        self._before: list[tuple[RankStream, _Careful | None]] = []

    def __enter__(self) -> Self:
        streams = self._streams
        before = streams.current
        if isinstance(self._stream, RankStream):
            streams.current = self._stream
        care = None if streams.current is streams.usual else _Careful(streams)
        if care is not None:
            care.__enter__()
        self._before.append((before, care))
        return self

    def __exit__(self, *error: object) -> None:
        self._streams.current, care = self._before.pop()
        if care is not None:
            care.__exit__(*error)


def _address(value: Any) -> int:
    """Return the address of a tensor's memory; -1: it has none."""
    value = getattr(value, "_local_tensor", value)  # of a DTensor
    if isinstance(value, torch.Tensor):
        with suppress(RuntimeError):
            return value.untyped_storage().data_ptr() or -1
    return -1


def install(link: RankConnection) -> None:
    """Have a rank's script use streams with times, where PyTorch's for CPUs do nothing."""
    streams = RankStreams(link)
    link.streams = streams
    devices: tuple[Any, ...] = torch.cpu, torch.cuda
    for device in devices:
        device.Stream = _made_for(streams, RankStream)
        device.Event = _made_for(streams, StreamEvent)
        device.current_stream = lambda device=None: streams.current
        device.stream = device.StreamContext = _made_for(streams, _On)
    torch.cpu.synchronize = lambda device=None: streams.wait_for_all()
    torch.cuda.default_stream = lambda device=None: streams.usual
    torch.Tensor.record_stream = lambda tensor, stream: None
    for device in (torch.cuda, torch.accelerator):
        device.synchronize = lambda device=None: streams.wait_for_device()
    current: Any = torch.cpu.current_stream
    torch.accelerator.current_stream = current  # FSDP asks for it on CPUs, too


def _made_for(streams: RankStreams, kind: type[Any]) -> type[Any]:
    """Return a class whose instances belong to a rank's streams, and take PyTorch's arguments."""

    def init(self: Any, *args: Any, **named: Any) -> None:
        kind.__init__(self, streams, *args, **named)

    return type(kind.__name__, (kind,), {"__init__": init})
