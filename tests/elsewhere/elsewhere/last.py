"""A flow scheduler that lets go first what became ready last."""

from __future__ import annotations

from ringleaf.hosts.schedulers.common.interface import CHANNELS, Release, Situation


class Last:
    name = "last"
    title = "last in, first out"
    partition_bytes: int | None = None
    reorders = True

    def release(self, now: Situation) -> list[Release]:
        room = CHANNELS - len(now.under_way)
        newest = sorted(now.waiting, key=lambda item: item.ready_ps, reverse=True)
        return [Release(item) for item in newest[: max(room, 0)]]


SCHEDULER = Last()
