"""All hosts of a live network, and a coordinator that leads them: a process each."""

from __future__ import annotations

import os
import pickle
import select
from collections.abc import Callable, Sequence
from functools import partial
from typing import NoReturn

from ringleaf.errors import BackendError
from ringleaf.networks.endpoints.director import Planner
from ringleaf.networks.live.coordination import (
    Coordination,
    CoordinatorTask,
    Played,
    be_coordinator,
)
from ringleaf.networks.live.host_process import HostTask, be_host
from ringleaf.networks.live.led_host import LedHost
from ringleaf.networks.live.members import HostProcess, Members, death, listen
from ringleaf.networks.live.processor import Stopwatch
from ringleaf.networks.live.surroundings import CrewSurroundings


class LedCrew:
    """The processes of one play of a director.

    Args:
        around: The network around them.
        task: What all hosts' processes share.
    """

    def __init__(self, around: CrewSurroundings, task: HostTask) -> None:
        self._around = around
        self._shared = task

    def play(
        self, director: Planner, collect: Callable[[], object], stopwatch: Stopwatch
    ) -> Played:
        """Have the director's operations run until it has no more; return the result.

        The director decides in the coordinator's process: the caller's has only what `collect`
        returns there in the end, pickled. The stopwatch runs from the common start to the end.

        Raises:
            BackendError: If a process ends too early, reports an error, or a group makes no
                progress any more.
        """
        result = os.memfd_create("result")
        try:
            with Members() as members:
                task, hosts = self._fork_hosts(members, director, collect)
                leader = members.fork(
                    "coordinator", "process", partial(be_coordinator, task, hosts, result)
                )
                size = self._await(leader, hosts, stopwatch)
            played: Played = pickle.loads(os.pread(result, size, 0))
            return played
        finally:
            os.close(result)

    def lead(self, director: Planner, stopwatch: Stopwatch) -> Played:
        """Have the director's operations run, as `play` does; it decides in this process.

        Time stands while nothing is under way.

        Raises:
            BackendError: If a process ends too early, reports an error, or a group makes no
                progress any more.
        """
        with Members() as members:
            task, hosts = self._fork_hosts(members, director, lambda: None)
            overseer = _Overseer(hosts, stopwatch, self._around.begin, self._look)
            return Coordination(task, hosts, overseer, halts=True).run()

    def _fork_hosts(
        self, members: Members, director: Planner, collect: Callable[[], object]
    ) -> tuple[CoordinatorTask, list[HostProcess]]:
        """Fork a process for each host; return the coordinator's task, and them."""
        known = {built[0].at: built for built in director.build()}
        hosts = [
            members.fork(
                place.name,
                "agent",
                partial(be_host, place, partial(LedHost, place, number, self._shared, known)),
            )
            for number, place in enumerate(self._around.places)
        ]
        task = CoordinatorTask(
            director,
            self._shared.endpoints,
            self._shared.progress,
            collect,
            self._around.explain,
            self._around.stall_s,
            self._around.door,
            self._around.trees,
        )
        return task, hosts

    def _await(
        self, leader: HostProcess, hosts: Sequence[HostProcess], stopwatch: Stopwatch
    ) -> int:
        """Wait for the coordinator's result; return its size in bytes."""
        poll = select.poll()
        for descriptor in (leader.control.fileno(), *self._around.watched):
            poll.register(descriptor, select.POLLIN)
        while True:
            self._around.look({descriptor for descriptor, _ in poll.poll()})
            message = listen(leader.control)
            if message is None:
                raise death(leader)
            if "error" in message:
                raise BackendError(message["error"])
            if "gone" in message:
                raise death(hosts[message["gone"]])
            if "start" in message:
                self._around.begin(message["start"])
            elif "started" in message:
                stopwatch.start()
            elif "stopping" in message:
                stopwatch.stop()
            elif "result" in message:
                return int(message["result"])

    def _look(self) -> None:
        """Look whether the processes that the network needs are there."""
        if watched := list(self._around.watched):
            self._around.look(set(select.select(watched, [], [], 0)[0]))


class _Overseer:
    """The overseer of a coordination in the process that has forked the hosts."""

    def __init__(
        self,
        hosts: Sequence[HostProcess],
        stopwatch: Stopwatch,
        begin: Callable[[int], None],
        look: Callable[[], None],
    ) -> None:
        self._hosts = hosts
        self.start, self.stop = stopwatch.start, stopwatch.stop
        self.begin, self.look = begin, look

    def mourn(self, host: int) -> NoReturn:
        """Fail with the error that the host's process has left."""
        raise death(self._hosts[host])
