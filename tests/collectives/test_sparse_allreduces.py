"""Sparse allreduces: their sums against definitions in NumPy, words against published bounds."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleaf.collectives.collective import Collective
from ringleaf.collectives.compression.program import Ask, Compressed, CompressedProgram, Post, drive
from ringleaf.collectives.compression.registry import COMPRESSORS, parse_compressor
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.sparse.bloom import filter_size, hashes, positives
from ringleaf.collectives.sparse.fitted import fit, segments, unfit
from ringleaf.collectives.sparse.pairs import from_words, to_words
from ringleaf.collectives.sparse.registry import SPARSE, parse_sparse
from ringleaf.collectives.sparse_allreduces import oktopk
from ringleaf.core.tensors import Array
from ringleaf.errors import ConfigError, ScheduleError
from ringleaf.experiments.spec.kinds import several

WITH_SHARE = ("topk", "randomk", "gaussiank", "mstopk", "dgc", "sidco", "egc")


class Memory:
    """Exchanges in memory, which count the words that each rank has to send: no network."""

    def __init__(self, ranks: int) -> None:
        self.words = np.zeros(ranks)

    def __call__(self, asks: Sequence[Ask | Post]) -> list[Array | dict[int, Array]]:
        ranks = len(asks)
        if isinstance(asks[0], Post):
            found: list[Array | dict[int, Array]] = [{} for _ in asks]
            for src, ask in enumerate(asks):
                assert isinstance(ask, Post)
                for dst, message in ask.messages.items():
                    found[dst][src] = np.append(message, np.zeros(3, np.float32))
                    self.words[src] += message.size
            return found
        values = [ask.values for ask in asks if isinstance(ask, Ask)]
        first = asks[0]
        assert isinstance(first, Ask)
        if first.collective is Collective.ALLREDUCE:
            self.words += 2 * (ranks - 1) / ranks * values[0].size
            return [np.add.reduce(values).astype(np.float32)] * ranks
        if first.collective is Collective.BROADCAST:
            self.words[first.root] += values[0].size
            return [values[first.root]] * ranks
        assert first.collective is Collective.ALL_GATHER
        blocks = [value.reshape(ranks, -1)[rank] for rank, value in enumerate(values)]
        self.words += sum(np.count_nonzero(block.view(np.uint32)) for block in blocks) * (
            (ranks - 1) / ranks
        )
        return [np.concatenate(blocks)] * ranks


def programs(text: str, ranks: int) -> list[CompressedProgram]:
    make = parse_sparse(text).make
    return [make(rank, ranks) for rank in range(ranks)]


def together(
    made: Sequence[CompressedProgram], values: Sequence[Array], seed: int, memory: Memory
) -> list[Array]:
    steps = [each.step(part, seed) for each, part in zip(made, values, strict=True)]
    return drive(steps, memory)


def inputs(ranks: int, elements: int, seed: int) -> list[Array]:
    chance = np.random.default_rng(seed)
    return [chance.standard_normal(elements).astype(np.float32) for _ in range(ranks)]


def valid(text: str, ranks: int) -> str:
    """Return the text with settings that fit the number of ranks."""
    name = text.partition(":")[0]
    node = next(size for size in (4, 3, 2, 1) if ranks % size == 0)
    return f"{name}:5%,node={node}" if name == "hitopk" else f"{name}:5%"


@pytest.mark.parametrize("name", SPARSE.shipped())
def test_all_ranks_get_the_same_and_nothing_is_lost_at_any_number_of_ranks(name: str) -> None:
    """Sums of what ranks keep and of the result are sums of what came in."""
    for ranks in [*range(1, 18), 24, 31, 32, 33, 48, 63, 64]:
        if name == "gtopk" and ranks & (ranks - 1):
            continue
        made, memory = programs(valid(name, ranks), ranks), Memory(ranks)
        came, went = np.zeros(200), np.zeros(200)
        for step in range(2):
            values = inputs(ranks, 200, step)
            results = together(made, values, step, memory)
            assert all(each.tobytes() == results[0].tobytes() for each in results)
            came += np.sum(values, axis=0, dtype=np.float64)
            went += results[0]
        if name in ("topka", "scalecom", "deepreduce"):
            left = np.sum([each.left for each in made], axis=0)  # type: ignore[attr-defined]
            assert np.allclose(went + left, came, atol=1e-3)


@pytest.mark.parametrize("name", SPARSE.shipped())
def test_a_sparse_allreduce_says_whether_it_asks_for_allreduces(name: str) -> None:
    """Also where ranks have all elements, which DeepReduce sends as they are."""
    asked: set[Collective] = set()
    memory = Memory(4)

    def carry(asks: Sequence[Ask | Post]) -> list[Array | dict[int, Array]]:
        asked.update(ask.collective for ask in asks if isinstance(ask, Ask))
        return memory(asks)

    for share in ("5%", "100%"):
        text = f"{name}:{share},node=2" if name == "hitopk" else f"{name}:{share}"
        steps = zip(programs(text, 4), inputs(4, 200, 0), strict=True)
        drive([each.step(part, 0) for each, part in steps], carry)
    assert SPARSE[name].reduces == (Collective.ALLREDUCE in asked)


@pytest.mark.parametrize("name", COMPRESSORS.shipped())
def test_compressors_agree_at_any_number_of_ranks(name: str) -> None:
    """As programs: all ranks get the same, and with error feedback nothing is lost."""
    text = f"{name}:10%" if name in WITH_SHARE else name
    text = {"threshold": "threshold:1", "onebit-adam": "onebit-adam:1"}.get(name, text)
    for ranks in [*range(1, 10), 16, 31, 33, 48, 63, 64]:
        made = [Compressed(parse_compressor(text), rank, ranks) for rank in range(ranks)]
        came, went = np.zeros(60), np.zeros(60)
        for step in range(2):
            values = inputs(ranks, 60, step)
            results = together(made, values, step, Memory(ranks))
            assert all(each.tobytes() == results[0].tobytes() for each in results)
            came += np.sum(values, axis=0, dtype=np.float64)
            went += results[0]
        member = made[0]._memory
        assert member is not None
        if member.is_on and not member.copy().has_memory and name != "powersgd":  # type: ignore[attr-defined]
            left = sum(each._memory.left[None] for each in made)  # type: ignore[union-attr]
            assert np.allclose(went + left, came, atol=1e-3)


def test_topka_adds_up_each_ranks_largest() -> None:
    values = [np.array(v, np.float32) for v in ([5, 1, 0, -4], [1, -2, 3, 0])]
    made = programs("topka:2", 2)
    assert together(made, values, 0, Memory(2))[0].tolist() == [5, -2, 3, -4]
    zeros = [np.zeros(4, np.float32)] * 2
    assert together(made, zeros, 1, Memory(2))[1].tolist() == [1, 1, 0, 0]  # what was left


def test_gtopk_keeps_the_largest_sums_of_pairs() -> None:
    """Ranks 0 and 1 have 4 + 4 at place 0, ranks 2 and 3 have 5 and 6 elsewhere."""
    values = [np.zeros(6, np.float32) for _ in range(4)]
    for rank, place, value in ((0, 0, 4), (1, 0, 4), (2, 2, 5), (3, 3, -6)):
        values[rank][place] = value
    made = programs("gtopk:1", 4)
    assert together(made, values, 0, Memory(4))[2].tolist() == [8, 0, 0, 0, 0, 0]
    left = [each.left.tolist() for each in made]  # type: ignore[attr-defined]
    assert left[0] == [0] * 6
    assert left[3] == [0, 0, 0, -6, 0, 0]


def test_scalecoms_leader_takes_turns_and_names_the_places() -> None:
    values = [np.array([3, 1, 1], np.float32), np.array([1, 2, 4], np.float32)]
    made = programs("scalecom:1", 2)
    assert together(made, values, 0, Memory(2))[0].tolist() == [4, 0, 0]
    # Left are 0 1 1 and 0 2 4; rank 1 leads, and has most at place 2: 1 + 1 and 4 + 4.
    assert together(made, values, 1, Memory(2))[0].tolist() == [0, 0, 10]


def test_hitopk_adds_dense_parts_inside_nodes() -> None:
    """Two nodes of two; a node's parts are 2 elements, of which the largest is sent."""
    values = [np.array(v, np.float32) for v in ([1, 2, 0, 5], [1, 2, 0, 1], [9, 1, 1, 0], [0] * 4)]
    made = programs("hitopk:2,node=2", 4)
    assert together(made, values, 0, Memory(4))[3].tolist() == [9, 4, 1, 6]


