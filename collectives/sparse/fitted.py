"""Values as fitted curves: sorted, cut into segments, a polynomial of degree 5 for each.

    words
    0, 1            numbers of positive values and of others
    then            six coefficients for each segment: positive values first, the largest first
    then            each value's place among the sorted ones, ceil(log2 k) bits each

Segments are shares 1/5, 1/10, 1/30, 1/100, 1/300, ... of a sign's values, each of more than 30, and
the rest before them: the curve is steep where values are large.

Source:
    Xu et al., "DeepReduce", NeurIPS 2021, section 4.2; segments of its released code. That the
    steep end has the short segments, and coefficients of float32, are chosen here.
"""

from __future__ import annotations

import numpy as np

from ringleaf.collectives.compression.packing import bit_bytes, pack_bits, unpack_bits
from ringleaf.core.tensors import Array

DEGREE, LEAST = 5, 30


def segments(count: int) -> list[int]:
    """Return the lengths of the segments of `count` sorted values, the largest values' first."""
    lengths: list[int] = []
    for i in range(count):
        length = count // (5 if i == 0 else (10, 30)[(i - 1) % 2] * 10 ** ((i - 1) // 2))
        if length <= LEAST:
            break
        lengths.insert(0, length)
    rest = count - sum(lengths)
    return [*lengths, rest] if rest else lengths


def fit(values: Array) -> Array:
    """Return the words (float32) that stand for k values."""
    order = np.argsort(-values, kind="stable")
    ranked = values[order].astype(np.float64)
    positive = int(np.count_nonzero(values > 0))
    head = np.array([positive, values.size - positive], np.int32).view(np.float32)
    curves = [*_fit_side(ranked[:positive]), *_fit_side(-ranked[positive:][::-1])]
    places = np.empty(values.size, np.int64)
    places[order] = np.arange(values.size)
    packed = _pack(places)
    return np.concatenate([head, *curves, packed]).astype(np.float32, copy=False)


def unfit(words: Array) -> Array:
    """Return the values (float32) that words stand for; there may be zeros behind."""
    positive, others = (int(each) for each in words[:2].view(np.int32))
    count = positive + others
    at, sides = 2, []
    for size in (positive, others):
        parts = []
        for length in segments(size):
            parts.append(_curve(words[at : at + DEGREE + 1], length))
            at += DEGREE + 1
        sides.append(np.concatenate(parts) if parts else np.zeros(0))
    ranked = np.concatenate([sides[0], -sides[1][::-1]]).astype(np.float32)
    width = max((count - 1).bit_length(), 1)
    data = np.ascontiguousarray(words[at:]).view(np.uint8)[: bit_bytes(count, width)]
    return ranked[unpack_bits(data, count, width)]


def _fit_side(ranked: Array) -> list[Array]:
    """Return the coefficients of values above zero, the largest first."""
    coefficients, start = [], 0
    for length in segments(ranked.size):
        part, start = ranked[start : start + length], start + length
        powers = _powers(length)
        coefficients.append(np.linalg.lstsq(powers, part, rcond=None)[0].astype(np.float32))
    return coefficients


def _powers(length: int) -> Array:
    return np.vander(np.linspace(-1, 1, length), DEGREE + 1)


def _curve(coefficients: Array, length: int) -> Array:
    curve: Array = _powers(length) @ coefficients.astype(np.float64)
    return curve


def _pack(places: Array) -> Array:
    data = pack_bits(places.astype(np.int32), max((places.size - 1).bit_length(), 1))
    padded = np.zeros(-(-data.size // 4) * 4, np.uint8)
    padded[: data.size] = data
    return padded.view(np.float32)
