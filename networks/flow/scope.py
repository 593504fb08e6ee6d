"""What flows can stand for; all else is refused, with the reason and a remedy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ringleaf.errors import ConfigError

if TYPE_CHECKING:
    import networkx as nx

    from ringleaf.networks.groups import Group
    from ringleaf.networks.options import NetworkOptions

REMEDY = "use --net virtual"


def check_options(
    graph: nx.Graph[str], options: NetworkOptions, groups: Sequence[Group]
) -> None:
    """Check that a network of flows can be had with these options.

    Raises:
        ConfigError: If packets would matter.
    """
    from ringleaf.topologies.graph import directions

    losses = [sent.loss_or(options.loss) for _, _, sent in directions(graph)]
    refuse("loss", "covers loss", max(losses, default=0.0))
    refuse("duplicate", "covers packets that come twice", options.duplicate)
    refuse("reorder", "covers packets that come late", options.reorder)
    refuse("trim", "covers trimming", options.trim_bytes)
    refuse("pfc", "covers priority flow control", options.pfc)
    refuse("cc", "covers controllers that react", options.cc != "fixed" and options.cc)
    refuse("cross_traffic", "has packets for a capture", options.cross_traffic)
    refuse("pcap", "has packets for a capture", options.capture)
    refuse("record", "has packets for traces", options.record)
    refuse("discipline", "covers other queues", options.discipline != "strict" and options.discipline)
    refuse("program", "runs programs", options.assigned or options.program != "forward")
    systems = [group.system.name for group in groups if group.system is not None]
    refuse("algo", "is there for this system", ", ".join(systems))


def refuse(option: str, what: str, value: object) -> None:
    """Refuse an option that is set.

    Raises:
        ConfigError: If the value is true.
    """
    if value:
        raise ConfigError(f"{option}: no fluid model {what}, got {value}; {REMEDY}")
