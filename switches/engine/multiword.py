"""Arithmetic on values of several 64-bit words, the least significant first.

The functions for generated code take and return tuples of `uint64` of one length, n, and compute
modulo 2^(64 n); the generator proves that n words are enough. The loops work on arrays, so that
they are compiled once for all n.
"""

from __future__ import annotations

import numpy as np

from ringleaf.core.arena import Fields
from ringleaf.core.compiled import inline
from ringleaf.core.stack import off_stack, on_stack

Words = tuple[np.uint64, ...]

_U0 = np.uint64(0)
_U1 = np.uint64(1)
_U6 = np.uint64(6)
_U32 = np.uint64(32)
_U63 = np.uint64(63)
_U64 = np.uint64(64)
_LOW_32 = np.uint64(0xFFFFFFFF)


@inline
def add_words(a: Words, b: Words) -> Words:
    """Return a + b, modulo 2^(64 n)."""
    total = on_stack(a)
    _add(total, on_stack(b))
    return off_stack(total, a)


@inline
def subtract_words(a: Words, b: Words) -> Words:
    """Return a - b, modulo 2^(64 n)."""
    rest = on_stack(a)
    _subtract(rest, on_stack(b))
    return off_stack(rest, a)


@inline
def multiply_words(a: Words, b: Words) -> Words:
    """Return a * b, modulo 2^(64 n)."""
    product = on_stack(a)
    _multiply(product, on_stack(a), on_stack(b))
    return off_stack(product, a)


@inline
def divide_words(a: Words, b: Words) -> Words:
    """Return the quotient of unsigned values, and 0 for a divisor of 0 (BMv2 aborts there)."""
    quotient, rest = on_stack(a), on_stack(a)
    _divide(quotient, rest, on_stack(a), on_stack(b))
    return off_stack(quotient, a)


@inline
def modulo_words(a: Words, b: Words) -> Words:
    """Return the remainder of unsigned values, and 0 for a divisor of 0 (BMv2 aborts there)."""
    quotient, rest = on_stack(a), on_stack(a)
    _divide(quotient, rest, on_stack(a), on_stack(b))
    return off_stack(rest, a)


@inline
def shift_words_left(a: Words, amount: np.uint64) -> Words:
    """Return a << amount, modulo 2^(64 n); an amount of 64 n or more gives 0."""
    shifted = on_stack(a)
    _shift_left(shifted, on_stack(a), amount)
    return off_stack(shifted, a)


@inline
def shift_words_right(a: Words, amount: np.uint64, sign: np.uint64) -> Words:
    """Shift right; words of `sign` (0, or all ones for a negative value) come from the left."""
    shifted = on_stack(a)
    _shift_right(shifted, on_stack(a), amount, sign)
    return off_stack(shifted, a)


@inline
def is_less(a: Words, b: Words) -> bool:
    """Compare unsigned values; for signed ones, flip the highest bit of both before."""
    return _is_less(on_stack(a), on_stack(b))


@inline
def _add(total: Fields, b: Fields) -> None:
    carry = _U0
    for i in range(total.size):
        first = total[i] + carry
        carry = np.uint64(first < carry)
        both = first + b[i]
        carry += np.uint64(both < first)
        total[i] = both


@inline
def _subtract(rest: Fields, b: Fields) -> None:
    borrow = _U0
    for i in range(rest.size):
        first = rest[i] - borrow
        borrow = np.uint64(first > rest[i])
        both = first - b[i]
        borrow += np.uint64(both > first)
        rest[i] = both


@inline
def _multiply(product: Fields, a: Fields, b: Fields) -> None:
    """Multiply (Knuth, TAOCP 2, 4.3.1 M); each product of words is made of four of their halves."""
    count = product.size
    for i in range(count):
        product[i] = _U0
    for i in range(count):
        low, high = a[i] & _LOW_32, a[i] >> _U32
        carry = _U0
        for j in range(count - i):
            lower, upper = b[j] & _LOW_32, b[j] >> _U32
            least, cross = low * lower, high * lower
            other = low * upper
            middle = (least >> _U32) + (cross & _LOW_32) + (other & _LOW_32)
            word = (least & _LOW_32) | (middle << _U32)
            most = high * upper + (cross >> _U32) + (other >> _U32) + (middle >> _U32)
            total = product[i + j] + word
            most += np.uint64(total < word)
            total += carry
            carry = most + np.uint64(total < carry)
            product[i + j] = total


@inline
def _divide(quotient: Fields, rest: Fields, a: Fields, b: Fields) -> None:
    """Divide bit by bit: programs divide wide values too seldom for a faster way."""
    count = a.size
    some = _U0
    for i in range(count):
        quotient[i] = _U0
        rest[i] = _U0
        some |= b[i]
    if some == _U0:
        return
    for i in range(count - 1, -1, -1):
        for bit in range(63, -1, -1):
            place = np.uint64(bit)
            out = rest[count - 1] >> _U63
            for j in range(count - 1, 0, -1):
                rest[j] = (rest[j] << _U1) | (rest[j - 1] >> _U63)
            rest[0] = (rest[0] << _U1) | ((a[i] >> place) & _U1)
            if out != _U0 or not _is_less(rest, b):
                _subtract(rest, b)
                quotient[i] |= _U1 << place


@inline
def _shift_left(shifted: Fields, a: Fields, amount: np.uint64) -> None:
    count = a.size
    bits = amount & _U63
    whole = np.int64(min(amount >> _U6, np.uint64(count)))
    for i in range(count):
        high = a[i - whole] if i >= whole else _U0
        low = a[i - whole - 1] if i > whole else _U0
        # LLVM leaves the result of a shift by 64 bits undefined, so zero bits are a case of their
        # own.
        shifted[i] = (high << bits) | (low >> (_U64 - bits)) if bits != _U0 else high


@inline
def _shift_right(shifted: Fields, a: Fields, amount: np.uint64, sign: np.uint64) -> None:
    count = a.size
    bits = amount & _U63
    whole = np.int64(min(amount >> _U6, np.uint64(count)))
    for i in range(count):
        low = a[i + whole] if i + whole < count else sign
        high = a[i + whole + 1] if i + whole + 1 < count else sign
        shifted[i] = (low >> bits) | (high << (_U64 - bits)) if bits != _U0 else low


@inline
def _is_less(a: Fields, b: Fields) -> bool:
    for i in range(a.size - 1, -1, -1):
        if a[i] != b[i]:
            return bool(a[i] < b[i])
    return False
