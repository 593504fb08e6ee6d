"""SparCML: its streams keep every bit, and its schedules are as the paper has them."""

from math import ceil, log2

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.collectives.cost import AlphaBeta
from ringleaf.collectives.critical_path import critical_path, sent_bytes
from ringleaf.collectives.oracle import execute, message_bytes
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Message, Op, Schedule, messages
from ringleaf.collectives.sparse.sparcml import recursive_doubling, split_allgather
from ringleaf.collectives.sparse.stream import HEADER_BYTES, SPARSE_STREAM
from ringleaf.errors import ProtocolError

DTYPES = (torch.float32, torch.int32, torch.float16, torch.float64, torch.int8, torch.bfloat16)


def bits(values: torch.Tensor) -> bytes:
    return bytes(values.contiguous().view(torch.uint8).tolist())


@st.composite
def sparse_tensors(draw: st.DrawFn) -> torch.Tensor:
    """Any bits, NaNs of every kind and -0.0 among them, in a tensor that is mostly zero."""
    dtype = draw(st.sampled_from(DTYPES))
    elements = draw(st.integers(0, 40))
    data = torch.zeros(elements * dtype.itemsize, dtype=torch.uint8)
    for place in draw(st.lists(st.integers(0, max(0, elements - 1)), max_size=elements)):
        word = draw(st.binary(min_size=dtype.itemsize, max_size=dtype.itemsize))
        start = place * dtype.itemsize
        data[start : start + dtype.itemsize] = torch.tensor(list(word), dtype=torch.uint8)
    return data.view(dtype)


@given(sparse_tensors(), st.integers(0, 40))
def test_streams_keep_every_bit_and_are_as_small_as_they_can(
    values: torch.Tensor, cut: int
) -> None:
    item, elements = values.element_size(), values.numel()
    data = SPARSE_STREAM.encode(values)
    rows = values.view(torch.uint8).view(elements, item)
    count = int((rows != 0).any(dim=1).sum()) if elements else 0
    assert data.numel() == HEADER_BYTES + min(count * (item + 4), elements * item)
    assert data.numel() <= SPARSE_STREAM.most_bytes(elements, item)
    assert bits(SPARSE_STREAM.decode(data, elements, values.dtype)) == bits(values)
    parts = [values[:cut].clone(), values[cut:].clone()]
    decoded = [
        SPARSE_STREAM.decode(SPARSE_STREAM.encode(part), part.numel(), part.dtype) for part in parts
    ]
    assert b"".join(map(bits, decoded)) == bits(values)


def test_a_stream_by_hand() -> None:
    values = torch.tensor([0.0, 1.0, 0.0, -0.0, 0.0, 0.0])
    assert bits(SPARSE_STREAM.encode(values)) == bytes.fromhex(
        "02000000  0000803f 00000080  01000000 03000000"
    )
    dense = torch.tensor([0, 7, 7], dtype=torch.int32)
    assert bits(SPARSE_STREAM.encode(dense)) == bytes.fromhex(
        "ffffffff  00000000 07000000 07000000"
    )
    assert bits(SPARSE_STREAM.encode(torch.zeros(9))) == bytes(4)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ("0000", "needs a header, got 2 bytes"),
        ("ffffffff 00000000", "-1 pairs of 2 elements take 8 bytes, got 4"),
        ("01000000 0000803f", "1 pair of 2 elements take 8 bytes, got 4"),
        ("01000000 0000803f 02000000", "indices must be below 2, got 2"),
    ],
)
def test_broken_streams_are_refused(data: str, complaint: str) -> None:
    raw = torch.tensor(list(bytes.fromhex(data)), dtype=torch.uint8)
    with pytest.raises(ProtocolError, match=f"sparse stream: {complaint}"):
        SPARSE_STREAM.decode(raw, 2, torch.float32)


