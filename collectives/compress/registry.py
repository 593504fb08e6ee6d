"""The compressors by name. A new one is a file of its own and a line here."""

from __future__ import annotations

from collections.abc import Callable

from ringleaf.collectives.compress.compressor import Compressor
from ringleaf.collectives.compress.randomk import RandomK
from ringleaf.collectives.compress.share import parse_share
from ringleaf.collectives.compress.topk import TopK
from ringleaf.errors import choose

COMPRESSORS: dict[str, Callable[[str, str], Compressor]] = {
    "topk": lambda text, where: TopK(parse_share(text, where)),
    "randomk": lambda text, where: RandomK(parse_share(text, where)),
}
"""From what stands behind the colon, and how errors begin, to a compressor."""


def parse_compressor(text: str, where: str = "compress") -> Compressor:
    """The compressor of `topk:1%` or `randomk:100`.

    Raises:
        ConfigError: Naming the valid ones, or what is wrong behind the colon.
    """
    name, _, rest = text.partition(":")
    return COMPRESSORS[choose(where, "compressor", name, COMPRESSORS)](rest, f"{where}: {name}")
