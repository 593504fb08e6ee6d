"""The process of a coordinator: it sends its orders to hosts, and passes their messages to it.

It says to the process that forked it: {"start": ns}, {"started"}, {"stopping"}, {"gone": host},
{"error"}, and at last {"result": bytes}, which lie in a file that both have open.
"""

from __future__ import annotations

import os
import pickle
import select
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

import numpy as np
import numpy.typing as npt

from ringleaf.core.units import FOREVER_PS, PS_PER_NS, PS_PER_S
from ringleaf.errors import BackendError
from ringleaf.networks.endpoints.director import Director
from ringleaf.networks.endpoints.endpoints import Door, Endpoints
from ringleaf.networks.live.coordinator import Coordinator, Lateness
from ringleaf.networks.live.led_host import await_the_end
from ringleaf.networks.live.members import HostProcess, listen, say
from ringleaf.networks.live.orders import Left, PartDone
from ringleaf.networks.live.processes import hurry
from ringleaf.networks.live.stalls import stalled
from ringleaf.networks.live.standstill import Moved, TreeCalls, move_trees, rebuilt
from ringleaf.networks.outcome import TreeRebuilt
from ringleaf.topologies.graph import index

START_AFTER_NS = 20_000_000  # time for every host to hear when to start
READY_S = 60.0
EXPLAIN_S = 5.0  # time in which a host that is not dead can say what it waits for
LOOK_S = 1.0  # how often to see whether there is progress


@dataclass(frozen=True, slots=True)
class Played:
    """The result of a coordinator: its end, hosts' counters, what was collected, other trees."""

    end_ps: int
    counters: list[dict[str, Any]]
    lateness: Lateness
    collected: Any
    rebuilt: tuple[TreeRebuilt, ...] = ()


@dataclass(frozen=True, slots=True)
class CoordinatorTask:
    """The parts of a coordinator's process.

    Args:
        director: Decides what runs.
        endpoints: The hosts' state.
        progress: By host, in shared memory.
        collect: Returns what the forking process wants of the director, once all is over.
        explain: Returns possible reasons why nothing gets through.
        stall_s: Time without progress after which the run fails.
        door: Tells switches what has changed.
        trees: Calls for hosts to stand still, as trees become others; None: nobody does.
    """

    director: Director
    endpoints: Endpoints
    progress: npt.NDArray[np.int64]
    collect: Callable[[], object]
    explain: Callable[[], Sequence[str]]
    stall_s: float
    door: Door
    trees: TreeCalls | None = None


class Overseer(Protocol):
    """Whoever has forked the hosts, as a coordination sees it."""

    def begin(self, start_ns: int) -> None:
        """Take note that hosts will start at this time of the monotonic clock."""

    def start(self) -> None:
        """Take note that hosts have started."""

    def stop(self) -> None:
        """Take note that all operations are over, and hosts will end."""

    def mourn(self, host: int) -> NoReturn:
        """Handle the end of a host's process."""

    def look(self) -> None:
        """Look, once a second at least, whether other processes are there."""


