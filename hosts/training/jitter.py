"""Passes that take longer by chance, so that jobs and hosts are not in lockstep.

Each rank's pass takes up to a share longer, all shares as likely; a job goes on when its slowest
rank has computed. The model is chosen here; no source fixes it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random


@dataclass(slots=True)
class Jitter:
    """The times that a job's passes take.

    Args:
        share: The most by which a rank's pass takes longer, as a part of its time; 0: nothing.
        ranks: The ranks of the job.
        rng: Source of chance, the job's own.
    """

    share: float = 0.0
    ranks: int = 1
    rng: Random = field(default_factory=Random)

    def longer(self, time_ps: int) -> int:
        """Return how long a pass takes that takes `time_ps` without jitter.

        The greatest of n numbers from 0 to 1 is below u with probability u^n.
        """
        if not self.share:
            return time_ps
        slowest = self.rng.random() ** (1 / self.ranks)
        return time_ps + round(time_ps * self.share * slowest)
