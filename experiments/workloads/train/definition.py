"""Checks of results by the definition of a call, whatever carried it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ringleaf.core.tensors import Array
from ringleaf.experiments.workloads.train import calls
from ringleaf.experiments.workloads.train.elements import Reduction
from ringleaf.experiments.workloads.train.parts import MatchedCalls
from ringleaf.experiments.workloads.train.ways import CallCarrier
from ringleaf.ina.registry import SYSTEMS


def wrong_elements(
    collective: MatchedCalls,
    way: CallCarrier,
    inputs: Sequence[Array],
    results: Sequence[Array],
    *,
    item_bytes: int,
    lanes: int,
) -> int:
    """Return the number of wrong elements over all members' results.

    Copies must be right to the bit. Reductions must have the same bits on all ranks that have the
    same elements, and be as near as rounding allows (Higham, "Accuracy and stability of numerical
    algorithms", 2nd edition, section 4.2), or as the system that has aggregated documents.

    Args:
        collective: The collective.
        way: Its way.
        inputs: By member, the bytes that it gave.
        results: By member, its buffer, which begins with its result.
        item_bytes: The size of an element.
        lanes: Values in a packet of the system.
    """
    call = collective.call
    if call.kind == calls.BARRIER:
        return 0
    if call.op:
        return _wrong_reductions(collective, way, inputs, results, lanes)
    expected = _copies(collective, inputs, item_bytes)
    return sum(
        _differing(result[: len(copy)], copy, item_bytes)
        for copy, result in zip(expected, results, strict=True)
    )


def _differing(result: Array, expected: Array, item_bytes: int) -> int:
    if np.array_equal(result, expected):
        return 0
    rows = (result != expected).reshape(-1, item_bytes)
    return int(rows.any(axis=1).sum())


def _copies(collective: MatchedCalls, inputs: Sequence[Array], item_bytes: int) -> list[Array]:
    """Return the bytes that each member must have in the end."""
    call, ranks = collective.call, len(collective.members)
    nothing = np.zeros(0, np.uint8)
    block = call.count * item_bytes
    if call.kind == calls.BROADCAST:
        return [inputs[call.root]] * ranks
    if call.kind == calls.SEND:
        return [nothing, inputs[0]]
    if call.kind == calls.SCATTER:
        return [inputs[call.root][rank * block : (rank + 1) * block] for rank in range(ranks)]
    if call.kind == calls.ALL_TO_ALL:
        return [_exchanged(collective, inputs, rank, item_bytes) for rank in range(ranks)]
    joined = np.concatenate(inputs)
    everyone = call.kind == calls.ALL_GATHER
    return [joined if everyone or rank == call.root else nothing for rank in range(ranks)]


def _exchanged(
    collective: MatchedCalls, inputs: Sequence[Array], rank: int, item_bytes: int
) -> Array:
    parts = []
    for part, gift in zip(collective.parts, inputs, strict=True):
        start = sum(part.call.sends[:rank]) * item_bytes
        parts.append(gift[start : start + part.call.sends[rank] * item_bytes])
    return np.concatenate(parts)


def _wrong_reductions(
    collective: MatchedCalls,
    way: CallCarrier,
    inputs: Sequence[Array],
    results: Sequence[Array],
    lanes: int,
) -> int:
    reduction = way.reduction
    assert reduction is not None
    stacked = np.stack([gift.view(reduction.elements) for gift in inputs])
    parts: list[tuple[slice, Array]] = []
    for pieces, result in zip(way.layout.unloads, results, strict=True):
        for piece in pieces:
            item = reduction.elements.itemsize
            start = piece.tensor_at // item
            part = result[piece.buffer_at : piece.buffer_at + piece.size_bytes]
            parts.append((slice(start, start + piece.size_bytes // item), part))
    known = np.zeros(stacked.shape[1], reduction.elements)
    for where, part in parts:
        known[where] = part.view(reduction.elements)
    off = int((~_near(reduction, way, stacked, known, lanes)).sum())
    return off + sum(
        _differing(part, known[where].view(np.uint8), reduction.elements.itemsize)
        for where, part in parts
    )


def _near(
    reduction: Reduction, way: CallCarrier, inputs: Array, results: Array, lanes: int
) -> npt.NDArray[np.bool_]:
    """Return where results are near enough to the exact ones."""
    if not reduction.is_rounded:
        expected = inputs[0].copy()
        for each in inputs[1:]:
            reduction.combine(expected, each)
        with np.errstate(all="ignore"):
            both_nan = (expected != expected) & (results != results)
        return np.asarray((expected == results) | both_nan)
    wide = reduction.widened(inputs)
    with np.errstate(all="ignore"):
        exact = reduction.reduced(wide)
        if way.system:
            allowed = SYSTEMS[way.system].allowed_error(inputs, lanes)
        else:
            magnitudes = reduction.reduced(np.abs(wide))
            allowed = reduction.growth(len(inputs)) * magnitudes + reduction.least
        off = np.abs(reduction.widened(results) - exact)
        fine = off <= allowed
        limit = reduction.largest
        beyond = ~(np.abs(exact) < limit * (1 - 1e-2))  # may be infinite, or no number
    return np.asarray(fine | beyond)
