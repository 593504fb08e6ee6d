"""Packet by packet in virtual time: deterministic, real bytes, real tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ringleaf.networks.options import NetworkOptions

if TYPE_CHECKING:
    from ringleaf.networks.virtual.network import VirtualNetwork

__all__ = ["NetworkOptions", "VirtualNetwork"]


def __getattr__(name: str) -> Any:
    """Import the network on first use: the switches' process never needs it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ringleaf.networks.virtual import network

    return getattr(network, name)
