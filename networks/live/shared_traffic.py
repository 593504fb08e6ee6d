"""The traffic of live hosts, in memory that their processes share with a controller's."""

from __future__ import annotations

import mmap

import numpy as np
import numpy.typing as npt

from ringleaf.networks.endpoints.rack_demand import PairTraffic


class SharedTraffic:
    """The traffic from each host to each other one; a host's process notes its own.

    Args:
        hosts: Number of hosts.
    """

    def __init__(self, hosts: int) -> None:
        memory = mmap.mmap(-1, 2 * 8 * hosts * hosts)
        self._bytes: npt.NDArray[np.int64] = np.frombuffer(memory, np.int64)
        self._bytes = self._bytes.reshape(2, hosts, hosts)
        self._ends = np.argwhere(np.ones((hosts, hosts), bool))

    def clear(self) -> None:
        """Have nothing sent yet."""
        self._bytes[:] = 0

    def note(self, host: int, traffic: PairTraffic) -> None:
        """Note what a host has sent so far."""
        for place, counted in enumerate((traffic.acked_bytes, traffic.posted_bytes)):
            row = np.zeros(self._bytes.shape[2], np.int64)
            np.add.at(row, traffic.ends[:, 1], counted)
            self._bytes[place, host] = row

    def __call__(self) -> PairTraffic:
        """Return the traffic of all hosts so far."""
        acked, posted = self._bytes.reshape(2, -1).copy()
        return PairTraffic(self._ends, acked, np.maximum(posted, acked))
