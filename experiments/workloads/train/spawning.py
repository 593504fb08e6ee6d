"""Scripts that start their ranks themselves: these ranks become Ringleaf's.

Many scripts start a process for each rank, by `torch.multiprocessing.spawn` or by a loop over
`multiprocessing.Process`. Under `ringleaf train`, each rank runs the script, so it calls the
function for its own rank in place of starting a process, and leaves out the others.

What other ranks put into a queue never comes, so a rank that waits for it ends: rank 0 with a line,
the others as if the script had ended. Of other arguments by which processes see what others write,
rank 0 says that each rank has its own. Workers of a pool are no ranks, and can't be: which rank one
of them gets is for the pool to choose. A group that one of them makes is refused. Ranks that are
started as commands (`Popen` with RANK, or torchrun) would meet past the network: they are refused,
too.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from multiprocessing.process import BaseProcess
from multiprocessing.queues import Queue, SimpleQueue
from queue import Empty
from typing import Any, NoReturn

from ringleaf.core.units import format_count
from ringleaf.experiments.workloads.train.register import current_link
from ringleaf.experiments.workloads.train.started import (
    StartedRank,
    rank_of,
    shared_kinds,
    values_given,
)

_OF_RANKS = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_PORT")
"""Variables by which a command is told which rank it is."""

_LAUNCHERS = ("torchrun", "torch.distributed.run", "torch.distributed.launch")

LONGEST_WAIT_S = 5.0
"""How long a rank waits for an item that it must have put into a queue itself."""


def adopt_spawned_ranks(rank: int, ranks: int) -> None:
    """Have ranks that the script starts be this run's.

    Args:
        rank: The rank of this process.
        ranks: The number of ranks.
    """
    import torch.multiprocessing

    def spawn(
        fn: Callable[..., object],
        args: Sequence[Any] = (),
        nprocs: int = 1,
        join: bool = True,
        **_: Any,
    ) -> _Context | None:
        if getattr(fn, "__module__", "").startswith("torch.distributed.elastic."):
            _end(
                rank,
                "starts ranks by elastic_launch, which waits for all of them: each rank is the "
                "script itself; call the function itself where RANK is set",
            )
        if nprocs != ranks:
            text = f"starts {format_count(nprocs, 'rank')} itself, got --ranks {ranks}; "
            _end(rank, f"{text}make both the same")
        _keep_apart(values_given(fn, args, {}), rank)
        fn(rank, *args)
        return None if join else _Context()

    # The name `torch.multiprocessing.spawn` is the function; its module is found in `sys.modules`.
    for place in (torch.multiprocessing, sys.modules["torch.multiprocessing.spawn"]):
        for name in ("spawn", "start_processes"):
            setattr(place, name, spawn)
    _adopt_processes(rank, ranks)
    _refuse_commands(rank)


def _refuse_commands(rank: int) -> None:
    """End the script, with a line by rank 0, where it starts ranks as commands."""
    usual = subprocess.Popen.__init__

    @wraps(usual)
    def init(self: Any, args: Any, *more: Any, **named: Any) -> None:
        if what := starts_ranks(args, named.get("env"), os.environ):
            self._child_created = False  # its end looks at this
            _end(
                rank,
                f"starts ranks as commands, got {what}: each rank is the script itself; leave that "
                "out where RANK is set",
            )
        usual(self, args, *more, **named)

    subprocess.Popen.__init__ = init  # type: ignore[method-assign]


def starts_ranks(args: Any, env: Mapping[str, str] | None, own: Mapping[str, str]) -> str:
    """Return the sign that a command is a rank, or starts ranks; "" if it does not seem so.

    Args:
        args: The command, as `Popen` takes it.
        env: Its environment; None: that of this process.
        own: The environment of this process, a rank.
    """
    words = args.split() if isinstance(args, str) else args
    names = [str(each) for each in words] if isinstance(words, list | tuple) else [str(words)]
    for name in names:
        if name in _LAUNCHERS or os.path.basename(name) == _LAUNCHERS[0]:
            return name
    others = [name for name in _OF_RANKS if env and env.get(name, own.get(name)) != own.get(name)]
    return f"{others[0]}={env[others[0]]}" if env and others else ""


def _adopt_processes(rank: int, ranks: int) -> None:
    usual = BaseProcess.start
    adopted: set[int] = set()

    def start(process: Any) -> None:
        started = rank_of(process)
        is_late = current_link() is not None and not adopted
        if started is None or is_late or started.number in adopted:
            name = "run" if process._target is None else "_target"
            setattr(process, name, _NoRank(getattr(process, name), _reason(started, is_late)))
            usual(process)  # a loader of data, for instance
            return
        _check_number(started, rank, ranks)
        values = values_given(process._target, process._args, vars(process) | process._kwargs)
        _keep_apart(values, rank, say=not adopted)
        adopted.add(started.number)
        process._popen = _Ended()
        if started.number == rank:
            process.run()

    BaseProcess.start = start  # type: ignore[method-assign, assignment]


def _reason(started: StartedRank | None, is_late: bool) -> str:
    """Return what a process is that is no rank."""
    if started is None:
        return "a worker of a pool, or a process without an argument called rank, local_rank or gpu"
    late = "a process that is started when there is a group already"
    return late if is_late else f"a second process of rank {started.number}"


def _keep_apart(values: Sequence[Any], rank: int, *, say: bool = True) -> None:
    """Have ranks wait for no queue of another rank; have rank 0 say what else is not shared."""
    for each in values:
        if isinstance(each, Queue | SimpleQueue) and "get" not in vars(each):
            each.get = _bounded_get(each, rank)  # type: ignore[method-assign]
    if say and rank == 0 and (kinds := shared_kinds(values)):
        sys.stderr.write(
            f"ringleaf: the script shares {' and '.join(kinds)} among the ranks that it starts: "
            "each rank is a script of its own, and sees only what it has written itself; use "
            "torch.distributed (gather_object, barrier)\n"
        )


def _bounded_get(queue: Any, rank: int) -> Callable[..., Any]:
    """Return the `get` of a queue that ranks have been given, which waits for this rank's alone."""
    usual = queue.get

    def get(block: bool = True, timeout: float | None = None) -> Any:
        if not block or timeout is not None:
            return usual(block, timeout)
        if isinstance(queue, SimpleQueue):
            if not queue._reader.poll(LONGEST_WAIT_S):  # type: ignore[attr-defined]
                _end_waiting(rank)
            return usual()
        try:
            return usual(True, LONGEST_WAIT_S)
        except Empty:
            _end_waiting(rank)

    return get


