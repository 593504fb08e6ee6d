"""Jobs' use of entries in switches' memory, sampled over time from the switches' registers.

As with the series of `bins.py`, the interval doubles whenever there are too many samples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ringleaf.core.units import PS_PER_US
from ringleaf.ina.occupancy import Occupies
from ringleaf.networks.endpoints.endpoints import Endpoints
from ringleaf.networks.groups import Group
from ringleaf.switches.switch import Switch

FIRST_INTERVAL_PS = PS_PER_US
SAMPLES = 512  # at most, an even number
FEW_SAMPLES = 32  # of a single collective, which may be over before as many as above are read


class Occupancy:
    """Samples of the entries in use, at equal intervals.

    Args:
        switches: The switches that aggregate, by name.
        groups: The groups of the network.
        start_ps: Time of the first sample.
        most: Samples at most, an even number.
    """

    def __init__(
        self,
        switches: Mapping[str, Switch],
        groups: Sequence[Group],
        start_ps: int,
        most: int = SAMPLES,
    ) -> None:
        self._most = most
        self._switches = switches
        systems: list[Occupies] = []
        for group in groups:
            system = _occupying(group)
            if system is not None and system not in systems:
                systems.append(system)
        self._numbers = max(group.number for group in groups) + 1
        self._usages = [system.usage(list(switches.values()), self._numbers) for system in systems]
        self._samples = np.zeros((most, len(switches), self._numbers), np.int64)
        self._count = 0
        self._start_ps = start_ps
        self.interval_ps = FIRST_INTERVAL_PS

    @property
    def next_ps(self) -> int:
        """The time of the next sample, which must be taken before any later event."""
        return self._start_ps + self._count * self.interval_ps

    def sample(self, until_ps: int) -> None:
        """Take the samples due up to `until_ps`; no event may have come since the first of them."""
        if self.next_ps > until_ps:
            return
        now = self._read()
        while self.next_ps <= until_ps:
            if self._count == self._most:
                self._samples[: self._most // 2] = self._samples[::2].copy()
                self._count //= 2
                self.interval_ps *= 2
            self._samples[self._count] = now
            self._count += 1

    def _read(self) -> npt.NDArray[np.int64]:
        """Return the entries in use now, by switch and group number."""
        entries = np.zeros((len(self._switches), self._numbers), np.int64)
        for count in self._usages:
            entries += count()
        return entries

    def series(self) -> dict[str, npt.NDArray[np.int64]]:
        """Return, per switch, entries in use by group number and sample: (numbers, samples)."""
        taken = self._samples[: self._count]
        return {name: taken[:, i].T.copy() for i, name in enumerate(self._switches)}


def watch(
    switches: Mapping[str, Switch], endpoints: Endpoints, start_ps: int, most: int = SAMPLES
) -> Occupancy | None:
    """Return an occupancy of the switches that aggregate; None if there are none."""
    names = {
        name
        for place, aggregator in endpoints.aggregators.items()
        if _occupying(endpoints.groups[place]) is not None
        for name in aggregator.entities
    }
    watched = {name: switch for name, switch in switches.items() if name in names}
    return Occupancy(watched, endpoints.groups, start_ps, most) if watched else None


def _occupying(group: Group) -> Occupies | None:
    """Return the reader of the entries that a group's system takes; None if it takes none."""
    reader = group.system.reader() if group.system is not None else None
    return reader if isinstance(reader, Occupies) else None
