"""All hosts of a live network, and a coordinator that leads them: a process each."""

from __future__ import annotations

import mmap
import os
import pickle
import select
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from ringleaf.arena import Store
from ringleaf.errors import BackendError
from ringleaf.networks.endpoints.director import Planner
from ringleaf.networks.endpoints.endpoints import Endpoints
from ringleaf.networks.live.coordination import CoordinatorTask, Played, be_coordinator
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
        known = {executors.at: executors for executors in director.build()}
        progress = np.frombuffer(mmap.mmap(-1, 8 * len(self._places)), np.int64)
        task = HostTask(self._endpoints, self._store, progress, self._seed)
        result = os.memfd_create("result")
        try:
            with Members() as members:
                hosts = [
                    members.fork(
                        place.name,
                        "agent",
                        partial(be_host, place, partial(LedHost, place, number, task, known)),
                    )
                    for number, place in enumerate(self._places)
                ]
                about = CoordinatorTask(
                    director, self._endpoints, progress, collect, self._explain, self._stall_s,
                    result,
                )  # fmt: skip
                leader = members.fork(
                    "coordinator", "process", partial(be_coordinator, about, hosts)
                )
                size = self._await(leader, hosts, stopwatch)
            played: Played = pickle.loads(os.pread(result, size, 0))
            return played
        finally:
            os.close(result)

    def _await(self, leader: Member, hosts: Sequence[Member], stopwatch: Stopwatch) -> int:
        """Wait for the coordinator's result; return its size in bytes."""
        poll = select.poll()
        for descriptor in (leader.control.fileno(), *self._watched):
            poll.register(descriptor, select.POLLIN)
        while True:
            ready = {descriptor for descriptor, _ in poll.poll()}
            for descriptor in ready & self._watched.keys():
                self._check()
                name = self._watched[descriptor]
                raise BackendError(f"{name}: its process has ended in the middle of a run")
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
