"""A quick confirmation that results are right, in one pass over them, by all cores.

Each piece of all ranks' elements is small enough for the cores' last cache, and large enough that
threads seldom wait for one another between pieces. The ranks' inputs are read, or
made again, and summed up exactly; the schedule's rows are replayed on them; and then all ranks'
results must have the replay's bits, and these must be the sums or copies that the collective
demands. Where anything differs, the judge looks again, slowly, and says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ringleaf.collectives.definition import EVERYONE, Demands
from ringleaf.collectives.replay import ScheduleRows, add_items, fits
from ringleaf.collectives.rounding import sum_growth
from ringleaf.collectives.schedule import Schedule, chunk_ranges
from ringleaf.core import native_types as types
from ringleaf.core.compiled import compiled, compiled_as
from ringleaf.core.tensors import FLOAT32, INT32, Array, ElementType
from ringleaf.core.threads import ranges, spread
from ringleaf.core.views import window
from ringleaf.experiments.checking.data import RankInputs
from ringleaf.experiments.checking.flat import Bits, Flat, Scattered, differ
from ringleaf.experiments.checking.verdict import Bound, Tolerance

if TYPE_CHECKING:
    from ringleaf.networks.endpoints.leases import Leases

Floats = npt.NDArray[np.float32]

_PIECE_BYTES = 1 << 22  # of all nodes' values
_LEAST = 16  # elements of a piece
_TOGETHER = 32  # pieces that a thread does at a time

_BLOCK = 1024  # elements summed up at a time, so that the sums stay in the first cache

_EVERYONE = EVERYONE


def confirms(
    schedule: Schedule,
    demand: Demands,
    inputs: RankInputs,
    results: Sequence[Array],
    tolerance: Tolerance | None = None,
    leases: Leases | None = None,
    errors: list[float] | None = None,
) -> bool:
    """Return whether all results are right; False if that is unknown, or any is not.

    It is unknown where a codec loses something, switches add and none of their error is known, or
    elements are of another type; and sums that are infinite or no numbers are left to the judge.

    Args:
        schedule: One whose rows make sense.
        demand: The data that each rank must hold, by block of the tensor.
        inputs: The ranks' inputs.
        results: Each rank's elements, flat, after the schedule has run.
        tolerance: Tolerance of the system that added, if hosts did not add.
        leases: The leases that say where the results are; None: in `results`.
        errors: A list to which the greatest error of a sum of switches is added, part by part: of
            the sum of the magnitudes that were added.
    """
    alike = all((each.dtype, each.size) == (inputs.dtype, inputs.elements) for each in results)
    if not alike:
        return False
    width = max(_PIECE_BYTES // (4 * schedule.places), _LEAST)
    if tolerance is not None:
        if schedule.codec is not None or inputs.dtype not in _KERNELS or (demand != EVERYONE).any():
            return False
        width = -(-width // tolerance.block) * tolerance.block
        check: _Check | _SumCheck = _SumCheck(
            inputs, _in_place(results, leases), tolerance.bound, width, errors
        )
    elif fits(schedule, inputs.dtype):
        check = _Check(schedule, demand, inputs, _in_place(results, leases), width)
    else:
        return False
    parts, elements = ranges(inputs.elements, _TOGETHER * width), inputs.elements * schedule.ranks
    return all(spread(check.are_right, parts, elements))


def _in_place(results: Sequence[Array], leases: Leases | None) -> Flat | Scattered:
    return Flat(results) if leases is None else Scattered(leases.addresses, leases.edges)


def _is_float(inputs: RankInputs) -> bool:
    return bool(inputs.dtype.kind == "f")


class _Check:
    """The check of some results, piece by piece; threads may share it."""

    def __init__(
        self,
        schedule: Schedule,
        demand: Demands,
        inputs: RankInputs,
        results: Flat | Scattered,
        width: int,
    ) -> None:
        self._inputs = inputs
        self._demand = demand
        self._copies = bool((demand >= 0).any())  # a collective either copies or adds up
        stops = (stop for _, stop in chunk_ranges(inputs.elements, demand.shape[1]))
        self._edges = np.array([0, *stops])
        self._growth = sum_growth(inputs.ranks) if _is_float(inputs) else 0.0
        self._replay = ScheduleRows(schedule, inputs.elements)
        self._results = results
        self._width = width

    def are_right(self, part: tuple[int, int]) -> bool:
        """Return whether all ranks' elements in a range are right."""
        room = _Room(self._inputs, self._replay, self._width)
        start, stop = part
        return all(
            self._is_right(room, at, min(self._width, stop - at))
            for at in range(start, stop, self._width)
        )

    def _is_right(self, room: _Room, start: int, count: int) -> bool:
        ranks = self._inputs.ranks
        values = room.values[: self._replay.nodes * count].reshape(-1, count)
        results = inputs = values[:ranks]
        self._inputs.read(start, inputs)
        values[ranks:] = 0
        add_up, hold = _KERNELS[self._inputs.dtype]
        exact, magnitudes = room.exact[:count], room.magnitudes[:count]
        if self._copies:  # the replay overwrites inputs
            inputs = room.inputs[: ranks * count].reshape(-1, count)
            inputs[:] = results
        else:
            add_up(inputs, exact, magnitudes)
        self._replay.run(start, values, room.arriving)
        if not self._results.equals(start, results):
            return False
        block = int(np.searchsorted(self._edges, start, side="right")) - 1
        places = self._demand, self._edges, block, start
        flat = results.reshape(-1), inputs.reshape(-1)
        return bool(hold(*places, *flat, exact, magnitudes, self._growth))


