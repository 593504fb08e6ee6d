"""The compressors by name. A new one is a file in `compressors`, or an entry point of a package."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ringleaf.core.registry import Registry

if TYPE_CHECKING:
    from ringleaf.collectives.compression.compressor import Compressor

COMPRESSORS: Registry[Callable[[str, str], Compressor]] = Registry(
    "compressors", "compressor", "collectives/compressors", "COMPRESSOR"
)
"""Parsers: from the text behind the colon, and the start of error messages, to a compressor."""


def parse_compressor(text: str, where: str = "compress") -> Compressor:
    """Return the compressor of a text like `topk:1%` or `randomk:100`.

    Raises:
        ConfigError: If the name is unknown, or the text behind the colon is wrong.
    """
    name, _, rest = text.partition(":")
    return COMPRESSORS.find(name, where)(rest, f"{where}: {name}")
