"""Algorithms and codecs by name.

A new one is a file in `algorithms` or `codecs`, or an entry point of a package.
"""

from __future__ import annotations

from ringleaf.collectives.algorithm import Algorithm
from ringleaf.collectives.codec import Codec
from ringleaf.registry import Registry

ALGORITHMS: Registry[Algorithm] = Registry(
    "algorithms", "algorithm", "collectives/algorithms", "ALGORITHM"
)

CODECS: Registry[Codec] = Registry("codecs", "codec", "collectives/codecs", "CODEC")


def find_algorithm(name: str) -> Algorithm:
    """Return the algorithm of that name.

    Raises:
        ConfigError: If there is none; the message names the valid ones.
    """
    return ALGORITHMS.find(name, "algo")
