"""The tools with which all parts of the generator write: lines, names and places."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from ringleaf.switches.generate.expressions import Expressions
from ringleaf.switches.generate.labels import HEADER
from ringleaf.switches.generate.marks import LineMark
from ringleaf.switches.generate.observing import ObservedWords, ReachedPoint
from ringleaf.switches.generate.state import StateLayout
from ringleaf.switches.generate.storage import Storage, valid, varbits, word_count
from ringleaf.switches.generate.text import Lines, ModuleConstants
from ringleaf.switches.source import Expression, FieldSource, HeaderSource, ProgramSource

INGRESS, EGRESS = "ingress", "egress"
OUTSIDE = ""  # the cell of an index that is outside its register array


class FunctionCode:
    """One generated function, and what it shares with the others of its module.

    `targets` and `cells` hold the code of the fields that a loop writes, and of its register cells.
    """

    def __init__(
        self,
        source: ProgramSource,
        storage: Storage,
        state: StateLayout,
        constants: ModuleConstants,
        globals_: dict[str, str],
        stage: str = INGRESS,
        observer: ObservedWords | None = None,
    ) -> None:
        self.stage = stage  # which handler it is
        self.observer = observer  # of an observed program
        self.source = source
        self.storage = storage
        self.state = state
        self.constants = constants
        self.globals = globals_  # module variables: name -> code
        self.lines = Lines(1)
        self.expressions = Expressions(source, storage, constants, self.lines)
        self.targets: dict[FieldSource, str] = {}
        self.cells: dict[tuple[str, Expression], str] = {}

    def add(self, line: str, mark: LineMark | None = None) -> None:
        """Append a line at the present depth."""
        self.lines.add(line, mark)

    def note(self, kind: str, name: str, where: str = "") -> None:
        """Write code that counts packets at a point, if the program is observed."""
        if self.observer is not None:
            word = self.observer.word_of(ReachedPoint(kind, name, where))
            self.add(f"state[state_at + {self.u(word)}] += {self.u(1)}")

    def block(self, header: str, mark: LineMark | None = None) -> AbstractContextManager[None]:
        """Open a block: lines that are added in this context are inside it."""
        return self.lines.block(header, mark)

    def marked(self, mark: LineMark) -> AbstractContextManager[None]:
        """Give the lines that are added inside this context a mark."""
        return self.lines.marked(mark)

    def label(self, letter: str, name: str) -> str:
        """Return the label of one of the program's own objects in the text."""
        return self.storage.labels.of(letter, name)

    def field_label(self, field: FieldSource) -> str:
        """Return a field's name in comments: its variable, or its header if it is a lane."""
        if self.storage.lane(field) is not None:
            return f"a lane of {self.label(HEADER, field.header)}"
        return self.storage.names(field)[0]

    def u(self, value: int) -> str:
        """Return the name of a `uint64` constant of the module; it is made if there is none yet."""
        return self.constants.name(value)

    def set_word(self, field: FieldSource, word: str, bits: int = 64) -> None:
        """Give a field an unsigned value of at most 64 bits."""
        self.set_unsigned(field, [word], bits)

    def set_unsigned(self, field: FieldSource, words: list[str], bits: int) -> None:
        """Give a field an unsigned value of `bits` bits, as BMv2 stores it."""
        shape = self.storage.shape(field)
        if bits > shape.width:
            if shape.signed:
                size = bits // 64 + 1
                words = self.expressions.pad(words, size)
                words = self.expressions.stored_signed(words, shape.width)
            else:
                count, rest = word_count(shape), (shape.width - 1) % 64 + 1
                words = words[:count]
                words[-1] = self.expressions.masked(words[-1], (1 << rest) - 1)
        self.set(field, words)

    def set(self, field: FieldSource, words: list[str]) -> None:
        """Give a field the value that these words have; words that are not given are zero."""
        target = self.targets.get(field)
        words = words + [self.u(0)] * (len(self.storage.read(field)) - len(words))
        self.add(f"{target} = {words[0]}" if target else self.storage.assign(field, words))

    def assign(self, field: FieldSource, expression: Expression) -> None:
        """Write code that sets a field to an expression's value, cut to the field's width."""
        shape = self.storage.shape(field)
        self.set(field, self.expressions.fitted(expression, shape.width, shape.signed))

    def read(self, field: FieldSource) -> str:
        """Return code for a field of one word, as it is stored."""
        return self.storage.read(field)[0]

    def bits_of(self, field: FieldSource) -> list[str]:
        """Return code of the words of a field's bits, as they are in a packet."""
        shape = self.storage.shape(field)
        count, rest = -(-shape.width // 64), (shape.width - 1) % 64 + 1
        words = list(self.storage.read(field))[:count]
        if shape.signed:
            words[-1] = self.expressions.masked(words[-1], (1 << rest) - 1)
        return words

    def key_words(self, field: FieldSource) -> list[str]:
        """Return code of the words of a key: 0 if its header is not there, as in BMv2."""
        words = self.bits_of(field)
        if not self.source.may_be_missing(field):
            return words
        there = self.is_set(valid(field.header))
        return [f"({word} if {there} else {self.u(0)})" for word in words]

    def is_set(self, field: FieldSource) -> str:
        """Return code of the test that a field is not 0."""
        return f"{self.read(field)} != {self.u(0)}"

    def size_of(self, header: HeaderSource) -> str:
        """Return code (`int64`) of a header's size in bytes on the wire."""
        if header.varbit is None:
            return str(header.size_bytes)
        return f"({header.fixed_bytes} + I({self.read(varbits(header.name))} >> {self.u(3)}))"

    @contextmanager
    def guarded(self, condition: str | None) -> Iterator[None]:
        """Put the code of this context under an `if`; without a condition, add none."""
        if condition is None:
            yield
        else:
            with self.lines.block(f"if {condition}:"):
                yield
