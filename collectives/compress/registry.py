"""The compressors by name. A new one is a file in `compressors`, or an entry point of a package."""

from __future__ import annotations

from collections.abc import Callable

from ringleaf.collectives.compress.compressor import Compressor
from ringleaf.registry import Registry

COMPRESSORS: Registry[Callable[[str, str], Compressor]] = Registry(
    "compressors", "compressor", "collectives/compressors", "COMPRESSOR"
)
"""From what stands behind the colon, and how errors begin, to a compressor."""


def parse_compressor(text: str, where: str = "compress") -> Compressor:
    """The compressor of `topk:1%` or `randomk:100`.

    Raises:
        ConfigError: Naming the valid ones, or what is wrong behind the colon.
    """
    name, _, rest = text.partition(":")
    return COMPRESSORS.find(name, where)(rest, f"{where}: {name}")
