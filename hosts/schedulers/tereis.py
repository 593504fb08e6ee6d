"""Tereis (ICPADS 2022): two jobs on one accelerator, one computes while the other sends.

No more than a survey's account was at hand. It fixes that the times of a job's computation and of
its transfers are predicted, and that two jobs are packed on the same accelerator where one is done
computing before the other's transfers are. Chosen here: times are those of an iteration, from a
forecast of each job alone; of transfers, only the part counts during which the accelerator is idle,
as the rest goes on behind the job's own passes; the job with the longest idle time gets the guest
that fills most of it, of those with as many ranks and servers. The host's computation goes first,
from one layer to the next. Packed jobs share hosts, and so their lines, too; the guest's own
stay empty. Gradients go first in, first out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ringleaf.hosts.schedulers.common.hooks import Candidate, Place
from ringleaf.hosts.schedulers.fifo import FifoScheduler


def idle_ps(job: Candidate) -> int:
    """Return the time of an iteration in which a job's accelerator waits for transfers."""
    return job.period_ps - job.compute_ps


def guests(jobs: Sequence[Candidate]) -> dict[int, int]:
    """Return, by the job whose accelerators they are, the job that is packed on them."""
    guest_of: dict[int, int] = {}
    left = list(range(len(jobs)))
    for host in sorted(left, key=lambda number: -idle_ps(jobs[number])):
        if host not in left:
            continue
        left.remove(host)
        shape = len(jobs[host].hosts), jobs[host].servers
        fitting = [
            number
            for number in left
            if (len(jobs[number].hosts), jobs[number].servers) == shape
            and jobs[number].compute_ps <= idle_ps(jobs[host])
        ]
        if fitting:
            guest_of[host] = max(fitting, key=lambda number: jobs[number].compute_ps)
            left.remove(guest_of[host])
    return guest_of


class Tereis(FifoScheduler):
    """The Tereis scheduler."""

    name = "tereis"
    title = "Tereis"

    def places(self, jobs: Sequence[Candidate], switches: Mapping[str, str]) -> list[Place]:
        """Return the hosts that the spec gives; guests have their host's, and later turns."""
        places = [Place(job.hosts) for job in jobs]
        for host, guest in guests(jobs).items():
            places[guest] = Place(jobs[host].hosts, turn=1)
        return places


SCHEDULER = Tereis()
