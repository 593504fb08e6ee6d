"""DeAR (Zhang et al., ICDCS 2023): reduce-scatter with backward passes, all-gather with forward.

An allreduce is cut in two. A group's reduce-scatter starts when its gradients are ready. When the
backward pass is over and all of them are done, the front group's all-gather starts; the next
group's starts when the forward pass has come to the group before it. The volume is the same. That,
and groups of four neighbouring layers (or 25 MB), is from the released code; its authors tune the
groups. Groups have `LAYERS` layers here, whatever their sizes. It needs an algorithm that adds up
before it copies, such as `ring` or `halvingdoubling`: with others, collectives stay whole.
"""

from __future__ import annotations

from ringleaf.hosts.schedulers.common.hooks import CollectivePs
from ringleaf.hosts.schedulers.common.interface import Release, Situation
from ringleaf.hosts.training.model import Model
from ringleaf.hosts.training.pieces import GradientPiece, group

LAYERS = 4


class Dear:
    """The DeAR scheduler."""

    name = "dear"
    title = "DeAR"
    partition_bytes: int | None = None
    reorders = True
    splits = True

    def cut(self, model: Model, collective_ps: CollectivePs) -> list[GradientPiece]:
        """Return pieces of `LAYERS` layers each, the front group's with what is left."""
        layers = [i for i in reversed(range(len(model.layers))) if model.layers[i].elements]
        return group(model, [layers[i : i + LAYERS] for i in range(0, len(layers), LAYERS)])

    def release(self, now: Situation) -> list[Release]:
        """Return, of each job that sends nothing, the next half of a collective."""
        busy = {each.item.job for each in now.under_way}
        released = []
        for number, job in now.jobs.items():
            waiting = [item for item in now.waiting if item.job == number]
            scatters = [item for item in waiting if not item.gathers]
            gathers = sorted(
                (item for item in waiting if item.gathers), key=lambda item: item.piece.front
            )
            if scatters and job.in_order:
                released += [Release(item) for item in scatters]
            elif number in busy:
                continue
            elif scatters:
                released.append(Release(scatters[0]))
            elif gathers and job.layer >= 0 and job.layer >= gathers[0].piece.front - LAYERS:
                released.append(Release(gathers[0]))
        return released


SCHEDULER = Dear()
