"""A rank of `ringleaf train`: runs the user's script, with `ringleaf` in place of its backend."""

from __future__ import annotations

import os
import runpy
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from ringleaf.experiments.workloads.train.modules import AS_MODULE
from ringleaf.experiments.workloads.train.wire import FOLDER

_USUAL = ("torch", "torch.distributed", "torch.optim", "torch.nn.parallel", "torch._dynamo")
"""Modules that most scripts load. The first step of any optimizer loads the last one."""

_OURS = tuple(
    f"ringleaf.experiments.workloads.train.{name}"
    for name in ("register", "spawning", "on_cpu", "stores")
)

INTERRUPTED = 130

KNOWN = ("2.13", "2.14")
"""The releases of PyTorch that scripts are known to run with."""


def preload() -> None:
    """Import what ranks need, before they are forked."""
    for name in (*_USUAL, *_OURS):
        import_module(name)


def run(rank: int, words: Sequence[str]) -> None:
    """Run a script as a rank, in a process that has just been forked.

    Args:
        rank: The rank.
        words: The script, or `-m` and a module, and its arguments.
    """
    import numpy as np
    import torch

    from ringleaf.experiments.workloads.train.on_cpu import keep_on_cpu
    from ringleaf.experiments.workloads.train.register import register
    from ringleaf.experiments.workloads.train.spawning import adopt_spawned_ranks
    from ringleaf.experiments.workloads.train.stores import meet_in_files

    signal.signal(signal.SIGINT, end_at_once)
    write_whole_lines()
    np.random.seed()  # else ranks draw alike; Python's own generator knows of forks
    os.environ |= dict.fromkeys(("RANK", "LOCAL_RANK", "ROLE_RANK"), str(rank))
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    register()
    replace_backends()
    meet_in_files(Path(os.environ[FOLDER]))
    ranks = int(os.environ["WORLD_SIZE"])
    adopt_spawned_ranks(rank, ranks)
    keep_on_cpu(ranks)
    _run_words(words)


def _run_words(words: Sequence[str]) -> None:
    """Run a script, or a module behind `-m`, as `python` does."""
    if words[0] != AS_MODULE:
        sys.argv = list(words)
        sys.path.insert(0, os.path.dirname(os.path.abspath(words[0])))
        runpy.run_path(words[0], run_name="__main__")
        return
    sys.argv = list(words[1:])
    sys.path.insert(0, os.getcwd())
    runpy.run_module(words[1], run_name="__main__", alter_sys=True)


def write_whole_lines() -> None:
    """Have this rank's lines written each at once, so that lines of ranks do not run together.

    Without it Python writes to a pipe what fits in its buffer, which may end within a line, or by
    `PYTHONUNBUFFERED` each word that `print` is given.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(line_buffering=True, write_through=False)


def end_at_once(_number: int, _frame: FrameType | None) -> NoReturn:
    """End a rank that is interrupted, without a traceback: the run says that it was.

    An exception would also end in libraries' threads and callbacks, which print it. A script that
    has something to save handles SIGINT itself.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, RuntimeError):  # it is being written to
            stream.flush()
    os._exit(INTERRUPTED)


def version_hint(version: str) -> str:
    """Return a line on a release of PyTorch with which no script has run yet; "" if one has."""
    if any(version.startswith(f"{known}.") for known in KNOWN):
        return ""
    return (
        f"ringleaf: scripts are known to run with PyTorch {' and '.join(KNOWN)}, got {version}; if "
        "the error is not the script's, install one of these\n"
    )


def replace_backends() -> None:
    """Have every process group made with our backend, whichever one the script names.

    In PyTorch newer than 2.13, a process group looks for a backend of the kind that was named.
    """
    from torch.distributed import distributed_c10d as c10d

    from ringleaf.experiments.workloads.train.backend import NAME, base_class
    from ringleaf.experiments.workloads.train.works import answer_for_wrappers

    usual = c10d.BackendConfig.__init__

    def init(self: Any, backend: Any) -> None:
        usual(self, backend)
        self.device_backend_map = {"cpu": c10d.Backend(NAME)}

    c10d.BackendConfig.__init__ = init
    c10d.Backend.default_device_backend_map["cpu"] = NAME
    group = c10d.ProcessGroup
    if base_class() is not group:
        answer_for_wrappers()
        usual_kind = group._set_default_backend
        ours = group.BackendType.CUSTOM
        group._set_default_backend = lambda self, _kind: usual_kind(self, ours)
