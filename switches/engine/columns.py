"""New entries of a table as columns, for tables that get thousands of them at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ringleaf.core.arena import Fields, Words
from ringleaf.switches.engine.updates import InstalledEntry

MOST_BITS = 64
"""The widest keys and parameters that fit into columns."""


@dataclass(frozen=True, slots=True, eq=False)
class EntryColumns:
    """Entries of one table, oldest first; a row stands for an `InstalledEntry` without any extras.

    Attributes:
        values: (entries, keys) values, with zeros where the mask has zeros.
        masks: (entries, keys) masks; all ones for exact keys.
        action: (entries,) the actions' numbers in the JSON.
        arguments: (entries, most) the arguments of each action, then zeros.
        precedence: (entries,) the highest wins; 0 in tables without priorities.
        counts: The number of arguments of each action that occurs.
    """

    values: Fields
    masks: Fields
    action: Words
    arguments: Fields
    precedence: Words
    counts: Mapping[int, int]

    def __len__(self) -> int:
        return len(self.action)

    def followed_by(self, others: EntryColumns) -> EntryColumns:
        """Return these entries and then others of the same table."""
        most = max(self.arguments.shape[1], others.arguments.shape[1])
        return EntryColumns(
            np.concatenate([self.values, others.values]),
            np.concatenate([self.masks, others.masks]),
            np.concatenate([self.action, others.action]),
            np.concatenate([_widened(each.arguments, most) for each in (self, others)]),
            np.concatenate([self.precedence, others.precedence]),
            {**self.counts, **others.counts},
        )

    @property
    def prefixes(self) -> Words:
        """(entries,) the number of ones in all masks of each entry."""
        return np.bitwise_count(self.masks).sum(axis=1, dtype=np.int64)

    def are_unique(self) -> bool:
        """Return whether no two entries have the same match and precedence."""
        keys = [*self.values.T, *self.masks.T, self.precedence]
        order = np.lexsort(keys)
        same = np.ones(max(len(self) - 1, 0), bool)
        for key in keys:
            along = key[order]
            same &= along[1:] == along[:-1]
        return not same.any()

    def entries(self) -> list[InstalledEntry]:
        """Return the entries as objects; record `i` belongs to entry `i`."""
        columns = zip(
            self.values.tolist(),
            self.masks.tolist(),
            self.action.tolist(),
            self.arguments.tolist(),
            self.precedence.tolist(),
            self.prefixes.tolist(),
            strict=True,
        )
        return [
            InstalledEntry(
                tuple(zip(values, masks, strict=True)),
                action,
                tuple(arguments[: self.counts[action]]),
                precedence,
                prefix,
                counter,
            )
            for counter, (values, masks, action, arguments, precedence, prefix) in enumerate(
                columns
            )
        ]


def _widened(arguments: Fields, most: int) -> Fields:
    missing = most - arguments.shape[1]
    return np.pad(arguments, ((0, 0), (0, missing))) if missing else arguments
