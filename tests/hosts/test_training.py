"""Training jobs: gradients cut into pieces, and what a job computes and waits for."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ringleaf.core.units import FOREVER_PS
from ringleaf.errors import ConfigError
from ringleaf.hosts.training.jitter import Jitter
from ringleaf.hosts.training.job import TrainingJob
from ringleaf.hosts.training.model import Layer, Model, read_model, scaled
from ringleaf.hosts.training.pieces import GradientPiece, cut

layers = st.builds(
    Layer,
    st.just("layer"),
    st.integers(0, 5000),
    st.integers(0, 100),
    st.integers(0, 100),
)
models = (
    st.lists(layers, min_size=1, max_size=8)
    .filter(lambda found: any(layer.elements for layer in found))
    .map(lambda found: Model("model", "", "float32", tuple(found)))
)


@given(models, st.integers(0, 20_000), st.none() | st.integers(1, 8000))
def test_pieces_cover_the_gradient_once(
    model: Model, fuse_bytes: int, partition_bytes: int | None
) -> None:
    pieces = cut(model, fuse_bytes=fuse_bytes, partition_bytes=partition_bytes)
    edges = [0, *(piece.stop for piece in pieces)]
    assert [piece.start for piece in pieces] == edges[:-1]
    assert edges[-1] == model.elements
    assert all(piece.elements > 0 for piece in pieces)
    if partition_bytes is not None:
        assert all(piece.elements <= max(partition_bytes // 4, 1) for piece in pieces)
    fronts = [piece.front for piece in pieces]
    assert fronts == sorted(fronts, reverse=True)  # as backward passes make them


class Lag:
    """A network that reduces each piece some time after it became ready."""

    def __init__(self, lags: list[int]) -> None:
        self._lags = lags
        self.under_way: list[tuple[int, GradientPiece]] = []
        self._count = 0

    def take(self, pieces: list[GradientPiece], now_ps: int) -> None:
        for piece in pieces:
            lag = self._lags[self._count % len(self._lags)]
            self._count += 1
            self.under_way.append((now_ps + lag, piece))


def play(job: TrainingJob, lags: list[int]) -> None:
    network = Lag(lags)
    while not job.done:
        times = [time_ps for time_ps, _ in network.under_way]
        now_ps = min([job.next_ps(), *times])
        assert now_ps < FOREVER_PS, "nothing will happen any more"
        if job.next_ps() <= now_ps:
            job.reach(now_ps)
            network.take(job.take_ready(), now_ps)
            continue
        first = min(network.under_way, key=lambda each: each[0])
        network.under_way.remove(first)
        job.reduced(first[1], now_ps)
    assert not network.under_way


@given(models, st.lists(st.integers(0, 300), min_size=1, max_size=9), st.integers(1, 4))
def test_a_job_ends_and_its_waits_are_what_time_it_lost(
    model: Model, lags: list[int], iterations: int
) -> None:
    job = TrainingJob(model, cut(model), iterations=iterations, start_ps=7)
    play(job, lags)
    assert len(job.history) == iterations
    at_ps = 7
    for each in job.history:
        assert each.start_ps == at_ps
        assert len(each.waits_ps) == len(model.layers)
        at_ps = each.backward_ps
        assert each.backward_ps - each.start_ps == model.compute_ps + sum(each.waits_ps)
        assert each.end_ps >= each.backward_ps
    assert sum(job.history[0].waits_ps) == 0


FROZEN_FRONT = Model("", "", "float32", (Layer("a", 0, 1, 1), Layer("b", 1, 0, 0)))


@given(models)
@example(FROZEN_FRONT)
def test_nobody_waits_for_a_network_that_takes_no_time(model: Model) -> None:
    job = TrainingJob(model, cut(model), iterations=3)
    play(job, [0])
    assert [each.end_ps - each.start_ps for each in job.history] == [model.compute_ps] * 3


@given(st.integers(1, 10**12), st.floats(0, 0.99), st.integers(1, 64), st.integers())
def test_a_pass_takes_no_less_than_its_time_and_at_most_a_share_longer(
    time_ps: int, share: float, ranks: int, seed: int
) -> None:
    found = Jitter(share, ranks, Random(seed)).longer(time_ps)

    assert time_ps <= found <= time_ps * (1 + share) + 1
    assert share or found == time_ps


@pytest.mark.parametrize(("ranks", "mean"), [(1, 1 / 2), (3, 3 / 4)])
def test_jitter_is_that_of_the_slowest_rank(ranks: int, mean: float) -> None:
    """The greatest of n numbers from 0 to 1 is n / (n + 1) on average; of 4,000, within 5 sigma."""
    jitter = Jitter(0.5, ranks, Random(1))
    drawn = [jitter.longer(1_000_000) / 500_000 - 2 for _ in range(4000)]

    assert abs(sum(drawn) / len(drawn) - mean) < 5 * 0.29 / 4000**0.5
    assert min(drawn) < 0.2
    assert max(drawn) > 0.99


@given(models)
def test_a_jobs_passes_have_jitter_and_its_waits_do_not(model: Model) -> None:
    job = TrainingJob(model, cut(model), iterations=2, jitter=Jitter(0.5, 4, Random(3)))
    play(job, [0])
    for each in job.history:
        took = each.backward_ps - each.start_ps - sum(each.waits_ps)
        passes = 2 * len(model.layers)
        assert model.compute_ps <= took <= 1.5 * model.compute_ps + passes
    if model.compute_ps > 100:
        assert job.history[0].backward_ps > model.compute_ps


def test_model_files(tmp_path: Path) -> None:
    path = tmp_path / "two.yaml"
    path.write_text(
        "name: two\nlayers:\n"
        "  - {name: a, elements: 10, forward: 1us, backward: 2us}\n"
        "  - {name: b, elements: 20, forward: 3us, backward: 4us}\n"
    )
    model = read_model(path)
    assert (model.elements, model.size_bytes, model.compute_ps) == (30, 120, 10_000_000)
    half = scaled(model, 0.5, 2.0)
    assert (half.elements, half.compute_ps) == (15, 20_000_000)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("layers: 3", "must be a mapping with a list 'layers'"),
        ("layers: [{elements: 1}]", "layer 0: must have elements, forward and backward"),
        ("layers: [{elements: -1, forward: 1us, backward: 1us}]", "elements must be a whole"),
        ("layers: [{elements: 0, forward: 1us, backward: 1us}]", "must have a gradient"),
        (
            "layers: [{elements: 1, forward: 1us, backward: 1us, weights: 2us}]",
            "weights must take no longer than backward, got '2us'",
        ),
        ("layers: [", "not YAML"),
        (
            "layers: [{elements: 1, forward: 1us, backward: 2us, weigths: 1us}]",
            "layer 0: unknown key, got 'weigths'; did you mean 'weights'",
        ),
        ("layers: [{elements: 1, forward: 1us, backward: 1us, count: 12}]", "key, got 'count'"),
        (
            "batch: 32\nlayers: [{elements: 1, forward: 1us, backward: 1us}]",
            r"model.yaml: unknown key, got 'batch'; valid: name, source, dtype, layers",
        ),
        ("layers: [{elements: yes, forward: 1us, backward: 1us}]", "elements must be a whole"),
    ],
)
def test_what_is_wrong_with_a_model_file_is_said(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "model.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=complaint):
        read_model(path)


def test_a_held_job_waits_from_its_start_on() -> None:
    model = Model("", "", "float32", (Layer("a", 1, 2, 3),))
    job = TrainingJob(model, cut(model), iterations=1, start_ps=5)
    job.hold(20)
    play(job, [0])
    assert (job.start_ps, job.history[0].start_ps, job.history[0].end_ps) == (5, 20, 25)


def test_a_job_foretells_its_next_gradient() -> None:
    """Backward passes of 4, 3 and 2: the middle layer has no gradient, so nothing comes at 13."""
    layers = (Layer("a", 1, 2, 2), Layer("b", 0, 2, 3), Layer("c", 1, 2, 4))
    model = Model("", "", "float32", layers)
    job = TrainingJob(model, cut(model), iterations=1)
    found = []
    while job.next_ps() < FOREVER_PS:
        job.reach(job.next_ps())
        found.append((job.reached_layer, job.next_gradient_ps))
    none = FOREVER_PS
    forward, backward = [(0, none), (1, none), (2, none)], [(-1, 10), (-1, 15), (-1, 15)]
    assert found == [*forward, *backward, (3, none)]
