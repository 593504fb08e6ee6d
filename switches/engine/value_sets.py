"""Parser value sets: the control plane's members, laid out for the parser's look-up.

An image is `uint64`: the number of members, then per member and per word of the key a value
and a mask. A key's parts are words of their own, as the parser has them, lowest first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ringleaf.core.arena import Fields
from ringleaf.core.compiled import inline
from ringleaf.core.units import format_count
from ringleaf.errors import Code, ConfigError, choose
from ringleaf.switches.engine.updates import Match, ValueSetUpdate
from ringleaf.switches.source import ValueSet

_ONE = np.uint64(1)
_TWO = np.uint64(2)


def image_words(value_set: ValueSet) -> int:
    """Return the size of an image that has room for all members."""
    return 1 + 2 * _key_words(value_set) * value_set.max_size


def image_of(value_set: ValueSet, members: Sequence[Match], where: str) -> list[int]:
    """Return the image of a value set with these members.

    Raises:
        ConfigError: If they are too many, or don't fit the key.
    """
    if len(members) > value_set.max_size:
        raise ConfigError(
            f"{where}: value set {value_set.name!r} has room for "
            f"{format_count(value_set.max_size, 'member')}, got {len(members)}",
            Code.RESOURCE_EXHAUSTED,
        )
    image = [len(members)]
    for member in members:
        if len(member) != len(value_set.widths):
            raise ConfigError(
                f"{where}: value set {value_set.name!r} has keys of "
                f"{format_count(len(value_set.widths), 'part')}, got {member!r}",
                Code.INVALID_ARGUMENT,
            )
        for (value, mask), width in zip(member, value_set.widths, strict=True):
            if not (0 <= value < 1 << width and 0 <= mask < 1 << width):
                raise ConfigError(
                    f"{where}: value set {value_set.name!r} has a part of "
                    f"{format_count(width, 'bit')}, got {value:#x} with mask {mask:#x}",
                    Code.INVALID_ARGUMENT,
                )
            for i in range(-(-width // 64)):
                image += [(value & mask) >> 64 * i & (1 << 64) - 1, mask >> 64 * i & (1 << 64) - 1]
    return image


class ValueSets:
    """A program's value sets and their members."""

    def __init__(self, sets: Mapping[str, ValueSet], where: str) -> None:
        self._sets = sets
        self._where = where
        self._members: dict[str, tuple[Match, ...]] = dict.fromkeys(sets, ())

    def members(self, name: str) -> tuple[Match, ...]:
        """Return a value set's members: the value and mask of each part of their keys."""
        return self._members[choose(self._where, "value set", name, self._sets)]

    def replace(self, update: ValueSetUpdate) -> None:
        """Replace all members of a value set.

        Raises:
            ConfigError: If there is no such set, or its members do not fit it.
        """
        name = choose(self._where, "value set", update.value_set, self._sets)
        image_of(self._sets[name], update.members, self._where)
        self._members[name] = update.members

    def images(self) -> Iterator[tuple[str, list[int]]]:
        """Yield each set's name and image."""
        for name, value_set in self._sets.items():
            yield name, image_of(value_set, self._members[name], self._where)


@inline
def is_member(state: Fields, image: int, key: tuple[int, ...]) -> bool:
    """Return whether a member has this key; `image` is the offset of the set's image."""
    at = image + _ONE
    for _ in range(np.int64(state[image])):
        same = True
        for word in key:
            same &= (word & state[at + _ONE]) == state[at]
            at += _TWO
        if same:
            return True
    return False


def _key_words(value_set: ValueSet) -> int:
    return sum(-(-width // 64) for width in value_set.widths)
