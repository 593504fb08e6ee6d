"""FLOPs of operations: PyTorch's counts, and those of kernels that only CPUs have.

PyTorch counts what GPUs run. On CPUs attention, LSTMs and the fast paths of transformers have
kernels of their own, which stand for the same products.

Source:
    PyTorch, torch/utils/flop_counter.py, for attention, and for operations in inference mode,
    which come whole and are counted in their parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

_aten: Any = torch.ops.aten


def _product(matrix: torch.Tensor, *_: Any, **__: Any) -> int:
    """Return the FLOPs of a matrix times a vector."""
    return int(2 * matrix.numel())


def _added_product(_: torch.Tensor, matrix: torch.Tensor, *__: Any, **___: Any) -> int:
    return int(2 * matrix.numel())


def _lstm(series: torch.Tensor, *args: Any, **_: Any) -> int:
    """Return the FLOPs of one layer in one direction, on a series of (steps, batch, features)."""
    of_input, of_state = args[:2]
    steps, batch, _features = series.shape
    return int(2 * steps * batch * (of_input.numel() + of_state.numel()))


def _lstm_backward(*args: Any, **_: Any) -> int:
    """Return the FLOPs of gradients, which are two for each product."""
    return 2 * _lstm(*args)


def _self_attention(tokens: torch.Tensor, weights: Iterable[torch.Tensor]) -> int:
    """Return the FLOPs of tokens times these weights, and of each sequence's attention.

    Args:
        tokens: (batch, sequence, features), or nested sequences of several lengths.
        weights: Matrices that all tokens are multiplied by.
    """
    lengths = [len(each) for each in tokens.unbind()]
    products = sum(each.numel() for each in weights)
    return sum(2 * size * products + 4 * size * size * tokens.size(-1) for size in lengths)


def _heads(query: torch.Tensor, *args: Any, **_: Any) -> int:
    return _self_attention(query, (args[4], args[6]))


def _encoder_layer(tokens: torch.Tensor, *args: Any, **_: Any) -> int:
    return _self_attention(tokens, (args[2], args[4], args[13], args[15]))


_OF_CPUS: dict[Any, Callable[..., int]] = {
    _aten.mv: _product,
    _aten.addmv: _added_product,
    _aten.mkldnn_rnn_layer: _lstm,
    _aten.mkldnn_rnn_layer_backward: _lstm_backward,
    _aten._native_multi_head_attention: _heads,
    _aten._transformer_encoder_layer_fwd: _encoder_layer,
    _aten._scaled_dot_product_flash_attention_for_cpu: flop_registry[
        _aten._scaled_dot_product_flash_attention
    ],
    _aten._scaled_dot_product_flash_attention_for_cpu_backward: flop_registry[
        _aten._scaled_dot_product_flash_attention_backward
    ],
}
"""The FLOPs of an operation, given its arguments."""


class FlopMeter(TorchDispatchMode):
    """Tells of each operation's FLOPs; of tensors that ranks share, those of this rank's part.

    Args:
        tell: Called with the FLOPs of operations that have some.
    """

    def __init__(self, tell: Callable[[int], None]) -> None:
        super().__init__()
        self._tell = tell

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = kwargs or {}
        if any(issubclass(kind, DTensor) for kind in types):
            return NotImplemented  # what it does with its own part comes next
        if any(issubclass(kind, FakeTensor) for kind in types):
            return func(*args, **named)  # somebody wants to know shapes, and computes nothing
        packet = getattr(func, "_overloadpacket", func)
        formula = flop_registry.get(packet) or _OF_CPUS.get(packet)
        is_whole = formula is None and torch.is_inference_mode_enabled()
        if is_whole and isinstance(func, torch._ops.OpOverload):
            with self:
                parts = func.decompose(*args, **named)
            if parts is not NotImplemented:
                return parts
        result = func(*args, **named)
        if formula is not None:
            self._tell(formula(*args, **named, out_val=result))
        return result
