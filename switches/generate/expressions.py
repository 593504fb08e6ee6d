"""Expressions for the other parts of the generator: values for fields, indices, conditions.

`words.py` writes values, and `ranges.py` computes their ranges.
"""

from __future__ import annotations

from ringleaf.switches.generate.ranges import MODULUS, UNSIGNED, WIDE, WORD, Bounds, words_for
from ringleaf.switches.generate.words import Words
from ringleaf.switches.source import (
    VALID,
    Boolean,
    Constant,
    Expression,
    FieldSource,
    Named,
    OperationSource,
)

COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
_BOOLEANS = (*COMPARISONS, "and", "or", "not", "valid", "d2b")


class Expressions(Words):
    """Turns expressions into code; parts that don't fit one expression become lines before it."""

    def unsigned(self, expression: Expression) -> str:
        """Return code of an index, an amount, a bound: BMv2 takes the low 64 bits of any."""
        return self.low_word(expression)

    def fitted(self, expression: Expression, width: int, signed: bool) -> list[str]:
        """Return the words of the value as BMv2 stores it in a field of that width."""
        if not signed:
            return self._fitted_unsigned(expression, width)
        count = -(-(width + 1) // WORD)
        least, most = -(1 << (width - 1)), (1 << width) - 1
        low, high = self.bounds(expression)
        if low >= least and high <= most:
            return self.words(expression, count)
        kind = self.kind(expression)
        if count == 1 and kind != WIDE and high < MODULUS // 2:
            word = self.words(expression, 1)[0]
            return [f"U(store_signed(I({word}), I({least}), I({most}), {width}))"]
        size = words_for((low, high), signed=True)
        return self.stored_signed(self.words(expression, max(size, count)), width)

    def _fitted_unsigned(self, expression: Expression, width: int) -> list[str]:
        low, high = self.bounds(expression)
        count = -(-width // WORD)
        words = self.words(expression, count)
        if low < 0 or high >= 1 << width:
            rest = width - WORD * (count - 1)
            words[-1] = self.masked(words[-1], (1 << rest) - 1)
        return words

    def stored_signed(self, words: list[str], width: int) -> list[str]:
        """Return a value, given by all its words, as a signed field stores it.

        BMv2 wraps values below the least or above 2^width - 1, and no others.
        """
        words, size = self.named(words), len(words)
        least = self._constants(-(1 << (width - 1)), size)
        most = self._constants((1 << width) - 1, size)
        low = self.less(words, least, signed=True)
        high = self.less(most, words, signed=True)
        count, own = -(-(width + 1) // WORD), -(-width // WORD)
        wrapped = self.with_sign(self.as_signed(words[:own], width), count)
        return self.choose(f"{low} or {high}", wrapped, words[:count])

    def condition(self, expression: Expression) -> str:
        """Return code for a boolean."""
        match expression:
            case Boolean():
                return str(expression.value)
            case OperationSource("and" | "or" as op, left, right) if left is not None:
                return f"({self.condition(left)} {op} {self.condition(right)})"
            case OperationSource("not", _, right):
                return f"(not {self.condition(right)})"
            case OperationSource("valid", _, Named(_, name)):
                return self._is_not_zero(FieldSource(name, VALID))
            case OperationSource("d2b", _, OperationSource("b2d", _, inner)) | OperationSource(
                "b2d", _, inner
            ):
                return self.condition(inner)  # the latter as `assert` takes it, a number
            case OperationSource("d2b", _, right):
                return self._is_not_zero(right)
            case OperationSource(
                "==" | "!=" as op, FieldSource() as left, FieldSource() as right
            ) if self.storage.varbit(left):
                same = self._same_varbits(left, right)
                return same if op == "==" else f"(not {same})"
            case OperationSource("?", left, right, chosen) if (
                left is not None and chosen is not None
            ):
                arms = f"{self.condition(left)} if {self.condition(chosen)}"
                return f"({arms} else {self.condition(right)})"
            case OperationSource(op, left, right) if op in COMPARISONS and left is not None:
                return self._compare(op, left, right)
        raise self.refuse("not a boolean", expression)

    # Comparisons.

    def _same_varbits(self, left: FieldSource, right: FieldSource) -> str:
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
        if isinstance(left, Named) and isinstance(right, Named):
            return self._compare_headers(op, left, right)
        kinds = {self.kind(left), self.kind(right)}
        if kinds == {UNSIGNED}:
            return f"({self.words(left, 1)[0]} {op} {self.words(right, 1)[0]})"
        both = self._both(left, right)
        if words_for(both) > 1:
            return self._compare_wide(op, left, right, both)
        return f"(I({self.words(left, 1)[0]}) {op} I({self.words(right, 1)[0]}))"

    def _both(self, left: Expression, right: Expression) -> Bounds:
        """Return bounds that hold for both values."""
        a, b = self.bounds(left), self.bounds(right)
        return min(a[0], b[0]), max(a[1], b[1])

    def _compare_wide(self, op: str, left: Expression, right: Expression, both: Bounds) -> str:
        count, signed = words_for(both), both[0] < 0
        a, b = self.words(left, count), self.words(right, count)
        if op in ("==", "!="):
            joint = " and " if op == "==" else " or "
            return f"({joint.join(f'{x} {op} {y}' for x, y in zip(a, b, strict=True))})"
        first, second = (a, b) if op in ("<", ">=") else (b, a)
        less = self.less(first, second, signed=signed)
        return less if op in ("<", ">") else f"(not {less})"

    def _compare_headers(self, op: str, left: Named, right: Named) -> str:
        """Return code that compares headers; equal are valid ones with equal fields, as in BMv2."""
        tests = [f"({self._is_not_zero(FieldSource(side.name, VALID))})" for side in (left, right)]
        for item in self._source.headers[left.name].fields:
            if item.name != VALID:
                pair = FieldSource(left.name, item.name), FieldSource(right.name, item.name)
                tests.append(self._compare("==", *pair))
        equal = f"({' and '.join(tests)})"
        return equal if op == "==" else f"(not {equal})"

    def _is_boolean(self, expression: Expression) -> bool:
        if isinstance(expression, OperationSource):
            if expression.op == "?":
                return self._is_boolean(expression.right)
            return expression.op in _BOOLEANS
        return isinstance(expression, Boolean)

    def _is_not_zero(self, expression: Expression) -> str:
        return self._compare("!=", expression, Constant(0))
