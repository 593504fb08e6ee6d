"""Registration of the backend, and the link that all process groups of this process share."""

from __future__ import annotations

import os
import sys
import traceback
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from ringleaf.core.shipped import PACKAGE
from ringleaf.experiments.workloads.train import streams
from ringleaf.experiments.workloads.train.backend import NAME, base_class, make_class
from ringleaf.experiments.workloads.train.clock import parse_compute
from ringleaf.experiments.workloads.train.hooks import compress_all, replace_built_in_hook
from ringleaf.experiments.workloads.train.link import FabricError, RankConnection
from ringleaf.experiments.workloads.train.observer import ScriptObserver
from ringleaf.experiments.workloads.train.wire import FOLDER

OPTIONS = "RINGLEAF_TRAIN"
"""The environment variable with options of `ringleaf train`, for a fabric that rank 0 starts."""

_KEY = "ringleaf-fabric"
_START = timedelta(minutes=5)

_links: list[RankConnection] = []


def register() -> None:
    """Make `ringleaf` a backend of `torch.distributed`; once is enough."""
    if NAME.upper() not in dist.Backend._plugins:
        dist.Backend.register_backend(NAME, _create, extended_api=True, devices=["cpu"])


def current_link() -> RankConnection | None:
    """Return this process's link to the fabric, if it has one."""
    return _links[0] if _links else None


def _create(options: Any, _: Any) -> Any:
    """Make a process group, or a backend, for PyTorch."""
    rank, ranks = options.group_rank, options.group_size
    members = list(options.global_ranks_in_group) or list(range(ranks))
    if not _links:
        _links.append(_connect(options.store, rank, ranks))
    link = _links[0]
    with link.clock:
        group = f"{options.group_id}:{','.join(map(str, members))}"
        link.join(group, members)
        return make_class(base_class())(link, group, rank, ranks)


def _connect(store: Any, rank: int, ranks: int) -> RankConnection:
    """Return a new link to the fabric, which rank 0 starts if nobody else has."""
    folder = os.environ.get(FOLDER)
    if folder is None:
        if rank == 0:
            from ringleaf.experiments.workloads.train.own_fabric import start_fabric

            store.set(_KEY, str(start_fabric(os.environ.get(OPTIONS, ""), ranks)))
        store.wait([_KEY], _START)
        folder = store.get(_KEY).decode()
    link = RankConnection(Path(folder), rank, ranks)
    compute = parse_compute(link.settings["compute"])
    link.clock.measure(compute.factor)
    ScriptObserver(link, compute, timeline=link.settings["timeline"]).begin()
    streams.install(link)
    _tell_of_failures(link)
    _leave_uncompiled()
    replace_built_in_hook()
    if link.settings["compress"]:
        compress_all(link.settings["compress"])
    return link


def _leave_uncompiled() -> None:
    """Have `torch.compile` call this package's functions, and not look into them."""
    if compiler := sys.modules.get("torch._dynamo.trace_rules"):
        compiler.add(__package__)


def _tell_of_failures(link: RankConnection) -> None:
    """Have a script that fails leave without goodbye, so that the fabric knows.

    Of an error that the fabric has reported, only the script's line is new here; and not even that
    if another rank has failed, which has its own traceback.
    """
    usual = sys.excepthook

    def excepthook(kind: type[BaseException], error: BaseException, trace: Any) -> None:
        link.abandon()
        if isinstance(error, FabricError):
            if error.is_elsewhere:
                return
            sys.stderr.write(f"rank {link.rank} was at {_last_line(trace)}\n")
        else:
            usual(kind, error, trace)

    sys.excepthook = excepthook


def _last_line(trace: Any) -> str:
    """Return the last line of code that is neither PyTorch's nor ours."""
    ours = (
        os.path.dirname(torch.__file__),
        str(PACKAGE),
        str(Path(__file__).parents[2]),
        "<frozen",
    )
    lines = [
        f"{frame.filename}:{frame.lineno}: {frame.line}"
        for frame in traceback.extract_tb(trace)
        if not frame.filename.startswith(ours)
    ]
    return lines[-1] if lines else "a line of PyTorch's"
