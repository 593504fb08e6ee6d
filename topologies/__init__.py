"""Networks as graphs: families by name, addresses, routes, aggregation trees, drawings."""

from ringleaf.topologies.graph import Link, Role, hosts, switches
from ringleaf.topologies.registry import TOPOLOGIES, build

__all__ = ["TOPOLOGIES", "Link", "Role", "build", "hosts", "switches"]
