"""Types of elements and reductions of `torch.distributed`, in NumPy's terms.

NumPy has no bfloat16; its elements are 16-bit words here, which are widened to float32, reduced,
and rounded to the nearest, ties to even, as PyTorch does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from ringleaf.collectives.rounding import UNIT, growth
from ringleaf.core.tensors import FLOAT32, INT32, Array, ElementType
from ringleaf.errors import ConfigError

SUM, PRODUCT, LEAST, MOST = "sum", "product", "min", "max"
AND, OR, XOR = "band", "bor", "bxor"

BFLOAT16 = "bfloat16"
_NAMES = (
    *("float32", "float64", "float16", "int8", "int16", "int32", "int64"),
    *("uint8", "uint16", "uint32", "uint64", "bool", "complex64", "complex128"),
)

WORD = INT32
"""The elements of copies: their bytes, in whole words."""

_UNITS: Mapping[str, float] = {
    "float16": 2.0**-11,
    BFLOAT16: 2.0**-8,
    "float32": UNIT,
    "complex64": 2.0**-22,  # two sums of parts, whose errors add up
    "float64": 2.0**-53,
    "complex128": 2.0**-51,
}
"""The relative error of one rounding."""

_UFUNCS: Mapping[str, np.ufunc] = {
    SUM: np.add,
    PRODUCT: np.multiply,
    LEAST: np.minimum,
    MOST: np.maximum,
    AND: np.bitwise_and,
    OR: np.bitwise_or,
    XOR: np.bitwise_xor,
}

_BITWISE = (AND, OR, XOR)
_ORDERED = (LEAST, MOST)


def item_bytes(dtype: str) -> int:
    """Return the bytes of an element of a type, by torch's name.

    Raises:
        ConfigError: If there is no such type that can be reduced.
    """
    return element_type(dtype).itemsize


def element_type(dtype: str) -> ElementType:
    """Return NumPy's type for a type that can be reduced, by torch's name.

    Raises:
        ConfigError: If there is none.
    """
    if dtype == BFLOAT16:
        return np.dtype(np.uint16)
    if dtype not in _NAMES:
        raise ConfigError(
            f"reduce: elements must be of a type that NumPy has, or {BFLOAT16}, got {dtype!r}; "
            "convert them first"
        )
    return np.dtype(dtype)


@dataclass(frozen=True, slots=True)
class Reduction:
    """A reduction of elements of one type."""

    dtype: str  # by torch's name
    op: str

    def __post_init__(self) -> None:
        kind = element_type(self.dtype).kind
        is_float = self.dtype == BFLOAT16 or kind in "fc"
        allowed = (
            self.op in _UFUNCS
            and not (self.op in _BITWISE and is_float)
            and not (self.op in _ORDERED and kind == "c")
        )
        if not allowed:
            raise ConfigError(f"reduce: {self.dtype} can't be reduced so, got {self.op!r}")

    @property
    def elements(self) -> ElementType:
        """NumPy's type of the elements."""
        return element_type(self.dtype)

    @property
    def is_plain(self) -> bool:
        """Whether it is a sum of a type that compiled code and switches add."""
        return self.op == SUM and self.dtype in (FLOAT32.name, INT32.name)

    @property
    def is_rounded(self) -> bool:
        """Whether results may be rounded, so that they depend on the order of reduction."""
        return self.op in (SUM, PRODUCT) and self.dtype in _UNITS

    def growth(self, ranks: int) -> float:
        """Return the error of a result of `ranks` addends, as a share of the sum of magnitudes.

        Of a product, it is a share of its magnitude. Products may be rounded twice where a type is
        widened; so there is room for one rounding more of each.
        """
        return growth(ranks + 1, 2 * _UNITS[self.dtype]) if self.is_rounded else 0.0

    @property
    def largest(self) -> float:
        """The largest finite magnitude of a rounded result."""
        wide = {"complex64": "float32", "complex128": "float64", BFLOAT16: "float32"}
        return float(np.finfo(wide.get(self.dtype, self.dtype)).max)

    @property
    def least(self) -> float:
        """The error that small results may have besides, as they are multiples of it."""
        wide = {"complex64": "float32", "complex128": "float64"}
        if self.dtype == BFLOAT16:
            return 2.0**-133
        return 4 * float(np.finfo(wide.get(self.dtype, self.dtype)).smallest_subnormal)

    @property
    def combine(self) -> Callable[[Array, Array], None]:
        """The function that reduces its second argument into its first."""
        ufunc = _UFUNCS[self.op]
        if self.dtype == BFLOAT16:
            return partial(_combine_bfloat16, ufunc)
        return partial(_combine, ufunc)

    def widened(self, values: Array) -> Array:
        """Return elements in a type in which their reduction is next to exact."""
        if self.dtype == BFLOAT16:
            return from_bfloat16(values).astype(np.float64)
        kind = values.dtype.kind
        if kind == "c":
            return values.astype(np.complex128)
        return values.astype(np.longdouble) if kind == "f" else values

    def reduced(self, parts: Array) -> Array:
        """Return the reduction of (ranks, elements) widened elements along the first axis."""
        ufunc = _UFUNCS[self.op]
        with np.errstate(all="ignore"):
            return np.asarray(ufunc.reduce(parts, axis=0, dtype=parts.dtype))


def _combine(ufunc: np.ufunc, target: Array, source: Array) -> None:
    with np.errstate(all="ignore"):
        ufunc(target, source, out=target)


def _combine_bfloat16(ufunc: np.ufunc, target: Array, source: Array) -> None:
    with np.errstate(all="ignore"):
        target[:] = to_bfloat16(ufunc(from_bfloat16(target), from_bfloat16(source)))


def from_bfloat16(words: Array) -> npt.NDArray[np.float32]:
    """Return the float32 values of bfloat16 elements, which are exact."""
    return (words.astype(np.uint32) << np.uint32(16)).view(np.float32)


def to_bfloat16(values: npt.NDArray[np.float32]) -> npt.NDArray[np.uint16]:
    """Return values rounded to bfloat16; any NaN becomes the usual one."""
    bits = values.view(np.uint32)
    odd = (bits >> np.uint32(16)) & np.uint32(1)
    rounded = ((bits + np.uint32(0x7FFF) + odd) >> np.uint32(16)).astype(np.uint16)
    rounded[np.isnan(values)] = 0x7FC0
    return rounded
