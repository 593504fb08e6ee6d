"""From a P4 program's JSON to the source of a Python module that Numba compiles."""

from switches.generate.module import Module, generate

__all__ = ["Module", "generate"]
