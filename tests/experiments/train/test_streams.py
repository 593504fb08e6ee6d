"""Streams with times, on a link whose calls take 100 ps each, one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest
import torch

from ringleaf.experiments.workloads.train.clock import RankClock
from ringleaf.experiments.workloads.train.streams import RankStream, RankStreams, StreamEvent, _On
from ringleaf.experiments.workloads.train.works import FabricWork

LASTS_PS = 100


class Link:
    """A link; a call writes sevens when it is over, and the process has waited for it."""

    def __init__(self) -> None:
        self.clock = RankClock()
        self.streams = RankStreams(self)  # type: ignore[arg-type]
        self.made_ps: list[int] = []
        self._free_ps = 0
        self._ends: dict[int, tuple[FabricWork, torch.Tensor, int]] = {}

    def call(self, output: torch.Tensor, group: str = "g") -> FabricWork:
        at_ps = self.streams.time_for(group, [output])
        self._free_ps = max(self._free_ps, at_ps) + LASTS_PS
        work = FabricWork(self, [output], group)  # type: ignore[arg-type]
        work.add(len(self.made_ps), [output])
        self._ends[len(self.made_ps)] = work, output, self._free_ps
        self.made_ps.append(at_ps)
        return work

    def wait(self, numbers: Iterable[int], *, quietly: bool = False) -> None:
        for number in [each for each in numbers if each in self._ends]:
            work, output, end_ps = self._ends.pop(number)
            if not quietly:
                self.clock.reach(end_ps)
            output.fill_(7)
            work.finish_one(end_ps)

    def reach(self, time_ps: int) -> None:
        self.clock.reach(time_ps)

    @property
    def calls_under_way(self) -> list[int]:
        return list(self._ends)


@pytest.fixture
def link() -> Iterator[Link]:
    made = Link()
    yield made
    assert made.streams.current is made.streams.usual


def on(link: Link, stream: RankStream) -> Any:
    return _On(link.streams, stream)


def test_the_usual_stream_waits_at_once(link: Link) -> None:
    output = torch.zeros(2)

    link.call(output).wait()

    assert (link.clock.now_ps, output.tolist()) == (100, [7, 7])


def test_another_stream_lets_the_rank_compute_until_it_waits_for_an_event(link: Link) -> None:
    side, output = RankStream(link.streams), torch.zeros(2)
    with on(link, side):
        link.call(output).wait()
        event = side.record_event()
    assert (link.clock.now_ps, output.tolist()) == (0, [0, 0])

    link.clock.advance(60)
    link.streams.current.wait_event(event)

    assert (link.clock.now_ps, output.tolist()) == (100, [7, 7])


def test_a_call_is_made_when_its_stream_is_free_and_not_when_the_rank_says_it(link: Link) -> None:
    """The second stream waits for what the first had been given at 30."""
    first, second = RankStream(link.streams), RankStream(link.streams)
    link.clock.advance(30)
    first.wait_stream(link.streams.usual)
    link.clock.advance(500)
    second.wait_stream(first)
    with on(link, second):
        link.call(torch.zeros(1)).wait()

    assert link.made_ps == [30]
    link.streams.wait_for_all()
    assert link.clock.now_ps == 530


def test_a_call_of_another_group_begins_when_its_stream_has_the_results_of_the_first(
    link: Link,
) -> None:
    side = RankStream(link.streams)
    with on(link, side):
        link.call(torch.zeros(1), "g").wait()
        link.call(torch.zeros(1), "h").wait()

    assert link.made_ps == [0, LASTS_PS]
    assert link.clock.now_ps == 0


def test_operations_on_another_stream_read_results_and_views_do_not(link: Link) -> None:
    side, output = RankStream(link.streams), torch.zeros(2)
    with on(link, side):
        work = link.call(output)
        work.wait()
        part = output[1:].view(1)
        assert not work.is_success()
        half = part / 2
    assert half.tolist() == [3.5]
    assert (work.is_success(), link.clock.now_ps) == (True, 0)

    link.streams.usual.wait_stream(side)

    assert link.clock.now_ps == LASTS_PS  # the process has waited before, the rank only now


def test_a_call_that_reads_the_results_of_another_waits_for_them_on_any_stream(link: Link) -> None:
    side, output = RankStream(link.streams), torch.zeros(2)
    with on(link, side):
        work = link.call(output)
        work.wait()

    link.streams.time_for("g", [output])

    assert work.is_success()


def test_events_that_nobody_has_recorded_are_over(link: Link) -> None:
    event = StreamEvent(link.streams)

    event.wait()
    event.synchronize()

    assert event.query()
    assert link.clock.now_ps == 0


def test_events_measure_virtual_time_in_milliseconds(link: Link) -> None:
    """A call of 100 ps, and 3 ms of computing beside it, which does not stop the other stream."""
    side = RankStream(link.streams)
    begin, beside, end = (StreamEvent(link.streams) for _ in range(3))
    begin.record()
    with on(link, side):
        link.call(torch.zeros(2)).wait()
        beside.record()
    link.clock.advance(3 * 10**9)
    end.record()

    assert begin.elapsed_time(end) == 3.0
    assert begin.elapsed_time(beside) == 100 / 10**9
    assert end.elapsed_time(begin) == -3.0


def test_a_device_that_is_waited_for_has_ended_all_calls(link: Link) -> None:
    """Also one that nobody waits for, as `torch.cuda.synchronize` does with NCCL's streams."""
    alone, beside = torch.zeros(2), torch.zeros(2)
    link.call(alone)
    with on(link, RankStream(link.streams)):
        link.call(beside).wait()

    link.streams.wait_for_device()

    assert (alone.tolist(), beside.tolist()) == ([7, 7], [7, 7])
    assert link.clock.now_ps == 200