@pytest.mark.parametrize("ranks", [4, 16, 32])
def test_oktopk_sends_less_than_six_k(ranks: int) -> None:
    """In steps without exact thresholds, and evenly dealt: at least 2 k (n - 1) / n words."""
    elements, count = 20_000, 400
    made = programs(f"oktopk:{count}", ranks)
    for step in range(8):
        memory = Memory(ranks)
        for each in made:
            each.left = np.zeros(elements, np.float32)  # type: ignore[attr-defined]
        results = together(made, inputs(ranks, elements, step), step, memory)
        if step:
            assert 0.6 * count < np.count_nonzero(results[0]) < 1.4 * count
            assert memory.words.max() < 6 * count
            assert memory.words.mean() > 2 * count * (ranks - 1) / ranks


def test_oktopks_first_step_is_exact() -> None:
    """The k largest sums of elements that are among some rank's own k largest."""
    values = inputs(5, 500, 3)
    sums = np.zeros(500, np.float32)
    for part in values:
        chosen = np.argsort(-np.abs(part))[:25]
        sums[chosen] += part[chosen]
    found = together(programs("oktopk:25", 5), values, 0, Memory(5))[0]
    wanted = np.where(np.abs(sums) >= np.sort(np.abs(sums))[-25], sums, 0)
    assert np.allclose(found, wanted, atol=1e-5)


