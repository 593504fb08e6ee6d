"""The values of P4 expressions, as words: code of `uint64`, the least significant first.

BMv2 computes with unbounded integers and cuts to width on assignment. Two things make few words
enough: `bounds` says in which range an expression's true value is, and the low words of
`+ - * & | ^ ~ <<` depend on the low words of their operands alone. So where the true value fits,
computing modulo 2^(64 n) gives it exactly; where not, only its low bits may be used.

One word is straight code. Of several words, what needs carries is a call of `engine/wide.py`
in a line of its own, and what is used twice is given a name before, so that code can't double.
"""

from __future__ import annotations

from collections.abc import Callable

from ringleaf.switches.generate.ranges import MODULUS, SIGNED, UNSIGNED, WORD, Ranges, words_for
from ringleaf.switches.generate.storage import Storage
from ringleaf.switches.generate.text import Lines, ModuleConstants, tuple_of
from ringleaf.switches.source import (
    Argument,
    Constant,
    Expression,
    FieldSource,
    OperationSource,
    ProgramSource,
)


class Words(Ranges):
    """Writes values; `overrides` has the code of fields which a loop reads elsewhere."""

    def __init__(
        self, source: ProgramSource, storage: Storage, constants: ModuleConstants, lines: Lines
    ) -> None:
        super().__init__(source, storage)
        self.constants = constants
        self.overrides: dict[FieldSource, str] = {}
        self._lines = lines
        self._count = 0  # of names given

    def condition(self, expression: Expression) -> str:
        """Return code of a condition, as a Python truth value; the subclass has the operators."""
        raise NotImplementedError

    def words(self, expression: Expression, count: int) -> list[str]:
        """Return code for the low `count` words of the value in two's complement."""
        if count == 1 or not isinstance(expression, OperationSource):
            return self._words(expression, count)
        exact = self.size(expression)
        # Higher words of a value are its sign only, so they are filled in and not computed.
        if exact < count:
            return self._extend(self.words(expression, exact), expression, count)
        return self._words(expression, count)

    def _words(self, expression: Expression, count: int) -> list[str]:
        match expression:
            case Constant():
                return self._constants(expression.value, count)
            case FieldSource():
                return self._extend(self._field_words(expression), expression, count)
            case Argument():
                return self._extend(list(self.arguments[expression.index][0]), expression, count)
            case OperationSource("b2d", _, right):
                return self.pad([f"U({self.condition(right)})"], count)
            case OperationSource("~", _, right):
                return [f"(~{word})" for word in self.words(right, count)]
            case OperationSource("?", left, right, chosen) if (
                left is not None and chosen is not None
            ):
                return self.choose(
                    self.condition(chosen), self.words(left, count), self.words(right, count)
                )
            case OperationSource(op, left, right) if op in _WORDS and left is not None:
                return _WORDS[op](self, expression, left, right, count)
        raise self.refuse("unsupported operation", expression)

    def _field_words(self, field: FieldSource) -> list[str]:
        override = self.overrides.get(field)
        words = [override] if override else list(self.storage.read(field))
        shape = self.storage.shape(field)
        if shape.signed and self.storage.lane(field):
            words = [f"U(as_signed({words[0]}, {shape.width}))"]
        return words

    def low_word(self, expression: Expression) -> str:
        """Return code of the value of BMv2's `get_uint64` (it throws at a negative value)."""
        return self.words(expression, 1)[0]

    # Operations.

    def bitwise(
        self, expression: OperationSource, left: Expression, right: Expression, count: int
    ) -> list[str]:
        """Return words of `&`, `|` or `^`, each from the operands' words at its place."""
        if expression.op == "&":
            for mask, other in ((right, left), (left, right)):
                if isinstance(mask, Constant):
                    return self._and_constant(other, mask.value, count)
        pairs = zip(self.words(left, count), self.words(right, count), strict=True)
        return [f"({a} {expression.op} {b})" for a, b in pairs]

    def _and_constant(self, other: Expression, mask: int, count: int) -> list[str]:
        low, high = self.bounds(other)
        if low >= 0 and mask >= 0 and mask & (mask + 1) == 0 and high <= mask:
            return self.words(other, count)  # p4c masks after every widening
        masks = [mask >> (WORD * i) & MODULUS - 1 for i in range(count)]
        return [
            self.masked(word, part)
            for word, part in zip(self.words(other, count), masks, strict=True)
        ]

    def ring(
        self, expression: OperationSource, left: Expression, right: Expression, count: int
    ) -> list[str]:
        """Return words of `+`, `-` or `*`, which need only as many of the operands."""
        a, b = self.words(left, count), self.words(right, count)
        if count == 1:
            return [f"({a[0]} {expression.op} {b[0]})"]
        name = {"+": "add_words", "-": "subtract_words", "*": "multiply_words"}[expression.op]
        return self._call(name, count, tuple_of(a), tuple_of(b))

    def quotient(
        self, expression: OperationSource, left: Expression, right: Expression, count: int
    ) -> list[str]:
        """Return words of `/` or `%`, which need the operands' whole values."""
        name = "divide" if expression.op == "/" else "modulo"
        size = max(self.size(left), self.size(right))
        a, b = self.words(left, size), self.words(right, size)
        if size == 1:
            return self.pad([f"{name}({a[0]}, {b[0]})"], count)
        return self.pad(self._call(f"{name}_words", size, tuple_of(a), tuple_of(b)), count)

    def shift_left(
        self, _: OperationSource, left: Expression, right: Expression, count: int
    ) -> list[str]:
        """Return words of `<<`; a constant amount is settled here, another one by a call."""
        if not isinstance(right, Constant):
            if count > 1:
                a = tuple_of(self.words(left, count))
                return self._call("shift_words_left", count, a, self.low_word(right))
            return [f"shift_left({self.words(left, 1)[0]}, {self.low_word(right)})"]
        whole, bits = divmod(self.constant(right), WORD)
        words = [self._u(0)] * min(whole, count)
        source = self.words(left, count - len(words)) if len(words) < count else []
        # Each source word goes into two words of the result, so it is computed once and named.
        if len(source) > 1 and bits:
            source = self.named(source)
        for i in range(len(source)):
            lower = source[i - 1] if i else None
            words.append(self._spliced(source[i], bits, lower, WORD - bits))
        return words

    def _spliced(self, high: str, bits: int, low: str | None, rest: int) -> str:
        """Return `high << bits | low >> rest`."""
        if not bits:
            return high
        shifted = f"({high} << {self._u(bits)})"
        return shifted if low is None else f"({shifted} | ({low} >> {self._u(rest)}))"

    def shift_right(
        self, _: OperationSource, left: Expression, right: Expression, count: int
    ) -> list[str]:
        """Return words of `>>`, which shifts the sign in where the value may be negative."""
        kind, size = self.kind(left), self.size(left)
        source = self.words(left, size)
        if kind == SIGNED:
            code = f"U(shift_right_signed(I({source[0]}), {self.low_word(right)}))"
            return self._extend([code], left, count)
        if not isinstance(right, Constant):
            amount = self.low_word(right)
            if kind == UNSIGNED:
                return self.pad([f"shift_right({source[0]}, {amount})"], count)
            sign = self._sign(source) if self.bounds(left)[0] < 0 else self._u(0)
            shifted = self._call("shift_words_right", size, tuple_of(source), amount, sign)
            return self._extend(shifted, left, count)
        whole, bits = divmod(self.constant(right), WORD)
        if self.bounds(left)[0] < 0:
            # A negative value's sign is in all words above, and these are shifted in: as many are
            # needed as the result takes bits from.
            source = self.words(left, whole + count + 1)
        return self.pad(self._shifted_right(source[whole:], bits, count), count)

    def _shifted_right(self, source: list[str], bits: int, count: int) -> list[str]:
        if not bits:
            return source[:count]
        if len(source) > 1:
            source = self.named(source)
        words = []
        for i, word in enumerate(source[:count]):
            shifted = f"({word} >> {self._u(bits)})"
            if i + 1 < len(source):
                shifted = f"({shifted} | ({source[i + 1]} << {self._u(WORD - bits)}))"
            words.append(shifted)
        return words

    def two_complement(
        self, expression: OperationSource, left: Expression, right: Expression, count: int
    ) -> list[str]:
        """Return words of the value cut to the bits of `right`, whose highest one is the sign."""
        width = self.constant(right)
        own = -(-width // WORD)
        # Cutting changes nothing below the sign bit, and nothing at all where the value fits.
        if count < own or self.bounds(expression) == self.bounds(left):
            return self.words(left, count)
        return self._extend(self.as_signed(self.words(left, own), width), expression, count)

    def as_signed(self, words: list[str], width: int) -> list[str]:
        """Return the words that hold `width` bits, with the highest of them as the sign."""
        rest = width - WORD * (len(words) - 1)
        if rest == WORD:
            return words
        return [*words[:-1], f"U(as_signed({words[-1]}, {rest}))"]

    def saturate(
        self, expression: OperationSource, left: Expression, _: Expression, count: int
    ) -> list[str]:
        """Return words of the value cut to the range of the operation's type."""
        low, high = self.bounds(expression)
        kind = self.kind(left)
        if kind == UNSIGNED:
            return self.pad([f"min({self.words(left, 1)[0]}, {self._u(high)})"], count)
        if kind == SIGNED:
            code = f"U(clamp(I({self.words(left, 1)[0]}), I({low}), I({high})))"
            return self._extend([code], expression, count)
        size = words_for(self.bounds(left), signed=True)
        value = self.named(self.words(left, size))
        least, most = self._constants(low, size), self._constants(high, size)
        value = self.choose(self.less(value, least, signed=True), least, value)
        value = self.choose(self.less(most, value, signed=True), most, value)
        return self._extend(value, expression, count)

    # Small things.

    def less(self, a: list[str], b: list[str], *, signed: bool) -> str:
        """Return code that tests whether one value of several words is less than another."""
        if signed:  # as unsigned ones whose sign is the highest bit upside down
            a, b = self._biased(a), self._biased(b)
        return f"is_less({tuple_of(a)}, {tuple_of(b)})"

    def _biased(self, words: list[str]) -> list[str]:
        return [*words[:-1], f"({words[-1]} ^ {self._u(MODULUS // 2)})"]

    def choose(self, test: str, a: list[str], b: list[str]) -> list[str]:
        """Return words of `a` where the test holds, and else of `b`."""
        if len(a) == 1:
            return [f"({a[0]} if {test} else {b[0]})"]
        return self._assigned(len(a), f"({tuple_of(a)}) if {test} else ({tuple_of(b)})")

    def named(self, words: list[str]) -> list[str]:
        """Return names that hold the present values of these words."""
        return [word if word.isidentifier() else self._name(word) for word in words]

    def _name(self, code: str) -> str:
        name = f"wide_{self._count}"
        self._count += 1
        self._lines.add(f"{name} = {code}")
        return name

    def _call(self, function: str, count: int, *arguments: str) -> list[str]:
        return self._assigned(count, f"{function}({', '.join(arguments)})")

    def _assigned(self, count: int, code: str) -> list[str]:
        """Give the items of a tuple names."""
        names = [f"wide_{self._count + i}" for i in range(count)]
        self._count += count
        self._lines.add(f"{', '.join(names)}, = {code}")
        return names

    def masked(self, code: str, mask: int) -> str:
        """Return code of one word under a mask, without an operation where it has no effect."""
        if mask == MODULUS - 1:
            return code
        return f"({code} & {self._u(mask)})" if mask else self._u(0)

    def _extend(self, words: list[str], value: Expression, count: int) -> list[str]:
        """Return `count` words of a value whose own words these are."""
        if self.bounds(value)[0] >= 0 or count <= len(words):
            return self.pad(words, count)
        return self.with_sign(words, count)

    def with_sign(self, words: list[str], count: int) -> list[str]:
        """Return `count` words of a signed value whose own words these are."""
        if count == len(words):
            return words
        top = self.named(words[-1:])
        return [*words[:-1], *top, *self.named([self._sign(top)]) * (count - len(words))]

    def _sign(self, words: list[str]) -> str:
        return f"U(I({words[-1]}) >> 63)"

    def pad(self, words: list[str], count: int) -> list[str]:
        """Return the first `count` words of an unsigned value, with zeros above its own."""
        return words[:count] + [self._u(0)] * (count - len(words))

    def _constants(self, value: int, count: int) -> list[str]:
        return [self._u(value >> (WORD * i) & MODULUS - 1) for i in range(count)]

    def _u(self, value: int) -> str:
        return self.constants.name(value)


_WORDS: dict[str, Callable[[Words, OperationSource, Expression, Expression, int], list[str]]] = {
    "&": Words.bitwise,
    "|": Words.bitwise,
    "^": Words.bitwise,
    "+": Words.ring,
    "-": Words.ring,
    "*": Words.ring,
    "/": Words.quotient,
    "%": Words.quotient,
    "<<": Words.shift_left,
    ">>": Words.shift_right,
    "two_comp_mod": Words.two_complement,
    "sat_cast": Words.saturate,
    "usat_cast": Words.saturate,
}
