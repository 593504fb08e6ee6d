"""Places of a sparse tensor in a Bloom filter.

Source:
    Xu, Kostopoulou, Dutta, Li, Ntoulas and Kalnis, "DeepReduce", NeurIPS 2021, section 4.1; sizes
    as in its released code. The hash functions are chosen here.
"""

from __future__ import annotations

from math import ceil, log, log2

import numpy as np

from ringleaf.core.tensors import Array


def filter_size(elements: int, count: int) -> tuple[int, int]:
    """Return the bits and the hash functions of the filter of `count` places.

    The share of false positives is a tenth of that of places.
    """
    bits = log2(elements / (0.1 * count))
    return ceil(bits * count / log(2)), ceil(bits)


def hashes(places: Array, bits: int, functions: int) -> Array:
    """Return the bits of each place: (functions, places)."""
    return np.stack([_hash(places, bits, function) for function in range(functions)])


def positives(bloom: Array, elements: int, functions: int) -> Array:
    """Return the places that a filter of bits (bool) seems to have, in order."""
    places = np.arange(elements)
    for function in range(functions):
        places = places[bloom[_hash(places, bloom.size, function)]]
    return places


def _hash(places: Array, bits: int, function: int) -> Array:
    """Return the bit of each place by one function: MurmurHash3's finalizer, seeded."""
    words = places.astype(np.uint64) + (np.uint64(function + 1) << np.uint64(40))
    for multiplier in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        words = (words ^ words >> np.uint64(33)) * np.uint64(multiplier)
    indices: Array = ((words ^ words >> np.uint64(33)) % np.uint64(bits)).astype(np.int64)
    return indices