@pytest.mark.parametrize(
    ("count", "values", "wanted"),
    [
        (3, [[1, 2, 3]], [1, 2, 3]),
        (2, [[1, 2, 3]], [0, 2, 3]),
        (1, [[3, 3, 0], [0, 0, 1]], [3, 3, 0]),  # both are as large as the one
        # sums of each rank's two largest are 3, 0, -2 and 6
        (2, [[3, 5, 0, 1], [2, -5, -4, 0], [0, 0, 2, 6]], [3, 0, 0, 6]),
        (2, [[0, 0]], [0, 0]),
        (1, [[4, 0], [-4, 0]], [0, 0]),
    ],
)
def test_oktopk_expects_the_largest_sums_of_ranks_largest(
    count: int, values: list[list[int]], wanted: list[int]
) -> None:
    expected = oktopk.parse(str(count), "x").expect(np.array(values, np.float32))
    assert expected.least.tolist() == expected.most.tolist() == wanted


def test_words_of_the_others_are_the_published_ones() -> None:
    """With 8 ranks and k = 50: 2 k (n - 1), the root 2 k log2 n, the leader k + 2 (n - 1) / n k."""
    ranks, count = 8, 50
    for text, most in (
        ("topka", 2 * count * (ranks - 1)),
        ("gtopk", 2 * count * log2(ranks)),
        ("scalecom", count + 2 * (ranks - 1) / ranks * count),
    ):
        memory = Memory(ranks)
        together(programs(f"{text}:{count}", ranks), inputs(ranks, 4000, 1), 0, memory)
        assert most - ranks <= memory.words.max() <= most + ranks


# DeepReduce.


