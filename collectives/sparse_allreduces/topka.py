"""TopkA: all ranks gather all ranks' pairs, and add them up."""

from __future__ import annotations

import numpy as np

from ringleaf.collectives.algorithm import Look
from ringleaf.collectives.collective import Collective
from ringleaf.collectives.compression.choices import largest
from ringleaf.collectives.compression.program import Ask, Step
from ringleaf.collectives.compression.share import parse_share
from ringleaf.collectives.encodings.trimmed import TRIMMED
from ringleaf.collectives.sparse.expected import Expected, exactly, in_turn, only
from ringleaf.collectives.sparse.pairs import Residual, from_words, scatter, to_words
from ringleaf.collectives.sparse.registry import Method, SparseAllreduce
from ringleaf.core.tensors import Array


class TopkA(Residual):
    """A rank's side; it sends 2 k (n - 1) words if the gathering is a ring.

    Source:
        Li and Hoefler, "Near-optimal sparse allreduce for distributed deep learning", PPoPP 2022,
        table 1, where it is the baseline.
    """

    def step(self, values: Array, seed: int) -> Step:
        """Take part in one step."""
        compensated, count = self.compensated(values)
        places = self.choose(compensated, count)
        width = 1 + 2 * count
        blocks = np.zeros((self.ranks, width), np.float32)
        words = to_words(places, compensated[places])
        blocks[self.rank, : words.size] = words
        gathered = yield Ask(Collective.ALL_GATHER, blocks.reshape(-1), TRIMMED)
        assert isinstance(gathered, np.ndarray)
        self.keep(compensated, places)
        return scatter(map(from_words, gathered.reshape(self.ranks, width)), values.size)


def parse(text: str, where: str) -> Method:
    """Return the method for the text behind the colon; errors begin with `where`."""
    share = parse_share(text, where)

    def expect(values: Array) -> Expected:
        count = share.of(values.shape[1])
        return exactly(in_turn([only(each, largest(each, count)) for each in values]))

    return Method(lambda rank, ranks: TopkA(share, rank, ranks), expect)


ALLREDUCE = SparseAllreduce("TopkA", parse, Look("#9a9a4a", "1"), reduces=False)
