"""Arithmetic of finite fields, of q = p^m elements, for small q."""

from __future__ import annotations

from itertools import product

Polynomial = tuple[int, ...]
"""Coefficients modulo p, the constant first."""


def prime_power(q: int) -> tuple[int, int] | None:
    """Return p and m with q = p^m and p prime; None if there are none."""
    p = next((p for p in range(2, q + 1) if q % p == 0), 0)
    m = 0
    while p and q % p == 0:
        q, m = q // p, m + 1
    return (p, m) if p and q == 1 else None


class FiniteField:
    """The field of q elements, by number: digits in base p are a polynomial's coefficients.

    Of prime fields these are the numbers modulo p.

    Args:
        q: A prime power, >= 2.
    """

    def __init__(self, q: int) -> None:
        power = prime_power(q)
        assert power is not None, q
        self._p, self._m = power
        self._digits = [self._read(number) for number in range(q)]
        self._reduced = self._irreducible() if self._m > 1 else ()
        self.elements = range(q)

    def add(self, a: int, b: int) -> int:
        """Return the sum."""
        pairs = zip(self._digits[a], self._digits[b], strict=True)
        return self._number([x + y for x, y in pairs])

    def negative(self, a: int) -> int:
        """Return the element that gives 0 with `a`."""
        return self._number([-x for x in self._digits[a]])

    def times(self, a: int, b: int) -> int:
        """Return the product."""
        terms = [0] * (2 * self._m - 1)
        for (i, x), (j, y) in product(enumerate(self._digits[a]), enumerate(self._digits[b])):
            terms[i + j] += x * y
        for degree in reversed(range(self._m, len(terms))):
            for i, x in enumerate(self._reduced):
                terms[degree - self._m + i] -= terms[degree] * x
        return self._number(terms[: self._m])

    def powers(self) -> list[int]:
        """Return 1, x, x^2, ... of the first element x whose powers are all but 0."""
        for x in self.elements[1:]:
            chain = [1]
            for _ in self.elements[2:]:
                chain.append(self.times(chain[-1], x))
            if len({0, *chain}) == len(self.elements):
                return chain
        raise AssertionError("every finite field has such an element")

    def _read(self, number: int) -> Polynomial:
        return tuple(number // self._p**i % self._p for i in range(self._m))

    def _number(self, coefficients: list[int]) -> int:
        return sum(x % self._p * self._p**i for i, x in enumerate(coefficients))

    def _irreducible(self) -> Polynomial:
        """Return the lower coefficients of a polynomial x^m + ... that is no product.

        It is the first modulo which no two elements but 0 multiply to 0.
        """
        for reduced in self._digits:
            self._reduced = reduced
            others = self._digits[1:]
            numbers = range(1, len(others) + 1)
            if all(self.times(a, b) for a in numbers for b in numbers if a <= b):
                return reduced
        raise AssertionError("there is one of every degree")
