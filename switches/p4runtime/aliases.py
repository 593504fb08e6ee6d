"""Aliases of a program's objects (P4Runtime 1.4, section 6.1: the shortest end that is unique)."""

from __future__ import annotations

from collections.abc import Iterable


def shortest_ends(names: Iterable[str]) -> dict[str, str]:
    """Return names with their aliases: the shortest ends that only one of them has."""
    ends: dict[str, list[str]] = {}
    parts = {name: name.split(".") for name in names}
    for name, words in parts.items():
        for count in range(1, len(words) + 1):
            ends.setdefault(".".join(words[-count:]), []).append(name)
    return {
        name: next(
            end
            for count in range(1, len(words) + 1)
            if len(ends[end := ".".join(words[-count:])]) == 1 or count == len(words)
        )
        for name, words in parts.items()
    }
