"""Packet by packet in virtual time: deterministic, real bytes, real tensors."""

from networks.options import Options
from networks.virtual.meter import RunResult
from networks.virtual.network import VirtualNetwork

__all__ = ["Options", "RunResult", "VirtualNetwork"]
