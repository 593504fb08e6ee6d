"""Scripts that ask for CUDA: their tensors and models stay on the CPU.

Ranks compute on the CPU, and `torch.cuda.is_available()` says so. Many scripts never ask: they move
all to `rank` or to `cuda`, set the device, and name it to DDP. There are as many devices as ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

_FACTORIES = (
    *("tensor", "as_tensor", "zeros", "ones", "empty", "full", "rand", "randn", "randint"),
    *("randperm", "arange", "linspace", "eye", "zeros_like", "ones_like", "empty_like"),
    *("full_like", "rand_like", "randn_like"),
)
_NOTHING = ("set_device", "synchronize", "empty_cache", "reset_peak_memory_stats", "init")


def keep_on_cpu(ranks: int) -> None:
    """Have devices of CUDA mean the CPU, of which each rank has one."""
    import torch
    from torch.nn.parallel import DistributedDataParallel

    for owner in (torch.Tensor, torch.nn.Module):
        owner.to = _moved(owner.to)
        owner.cuda = lambda self, *_, **__: self
    for name in _FACTORIES:
        setattr(torch, name, _moved(getattr(torch, name), first=False))
    for name in _NOTHING:
        setattr(torch.cuda, name, lambda *_, **__: None)
    torch.cuda.current_device = lambda: 0
    torch.cuda.device_count = lambda: ranks
    usual = DistributedDataParallel.__init__

    @wraps(usual)
    def init(self: Any, module: Any, *_: Any, **named: Any) -> None:
        usual(self, module, **named | {"device_ids": None, "output_device": None})

    DistributedDataParallel.__init__ = init


def _moved(function: Callable[..., Any], *, first: bool = True) -> Callable[..., Any]:
    """Return the function with the CPU in place of CUDA's devices among its arguments.

    Args:
        function: A method whose first argument may be a device, or a function with a keyword.
        first: Whether it is such a method.
    """

    @wraps(function)
    def on_cpu(*args: Any, **named: Any) -> Any:
        if "device" in named:
            named["device"] = _cpu(named["device"])
        if first and len(args) > 1:
            args = (args[0], _cpu(args[1]), *args[2:])
        return function(*args, **named)

    return on_cpu


def _cpu(device: Any) -> Any:
    """Return the CPU for a device of CUDA, and anything else as it is."""
    if isinstance(device, int) and not isinstance(device, bool):
        return "cpu"
    if isinstance(device, str):
        return "cpu" if device.startswith("cuda") else device
    return "cpu" if getattr(device, "type", "") == "cuda" else device


def hint(error: BaseException, environment: Mapping[str, str]) -> str:
    """Return what to do about an error that is CUDA's; "" if it is another.

    PyTorch says "not compiled with CUDA", or, if it is, "Found no NVIDIA driver".
    """
    words = "CUDA", "NVIDIA"
    is_asking = isinstance(error, RuntimeError | AssertionError)
    if not is_asking or not any(word in str(error) for word in words):
        return ""
    return (
        f"ringleaf: rank {environment.get('RANK', '?')}: ranks compute on the CPU, got a call of "
        'CUDA; write device = "cuda" if torch.cuda.is_available() else "cpu"\n'
    )
