"""Networks of Linux namespaces and veth pairs, as Mininet builds them, with P4 switches."""

from networks.mininet.fabric import Fabric, Settings

__all__ = ["Fabric", "Settings"]
