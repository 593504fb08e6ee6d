"""The names of a program's own things in generated text: a letter and a number.

A program's names come from outside, so they never become text that is executed. They are kept
beside it, as data, for whoever reads the text.
"""

from __future__ import annotations

TABLE, ACTION, HEADER, STATE, FIELD = "t", "a", "h", "s", "f"
"""The letters. Fields have theirs from `storage.py`, as the variables that hold them."""


class Labels:
    """Gives out labels, in the order in which they are first asked for."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}  # label -> name in the program
        self._labels: dict[tuple[str, ...], str] = {}
        self._counts: dict[str, int] = {}

    def of(self, letter: str, *parts: str) -> str:
        """Return the label of the object whose name in the program has these parts."""
        key = (letter, *parts)
        if key not in self._labels:
            number = self._counts.get(letter, 0)
            self._counts[letter] = number + 1
            label = f"{letter}{number}"
            self._labels[key] = label
            self.names[label] = ".".join(parts)
        return self._labels[key]
