"""Leaves that every other package may import: errors, units, the arena, packets."""

__version__ = "0.1.0"