def one_in(density: float, ranks: int, elements: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(ranks)
    tensors = [torch.randn(elements, generator=generator) for _ in range(ranks)]
    for tensor in tensors:
        tensor[torch.rand(elements, generator=generator) >= density] = 0  # a product could be -0.0
    return tensors


@given(st.integers(2, 33))
def test_steps_and_bytes_are_the_papers(ranks: int) -> None:
    log = ceil(log2(ranks))
    extra = ranks.bit_count() > 1
    assert recursive_doubling(ranks).steps == log + extra
    assert split_allgather(ranks).steps == ranks - 1 + log
    size_bytes = 4 * ranks * 8
    bound = 2 * (ranks - 1) * size_bytes // ranks
    assert sent_bytes(split_allgather(ranks), size_bytes) == [bound] * ranks


def sent(schedule: Schedule, tensors: list[torch.Tensor]) -> list[int]:
    """Bytes that each rank sends."""
    counts = [0] * schedule.ranks
    for message, size in zip(messages(schedule), message_bytes(schedule, tensors), strict=True):
        assert isinstance(message, Message)
        counts[message.src] += size
    return counts


@pytest.mark.parametrize("ranks", [4, 8])
def test_sizes_stay_within_the_papers_bounds(ranks: int) -> None:
    """k pairs per rank, disjoint or all the same: the extremes between which the paper counts."""
    k, pair, log = 5, 8, int(log2(ranks))
    apart = [torch.zeros(64 * ranks) for _ in range(ranks)]
    same = [torch.zeros(64 * ranks) for _ in range(ranks)]
    for rank in range(ranks):
        apart[rank][rank :: ranks * 12][:k] = 1.0
        same[rank][3::12][:k] = 1.0
    doubling, split = recursive_doubling(ranks), split_allgather(ranks)
    headers = HEADER_BYTES * len(list(messages(split)))
    assert sent(doubling, same) == [log * (k * pair + HEADER_BYTES)] * ranks
    assert sent(doubling, apart) == [(ranks - 1) * k * pair + log * HEADER_BYTES] * ranks
    total = sum(sent(split, same)) - headers
    assert total == 2 * (ranks - 1) * k * pair  # of all ranks: 2 (p - 1) / p k each
    total = sum(sent(split, apart)) - headers
    gathered = (ranks - 1) * ranks * k * pair  # everybody gets what the others have
    assert 0 <= gathered - (total - (ranks - 1) * k * pair) <= ranks * k * pair


def test_streams_turn_dense_as_they_fill() -> None:
    tensors = one_in(0.3, 8, 4096)
    sizes = message_bytes(recursive_doubling(8), tensors)
    assert max(sizes[:8]) < 4096 * 8 * 0.35
    assert sizes[-8:] == [HEADER_BYTES + 4096 * 4] * 8


def test_dense_results_go_as_they_are() -> None:
    schedule = split_allgather(4, dense_result=True)
    sizes = message_bytes(schedule, [torch.zeros(400) for _ in range(4)])
    for message, size in zip(messages(schedule), sizes, strict=True):
        assert isinstance(message, Message)
        raw_bytes = 400 * (message.stop - message.start)
        assert size == (HEADER_BYTES if message.op is Op.REDUCE else raw_bytes)


@pytest.mark.parametrize("name", ["ssar-double", "ssar-split", "dsar-split"])
def test_sums_are_the_dense_ones(name: str) -> None:
    tensors = [tensor.double() for tensor in one_in(0.2, 6, 500)]
    for result in execute(ALGORITHMS[name].build(6), tensors):
        torch.testing.assert_close(result, torch.stack(tensors).sum(dim=0))


@pytest.mark.parametrize("name", ["ssar-double", "ssar-split", "dsar-split"])
@pytest.mark.parametrize("ranks", [1, 2, 4, 16])
def test_closed_forms_are_near_if_nothing_is_zero(name: str, ranks: int) -> None:
    fabric = AlphaBeta(overhead_ps=20_000)
    schedule = ALGORITHMS[name].build(ranks)
    cost = ALGORITHMS[name].cost(ranks, size_bytes=1 << 20, fabric=fabric)
    assert cost.time_ps == pytest.approx(critical_path(schedule, 1 << 20, fabric).time_ps, rel=0.03)
    assert max(sent_bytes(schedule, 1 << 20)) == cost.sent_bytes
