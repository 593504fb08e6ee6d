"""PyTorch's tensors and NumPy's arrays of the same memory.

Inside, elements are arrays: most commands never load torch, which takes a second or two. Codecs,
compressors and the Python interface have tensors, which share their memory with these arrays.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ringleaf.errors import ConfigError

if TYPE_CHECKING:
    import torch

Array = npt.NDArray[Any]

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


def as_tensor(array: Array) -> torch.Tensor:
    """Return the tensor that shares its memory with an array."""
    import torch

    return torch.from_numpy(array)


def as_tensors(arrays: Iterable[Array]) -> list[torch.Tensor]:
    """Return `as_tensor` of each."""
    return [as_tensor(array) for array in arrays]


def use_one_thread() -> None:
    """Have torch compute in one thread: where pieces are short, waking another takes longer."""
    import torch

    torch.set_num_threads(1)


def element_type(dtype: torch.dtype) -> ElementType:
    """Return NumPy's name of a type of elements."""
    import torch

    return as_array(torch.empty(0, dtype=dtype)).dtype


def torch_type(dtype: ElementType) -> torch.dtype:
    """Return torch's name of a type of elements."""
    return as_tensor(np.empty(0, dtype)).dtype
