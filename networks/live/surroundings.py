"""What hosts' processes have around them: places in namespaces, and processes of switches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ringleaf.errors import BackendError
from ringleaf.ina.holdings import Updates
from ringleaf.networks.endpoints.endpoints import Door
from ringleaf.networks.live.host_process import LivePlace
from ringleaf.networks.live.standstill import TreeCalls

STALL_S = 30.0


def _closed(updates: Updates) -> None:
    """Refuse updates: nothing is known of the switches."""
    raise AssertionError(f"switches can't be told {sorted(updates)}")


def _untold(start_ns: int) -> None:
    """Do nothing when a run starts."""


@dataclass(frozen=True, slots=True)
class CrewSurroundings:
    """The network around a crew of hosts' processes.

    Args:
        places: The place of each host, in their order.
        watched: Descriptors that become readable when a process that the network needs ends,
            and the process's name.
        check: Raises an error that tells more about a process that has ended.
        explain: Returns possible reasons why nothing gets through.
        stall_s: Time without any progress after which a run fails.
        door: Writes P4Runtime entities to the switches; only for a process that forks no more.
        begin: Is told when a run starts, by the monotonic clock in nanoseconds, before it does.
        trees: Calls for hosts to stand still, as trees become others; None: nobody does.
    """

    places: Sequence[LivePlace]
    watched: Mapping[int, str] = field(default_factory=dict)
    check: Callable[[], None] = lambda: None
    explain: Callable[[], Sequence[str]] = tuple
    stall_s: float = STALL_S
    door: Door = _closed
    begin: Callable[[int], None] = _untold
    trees: TreeCalls | None = None

    def look(self, ready: set[int]) -> None:
        """Look whether a process has ended, as its descriptor is among those that are ready.

        Raises:
            BackendError: If one has.
        """
        for descriptor in ready & self.watched.keys():
            self.check()
            name = self.watched[descriptor]
            raise BackendError(f"{name}: its process has ended in the middle of a run")
