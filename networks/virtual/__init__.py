"""Packet by packet in virtual time: deterministic, real bytes, real tensors."""

from networks.virtual.meter import RunResult
from networks.virtual.network import VirtualNetwork
from networks.virtual.options import Options

__all__ = ["Options", "RunResult", "VirtualNetwork"]
