"""The least bytes that SHARP sends over each link."""

from ringleaf.ina.sharp.loads import demand

__all__ = ["demand"]