class _SumCheck:
    """The check of sums that switches have made, piece by piece; threads may share it.

    Args:
        inputs: The ranks' inputs.
        results: Each rank's elements.
        bound: The bound on floats' errors; integers must be exact.
        width: Elements of a piece, of which `bound` may be asked.
        errors: A list to which each piece's greatest error is added.
    """

    def __init__(
        self,
        inputs: RankInputs,
        results: Flat | Scattered,
        bound: Bound,
        width: int,
        errors: list[float] | None = None,
    ) -> None:
        self._inputs = inputs
        self._results = results
        self._bound = bound
        self._width = width
        self._errors = [] if errors is None else errors

    def are_right(self, part: tuple[int, int]) -> bool:
        """Return whether all ranks' elements in a range are right."""
        start, stop = part
        return all(
            self._is_right(at, min(self._width, stop - at))
            for at in range(start, stop, self._width)
        )

    def _is_right(self, start: int, count: int) -> bool:
        inputs = np.empty((self._inputs.ranks, count), self._inputs.dtype)
        self._inputs.read(start, inputs)
        is_float = _is_float(self._inputs)
        exact = np.empty(count, np.float64 if is_float else np.int32)
        add_up, _ = _KERNELS[self._inputs.dtype]
        magnitudes = np.zeros(count, np.float32)
        add_up(inputs, exact, magnitudes)
        allowed = np.zeros(count)
        if is_float:
            with np.errstate(all="ignore"):
                allowed = self._bound(inputs)
        if not self._results.alike(start, count):
            return False
        known = self._results.first(start, count).view(self._inputs.dtype)
        with np.errstate(all="ignore"):
            off = np.abs(np.subtract(known, exact, dtype=np.float64))
            near = (off <= allowed) & (allowed < np.inf)
            worst = np.max(off / magnitudes, initial=0.0, where=magnitudes > 0)
        self._errors.append(float(worst))
        return bool(near.all())


class _Room:
    """Memory for a piece of all nodes' values, and for sums of the ranks' inputs."""

    def __init__(self, inputs: RankInputs, replay: ScheduleRows, width: int) -> None:
        item = inputs.dtype
        self.inputs = np.empty(inputs.ranks * width, item)
        self.values = np.empty(replay.nodes * width, item)
        self.arriving = np.empty(replay.staged * width, item)
        self.exact = np.empty(width, np.float64 if _is_float(inputs) else np.int32)
        self.magnitudes = np.zeros(width, np.float32)


def _add_up_floats(inputs: Floats, exact: npt.NDArray[np.float64], magnitudes: Floats) -> None:
    """Write the exact sums of (ranks, count) values, and those of their magnitudes."""
    exact[:] = 0
    magnitudes[:] = 0
    for start in range(0, len(exact), _BLOCK):
        stop = min(start + _BLOCK, len(exact))
        for rank in range(len(inputs)):
            add_exactly(inputs[rank, start:stop], exact[start:stop], magnitudes[start:stop])


def _add_up_integers(inputs: Bits, exact: Bits, magnitudes: Floats) -> None:
    """Write the sums of (ranks, count) values, modulo 2^32; magnitudes stay zero."""
    count = inputs.shape[1]
    exact[:] = 0
    for rank in range(len(inputs)):
        add_items(exact, 0, inputs[rank], 0, count)


