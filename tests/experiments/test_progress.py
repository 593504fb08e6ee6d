"""What is said of how far a run is: shares of the work, and times that follow from them."""

from __future__ import annotations

import pytest

from ringleaf.experiments.jobs.session import JobsProgress
from ringleaf.experiments.progress import Progress


class Clock:
    """Stands until it is set."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_rows_count_by_their_weight_and_the_speed_so_far_tells_the_rest() -> None:
    clock, drawn = Clock(), list[str]()
    progress = Progress(10.0, drawn.append, clock)

    progress.begin("ring, 4 MiB", 2.0)
    assert progress.left_s == 10  # as estimated: nothing is known yet
    clock.now_s = 8.0  # four times as slow as it was thought
    progress.end()
    assert progress.share == pytest.approx(0.2)
    assert progress.left_s == pytest.approx(32)

    clock.now_s = 108.0  # time between rows is not a row's
    progress.begin("switchml, 4 MiB", 8.0)
    clock.now_s = 124.0
    progress.tell(0.5)
    assert progress.share == pytest.approx(0.6)
    assert progress.left_s == pytest.approx(24 * 0.4 / 0.6)
    assert drawn[-1] == "\r\x1b[Kswitchml, 4 MiB  ━━━━━━━━━━━━━━╌╌╌╌╌╌╌╌╌╌ 60 %, about 16 s left\r"
    progress.end()
    assert progress.share == 1
    assert drawn[-1] == "\r\x1b[K"


def test_a_row_is_not_over_before_it_is() -> None:
    progress = Progress(1.0, None, Clock())
    progress.begin("ring", 1.0)
    progress.tell(7.0)
    assert progress.share == pytest.approx(0.99)
    progress.tell(0.3)  # an estimate never goes back
    assert progress.share == pytest.approx(0.99)


def test_it_is_drawn_ten_times_a_second_at_most() -> None:
    clock, drawn = Clock(), list[str]()
    progress = Progress(1.0, drawn.append, clock)
    progress.begin("ring", 1.0)
    for step in range(100):
        clock.now_s = step / 100
        progress.tell(step / 100)
    assert 9 <= len(drawn) <= 11


def test_jobs_say_which_case_how_many_iterations_and_how_long() -> None:
    clock, drawn = Clock(), list[str]()
    progress = JobsProgress(4, drawn.append, clock, done=1)

    progress.begin("2-ring-fifo")
    clock.now_s = 5.0
    progress.pass_hops(2_340_000)
    progress.tell(0.25, 1, 6)

    assert progress.text == (
        "case 2 of 4, 2-ring-fifo; 1 of 6 iterations, 25 % of the bytes; 2.3 M packet-hops; "
        "about 15 s left of this case"
    )
    assert drawn[-1].startswith("\r\x1b[Kcase 2 of 4, 2-ring-fifo; 2.3 M packet-hops")
    progress.finish_case()
    progress.begin("4-ring-fifo")
    assert progress.text == "case 3 of 4, 4-ring-fifo; 0.0 M packet-hops"
