"""Leaves that every package may import: units, the arena, packets, compiled code, files."""
