"""All hosts of a live network, and a coordinator that leads them: a process each."""

from __future__ import annotations

import mmap
import os
import pickle
import select
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NoReturn

import numpy as np

from ringleaf.arena import Store
from ringleaf.errors import BackendError
from ringleaf.networks.endpoints.director import Planner
from ringleaf.networks.endpoints.endpoints import Endpoints
from ringleaf.networks.live.coordination import (
    Coordination,
    CoordinatorTask,
    Played,
    be_coordinator,
)
from ringleaf.networks.live.host_process import HostTask, LivePlace, be_host
from ringleaf.networks.live.led_host import LedHost
from ringleaf.networks.live.members import Member, Members, death, listen
from ringleaf.networks.live.processor import Stopwatch


class LedCrew:
    """The processes of one play of a director.

    Args:
        places: The place of each host, in their order.
        endpoints: The hosts.
        store: The store of the hosts, with shared memory.
        watched: Descriptors that become readable when a process that the network needs ends,
            and the process's name.
        check: Raises an error that tells more about a process that has ended.
        explain: Returns possible reasons why nothing gets through.
        seed: Seed of losses.
        stall_s: Time without any progress of a group after which the play fails.
    """

    def __init__(
        self,
        places: Sequence[LivePlace],
        endpoints: Endpoints,
        store: Store,
        *,
        watched: Mapping[int, str],
        check: Callable[[], None],
        explain: Callable[[], Sequence[str]],
        seed: int,
        stall_s: float,
    ) -> None:
        self._places = places
        self._endpoints = endpoints
        self._store = store
        self._watched = watched
        self._check = check
        self._explain = explain
        self._seed = seed
        self._stall_s = stall_s

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
            overseer = _Overseer(hosts, stopwatch, self._look)
            return Coordination(task, hosts, overseer, halts=True).run()

    def _fork_hosts(
        self, members: Members, director: Planner, collect: Callable[[], object]
    ) -> tuple[CoordinatorTask, list[Member]]:
        """Fork a process for each host; return the coordinator's task, and them."""
        known = {built[0].at: built for built in director.build()}
        progress = np.frombuffer(mmap.mmap(-1, 8 * len(self._places)), np.int64)
        shared = HostTask(self._endpoints, self._store, progress, self._seed)
        hosts = [
            members.fork(
                place.name,
                "agent",
                partial(be_host, place, partial(LedHost, place, number, shared, known)),
            )
            for number, place in enumerate(self._places)
        ]
        task = CoordinatorTask(
            director, self._endpoints, progress, collect, self._explain, self._stall_s
        )
        return task, hosts

    def _await(self, leader: Member, hosts: Sequence[Member], stopwatch: Stopwatch) -> int:
        """Wait for the coordinator's result; return its size in bytes."""
        poll = select.poll()
        for descriptor in (leader.control.fileno(), *self._watched):
            poll.register(descriptor, select.POLLIN)
        while True:
            self._check_watched({descriptor for descriptor, _ in poll.poll()})
            said = listen(leader.control)
            if said is None:
                raise death(leader)
            if "error" in said:
                raise BackendError(said["error"])
            if "gone" in said:
                raise death(hosts[said["gone"]])
            if "started" in said:
                stopwatch.start()
            elif "stopping" in said:
                stopwatch.stop()
            elif "result" in said:
                return int(said["result"])

    def _look(self) -> None:
        """Look whether the processes that the network needs are there."""
        if self._watched:
            self._check_watched(set(select.select(list(self._watched), [], [], 0)[0]))

    def _check_watched(self, ready: set[int]) -> None:
        for descriptor in ready & self._watched.keys():
            self._check()
            name = self._watched[descriptor]
            raise BackendError(f"{name}: its process has ended in the middle of a run")


class _Overseer:
    """The overseer of a coordination in the process that has forked the hosts."""

    def __init__(
        self, hosts: Sequence[Member], stopwatch: Stopwatch, look: Callable[[], None]
    ) -> None:
        self._hosts = hosts
        self.start, self.stop = stopwatch.start, stopwatch.stop
        self.look = look

    def mourn(self, host: int) -> NoReturn:
        raise death(self._hosts[host])
