"""Types of what compiled functions take and return, as C passes them.

Compiled code is called through its address, so who calls it needs neither Numba nor LLVM's types.
The names are Numba's, and `ringleaf.core.compiler` looks them up there. Numba passes an array by
value, as a structure's seven or more words, and a result through a pointer; what a function itself
returns is 0, or why it failed.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from operator import index
from typing import Any

import numpy as np

from ringleaf.core.arena import Arena

Words = list[Any]  # arguments as C has them

ERROR_AT = ctypes.sizeof(ctypes.c_void_p)
"""Where the pointer to an error is in what a call writes: no result is longer than a pointer."""


class Type:
    """A type of an argument or result.

    Args:
        name: Its name, which is Numba's, too.
        c_types: What C passes for one argument.
    """

    def __init__(self, name: str, *c_types: Any) -> None:
        self.name = name
        self.c_types = c_types

    @cached_property
    def outcome(self) -> Any:
        """What a call writes, in C: its `result` of this type, then a pointer to an error."""
        fields = [("result", self.c_types[0]), ("error", ctypes.c_void_p)]
        return type("Outcome", (ctypes.Structure,), {"_fields_": fields})

    def __str__(self) -> str:
        """Return its name."""
        return self.name

    def __call__(self, *arguments: Type) -> Signature:
        """Return the signature of functions that return this."""
        return Signature(self, arguments)

    def add_to(self, words: Words, value: Any) -> None:
        """Append a value as C passes it.

        Raises:
            TypeError: If it is none of this type.
        """
        raise TypeError(f"{self}: is no type of arguments")


class Number(Type):
    """Integers, floats or truth values.

    Args:
        name: As NumPy has it, too; "boolean" for truth values.
        c_type: C's type.
        convert: Makes Python's number of a value, or raises TypeError.
    """

    def __init__(self, name: str, c_type: Any, convert: Any) -> None:
        super().__init__(name, c_type)
        self.dtype = np.dtype(name.removesuffix("ean"))
        self._convert = convert

    def __getitem__(self, axes: slice | tuple[slice, ...]) -> Array:
        """Return the type of contiguous arrays: `int64[::1]`, or `int64[:, ::1]` of two axes."""
        return Array(self, len(axes) if isinstance(axes, tuple) else 1, "C")

    def add_to(self, words: Words, value: Any) -> None:
        """Append a value."""
        words.append(self._convert(value))


class Array(Type):
    """Arrays of numbers.

    Args:
        dtype: The type of their items.
        ndim: How many axes they have.
        layout: "C" for contiguous ones, "A" for all.
        readonly: Whether they are only read, so that those that can't be written will do.
    """

    def __init__(self, dtype: Number, ndim: int, layout: str, *, readonly: bool = False) -> None:
        per_axis = (ctypes.c_int64,) * ndim
        pointer, size = ctypes.c_void_p, ctypes.c_int64
        super().__init__(
            f"{dtype}[{ndim}{layout}{'r' * readonly}]",
            *(pointer, pointer, size, size, pointer, *per_axis, *per_axis),
        )
        self.dtype, self.ndim, self.layout, self.readonly = dtype, ndim, layout, readonly

    def add_to(self, words: Words, value: Any) -> None:
        """Append an array's structure: no owners, size, size of an item, data, shape, strides."""
        if not isinstance(value, np.ndarray) or value.ndim != self.ndim or not self._fits(value):
            raise TypeError(f"compiled code takes {self} here, got {_describe(value)}")
        data = value.__array_interface__["data"][0]
        words += (None, None, value.size, value.itemsize, data, *value.shape, *value.strides)

    def _fits(self, value: Any) -> bool:
        flags = value.flags
        return (
            value.dtype == self.dtype.dtype
            and (flags.c_contiguous or self.layout == "A")
            and (flags.writeable or self.readonly)
            and bool(flags.aligned)
        )


def _describe(value: Any) -> str:
    if not isinstance(value, np.ndarray):
        return type(value).__name__
    flags = value.flags
    kinds = ("" if flags.c_contiguous else " that is not contiguous") + (
        "" if flags.writeable else " that can't be written"
    )
    return f"an array of {value.dtype} of {value.ndim}-D shape{kinds}"


class _ArenaType(Type):
    def add_to(self, words: Words, value: Any) -> None:
        """Append the address of an arena's table of arrays."""
        if not isinstance(value, Arena):
            raise TypeError(f"compiled code takes an Arena here, got {type(value).__name__}")
        words.append(value.address)


@dataclass(frozen=True, slots=True)
class Signature:
    """The types of a function's result and arguments."""

    result: Type
    arguments: tuple[Type, ...]

    def __str__(self) -> str:
        """Return it as `result(arguments)`."""
        return f"{self.result}({', '.join(map(str, self.arguments))})"

    def prototype(self, *, frees_python: bool) -> Any:
        """Return C's type of such functions: a pointer for the result, one for an error, words.

        Args:
            frees_python: Whether Python's other threads run meanwhile.
        """
        make = ctypes.CFUNCTYPE if frees_python else ctypes.PYFUNCTYPE
        words = chain.from_iterable(each.c_types for each in self.arguments)
        return make(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, *words)


int8, uint8, int16, int32, uint32, int64, uint64 = (
    Number(name, getattr(ctypes, f"c_{name}"), index)
    for name in ("int8", "uint8", "int16", "int32", "uint32", "int64", "uint64")
)
float32 = Number("float32", ctypes.c_float, float)
float64 = Number("float64", ctypes.c_double, float)
boolean = Number("boolean", ctypes.c_bool, bool)
void = Type("void", ctypes.c_void_p)
ARENA = _ArenaType("arena", ctypes.c_void_p)
"""The type of an `Arena`: the address of its table of arrays."""
