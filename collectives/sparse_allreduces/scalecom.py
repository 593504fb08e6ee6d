"""ScaleCom: one rank in turn names the places, and all add up their values there."""

from __future__ import annotations

import numpy as np

from ringleaf.collectives.algorithm import Look
from ringleaf.collectives.collective import Collective
from ringleaf.collectives.compression.choices import largest
from ringleaf.collectives.compression.program import Ask, Step
from ringleaf.collectives.compression.settings import parse_settings
from ringleaf.collectives.compression.share import Density, parse_share
from ringleaf.collectives.sparse.expected import Expected, in_any_order, only
from ringleaf.collectives.sparse.pairs import Residual
from ringleaf.collectives.sparse.registry import Method, SparseAllreduce
from ringleaf.core.tensors import Array


class ScaleCom(Residual):
    """A rank's side: k indices from the leader, and an allreduce of k values (CLT-k).

    What is left follows m + beta (g - sent), a low-pass filter; beta 1 is plain error feedback.

    Source:
        Chen et al., "ScaleCom: scalable sparsified gradient compression for communication-efficient
        distributed training", NeurIPS 2020 (the rule from memory).
    """

    def __init__(self, share: Density, rank: int, ranks: int, beta: float) -> None:
        super().__init__(share, rank, ranks)
        self._beta = np.float32(beta)

    def step(self, values: Array, seed: int) -> Step:
        """Take part in one step, whose leader is the step's number modulo the ranks."""
        leader = self.steps % self.ranks
        compensated, count = self.compensated(values)
        words: Array = np.zeros(count, np.float32)
        if self.rank == leader:
            words = self.choose(compensated, count).astype(np.int32).view(np.float32)
        received = yield Ask(Collective.BROADCAST, words, root=leader)
        assert isinstance(received, np.ndarray)
        places = received.view(np.int32).astype(np.int64)
        total = yield Ask(Collective.ALLREDUCE, compensated[places])
        assert isinstance(total, np.ndarray)
        result = np.zeros_like(values)
        result[places] = total
        sent = np.zeros_like(values)
        sent[places] = compensated[places]
        self.left += self._beta * (values - sent)
        return result


def parse(text: str, where: str) -> Method:
    """Return the method for the text behind the colon; errors begin with `where`."""
    settings = parse_settings(text, where, beta="1")
    share = parse_share(settings.first, where)
    beta = settings.number(settings.named["beta"], 0, 1)

    def expect(values: Array) -> Expected:
        """Return sums at the places of rank 0, the first leader."""
        places = largest(values[0], share.of(values.shape[1]))
        return in_any_order(np.stack([only(each, places) for each in values]))

    return Method(lambda rank, ranks: ScaleCom(share, rank, ranks, beta), expect)


ALLREDUCE = SparseAllreduce("ScaleCom", parse, Look("#5a8ab0", "4"))
