"""The least bytes that ESA sends over each link: ATP's, as all blocks may find aggregators."""

from __future__ import annotations

from ringleaf.ina.atp.loads import demand

__all__ = ["demand"]
