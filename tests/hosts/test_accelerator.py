"""Jobs that take turns at an accelerator, worked out by hand."""

from __future__ import annotations

from ringleaf.core.units import FOREVER_PS
from ringleaf.hosts.training.accelerator import Accelerator
from ringleaf.hosts.training.job import TrainingJob
from ringleaf.hosts.training.model import Layer, Model
from ringleaf.hosts.training.pieces import GradientPiece, cut


def make_job(pass_ps: int, iterations: int) -> TrainingJob:
    """Return a job of one layer, whose passes take `pass_ps` each."""
    model = Model("", "", "float32", (Layer("", 1, pass_ps, pass_ps),))
    return TrainingJob(model, cut(model), iterations=iterations)


def play(jobs: list[TrainingJob], lags: list[int]) -> None:
    """Run jobs whose gradients are reduced `lags` after they became ready."""
    under_way: list[tuple[int, TrainingJob, GradientPiece]] = []
    while not all(job.done for job in jobs):
        first = min(jobs, key=lambda job: job.next_ps())
        if first.next_ps() <= min((at_ps for at_ps, *_ in under_way), default=FOREVER_PS):
            now_ps = first.next_ps()
            first.reach(now_ps)
            lag = lags[jobs.index(first)]
            under_way += [(now_ps + lag, first, piece) for piece in first.take_ready()]
        else:
            reduced = min(under_way, key=lambda each: each[0])
            under_way.remove(reduced)
            at_ps, job, piece = reduced
            job.reduced(piece, at_ps)


def starts(job: TrainingJob) -> list[list[int]]:
    return [each.starts_ps for each in job.history]


def test_a_job_computes_while_the_other_waits_for_its_sums() -> None:
    """The first computes from 0 to 20, and has its sum at 53. The second has it until then.

    At 53 the second is in a forward pass, from 50 to 55, after which the first goes ahead.
    """
    slow, quick = make_job(10, 2), make_job(5, 4)
    slow.accelerator = quick.accelerator = Accelerator([slow, quick])

    play([slow, quick], [33, 0])

    assert starts(slow) == [[0, 10], [55, 65]]
    assert starts(quick) == [[20, 25], [30, 35], [40, 45], [50, 75]]
    assert slow.history[1].waits_ps == [33]  # for the sum; two more were for the accelerator
    assert quick.history[0].waits_ps == [0]


def test_a_job_that_hears_late_of_its_sum_does_not_compute_in_the_past() -> None:
    slow, quick = make_job(10, 2), make_job(5, 1)
    slow.accelerator = quick.accelerator = Accelerator([slow, quick])
    for at_ps in (0, 0, 10, 20, 20, 25, 30):  # all that computes, up to the end of `quick`
        min((slow, quick), key=lambda job: job.next_ps()).reach(at_ps)

    (piece,) = slow.take_ready()
    slow.reduced(piece, 22)

    assert starts(slow) == [[0, 10], [30]]


def test_the_next_gradient_is_unknown_while_another_job_computes() -> None:
    first, second = make_job(10, 1), make_job(5, 1)
    first.accelerator = second.accelerator = Accelerator([second, first])
    for job in (first, second):
        job.reach(0)
    first.reach(10)  # its forward pass is over, and the other one's begins

    assert first.computing_backward
    assert first.next_gradient_ps == FOREVER_PS
    second.reach(15)
    second.reach(20)
    assert first.next_gradient_ps == 30
