"""Recursive halving, then recursive doubling: 2 log2(n) steps, and no byte more than a ring."""

from __future__ import annotations

from collections.abc import Iterator

from ringleaf.collectives.cost import Cost, Fabric, steps_cost
from ringleaf.collectives.schedule import Collective, Op, Schedule, Transfer, check_ranks


def halving_doubling_allreduce(ranks: int) -> Schedule:
    """Return a schedule that exchanges halves with ever farther partners, then gives sums back.

    Neighbours exchange the largest halves. With a number of ranks that is no power of two,
    the first ones pair up: the odd one of a pair adds its tensor to the even one's before,
    and gets the result after.

    Raises:
        ScheduleError: If `ranks` < 1.

    Source:
        Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations
        in MPICH", IJHPCA 19(1), 2005.
    """
    check_ranks("halving_doubling_allreduce", ranks)
    power = _power_of_two(ranks)
    rows = (*_fold(ranks, power), *_exchange(ranks, power), *_unfold(ranks, power))
    return Schedule(Collective.ALLREDUCE, "halvingdoubling", ranks, power, rows)


def _power_of_two(ranks: int) -> int:
    """Return the largest power of two that is no more than `ranks`."""
    return 1 << (ranks.bit_length() - 1)


def _fold(ranks: int, power: int) -> Iterator[Transfer]:
    for pair in range(ranks - power):
        for chunk in range(power):
            yield Transfer(0, 2 * pair + 1, 2 * pair, chunk, Op.REDUCE)


def _unfold(ranks: int, power: int) -> Iterator[Transfer]:
    step = 1 + 2 * (power.bit_length() - 1)
    for pair in range(ranks - power):
        for chunk in range(power):
            yield Transfer(step, 2 * pair, 2 * pair + 1, chunk, Op.COPY)


def _exchange(ranks: int, power: int) -> Iterator[Transfer]:
    extra = ranks - power
    rank_of = [2 * i if i < extra else i + extra for i in range(power)]
    first_step = 1 if extra else 0
    levels = power.bit_length() - 1
    for level in range(levels):
        for i in range(power):
            partner = i ^ (1 << level)
            for chunk in _block(partner, level + 1, power):
                step = first_step + level
                yield Transfer(step, rank_of[i], rank_of[partner], chunk, Op.REDUCE)
    for level in reversed(range(levels)):
        for i in range(power):
            partner = i ^ (1 << level)
            for chunk in _block(i, level + 1, power):
                step = first_step + 2 * levels - 1 - level
                yield Transfer(step, rank_of[i], rank_of[partner], chunk, Op.COPY)


def _block(i: int, levels: int, power: int) -> range:
    """Return the chunks that participant `i` is still in charge of after `levels` halvings.

    Bit k of `i` picks the half at level k.
    """
    start, size = 0, power
    for level in range(levels):
        size //= 2
        start += size * (i >> level & 1)
    return range(start, start + size)


def halving_doubling_cost(ranks: int, size_bytes: int, fabric: Fabric) -> Cost:
    """Return the cost: 2 log2(p) messages, 2 (p - 1) / p S bytes for p = 2^i; else 2 of S more."""
    power = _power_of_two(ranks)
    halves = [size_bytes / (2 << level) for level in range(power.bit_length() - 1)]
    fold = [(2, float(size_bytes))] if ranks > power else []
    steps = fold + [(2, half) for half in halves]
    cost = steps_cost([count for count, _ in steps], [size for _, size in steps], ranks, fabric)
    # In a pair, one sends the tensor before and the other after: nobody sends it twice.
    return Cost(cost.time_ps, cost.sent_bytes - len(fold) * size_bytes, cost.latency_terms)
