"""Scripts that ask for CUDA: their tensors and models stay on the CPU.

Ranks compute on the CPU, and `torch.cuda.is_available()` says so. Many scripts never ask: they move
all to `rank` or to `cuda`, set the device, and name it to DDP. There are as many devices as ranks.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import wraps
from typing import Any

_FACTORIES = (
    *("tensor", "as_tensor", "zeros", "ones", "empty", "full", "rand", "randn", "randint"),
    *("randperm", "arange", "linspace", "eye", "zeros_like", "ones_like", "empty_like"),
    *("full_like", "rand_like", "randn_like", "randint_like", "normal", "asarray", "scalar_tensor"),
    *("logspace", "range", "empty_strided", "empty_permuted", "tril_indices", "triu_indices"),
    *("bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window"),
    *("sparse_coo_tensor", "sparse_csr_tensor", "sparse_csc_tensor", "sparse_compressed_tensor"),
)
_METHODS = ("new_tensor", "new_zeros", "new_ones", "new_empty", "new_full", "new_empty_strided")
_NOTHING = (
    *("set_device", "synchronize", "empty_cache", "init", "ipc_collect"),
    *("reset_peak_memory_stats", "reset_accumulated_memory_stats", "reset_max_memory_allocated"),
    *("reset_max_memory_cached", "set_per_process_memory_fraction"),
)
_NOTHING_OF_ACCELERATORS = (
    *("set_device_index", "set_device_idx", "synchronize", "empty_cache", "empty_host_cache"),
    *("reset_peak_memory_stats", "reset_accumulated_memory_stats"),
)
_ZERO_OF_ACCELERATORS = (
    *("current_device_index", "current_device_idx", "memory_allocated", "max_memory_allocated"),
    *("memory_reserved", "max_memory_reserved"),
)
_MARKS = ("range_push", "range_pop", "range_start", "range_end", "mark")
"""What marks a profile of NVTX."""


def keep_on_cpu(ranks: int) -> None:
    """Have devices of CUDA mean the CPU, of which each rank has one."""
    import torch
    from torch.nn.parallel import DistributedDataParallel

    _keep_defaults_on_cpu()
    for owner in (torch.Tensor, torch.nn.Module):
        owner.to = _moved(owner.to)
    for owner in (torch.Tensor, torch.nn.Module, torch.UntypedStorage, torch.TypedStorage):
        owner.cuda = _itself
    torch.Tensor.pin_memory = _itself
    for name in _FACTORIES:
        _replace(name)
    for name in _METHODS:
        setattr(torch.Tensor, name, _moved(getattr(torch.Tensor, name), first=False))
    torch.load = _moved(torch.load, keyword="map_location")
    for name in _NOTHING:
        setattr(torch.cuda, name, lambda *_, **__: None)
    for name in _MARKS:
        setattr(torch.cuda.nvtx, name, lambda *_, **__: None)
    torch.cuda.device.__enter__ = torch.cuda.device.__exit__ = lambda *_: None
    torch.cuda.current_device = lambda: 0
    torch.cuda.nccl.version = lambda: (0, 0, 0)  # of errors' records; PyTorch for CPUs has none
    torch.cuda.device_count = _for_scripts(torch.cuda.device_count, ranks)
    usual = DistributedDataParallel.__init__

    @wraps(usual)
    def init(self: Any, module: Any, *_: Any, **named: Any) -> None:
        usual(self, module, **named | {"device_ids": None, "output_device": None})

    DistributedDataParallel.__init__ = init
    _answer_for_accelerators(ranks)
    _cast_on_cpu()
    _make_groups_without_devices()


def _answer_for_accelerators(ranks: int) -> None:
    """Have `torch.accelerator` mean the CPU."""
    import torch

    answers = {
        "is_available": True,  # a script that hears so asks which one it is
        "current_accelerator": torch.device("cpu"),
        "device_count": ranks,
    }
    for name, answer in answers.items():
        setattr(torch.accelerator, name, _for_scripts(getattr(torch.accelerator, name), answer))
    for name in _ZERO_OF_ACCELERATORS:
        setattr(torch.accelerator, name, lambda *_, **__: 0)
    for name in _NOTHING_OF_ACCELERATORS:
        setattr(torch.accelerator, name, lambda *_, **__: None)
    torch.accelerator.memory_stats = lambda *_, **__: {}
    place = torch.accelerator.device_index
    place.__enter__ = place.__exit__ = lambda *_: None


def _cast_on_cpu() -> None:
    """Have CUDA's mixed precision be the CPU's, so that tensors on their way have their types.

    PyTorch would leave it out, with a warning, and activations would be twice as long.
    """
    import torch

    usual = torch.autocast.__init__
    usual_scaler = torch.amp.GradScaler.__init__

    @wraps(usual)
    def init(self: Any, device_type: str, dtype: Any = None, *args: Any, **named: Any) -> None:
        own = torch.get_autocast_dtype(device_type) if dtype is None else dtype
        usual(self, _cpu(device_type), own, *args, **named)

    @wraps(usual_scaler)
    def init_scaler(self: Any, device: str = "cuda", *args: Any, **named: Any) -> None:
        usual_scaler(self, _cpu(device), *args, **named)

    torch.autocast.__init__ = init
    torch.amp.GradScaler.__init__ = init_scaler


def _for_scripts(function: Callable[..., Any], answer: Any) -> Callable[..., Any]:
    """Return a function that has an answer for scripts, and the usual one for PyTorch itself.

    PyTorch would use devices of CUDA where it hears of any, as `torch.random.fork_rng` does.
    """

    @wraps(function)
    def answering(*args: Any, **named: Any) -> Any:
        asks = str(sys._getframe(1).f_globals.get("__name__"))
        return function(*args, **named) if asks.partition(".")[0] == "torch" else answer

    return answering


def _make_groups_without_devices() -> None:
    """Have process groups made without the device that scripts name, and meshes of the CPU.

    Groups by MPI are made as by Gloo: their ranks would come from the program that starts them.
    """
    import torch
    from torch import distributed
    from torch.distributed import distributed_c10d
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.fsdp import FullyShardedDataParallel, _init_utils
    from torch.distributed.fsdp._flat_param import FlatParamHandle

    DeviceMesh.__init__ = _moved(DeviceMesh.__init__, keyword="device_type")
    _init_utils._check_module_states_for_sync_module_states = lambda *_: None
    usual = FullyShardedDataParallel.__init__

    @wraps(usual)
    def init(self: Any, *args: Any, **named: Any) -> None:
        usual(self, *args, **named | {"device_id": torch.device("cpu")})

    FullyShardedDataParallel.__init__ = init
    # It frees the device's copy, which is the only one: `FullStateDictConfig(offload_to_cpu=True)`.
    FlatParamHandle.to_cpu = lambda _: nullcontext()
    for name in ("init_process_group", "new_group"):
        ours = _without_device(getattr(distributed_c10d, name))
        for place in (distributed, distributed_c10d):
            setattr(place, name, ours)


def _without_device(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def make(*args: Any, **named: Any) -> Any:
        named.pop("device_id", None)
        if named.get("backend") == "mpi":
            named["backend"] = "gloo"
        return function(*("gloo" if each == "mpi" else each for each in args), **named)

    return make


def _keep_defaults_on_cpu() -> None:
    """Have `with torch.device("cuda")` and default devices mean the CPU.

    They know the functions that make tensors when they are first asked, and must know the usual
    ones: else `with torch.device("meta")` would allocate memory.
    """
    from torch.utils import _device

    _device._device_constructors()
    usual = _device.DeviceContext.__init__

    @wraps(usual)
    def init(self: Any, device: Any) -> None:
        usual(self, _cpu(device))

    _device.DeviceContext.__init__ = init


def _replace(name: str) -> None:
    """Replace a function of `torch` that makes tensors; TorchScript takes it for the usual one."""
    import torch
    from torch.jit import _builtins

    usual = getattr(torch, name)
    ours = _moved(usual, first=False)
    if known := _builtins._find_builtin(usual):
        _builtins._register_builtin(ours, known)
    setattr(torch, name, ours)


def _itself(self: Any, *_: Any, **__: Any) -> Any:
    """Return the tensor, module or storage that is to be moved: it is where it shall be."""
    return self


def _moved(
    function: Callable[..., Any], *, first: bool = True, keyword: str = "device"
) -> Callable[..., Any]:
    """Return the function with the CPU in place of CUDA's devices among its arguments.

    Args:
        function: A function whose second argument may be a device, or one with a keyword only.
        first: Whether it is the second argument, the first one of a method.
        keyword: The keyword.
    """

    @wraps(function)
    def on_cpu(*args: Any, **named: Any) -> Any:
        if keyword in named:
            named[keyword] = _cpu(named[keyword])
        if first and len(args) > 1:
            args = (args[0], _cpu(args[1]), *args[2:])
        return function(*args, **named)

    return on_cpu


def _cpu(device: Any) -> Any:
    """Return the CPU for a device of CUDA, and anything else as it is.

    A mapping, as `torch.load` takes it, has the CPU in place of its devices.
    """
    if isinstance(device, dict):
        return {key: _cpu(value) for key, value in device.items()}
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
