"""Schemes of training, by hand: gradients are simple functions, and exchanges take no time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace

import numpy as np
import pytest

from ringleaf.collectives.compression.program import Post
from ringleaf.core.tensors import Array
from ringleaf.experiments.workloads.converge.scheme import SCHEMES, Moment, Setup


def together(_programs: object, gradients: Sequence[Array], _step: int) -> list[Array]:
    return [np.add.reduce(gradients)]


def exchange(asks: Sequence[Post]) -> list[dict[int, Array]]:
    found: list[dict[int, Array]] = [{} for _ in asks]
    for src, ask in enumerate(asks):
        for dst, values in ask.messages.items():
            found[dst][src] = values
    return found


def train(
    name: str,
    ranks: int,
    steps: int,
    gradient: Callable[[Array, int], Array],
    exchange_ps: int = 0,
    **settings: float,
) -> list[Moment]:
    """Return the moments of a parameter that begins at 0; the rate is 1/2, a gradient takes 1."""
    cost = SimpleNamespace(time_ps=0)

    def carry(asks: Sequence[Post]) -> list[dict[int, Array]]:
        cost.time_ps += exchange_ps
        return exchange(asks)

    training = SimpleNamespace(
        ranks=ranks,
        seed=1,
        start=lambda: np.zeros(1, np.float32),
        gradient=lambda parameters, rank, _step: gradient(parameters, rank).astype(np.float32),
    )
    carrier = SimpleNamespace(together=together, exchange=carry, cost=cost)
    made = Setup(training, carrier, lambda *_: None, 0.5, steps, 1, dict(settings))  # type: ignore[arg-type]
    return list(SCHEMES[name](made))


def plus_rank(parameters: Array, rank: int) -> Array:
    return parameters + rank


def values(moments: Sequence[Moment]) -> list[float]:
    return [float(moment.parameters[0]) for moment in moments]


def test_sync() -> None:
    """Mean gradients of two ranks: 1/2, then -1/4 + 1/2."""
    assert values(train("sync", 2, 2, plus_rank)) == [-0.25, -0.375]


def test_local_sgd() -> None:
    """Rank 0 stays at 0; rank 1 goes to -1/2, then -3/4. The mean is -3/8 after two steps."""
    moments = train("local-sgd", 2, 3, plus_rank, every=2)
    assert values(moments)[0] == -0.375
    assert [(moment.step, moment.compute_ps) for moment in moments] == [(2, 2), (3, 1)]


def test_fedavg() -> None:
    """As local SGD if both are drawn; one alone goes to 0 or -3/4, with half of the gradients."""
    assert values(train("fedavg", 2, 2, plus_rank, share=1, local=2)) == [-0.375]
    moments = train("fedavg", 2, 20, plus_rank, share=0.5, local=2)
    assert moments[0].step == 1
    assert len(moments) == 20
    assert values(moments)[0] in (0, -0.75)
    assert values(train("fedavg", 2, 8, plus_rank, share=1)) == pytest.approx(
        [(0 - (1 - 0.5**8)) / 2]
    )  # eight local steps


def test_gossip() -> None:
    """Four ranks in a ring, in floats: a third of each, and gradients at one's own parameters."""
    own = [0.0] * 4
    wanted = []
    for _ in range(3):
        mixed = [(own[r] + own[(r + 1) % 4] + own[(r - 1) % 4]) / 3 for r in range(4)]
        own = [mixed[r] - 0.5 * (own[r] ** 2 + r) for r in range(4)]
        wanted.append(sum(own) / 4)
    found = values(train("gossip", 4, 3, lambda p, rank: p * p + rank))
    assert wanted[:2] == pytest.approx([-0.75, -1.9375])
    assert found == pytest.approx(wanted, rel=1e-5)


def test_ssp() -> None:
    """Rank 1 takes twice as long. Without staleness rank 0 waits for it, at 2 and 4.

    Parameters: -1/4 and -1/2, both from 0; then rank 0's gradient at -1/4 is 3/4, and rank 1's at
    -1/2 is 1/2. With staleness 3, rank 0 has computed at 1, 2, and 3, rank 1 at 2.
    """
    tight = train("ssp", 2, 2, lambda p, rank: p + 1, staleness=0)
    assert [moment.elapsed_ps for moment in tight] == [2, 4]
    assert values(tight) == [-0.5, -0.8125]
    loose = train("ssp", 2, 2, lambda p, rank: p + 1)
    assert [moment.elapsed_ps for moment in loose] == [2, 3]


def test_an_overlapping_push_of_ssp_counts_until_it_has_come() -> None:
    """Rank 0 keeps the parameters, and sends nothing: its gradients count at 1, 2 and 3.

    Rank 1's is there at 2, and is pushed for 3 and pulled for 3. So the first two gradients are
    there at 2, and all four at 8, though the last one that was begun is rank 0's at 3.
    """
    moments = train("ssp", 2, 2, plus_rank, exchange_ps=3)
    assert [moment.elapsed_ps for moment in moments] == [2, 8]