def _end_waiting(rank: int) -> NoReturn:
    raise SystemExit(
        "ringleaf: the script waits for what other ranks put into a queue, got rank 0's alone: "
        "each rank is a script of its own; use torch.distributed.gather_object"
        if rank == 0
        else 0
    )


@dataclass(frozen=True, slots=True)
class _NoRank:
    """What a process does that is no rank; it can make no process group."""

    target: Callable[..., object]
    kind: str

    def __call__(self, *args: Any, **kwargs: Any) -> object:
        for name in ("torch.distributed", "torch.distributed.distributed_c10d"):
            if name in sys.modules:
                vars(sys.modules[name])["init_process_group"] = self.refuse_group
        return self.target(*args, **kwargs)

    def refuse_group(self, *_: Any, **__: Any) -> NoReturn:
        raise RuntimeError(
            "ringleaf: a rank must be the script itself, or a process that it starts by spawn or "
            f"Process, got {self.kind}; call its function with RANK and WORLD_SIZE instead"
        )


def _check_number(started: StartedRank, rank: int, ranks: int) -> None:
    """End the script if a process is of a rank that there is not."""
    if started.number >= ranks:
        text = f"starts rank {started.number} (by {started.argument}), got --ranks {ranks}; "
        _end(rank, f"{text}make both fit, or call the argument that is the rank rank")


def _end(rank: int, why: str) -> NoReturn:
    """End the script, with a line by rank 0."""
    raise SystemExit(f"ringleaf: the script {why}" if rank == 0 else 1)


class _Context:
    """The processes that `spawn` returns where it is not to wait for them: all have ended."""

    processes: Sequence[Any] = ()

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Return that all have ended well."""
        return True

    def pids(self) -> list[int]:
        """Return their numbers, of which there are none."""
        return []


class _Ended:
    """Stands for the system's process of a `Process`: it has ended well."""

    pid = returncode = sentinel = 0

    def poll(self) -> int:
        """Return the exit code."""
        return 0

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code."""
        return 0

    def terminate(self) -> None:
        """Do nothing."""

    kill = close = interrupt = terminate
