"""PyTorch's tensors and NumPy's arrays of the same memory.

Inside, elements are arrays: most commands never load torch, which takes a second or two, and need
not be installed (`pip install 'ringleaf[torch]'`). Other people's codecs and compressors and the
Python interface have tensors, which share their memory with these arrays.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from ringleaf.core.extras import is_missing, require
from ringleaf.errors import ConfigError

if TYPE_CHECKING:
    import torch

Array = npt.NDArray[Any]

Elements = TypeVar("Elements", bound="torch.Tensor | Array")
"""Elements in either form, where what comes back has the form that was given."""

ElementType = np.dtype[Any]

FLOAT32: ElementType = np.dtype(np.float32)
INT32: ElementType = np.dtype(np.int32)


def as_array(tensor: torch.Tensor | Array) -> Array:
    """Return the array that shares its memory with a tensor on the CPU; an array is itself.

    Raises:
        ConfigError: If NumPy has no such type, or the tensor is elsewhere.
    """
    if isinstance(tensor, np.ndarray):
        return tensor
    try:
        array: Array = tensor.detach().numpy()
    except (TypeError, RuntimeError) as error:
        raise ConfigError(
            f"tensor: must be on the CPU, and of a type that NumPy has, got {tensor.dtype} on "
            f"{tensor.device}; convert it first"
        ) from error
    return array


def as_arrays(tensors: Iterable[torch.Tensor | Array]) -> list[Array]:
    """Return `as_array` of each."""
    return [as_array(tensor) for tensor in tensors]


@cache
def _torch() -> Any:
    """Return the package torch.

    Raises:
        ConfigError: If it is not installed.
    """
    require("torch", "tensors")
    import torch

    return torch


def as_tensor(array: Array) -> torch.Tensor:
    """Return the tensor that shares its memory with an array.

    Raises:
        ConfigError: If PyTorch is not installed.
    """
    tensor = _torch().from_numpy(array)
    return tensor if array.size else tensor.new_empty(tensor.shape)  # whose strides allow views


def as_tensors(arrays: Iterable[Array]) -> list[torch.Tensor]:
    """Return `as_tensor` of each."""
    return [as_tensor(array) for array in arrays]


def as_given(array: Array, like: Elements) -> Elements:
    """Return an array as what `like` is: the array itself, or the tensor of the same memory."""
    elements: Any = array if isinstance(like, np.ndarray) else as_tensor(array)
    return elements  # type: ignore[no-any-return]


def as_result(array: Array) -> torch.Tensor | Array:
    """Return a result for the Python interface: a tensor, but an array where PyTorch is missing."""
    return array if is_missing("torch") else as_tensor(array)


def use_one_thread() -> None:
    """Have torch compute in one thread: where pieces are short, waking another takes longer."""
    _torch().set_num_threads(1)


def element_type(dtype: torch.dtype) -> ElementType:
    """Return NumPy's name of a type of elements."""
    return as_array(_torch().empty(0, dtype=dtype)).dtype


def memory_type(dtype: torch.dtype) -> ElementType:
    """Return NumPy's name of a type of elements; of one that it lacks, that of words as wide."""
    try:
        return element_type(dtype)
    except ConfigError:
        return np.dtype(f"i{dtype.itemsize}")


def torch_type(dtype: ElementType) -> torch.dtype:
    """Return torch's name of a type of elements."""
    return as_tensor(np.empty(0, dtype)).dtype
