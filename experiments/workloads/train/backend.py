"""The backend `ringleaf` of `torch.distributed`: hands every call to the fabric.

PyTorch newer than 2.13 lets Python classes be backends (`dist.BackendBase`, or a `Backend` that can
be made). Before, they are process groups. Both call the same methods by the same names, or by older
ones; so one class has them all, and its base is chosen when this module is loaded.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist

from ringleaf.experiments.workloads.train.collectives import Collectives
from ringleaf.experiments.workloads.train.handover import GroupCalls
from ringleaf.experiments.workloads.train.link import RankConnection

NAME = "ringleaf"


def base_class() -> type[Any]:
    """Return the class that a Python backend inherits: a backend if PyTorch allows it."""
    named = getattr(dist, "BackendBase", None)
    if named is not None:
        return named  # type: ignore[no-any-return]
    backend: type[Any] = torch._C._distributed_c10d.Backend
    try:
        backend(0, 1)
    except TypeError:
        group: type[Any] = dist.ProcessGroup
        return group
    return backend


class RingleafGroup(Collectives):
    """What a process group or backend has besides its calls.

    Args:
        link: The link to the fabric.
        group: The group's name, the same on all its ranks.
        rank: This rank in it.
        ranks: Its number of ranks.
    """

    supports_splitting = False

    def __init__(self, link: RankConnection, group: str, rank: int, ranks: int) -> None:
        super().__init__(rank, ranks)  # type: ignore[call-arg]
        self.calls = GroupCalls(link, group, rank, ranks)
        self._name = group
        self._described = "undefined"

    def getBackendName(self) -> str:  # noqa: N802 - PyTorch's name
        """Return the backend's name."""
        return NAME

    def name(self) -> str:
        """Return the backend's name."""
        return NAME

    @property
    def group_name(self) -> str:
        """The group's name, by which functional collectives find it."""
        return self._name

    def _set_group_name(self, name: str) -> None:
        self._name = name

    @property
    def group_desc(self) -> str:
        """What the group is for."""
        return self._described

    def _set_group_desc(self, text: str) -> None:
        self._described = text

    @property
    def _device_types(self) -> list[torch.device]:
        """Its devices; PyTorch knows those of its own backends, and none of a group of Python's."""
        return [torch.device("cpu")]

    def shutdown(self) -> None:
        """Do nothing: the link is closed when the process ends."""

    def abort(self) -> None:
        """Do nothing."""

    def set_timeout(self, timeout: Any) -> None:
        """Do nothing: waits that would last for ever are ended at once."""


def make_class(base: type[Any]) -> type[Any]:
    """Return the class of our process groups, or backends, with this base.

    Calls are held together by process groups alone: PyTorch doesn't ask a Python backend to do it.
    """
    namespace = {"supports_coalescing": issubclass(base, dist.ProcessGroup)}
    return type("RingleafGroup", (RingleafGroup, base), namespace)
