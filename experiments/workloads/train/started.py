"""Processes that a script starts, by their arguments: which rank one is, and what ranks share."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping
from functools import partial
from inspect import signature
from multiprocessing.connection import Connection
from multiprocessing.managers import BaseProxy
from multiprocessing.shared_memory import ShareableList, SharedMemory
from multiprocessing.sharedctypes import SynchronizedBase
from multiprocessing.synchronize import Barrier, Condition, Event, SemLock
from typing import Any, NamedTuple

import torch
from torch.utils._pytree import tree_leaves

RANK_NAMES = ("rank", "global_rank", "local_rank", "proc_id", "gpu", "gpu_id", "device_id")
"""What scripts call the argument that is a process's rank."""

_SHARED = (
    *(BaseProxy, SynchronizedBase, SharedMemory, ShareableList, Connection),
    *(Barrier, Condition, Event, SemLock, ctypes._SimpleCData, ctypes.Array, ctypes.Structure),
)


class StartedRank(NamedTuple):
    """The rank of a process, and the argument that says it."""

    number: int
    argument: str


def rank_of(process: Any) -> StartedRank | None:
    """Return the rank that a process has; None if it does not seem to be one.

    A rank is an argument called `rank` or alike, or an attribute of an object of a derived class.
    Else it is the first argument, as for `spawn`; but not of daemons, as loaders of data are.
    """
    function, args, named = _unwrapped(process._target, process._args, process._kwargs)
    values = vars(process) if function is None else _by_name(function, args, named)
    for name in RANK_NAMES:
        if _is_rank(values.get(name)):
            return StartedRank(values[name], name)
    if args and _is_rank(args[0]) and not process.daemon:
        return StartedRank(args[0], "the first argument")
    return None


def _unwrapped(
    function: Any, args: tuple[Any, ...], named: Mapping[str, Any]
) -> tuple[Any, tuple[Any, ...], Mapping[str, Any]]:
    """Return a function and its arguments, with those that partial functions hold."""
    while isinstance(function, partial):
        args, named = (*function.args, *args), {**function.keywords, **named}
        function = function.func
    return function, args, named


def _by_name(function: Any, args: tuple[Any, ...], named: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        return {**signature(function).bind_partial(*args, **named).arguments, **named}
    except (TypeError, ValueError):  # of C, or called in a way that it can't be
        return named


def _is_rank(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def values_given(function: Any, args: Iterable[Any], named: Mapping[str, Any]) -> list[Any]:
    """Return all that a function is called with, also in lists, tuples and mappings."""
    values: list[Any] = tree_leaves(_unwrapped(function, tuple(args), named)[1:])
    return values


def shared_kinds(values: Iterable[Any]) -> list[str]:
    """Return the kinds of values by which processes see what others write: `["Event"]`."""
    return sorted({type(each).__name__ for each in values if _is_shared(each)})


def _is_shared(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return value.layout == torch.strided and bool(value.is_shared())
    return isinstance(value, _SHARED)