class _Remote:
    """An overseer in the process that has forked this one, too."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control

    def begin(self, start_ns: int) -> None:
        """Say so on the control socket."""
        say(self._control, {"start": start_ns})

    def start(self) -> None:
        """Say so on the control socket."""
        say(self._control, {"started": True})

    def stop(self) -> None:
        """Say so on the control socket."""
        say(self._control, {"stopping": True})

    def mourn(self, host: int) -> NoReturn:
        """Say so on the control socket, and wait to be ended."""
        say(self._control, {"gone": host})
        await_the_end()

    def look(self) -> None:
        """Leave that to the other process."""


def be_coordinator(
    task: CoordinatorTask, hosts: Sequence[HostProcess], result: int, control: socket.socket
) -> None:
    """Be the coordinator in this process, which was forked for it.

    `result` is the descriptor of the file for the result.
    """
    hurry()
    played = Coordination(task, hosts, _Remote(control)).run()
    data = pickle.dumps(played)
    os.pwrite(result, data, 0)
    say(control, {"result": len(data)})


class Coordination:
    """The work of a coordinator's process.

    Args:
        task: Its parts.
        hosts: The hosts' processes.
        overseer: Whoever has forked them.
        halts: Whether time stands while nothing is under way: neither what the director does
            then, nor what it waits for, takes any.
    """

    def __init__(
        self,
        task: CoordinatorTask,
        hosts: Sequence[HostProcess],
        overseer: Overseer,
        *,
        halts: bool = False,
    ) -> None:
        self._task = task
        self._hosts = hosts
        self._overseer = overseer
        self._halts = halts
        self._stood_ns = 0
        task.endpoints.door = task.door
        self._coordinator = Coordinator(task.director, task.endpoints)
        self._start_ns = 0
        self._poll = select.epoll()  # of any number of sockets; itself it is one to wait for
        self._number = {}
        for number, member in enumerate(hosts):
            self._poll.register(member.control, select.EPOLLIN)
            self._number[member.control.fileno()] = number
        self._seen: dict[int, tuple[int, float]] = {}  # by group: progress, and since when
        self._looked_s = 0.0
        self._moves: list[Moved] = []

    def run(self) -> Played:
        """Lead the hosts to the end; return the result.

        Raises:
            BackendError: If a host reports an error, or a group makes no progress any more.
        """
        self._gather("ready", READY_S)
        self._start_ns = time.monotonic_ns() + START_AFTER_NS
        self.tell({"start": self._start_ns})
        self._overseer.begin(self._start_ns)
        time.sleep(max(self._start_ns - time.monotonic_ns(), 0) / 1e9)  # as they do
        self._overseer.start()
        with self._answering():
            self._coordinate()
        self._overseer.stop()
        self.tell({"stop": True})
        counters = self._gather("counters", READY_S)
        coordinator, collected = self._coordinator, self._task.collect()
        trees = rebuilt(self._moves, self._start_ns, counters)
        return Played(coordinator.end_ps, counters, coordinator.lateness, collected, trees)

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """Answer calls for hosts to stand still."""
        calls = self._task.trees
        if calls is None:
            yield
            return
        self._poll.register(calls.call, select.EPOLLIN)
        yield
        self._poll.unregister(calls.call)

    def _coordinate(self) -> None:
        """Let the director run until all is over."""
        coordinator = self._coordinator
        with self._asking():
            coordinator.start(self._now_ps)
        while not coordinator.is_over:
            for hosts, order in coordinator.take_orders():
                self._send(hosts, order.message())
            next_ps = coordinator.next_ps()
            if self._halts and coordinator.is_idle and next_ps < FOREVER_PS:
                self._stood_ns -= max(next_ps - self._now_ps, 0) // PS_PER_NS + 1
            left_s = (next_ps - self._now_ps) / PS_PER_S if next_ps < FOREVER_PS else LOOK_S
            for number, message in self._hear(min(left_s, LOOK_S)):
                with self._asking():
                    self._pass_on(number, message)
            if self._now_ps >= next_ps:
                with self._asking():
                    coordinator.reach(self._now_ps)
            self._check_progress()

    def _pass_on(self, number: int, message: dict[str, Any]) -> None:
        """Have the coordinator hear of what a host has under way."""
        stood_ps = self._stood_ns * PS_PER_NS
        if "left" in message:
            left = Left(**message["left"]).earlier(stood_ps)
            self._coordinator.hear_left(number, left, self._now_ps)
        else:
            done = PartDone(**message["done"]).earlier(stood_ps)
            self._coordinator.hear(number, done, self._now_ps)

    @property
    def _now_ps(self) -> int:
        return (time.monotonic_ns() - self._start_ns - self._stood_ns) * PS_PER_NS

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Let time stand while the director is asked, if it is to, and nothing was under way."""
        before_ns = time.monotonic_ns()
        yield
        if self._halts and self._coordinator.was_idle:
            self._stood_ns += time.monotonic_ns() - before_ns

    def _send(self, numbers: Sequence[int], message: dict[str, Any]) -> None:
        for number in numbers:
            try:
                say(self._hosts[number].control, message)
            except OSError:
                self._overseer.mourn(number)

    def _hear(self, limit_s: float) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the messages that have come; wait for the first of them for a limited time."""
        select.select([self._poll], [], [], max(limit_s, 0))  # finer than epoll's milliseconds
        self._overseer.look()
        ready = {descriptor for descriptor, _ in self._poll.poll(0)}
        calls = self._task.trees
        if calls is not None and calls.call in ready:
            besides: list[tuple[int, dict[str, Any]]] = []
            self._moves.append(move_trees(calls, self, lambda *each: besides.append(each)))
            yield from besides
            return  # of hosts that were ready, all messages may have come
        for number in sorted(map(self._number.__getitem__, ready)):
            yield number, self.hear(number)

    @property
    def count(self) -> int:
        """The number of hosts."""
        return len(self._hosts)

    def tell(self, message: dict[str, Any]) -> None:
        """Send all hosts a message."""
        self._send(range(self.count), message)

    def hear(self, number: int) -> dict[str, Any]:
        """Return a host's next message.

        Raises:
            BackendError: If it has an error to report.
        """
        message = listen(self._hosts[number].control)
        if message is None:
            self._overseer.mourn(number)
        if "error" in message:
            raise BackendError(f"{self._hosts[number].name}: {message['error']}")
        return message

    def _gather(self, kind: str, limit_s: float) -> list[Any]:
        """Return hosts' messages of a kind, in their order.

        Raises:
            BackendError: If one does not answer in time.
        """
        heard = self._listen(kind, range(len(self._hosts)), limit_s)
        for number, member in enumerate(self._hosts):
            if number not in heard:
                raise BackendError(f"{member.name}: not {kind}, got nothing for {limit_s:.0f} s")
        return [heard[number] for number in range(len(self._hosts))]

    def _listen(self, kind: str, numbers: Sequence[int], limit_s: float) -> dict[int, Any]:
        """Return what hosts say of a kind, as far as they do within a time."""
        heard: dict[int, Any] = {}
        deadline_s = time.monotonic() + limit_s
        while len(heard) < len(numbers) and (left_s := deadline_s - time.monotonic()) > 0:
            for number, message in self._hear(left_s):
                if kind in message:
                    heard[number] = message[kind]
                if "counters" in message:  # its last word
                    self._poll.unregister(self._hosts[number].control)
        return heard

    def _check_progress(self) -> None:
        """Look whether each group that has something under way gets on.

        Raises:
            BackendError: If one does not.
        """
        now_s, groups = time.monotonic(), self._task.endpoints.groups
        if now_s - self._looked_s < LOOK_S:
            return
        self._looked_s = now_s
        waiting = self._coordinator.waiting()
        for group in self._seen.keys() - waiting.keys():
            del self._seen[group]
        for group in waiting:
            members = [index(host) for host in groups[group].nodes]
            done = int(self._task.progress[members].sum())
            before, since_s = self._seen.get(group, (-1, now_s))
            if done != before:
                self._seen[group] = done, now_s
            elif now_s - since_s > self._task.stall_s:
                raise self._stall(waiting)

    def _stall(self, waiting: Mapping[int, Sequence[int]]) -> BackendError:
        """Return an error that names the hosts that are not done, and those they wait for."""
        left = sorted({number for numbers in waiting.values() for number in numbers})
        self._send(left, {"explain": True})
        answers = self._listen("waits", left, EXPLAIN_S)
        names = {number: self._hosts[number].name for number in left}
        return stalled("finished", names, answers, self._task.explain(), s=self._task.stall_s)