def test_bloom_filter_of_a_thousand_places() -> None:
    """100 000 elements, 1 000 places: 10 hash functions, 14 378 bits, so 1 798 bytes."""
    assert filter_size(100_000, 1000) == (14_378, 10)
    assert -(-14_378 // 8) == 1798


def test_bloom_filter_has_all_its_places_and_few_others() -> None:
    bits, functions = filter_size(100_000, 1000)
    places = np.sort(np.random.default_rng(1).choice(100_000, 1000, replace=False))
    bloom = np.zeros(bits, np.bool_)
    bloom[hashes(places, bits, functions)] = True
    found = positives(bloom, 100_000, functions)
    assert np.isin(places, found).all()
    assert 50 < found.size - 1000 < 160  # about a thousandth of 99 000


@given(st.integers(0, 400), st.integers(0, 99))
@settings(max_examples=30)
def test_fitted_values_come_back_nearly(count: int, seed: int) -> None:
    values = np.random.default_rng(seed).standard_normal(count).astype(np.float32)
    found = unfit(fit(values))
    assert found.size == count
    if count > 200:
        assert np.abs(found - values).mean() < 0.06


def test_segments_are_shares_of_more_than_thirty() -> None:
    """With 1000 elements: 1/5, 1/10, 1/30, and the rest; 1/100 would be 10."""
    assert segments(1000) == [33, 100, 200, 667]
    assert segments(100_000)[:6] == [33, 100, 333, 1000, 3333, 10_000]
    assert segments(20) == [20]
    assert segments(0) == []


@given(st.lists(st.tuples(st.integers(0, 1 << 30), st.floats(-5, 5, width=32)), max_size=20))
def test_pairs_come_back(pairs: list[tuple[int, float]]) -> None:
    places = np.array([place for place, _ in pairs], np.int64)
    values = np.array([value for _, value in pairs], np.float32)
    found = from_words(np.append(to_words(places, values), np.zeros(4, np.float32)))
    assert found[0].tolist() == places.tolist()
    assert found[1].tobytes() == values.tobytes()


@pytest.mark.parametrize(
    ("text", "ranks", "complaint"),
    [
        ("gtopk:1%", 6, "sparse: gtopk: ranks must be a power of two, got 6"),
        ("hitopk:1%,node=4", 6, "sparse: hitopk: ranks must be whole nodes of 4, got 6"),
        ("topk:1%", 2, "sparse: unknown sparse allreduce, got 'topk'"),
        ("deepreduce:1%,values=x", 2, "sparse: deepreduce: unknown form of values, got 'x'"),
    ],
)
def test_what_does_not_fit_is_refused(text: str, ranks: int, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        parse_sparse(text).make(0, ranks)


SETTINGS = {"oktopk": ["", ",balanced=no"], "deepreduce": ["", ",values=fitted"]}


@pytest.mark.parametrize("name", SPARSE)
@given(data=st.data())
@settings(max_examples=12, deadline=None)
def test_results_are_as_their_own_mathematics_say(name: str, data: st.DataObject) -> None:
    """The definition is told all tensors at once; a result that is a little off is refused."""
    ranks = data.draw(st.sampled_from([2, 4, 8]))
    elements = data.draw(st.integers(1, 1500))
    share = data.draw(st.sampled_from(["1", "1%", "10%", "100%"]))
    more = data.draw(st.sampled_from(SETTINGS.get(name, [""])))
    method = parse_sparse(valid(f"{name}:{share}{more}", ranks))
    values = inputs(ranks, elements, seed=elements)
    results = together([method.make(r, ranks) for r in range(ranks)], values, 1, Memory(ranks))
    expected = method.expect(np.stack(values))
    assert expected.count_wrong(results) == (0, "")
    at = data.draw(st.integers(0, elements - 1))
    off = [result.copy() for result in results]
    for each in off:
        each[at] += 1 + np.abs(np.stack(values)).sum()
    assert expected.count_wrong(off)[0] == ranks
    off = [result.copy() for result in results]
    off[-1][at] = np.nextafter(off[-1][at], np.float32(np.inf))
    wrong, why = expected.count_wrong(off)
    assert wrong == 1, "ranks must have the same bits"
    assert f"rank {ranks - 1}, element {at}" in why


def test_definitions_by_hand() -> None:
    """Two ranks, four elements, one or two of which each rank sends."""
    values = np.array([[4, 1, 0, -2], [3, -5, 1, 2]], np.float32)
    wanted = {
        "topka:1": [4, -5, 0, 0],
        "gtopk:1": [0, -5, 0, 0],  # the larger of two sums
        "oktopk:1": [0, -5, 0, 0],
        "topka:2": [7, -5, 0, -2],
        "gtopk:2": [7, -5, 0, 0],
        "scalecom:2": [7, 0, 0, 0],  # rank 0's largest, 4 and -2, whose sums are 7 and 0
        "hitopk:2,node=2": [7, 0, 1, 0],  # of each half of the node's sum the largest
        "deepreduce:1": [7, -4, 1, 0],  # so small a tensor goes as it is
    }
    for text, total in wanted.items():
        expected = parse_sparse(text).expect(values)
        np.testing.assert_allclose(expected.least, total, atol=1e-5, err_msg=text)
        np.testing.assert_allclose(expected.most, total, atol=1e-5, err_msg=text)


def test_levels_around_a_sum_are_right_and_others_are_not() -> None:
    """With 2 bits there is one level, the owner's largest sum: 0 or 8 for 2, and 3 exactly."""
    values = np.array([[8, 2, 0, 0], [0, 0, 3, 0]], np.float32)
    expected = parse_sparse("sparcml-q:100%,bits=2").expect(values)
    assert expected.least.tolist() == [8, 0, 3, 0]
    assert expected.most.tolist() == [8, 8, 3, 0]


def test_names_with_settings_are_algorithms() -> None:
    assert ALGORITHMS["oktopk"].method is not None
    assert several("algo", "algorithm", "oktopk:2%,balanced=no,ring", ALGORITHMS) == (
        "oktopk:2%,balanced=no",
        "ring",
    )
    with pytest.raises(ScheduleError, match="oktopk: has no schedule, as its messages depend"):
        ALGORITHMS["oktopk"].build(4)
    with pytest.raises(ConfigError, match="algo: oktopk: unknown setting, got 'even'"):
        ALGORITHMS["oktopk:1%,even=no"]
