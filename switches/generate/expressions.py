"""P4 expressions as Python ones over `np.uint64`.

BMv2 computes with unbounded integers and cuts to width on assignment. Two things make 64 bits
enough: `bounds` says in which range an expression's true value is, and the low 64 bits of
`+ - * & | ^ ~ <<` depend on the low 64 bits of their operands alone. So where the true value
fits 64 bits, computing modulo 2^64 gives it exactly; where not, only its low bits may be used.
Wider values are several words, the least significant first.
"""

from __future__ import annotations

from collections.abc import Callable

from switches.generate.ranges import MODULUS, SIGNED, UNSIGNED, WIDE, WORD, Ranges
from switches.generate.storage import Storage
from switches.generate.text import Constants
from switches.source import (
    VALID,
    Argument,
    Boolean,
    Constant,
    Expression,
    Field,
    Named,
    Operation,
    Source,
)

COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
_BOOLEANS = (*COMPARISONS, "and", "or", "not", "valid", "d2b")


class Expressions(Ranges):
    """Turns expressions into code; `overrides` has that of fields which a loop reads elsewhere."""

    def __init__(self, source: Source, storage: Storage, constants: Constants) -> None:
        super().__init__(source, storage)
        self.constants = constants
        self.overrides: dict[Field, str] = {}

    # What others ask for.

    def exact(self, expression: Expression) -> tuple[str, str]:
        """Return code for the true value, and whether it is `uint64` or `int64`."""
        kind = self.kind(expression)
        if kind == WIDE:
            raise self.refuse("a value of more than 64 bits can't be used here", expression)
        code = self.words(expression, 1)[0]
        return (f"I({code})", SIGNED) if kind == SIGNED else (code, UNSIGNED)

    def unsigned(self, expression: Expression) -> str:
        """Return code for a true value that must not be negative."""
        code, kind = self.exact(expression)
        if kind == SIGNED:
            raise self.refuse("a value that may be negative can't be used here", expression)
        return code

    def fitted(self, expression: Expression, width: int, signed: bool) -> list[str]:
        """Return the words of the value as BMv2 stores it in a field of that width."""
        low, high = self.bounds(expression)
        count = -(-width // WORD)
        if signed:
            return [self._fitted_signed(expression, width)]
        words = self.words(expression, count)
        if low < 0 or high >= 1 << width:
            rest = width - WORD * (count - 1)
            words[-1] = self._masked(words[-1], (1 << rest) - 1)
        return words

    def _fitted_signed(self, expression: Expression, width: int) -> str:
        low, high = self.bounds(expression)
        word = self.words(expression, 1)[0]
        if width >= WORD:
            return word
        # BMv2 wraps what is below the least or above 2^width - 1, and nothing else.
        least, most = -(1 << (width - 1)), (1 << width) - 1
        if low >= least and high <= most:
            return word
        if low < -(MODULUS // 2) or high >= MODULUS // 2:
            raise self.refuse("a value of more than 63 bits in a signed field", expression)
        return f"U(store_signed(I({word}), I({least}), I({most}), {width}))"

    def condition(self, expression: Expression) -> str:
        """Return code for a boolean."""
        match expression:
            case Boolean():
                return str(expression.value)
            case Operation("and" | "or" as op, left, right) if left is not None:
                return f"({self.condition(left)} {op} {self.condition(right)})"
            case Operation("not", _, right):
                return f"(not {self.condition(right)})"
            case Operation("valid", _, Named(_, name)):
                return self._is_not_zero(Field(name, VALID))
            case Operation("d2b", _, Operation("b2d", _, inner)):
                return self.condition(inner)
            case Operation("d2b", _, right):
                return self._is_not_zero(right)
            case Operation("==" | "!=" as op, Field() as left, Field() as right) if (
                self.storage.varbit(left)
            ):
                same = self._same_varbits(left, right)
                return same if op == "==" else f"(not {same})"
            case Operation("?", left, right, chosen) if left is not None and chosen is not None:
                arms = f"{self.condition(left)} if {self.condition(chosen)}"
                return f"({arms} else {self.condition(right)})"
            case Operation(op, left, right) if op in COMPARISONS and left is not None:
                return self._compare(op, left, right)
        raise self.refuse("not a boolean", expression)

    # Values.

    def words(self, expression: Expression, count: int) -> list[str]:
        """Return code for the low `count` words of the value in two's complement."""
        match expression:
            case Constant():
                value = expression.value % (1 << (WORD * count))
                return [self._u(value >> (WORD * i) & MODULUS - 1) for i in range(count)]
            case Field():
                return self._extend(self._field_words(expression), expression, count)
            case Argument():
                return self._extend(list(self.arguments[expression.index][0]), expression, count)
            case Operation("b2d", _, right):
                return self._pad([f"U({self.condition(right)})"], count)
            case Operation("~", _, right):
                return [f"(~{word})" for word in self.words(right, count)]
            case Operation("?", left, right, chosen) if left is not None and chosen is not None:
                test = self.condition(chosen)
                pairs = zip(self.words(left, count), self.words(right, count), strict=True)
                return [f"({a} if {test} else {b})" for a, b in pairs]
            case Operation(op, left, right) if op in _WORDS and left is not None:
                return _WORDS[op](self, expression, left, right, count)
        raise self.refuse("unsupported operation", expression)

    def _field_words(self, field: Field) -> list[str]:
        override = self.overrides.get(field)
        words = [override] if override else list(self.storage.read(field))
        shape = self.storage.shape(field)
        if shape.signed and self.storage.lane(field):
            words = [f"U(as_signed({words[0]}, {shape.width}))"]
        return words

    def bitwise(
        self, expression: Operation, left: Expression, right: Expression, count: int
    ) -> list[str]:
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
            self._masked(word, part)
            for word, part in zip(self.words(other, count), masks, strict=True)
        ]

    def ring(
        self, expression: Operation, left: Expression, right: Expression, count: int
    ) -> list[str]:
        if count > 1:
            low, high = self.bounds(expression)
            if low < 0 or high >= MODULUS:
                raise self.refuse("arithmetic on more than 64 bits is not supported", expression)
        (a,), (b,) = self.words(left, 1), self.words(right, 1)
        return self._pad([f"({a} {expression.op} {b})"], count)

    def quotient(
        self, expression: Operation, left: Expression, right: Expression, count: int
    ) -> list[str]:
        name = "divide" if expression.op == "/" else "modulo"
        return self._pad([f"{name}({self.unsigned(left)}, {self.unsigned(right)})"], count)

    def shift_left(
        self, _: Operation, left: Expression, right: Expression, count: int
    ) -> list[str]:
        if not isinstance(right, Constant):
            if count > 1:
                raise self.refuse("a variable shift of more than 64 bits is not supported", right)
            return [f"shift_left({self.words(left, 1)[0]}, {self.unsigned(right)})"]
        whole, bits = divmod(right.value, WORD)
        words = [self._u(0)] * min(whole, count)
        source = self.words(left, count - len(words)) if len(words) < count else []
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
        self, _: Operation, left: Expression, right: Expression, count: int
    ) -> list[str]:
        kind = self.kind(left)
        if kind == SIGNED:
            code = f"shift_right_signed({self.exact(left)[0]}, {self.unsigned(right)})"
            return self._extend([f"U({code})"], left, count)
        if not isinstance(right, Constant):
            code = f"shift_right({self.unsigned(left)}, {self.unsigned(right)})"
            return self._pad([code], count)
        whole, bits = divmod(right.value, WORD)
        source = self.words(left, -(-self.bounds(left)[1].bit_length() // WORD) or 1)[whole:]
        words = []
        for i, word in enumerate(source[:count]):
            if not bits:
                words.append(word)
                continue
            shifted = f"({word} >> {self._u(bits)})"
            if i + 1 < len(source):
                shifted = f"({shifted} | ({source[i + 1]} << {self._u(WORD - bits)}))"
            words.append(shifted)
        return self._pad(words, count)

    def two_complement(
        self, expression: Operation, left: Expression, right: Expression, count: int
    ) -> list[str]:
        width = self.constant(right)
        if width > WORD:
            raise self.refuse("int<W> of more than 64 bits is not supported", width)
        word = self.words(left, 1)[0]
        if self.bounds(expression) != self.bounds(left) and width < WORD:
            word = f"U(as_signed({word}, {width}))"
        return self._extend([word], expression, count)

    def saturate(
        self, expression: Operation, left: Expression, right: Expression, count: int
    ) -> list[str]:
        low, high = self.bounds(expression)
        code, kind = self.exact(left)
        if kind == UNSIGNED:
            return self._pad([f"min({code}, {self._u(high)})"], count)
        return self._extend([f"U(clamp({code}, I({low}), I({high})))"], expression, count)

    # Comparisons.

    def _same_varbits(self, left: Field, right: Field) -> str:
        operands = []
        for field in (left, right):
            varbit = self.storage.varbit(field)
            assert varbit is not None
            length = self.storage.read(varbit.length)[0]
            operands.append(f"{varbit.start}, I({length} >> {self._u(3)})")
        return f"same_varbits(lanes, {', '.join(operands)})"

    def _compare(self, op: str, left: Expression, right: Expression) -> str:
        if self._is_boolean(left):
            return f"({self.condition(left)} {op} {self.condition(right)})"
        if isinstance(left, Named):
            raise self.refuse("comparing headers is not supported", left.name)
        kinds = {self.kind(left), self.kind(right)}
        if kinds == {UNSIGNED}:
            return f"({self.words(left, 1)[0]} {op} {self.words(right, 1)[0]})"
        if WIDE in kinds:
            return self._compare_wide(op, left, right)
        for side in (left, right):
            if self.bounds(side)[1] >= MODULUS // 2:
                raise self.refuse("comparing a signed with a 64-bit unsigned value", op)
        return f"(I({self.words(left, 1)[0]}) {op} I({self.words(right, 1)[0]}))"

    def _compare_wide(self, op: str, left: Expression, right: Expression) -> str:
        if min(self.bounds(left)[0], self.bounds(right)[0]) < 0:
            raise self.refuse("comparing a signed with a wide value is not supported", op)
        longest = max(self.bounds(left)[1], self.bounds(right)[1]).bit_length()
        count = -(-longest // WORD)
        pairs = list(zip(self.words(left, count), self.words(right, count), strict=True))
        if op == "==":
            return "(" + " and ".join(f"{a} == {b}" for a, b in pairs) + ")"
        if op == "!=":
            return "(" + " or ".join(f"{a} != {b}" for a, b in pairs) + ")"
        code = f"{pairs[0][0]} {op} {pairs[0][1]}"
        for a, b in pairs[1:]:
            code = f"({a} {op[0]} {b} or ({a} == {b} and ({code})))"
        return f"({code})"

    # Small things.

    def _is_boolean(self, expression: Expression) -> bool:
        if isinstance(expression, Operation):
            if expression.op == "?":
                return self._is_boolean(expression.right)
            return expression.op in _BOOLEANS
        return isinstance(expression, Boolean)

    def _is_not_zero(self, expression: Expression) -> str:
        return self._compare("!=", expression, Constant(0))

    def _masked(self, code: str, mask: int) -> str:
        if mask == MODULUS - 1:
            return code
        return f"({code} & {self._u(mask)})" if mask else self._u(0)

    def _extend(self, words: list[str], value: Expression, count: int) -> list[str]:
        """Return `count` words of a value whose own words these are."""
        if self.bounds(value)[0] >= 0 or count <= len(words):
            return self._pad(words, count)
        sign = f"U(I({words[-1]}) >> 63)"
        return words + [sign] * (count - len(words))

    def _pad(self, words: list[str], count: int) -> list[str]:
        return words[:count] + [self._u(0)] * (count - len(words))

    def _u(self, value: int) -> str:
        return self.constants.name(value)


_WORDS: dict[str, Callable[[Expressions, Operation, Expression, Expression, int], list[str]]] = {
    "&": Expressions.bitwise,
    "|": Expressions.bitwise,
    "^": Expressions.bitwise,
    "+": Expressions.ring,
    "-": Expressions.ring,
    "*": Expressions.ring,
    "/": Expressions.quotient,
    "%": Expressions.quotient,
    "<<": Expressions.shift_left,
    ">>": Expressions.shift_right,
    "two_comp_mod": Expressions.two_complement,
    "sat_cast": Expressions.saturate,
    "usat_cast": Expressions.saturate,
}
