"""Lines of generated Python, and the constants they share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ringleaf.switches.generate.marks import LineMark, MarkedLine

MOST_LINES = 300_000  # of a handler; our largest has 900

LONGEST_TUPLE = 30  # items (CPython's STACK_USE_GUIDELINE)


def tuple_of(items: Sequence[str]) -> str:
    """Return code of a tuple; of a longer one Python would make a list first, as Numba can't."""
    parts = [items[start : start + LONGEST_TUPLE] for start in range(0, len(items), LONGEST_TUPLE)]
    return " + ".join(f"({', '.join(part)},)" for part in parts)


class TooLargeError(Exception):
    """A program that is too large; `generate` adds its name."""


class ModuleConstants:
    """`np.uint64` constants of a module: a plain 1 beside a `uint64` would make a float."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}

    def name(self, value: int) -> str:
        """Return the name of a constant, 0 to 2^64 - 1; equal values share one."""
        assert 0 <= value < 1 << 64, f"constant {value} needs 64 bits"
        return self._names.setdefault(value, f"u_{value:x}")

    def lines(self) -> list[str]:
        """Return the definitions of all constants, in the order of their values."""
        return [f"{name} = np.uint64({value:#x})" for value, name in sorted(self._names.items())]


class Lines:
    """Statements with their indentation, each with a mark of its meaning."""

    def __init__(self, depth: int = 0) -> None:
        self.lines: list[str] = []
        self._depth = depth
        self._mark: LineMark | None = None

    def add(self, line: str, mark: LineMark | None = None) -> None:
        """Add a statement; without a mark of its own it has that of the stretch it lies in."""
        if len(self.lines) >= MOST_LINES:
            raise TooLargeError(f"a handler has at most {MOST_LINES} lines")
        self.lines.append(MarkedLine(" " * self._depth + line, self._innermost(mark)))

    @contextmanager
    def marked(self, mark: LineMark) -> Iterator[None]:
        """Mark the lines that are added inside this context."""
        outer = self._mark
        self._mark = self._innermost(mark)
        yield
        self._mark = outer

    def _innermost(self, mark: LineMark | None) -> LineMark | None:
        return self._mark if mark is None or (self._mark and self._mark.whole) else mark

    def comment(self, text: str) -> None:
        """Append a comment at the present depth."""
        self.add(f"# {text}")

    @contextmanager
    def block(self, header: str, mark: LineMark | None = None) -> Iterator[None]:
        """Put lines that are added inside under `header`, which alone is marked; or `pass`."""
        with self._inside(header, mark) as before:
            yield
            if len(self.lines) == before:
                self.add("pass")

    @contextmanager
    def optional_block(self, header: str) -> Iterator[None]:
        """Put lines that are added inside under `header`; drop the header if none are."""
        with self._inside(header) as before:
            yield
            if len(self.lines) == before:
                self.lines.pop()

    @contextmanager
    def _inside(self, header: str, mark: LineMark | None = None) -> Iterator[int]:
        self.add(header, mark)
        self._depth += 1
        yield len(self.lines)
        self._depth -= 1
