"""Chunks that go as one message, and the exact times of all: TACCL's last stage.

The order of chunks on each link is given. Neighbours in it whose numbers follow one another, as
they lie side by side in the tensor, may go together: the link's delay counts once, but none of them
may start before all are there, and none is there before all are.

Source:
    Shah et al., "TACCL", NSDI 2023, section 5.3; github.com/microsoft/taccl 426bd1e. That chunks
    must lie side by side is chosen here: messages are one piece of memory.
"""

from __future__ import annotations

from itertools import pairwise

from ringleaf.collectives.synthesis.integers import IntegerProgram
from ringleaf.collectives.synthesis.timed import Timed, end_of
from ringleaf.collectives.wires import Pair, RankNetwork

MOST_JOINTS = 2000


def scheduled(
    wires: RankNetwork, moves: list[Timed], chunk_bytes: int, limit_s: float
) -> tuple[list[Timed], float] | None:
    """Return transfers at their best times, those of one message alike; and the optimality gap.

    Args:
        wires: A network in which ways do not meet.
        moves: Transfers in an order that is kept on each link.
        chunk_bytes: Size of a chunk.
        limit_s: Time that the search may take.

    Returns:
        None if nothing can go together, or no answer was found in time.
    """
    on: dict[Pair, list[int]] = {}
    for number, move in enumerate(moves):
        on.setdefault((move.src, move.dst), []).append(number)
    joints = [
        (first, second)
        for numbers in on.values()
        for first, second in pairwise(numbers)
        if moves[second].chunk == moves[first].chunk + 1
    ]
    if not joints or len(joints) > MOST_JOINTS:
        return None
    unit = max(end_of(moves), 1)
    program = IntegerProgram()
    end = program.add(1.0)
    starts = [program.add(most=1.0) for _ in moves]
    sent = [program.add(most=1.0) for _ in moves]  # when a chunk's last bit is at its end
    there = [program.add(most=1.0) for _ in moves]  # when its message's last bit is
    joined = {pair: program.add(most=1.0, is_whole=True) for pair in joints}
    came = {(move.dst, move.chunk): number for number, move in enumerate(moves)}
    for number, move in enumerate(moves):
        pair = move.src, move.dst
        program.demand({end: 1.0, there[number]: -1.0}, 0.0)
        program.demand({there[number]: 1.0, sent[number]: -1.0}, 0.0)
        alone = wires.time_ps(pair, chunk_bytes) / unit
        program.demand({sent[number]: 1.0, starts[number]: -1.0}, alone)
        before = came.get((move.src, move.chunk))
        if before is not None:
            program.demand({starts[number]: 1.0, there[before]: -1.0}, 0.0)
    for pair, numbers in on.items():
        bits = (wires.time_ps(pair, chunk_bytes) - wires.delays_ps[pair]) / unit
        for a, b in pairwise(numbers):
            program.demand({sent[b]: 1.0, sent[a]: -1.0}, bits)
            program.demand({starts[b]: 1.0, starts[a]: -1.0}, 0.0)
            together = joined.get((a, b))
            if together is None:
                program.demand({starts[b]: 1.0, sent[a]: -1.0}, 0.0)
                continue
            program.demand({starts[b]: 1.0, sent[a]: -1.0, together: 1.0}, 0.0)
            program.demand({starts[a]: 1.0, starts[b]: -1.0, together: -1.0}, -1.0)
            program.demand({there[a]: 1.0, there[b]: -1.0, together: -1.0}, -1.0)
    solution = program.solve(limit_s)
    if solution is None:
        return None
    groups = _groups(on, {pair for pair, bit in joined.items() if solution.values[bit] > 0.5})
    return timed(wires, moves, groups, chunk_bytes), solution.gap


def _groups(
    on: dict[Pair, list[int]], together: set[tuple[int, int]]
) -> dict[Pair, list[list[int]]]:
    """Return the messages of each link: lists of transfers that go as one."""
    messages: dict[Pair, list[list[int]]] = {}
    for pair, numbers in on.items():
        groups = messages.setdefault(pair, [])
        for number in numbers:
            if groups and (groups[-1][-1], number) in together:
                groups[-1].append(number)
            else:
                groups.append([number])
    return messages


def timed(
    wires: RankNetwork, moves: list[Timed], groups: dict[Pair, list[list[int]]], chunk_bytes: int
) -> list[Timed]:
    """Return transfers at the earliest times, exact in whole ps, that messages' order allows."""
    came: dict[tuple[int, int], int] = {}  # when a rank has a chunk that it is sent
    deliveries = {(move.dst, move.chunk) for move in moves}
    at, free_ps = dict.fromkeys(groups, 0), dict.fromkeys(groups, 0)
    transfers: list[Timed] = []
    left, progress = sum(map(len, groups.values())), True
    while left and progress:
        progress = False
        for pair, messages in groups.items():
            while at[pair] < len(messages):
                message = [moves[number] for number in messages[at[pair]]]
                needs = [(pair[0], move.chunk) for move in message]
                if any(need in deliveries and need not in came for need in needs):
                    break
                start_ps = max([free_ps[pair], *(came.get(need, 0) for need in needs)])
                end_ps = start_ps + wires.time_ps(pair, len(message) * chunk_bytes)
                free_ps[pair] = end_ps
                transfers += [Timed(start_ps, end_ps, *pair, move.chunk) for move in message]
                came |= {(pair[1], move.chunk): end_ps for move in message}
                at[pair], left, progress = at[pair] + 1, left - 1, True
    assert not left, "messages wait for one another"
    return sorted(transfers)
