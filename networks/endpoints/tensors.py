"""Tensors for callers who have torch, of a network that works on arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from ringleaf.core.tensors import FLOAT32, Array, ElementType, as_tensors, element_type

if TYPE_CHECKING:
    import torch

    from ringleaf.collectives.schedule import Schedule
    from ringleaf.networks.endpoints.endpoints import Endpoints


class GivesTensors(ABC):
    """A network whose hosts' registered memory can be had as arrays, or as tensors."""

    @abstractmethod
    def arrays(
        self, elements: int, dtype: ElementType = FLOAT32, schedule: Schedule | None = None
    ) -> list[Array]:
        """Return one uninitialised array per rank, in registered memory, for `run`.

        Arrays that were given out before lose their memory to these. With the schedule that
        will run, there is room for the memory it needs besides, and nothing will have to be copied.
        """

    def tensors(
        self,
        elements: int,
        dtype: torch.dtype | None = None,
        schedule: Schedule | None = None,
    ) -> list[torch.Tensor]:
        """Return `arrays` as tensors, which share their memory; None: of float32."""
        kind = FLOAT32 if dtype is None else element_type(dtype)
        return as_tensors(self.arrays(elements, kind, schedule))


class HasEndpoints(GivesTensors):
    """A network in virtual time, whose memory and slots are those of its endpoints."""

    endpoints: Endpoints

    @property
    def slots(self) -> int | None:
        """Packets that a worker of the first group's system has in flight; None without one."""
        return self.endpoints.slots

    def arrays(
        self, elements: int, dtype: ElementType = FLOAT32, schedule: Schedule | None = None
    ) -> list[Array]:
        """Return one uninitialised array per rank, of shape (elements,), in registered memory."""
        return self.endpoints.arrays(elements, dtype, schedule)
