"""The questions that a flow scheduler is asked, and the form of its answers.

A scheduler coordinates all jobs: every rank starts a job's pieces in the order of their release.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ringleaf.core.units import FOREVER_PS
from ringleaf.hosts.training.pieces import GradientPiece

LEVELS = 8
"""Number of priorities that packets can carry: 0 is least urgent, 7 most."""


@dataclass(frozen=True, slots=True)
class Item:
    """A piece of a job that is ready, or under way."""

    job: int
    piece: GradientPiece
    size_bytes: int
    ready_ps: int  # when it became ready
    gathers: bool = False  # its sums lie on one rank each, and are to be copied to all (`Splits`)


@dataclass(frozen=True, slots=True)
class Standing:
    """The facts about a job that a scheduler gets."""

    layers: int
    iterations: int | None
    iterations_done: int
    size_bytes: int  # of its gradient
    compute_ps: int  # of an iteration
    weight: float  # its importance
    link_bps: int = 0  # of its hosts' slowest line
    rivals: frozenset[int] = frozenset()  # jobs whose packets may meet its own on a link
    in_order: bool = False  # its hosts send items strictly in order of release
    left_bytes: int = 0  # of the present iteration's gradient, not reduced yet
    served_bytes: int = 0  # reduced since its start
    collectives: int = 0  # that are over since its start
    next_gradient_ps: int = FOREVER_PS  # when its backward pass will have made the next piece
    computing: bool = False  # its backward pass goes on
    layer: int = -1  # that its next forward pass has reached; -1: none yet
    link_ps: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """By link's direction: the time that a byte of its gradient keeps the link busy."""
    line_ps: float = 0.0  # likewise, its hosts' busiest line
    busy_ps: int = 0  # time so far in which it had collectives under way

    @property
    def bottleneck_ps(self) -> float:
        """The time that a byte of its gradient takes on the link that it keeps busy longest."""
        return max(self.link_ps.values(), default=0.0)


@dataclass(frozen=True, slots=True)
class Release:
    """The order to start an item now.

    Args:
        item: An item that waits.
        priority: 0 to 7, in its packets; hosts and switches serve higher ones first.
        rate_bps: Rate at which each host sends its messages, all peers together, headers and gaps
            included; 0: as fast as possible. Aggregation agents pace themselves by results.
        gain: Factor on the growth of its senders' windows, for congestion controllers that have
            one (`Controller.has_gain`).
        marks: Whether packets carry the priority; if not, hosts obey it, and switches do not.
            Aggregation agents know the first only: without marks, they have no priorities.
    """

    item: Item
    priority: int = 0
    rate_bps: int = 0
    gain: float = 1.0
    marks: bool = True


@dataclass(frozen=True, slots=True)
class Situation:
    """The situation on which a scheduler decides."""

    now_ps: int
    waiting: Sequence[Item]  # in the order in which they became ready
    under_way: Sequence[Release]
    jobs: Mapping[int, Standing]


class Scheduler(Protocol):
    """Decides which items to release; it is asked again whenever something has changed."""

    name: str
    title: str
    partition_bytes: int | None  # size of gradients' parts, unless the job says otherwise
    reorders: bool  # items that became ready later may go first

    def release(self, now: Situation) -> list[Release]:
        """Return the items to start now, in this order.

        A job has `CHANNELS` items at most under way, and if its hosts send in order, little more
        than keeps them busy; further items wait until the scheduler is asked again.
        """


CHANNELS = 8
"""Number of collectives of one job that may be under way at a time."""


def of_job(now: Situation, job: int) -> list[Release]:
    """Return the releases of a job that are under way."""
    return [release for release in now.under_way if release.item.job == job]


def one_of_each_priority(
    now: Situation, priority: Callable[[Item, Standing], int]
) -> list[Release]:
    """Return the first waiting item of each job and priority, unless one is under way.

    Jobs whose hosts send in order get all their items, the most urgent first.

    Args:
        now: The items that wait, and those that are under way.
        priority: Gives the priority of an item from its job's standing.
    """
    busy = {(each.item.job, each.priority) for each in now.under_way}
    releases = [Release(item, priority(item, now.jobs[item.job])) for item in now.waiting]
    released = []
    for each in sorted(releases, key=lambda each: -each.priority):
        place = each.item.job, each.priority
        if place not in busy or now.jobs[each.item.job].in_order:
            busy.add(place)
            released.append(each)
    return released
