"""Hosts that compute more slowly for a while (stragglers), and what that does to computations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from ringleaf.core.faults import SLOW, NetworkFault
from ringleaf.core.units import FOREVER_PS
from ringleaf.errors import ConfigError


class SlowSpan(NamedTuple):
    """A time in which a rank takes so many times as long."""

    start_ps: int
    end_ps: int
    times: float


class Slowness:
    """The times at which ranks are slow.

    Args:
        spans: By rank, its times; they must be apart.

    Raises:
        ConfigError: If a rank is slow twice at a time.
    """

    def __init__(self, spans: Mapping[int, Sequence[SlowSpan]]) -> None:
        self._spans = {rank: sorted(own) for rank, own in spans.items()}
        for rank, own in self._spans.items():
            for before, after in pairwise(own):
                if after.start_ps < before.end_ps:
                    raise ConfigError(
                        f"faults: a host must not be slow twice at a time, got {before.times:g} "
                        f"and {after.times:g} of rank {rank}"
                    )

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks that are slow at any time."""
        return tuple(self._spans)

    def end_ps(self, rank: int, start_ps: int, work_ps: int) -> int:
        """Return when a computation ends that takes so long if the rank is not slow."""
        now_ps, left_ps = start_ps, work_ps
        for span in self._spans.get(rank, ()):
            if span.end_ps <= now_ps:
                continue
            if left_ps <= span.start_ps - now_ps:
                break
            left_ps -= max(span.start_ps - now_ps, 0)
            now_ps = max(span.start_ps, now_ps)
            if left_ps * span.times <= span.end_ps - now_ps:
                return now_ps + round(left_ps * span.times)
            left_ps -= round((span.end_ps - now_ps) / span.times)
            now_ps = span.end_ps
        return now_ps + max(left_ps, 0)

    def times_at(self, rank: int, now_ps: int) -> float:
        """Return how many times as long a rank takes at a time."""
        own = self._spans.get(rank, ())
        return next((each.times for each in own if each.start_ps <= now_ps < each.end_ps), 1.0)


def slowness_of(faults: Iterable[NetworkFault], hosts: Sequence[str]) -> Slowness:
    """Return the times at which ranks are slow because of faults.

    Args:
        faults: All faults.
        hosts: The host of each rank.

    Raises:
        ConfigError: If a rank is slow twice at a time, or no rank is on a host that is slow.
    """
    spans: dict[int, list[SlowSpan]] = {}
    for fault in faults:
        if fault.kind != SLOW:
            continue
        if fault.place not in hosts:
            some = ", ".join(hosts[:3])
            raise ConfigError(
                f"faults: slow is for hosts that compute, got {str(fault)!r}; like one of {some}"
            )
        own = spans.setdefault(hosts.index(fault.place), [])
        own += [
            SlowSpan(start, FOREVER_PS if end is None else end, fault.value)
            for start, end in fault.spans()
        ]
    return Slowness(spans)