def add_exactly(inputs: Floats, exact: npt.NDArray[np.float64], magnitudes: Floats) -> None:
    """Add a rank's values to sums."""
    with np.errstate(all="ignore"):
        exact += inputs
        magnitudes += np.abs(inputs)


@compiled_as(add_exactly)
def _compiled_add_exactly(inputs: Any, exact: Any, magnitudes: Any) -> Callable[..., None]:
    def add(inputs: Any, exact: Any, magnitudes: Any) -> None:
        for i in range(len(inputs)):
            exact[i] += inputs[i]
            magnitudes[i] += abs(inputs[i])

    return add


def any_far(values: Any, exact: Any, magnitudes: Floats, growth: float) -> bool:
    """Return whether any value is off its sum by more than `growth` times the magnitudes' sum.

    So are those whose sums or errors are not finite.
    """
    with np.errstate(all="ignore"):
        allowed = growth * magnitudes.astype(np.float64)
        off = np.abs(values.astype(np.float64) - exact)
        return not ((off <= allowed) & (allowed < np.inf)).all()


@compiled_as(any_far)
def _compiled_any_far(values: Any, exact: Any, magnitudes: Any, growth: Any) -> Callable[..., bool]:
    def far(values: Any, exact: Any, magnitudes: Any, growth: Any) -> bool:
        near = 0
        for i in range(len(values)):
            allowed = growth * np.float64(magnitudes[i])
            off = abs(np.float64(values[i]) - np.float64(exact[i]))
            near += (off <= allowed) & (allowed < np.inf)
        return near < len(values)

    return far


def _hold(
    demand: Demands,
    edges: npt.NDArray[np.int64],
    block: int,
    start: int,
    results: npt.NDArray[Any],
    values: npt.NDArray[Any],
    exact: npt.NDArray[Any],
    magnitudes: Floats,
    growth: float,
) -> bool:
    """Return whether a piece of the results is as demanded.

    Args:
        demand: (ranks, blocks).
        edges: (blocks + 1,) the first element of each block, and the end.
        block: The block with the piece's first element.
        start: The piece's first element.
        results: (ranks * count,), the piece, one rank after the other.
        values: Likewise, the inputs.
        exact: (count,) their sums; of integers, modulo 2^32.
        magnitudes: (count,) sums of floats' magnitudes; of integers, zeros.
        growth: The allowed error of a sum, as a share of the magnitudes' sum.
    """
    ranks, count = len(demand), len(exact)
    bits, inputs = results.view(np.int32), values.view(np.int32)
    while block < demand.shape[1] and edges[block] < start + count:
        begin = max(edges[block] - start, 0)
        end = min(edges[block + 1] - start, count)
        known = -1  # the last rank whose sums are right
        for rank in range(ranks):
            here, whose = rank * count + begin, demand[rank, block]
            if whose == _EVERYONE:
                again = known >= 0 and not differ(
                    bits, here, bits, known * count + begin, end - begin
                )
                sums = window(results, here, end - begin)
                if not again and any_far(sums, exact[begin:end], magnitudes[begin:end], growth):
                    return False
                known = rank
            elif whose >= 0 and differ(bits, here, inputs, whose * count + begin, end - begin):
                return False
        block += 1
    return True


def _sums(item: types.Number, wide: types.Number) -> types.Signature:
    return types.void(item[:, ::1], wide[::1], types.float32[::1])


def _holds(item: types.Number, wide: types.Number) -> types.Signature:
    number, demands = types.int64, types.Array(types.int64, 2, "A", readonly=True)
    sums = wide[::1], types.float32[::1], types.float64
    return types.boolean(demands, number[::1], number, number, item[::1], item[::1], *sums)


_KERNELS: dict[ElementType, tuple[Callable[..., None], Callable[..., bool]]] = {
    FLOAT32: (
        compiled(_sums(types.float32, types.float64), nogil=True)(_add_up_floats),
        compiled(_holds(types.float32, types.float64), nogil=True)(_hold),
    ),
    INT32: (
        compiled(_sums(types.int32, types.int32), nogil=True)(_add_up_integers),
        compiled(_holds(types.int32, types.int32), nogil=True)(_hold),
    ),
}
"""By type of the elements: how to add up inputs, and to hold results against the sums."""
