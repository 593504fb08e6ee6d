"""MSCCL's programs: read, followed, made rows, and written; expectations are by hand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from schedule_strategies import schedules

from ringleaf.collectives.definition import find_faults
from ringleaf.collectives.formats.xml import read, write
from ringleaf.collectives.oracle import execute
from ringleaf.collectives.schedule import Collective, Op, Schedule, Transfer
from ringleaf.errors import ScheduleError

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "schedules"


def load(text: str, size_bytes: int = 0, segments: int | None = None) -> Schedule:
    return read(text, "a.xml").load(size_bytes, segments).schedule


def step(
    kind: str,
    src: str = "i0",
    dst: str = "i0",
    *,
    cnt: int = 1,
    after: tuple[int, int] = (-1, -1),
    hasdep: int = 0,
) -> str:
    return (
        f'<step s="%d" type="{kind}" srcbuf="{src[0]}" srcoff="{src[1:]}" dstbuf="{dst[0]}" '
        f'dstoff="{dst[1:]}" cnt="{cnt}" depid="{after[0]}" deps="{after[1]}" hasdep="{hasdep}"/>'
    )


Blocks = list[tuple[int, int, list[str]]]
"""Of each thread block, the peer it sends to, the one it receives from, and its steps."""


def program(
    *ranks: Blocks, coll: str = "allreduce", chunks: int = 1, scratch: int = 0, in_place: int = 1
) -> str:
    """A program, a line for each element; thread blocks with a peer in common get new channels."""
    lines = [
        f'<algo name="test" nchunksperloop="{chunks}" ngpus="{len(ranks)}" coll="{coll}" '
        f'inplace="{in_place}">'
    ]
    for rank, blocks in enumerate(ranks):
        lines.append(f'<gpu id="{rank}" s_chunks="{scratch}">')
        for number, (send, recv, steps) in enumerate(blocks):
            before = blocks[:number]
            chan = sum(send == s >= 0 or recv == r >= 0 for s, r, _ in before)
            lines.append(f'<tb id="{number}" send="{send}" recv="{recv}" chan="{chan}">')
            lines += [each % place for place, each in enumerate(steps)]
            lines.append("</tb>")
        lines.append("</gpu>")
    return "\n".join([*lines, "</algo>"])


def rows_of(schedule: Schedule) -> list[tuple[int, int, int, int, str]]:
    return [(row.step, row.src, row.dst, row.chunk, row.op.value) for row in schedule.rows]  # type: ignore[union-attr]


PAIR = program(
    [(1, 1, [step("s"), step("r")])],
    [(0, 0, [step("rrcs")])],
)


def test_fused_instructions_are_several_rows() -> None:
    """Rank 1 adds what rank 0 sends, keeps the sum, and sends it back."""
    assert rows_of(load(PAIR)) == [(0, 0, 1, 0, "reduce"), (1, 1, 0, 0, "copy")]


def test_rrs_leaves_its_place_as_it_was() -> None:
    """Rank 1 sends rank 0's and its own data to rank 2, the root; its place is not read."""
    dead = program(
        [(1, -1, [step("s")])], [(2, 0, [step("rrs")])], [(-1, 1, [step("rrc")])], coll="reduce"
    )
    found = load(dead)
    assert found.root == 2
    assert rows_of(found) == [(0, 0, 1, 0, "reduce"), (1, 1, 2, 0, "reduce")]


def test_rrs_adds_beside_a_place_that_is_read_again() -> None:
    """Rank 1 sends the sum with rank 0's data to rank 2, and then its own data to rank 0."""
    text = program(
        [
            (1, -1, [step("s", hasdep=1)]),
            (-1, 1, [step("rrc", after=(0, 0), hasdep=1)]),
            (-1, 2, [step("r", dst="s0", after=(1, 0))]),
        ],
        [(2, 0, [step("rrs", hasdep=1)]), (0, -1, [step("s", after=(0, 0))])],
        [(-1, 1, [step("rrc", hasdep=1)]), (0, -1, [step("s", after=(0, 0))])],
        coll="reduce",
        scratch=1,
    )
    found = load(text)
    assert found.scratch >= 1
    inputs = [torch.tensor([value]) for value in (1, 10, 100)]
    results = execute(found, inputs)
    assert [int(each) for each in results] == [11, 10, 111]


def test_what_is_received_is_added_to_src_and_stored_in_dst() -> None:
    """Rank 1 keeps the sum elsewhere, sends it back, and copies it to its result's place."""
    text = program(
        [(1, 1, [step("s"), step("r")])],
        [(0, 0, [step("rrcs", "i0", "s0"), step("cpy", "s0", "i0")])],
        scratch=1,
    )
    results = execute(load(text), [torch.tensor([1]), torch.tensor([2])])
    assert [int(each) for each in results] == [3, 3]


def test_rrs_does_not_use_dst() -> None:
    """Where its message goes is the receiver's business: here a place that this rank lacks."""
    ends = [(1, -1, [step("s")])], [(-1, 1, [step("rrc")])]
    text = program(ends[0], [(2, 0, [step("rrs", "i0", "s9")])], ends[1], coll="reduce")
    assert rows_of(load(text)) == [(0, 0, 1, 0, "reduce"), (1, 1, 2, 0, "reduce")]


def test_a_place_of_its_own_for_each_chunk_of_scratch() -> None:
    """Three ranks in two steps: two scratch layers, as each rank gets its chunk of two others."""
    found = load((EXAMPLES / "allpairs.xml").read_text())
    assert (found.ranks, found.chunks, found.scratch, found.steps) == (3, 3, 2, 4)
    first = [row for row in rows_of(found) if row[0] == 0]
    assert sorted((src, dst % 3, chunk) for _, src, dst, chunk, _ in first) == [
        (src, dst, dst) for src in range(3) for dst in range(3) if src != dst
    ]


def test_the_example_of_a_ring_is_our_ring() -> None:
    found = load((EXAMPLES / "ring.xml").read_text())
    table = (EXAMPLES / "ring.csv").read_text().splitlines()[3:]
    wanted = [(*map(int, line.split(",")[:4]), line.split(",")[4]) for line in table]
    assert sorted(rows_of(found)) == sorted(wanted)


def test_an_allgather_out_of_place_starts_with_its_own_copy() -> None:
    other = [step("s", "i0", "o0"), step("r", "i0", "o1"), step("cpy", "i0", "o0")]
    own = [step("s", "i0", "o1"), step("r", "i0", "o0"), step("cpy", "i0", "o1")]
    text = program([(1, 1, other)], [(0, 0, own)], coll="allgather", chunks=2, in_place=0)
    found = load(text)
    results = execute(found, [torch.tensor([1, 0]), torch.tensor([0, 2])])
    assert [each.tolist() for each in results] == [[1, 2], [1, 2]]


def test_an_alltoall_is_in_rotated_order() -> None:
    """Chunk d of our tensors is for the d-th rank from here: rank 0 has a, b and rank 1 d, c."""

    def steps(rank: int) -> list[str]:
        return [
            step("cpy", f"i{rank}", f"o{rank}"),
            step("s", f"i{1 - rank}", f"o{rank}"),
            step("r", f"i{rank}", f"o{1 - rank}"),
        ]

    text = program([(1, 1, steps(0))], [(0, 0, steps(1))], coll="alltoall", chunks=2, in_place=0)
    results = execute(load(text), [torch.tensor([1, 2]), torch.tensor([4, 3])])
    assert [each.tolist() for each in results] == [[1, 3], [4, 2]]


@pytest.mark.parametrize(("size", "loops"), [(0, 1), (3 << 19, 1), ((3 << 19) + 4, 2)])
def test_long_chunks_take_several_loops(size: int, loops: int) -> None:
    found = load((EXAMPLES / "ring.xml").read_text(), size)
    assert (found.chunks, found.steps) == (3 * loops, 4 * loops)
    assert find_faults(found, found.collective).first is None


def test_loops_repeat_the_rows_on_each_piece_of_a_chunk() -> None:
    once, thrice = load(PAIR), load(PAIR, segments=3)
    wanted = [
        (number + 2 * loop, src, dst, 3 * chunk + loop, op)
        for loop in range(3)
        for number, src, dst, chunk, op in rows_of(once)
    ]
    assert rows_of(thrice) == wanted


def test_a_message_that_is_taken_late_lands_beside() -> None:
    """Rank 0's data must leave before its place has the sum, and be taken after the sum was there.

    Both come to s[0] of rank 1, the sum first; it adds the data to its own.
    """
    text = program(
        [
            (1, 1, [step("s"), step("rrc", hasdep=1)]),
            (1, -1, [step("s", after=(0, 1))]),
        ],
        [
            (0, 0, [step("s"), step("r", dst="s0", after=(1, 1)), step("re", "s0", "i0")]),
            (-1, 0, [step("r", dst="s0"), step("cpy", "s0", "s1", hasdep=1)]),
        ],
        scratch=2,
    )
    results = execute(load(text), [torch.tensor([1]), torch.tensor([2])])
    assert [int(each) for each in results] == [3, 3]


WAITS = {
    "a receive that nobody serves": (
        program([(1, 1, [step("r")])], [(-1, -1, [])]),
        "line 4 .rank 0, thread block 0, step 0. waits for a message of rank 1; and no thread "
        "block of rank 1 sends to rank 0 on channel 0",
    ),
    "one message too few": (
        program([(1, 1, [step("s"), step("r"), step("r")])], [(0, 0, [step("rrcs")])]),
        "line 6 .rank 0, .* waits for a message of rank 1; and rank 1 sends 1 to rank 0 on chan",
    ),
    "each receives first": (
        program([(1, 1, [step("r"), step("s")])], [(0, 0, [step("r"), step("s")])]),
        "line 4 .rank 0, thread block 0, step 0. waits for a message of rank 1; line 10 .rank 1, .*"
        "waits for a message of rank 0; each waits for the next, and the last for the first",
    ),
    "a circle of dependencies": (
        program(
            [
                (-1, -1, [step("nop", after=(1, 0), hasdep=1)]),
                (-1, -1, [step("nop", after=(0, 0), hasdep=1)]),
            ]
        ),
        "line 4 .rank 0, thread block 0, step 0. waits for step 0 of thread block 1; line 7 .rank "
        "0, thread block 1, step 0. waits for step 0 of thread block 0; each waits",
    ),
    "a dependency on itself": (
        program([(-1, -1, [step("nop", after=(0, 0), hasdep=1)])]),
        "line 4 .* waits for step 0 of thread block 0; each waits",
    ),
}


@pytest.mark.parametrize("name", WAITS)
def test_programs_that_never_end_are_explained(name: str) -> None:
    text, complaint = WAITS[name]
    with pytest.raises(ScheduleError, match=f"a.xml: never ends: {complaint}"):
        load(text)


WRONG = {
    "a message that nobody takes": (
        program([(1, 1, [step("s"), step("s"), step("r")])], [(0, 0, [step("rrcs")])]),
        "line 5 .rank 0, thread block 0, step 1.: sends to rank 1 on channel 0, which never rec",
    ),
    "other counts": (
        program([(1, 1, [step("s", cnt=2)])], [(0, 0, [step("r")])], chunks=2),
        "line 9 .rank 1, .*: receives 1 chunk, and line 4 .rank 0, .* sends 2",
    ),
    "an empty place": (
        program([(1, 1, [step("s", "s0")])], [(0, 0, [step("r")])], scratch=1),
        r"line 4 .*: reads s\[0\], which nothing has written",
    ),
    "chunks mixed up": (
        program([(-1, -1, [step("re", "i1", "i0")])], chunks=2),
        r"line 4 .*: adds chunk 1 of the data to chunk 0 in i\[0\]",
    ),
    "a race": (
        program(
            [(1, -1, [step("s")]), (-1, 1, [step("r")])],
            [(-1, 0, [step("rrc", hasdep=1)]), (0, -1, [step("s", after=(0, 0))])],
        ),
        None,
    ),
    "a true race": (
        program(
            [
                (1, 1, [step("s"), step("r", dst="s0", hasdep=0)]),
                (-1, -1, [step("cpy", "i0", "s0")]),
            ],
            [(0, 0, [step("rrcs")])],
            scratch=1,
        ),
        r"line 5 .*: uses s\[0\] at the same time as line \d+ .*, and one of them writes it; add",
    ),
    "a contribution is missing": (
        program([(1, -1, [step("s")])], [(-1, 0, [step("rrc")])]),
        r"rank 0, i\[0\]: lacks the contribution of rank 1; last written by no step",
    ),
    "a contribution comes twice": (
        program([(1, 1, [step("s"), step("rrc")])], [(0, 0, [step("rrcs")])]),
        r"rank 0, i\[0\]: has the contribution of rank 0 twice; last written by line 5 .rank 0,",
    ),
    "another chunk's data": (
        program([(-1, -1, [step("cpy", "i1", "i0")])], chunks=2),
        r"rank 0, i\[0\]: must have chunk 0 of the data, got chunk 1",
    ),
    "a place beyond the buffer": (
        program([(-1, -1, [step("cpy", "i0", "i7")])], chunks=2),
        r"line 4 .*: i has 2 chunks, got i\[7\]",
    ),
}


@pytest.mark.parametrize("name", [name for name, (_, text) in WRONG.items() if text])
def test_wrong_programs_are_explained(name: str) -> None:
    text, complaint = WRONG[name]
    with pytest.raises(ScheduleError, match=f"a.xml: {complaint}"):
        load(text)


def test_an_order_by_messages_is_no_race() -> None:
    """What rank 0 receives was sent after rank 1 had its message, so its send is over."""
    found = load(WRONG["a race"][0])
    assert rows_of(found) == [(0, 0, 1, 0, "reduce"), (1, 1, 0, 0, "copy")]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "a.xml: line 1: not XML: no element found"),
        ("<algo", "a.xml: line 1: not XML: "),
        (PAIR[:300], "a.xml: line 5: not XML: "),
        (PAIR.replace("</gpu>", "", 1), "line 8: <gpu> must have <tb> or <copy> inside, got <gpu>"),
        ("<html/>", "a.xml: line 1: the file must have <algo> inside, got <html>"),
        ('<!DOCTYPE a [<!ENTITY b "c">]>' + PAIR, "line 1: document types are not allowed"),
        (PAIR.replace('coll="allreduce"', ""), "line 1: <algo> needs coll=, got none"),
        (PAIR.replace("allreduce", "custom"), "a.xml: coll must be .* got 'custom'; valid: allr"),
        (
            PAIR.replace('"rrcs"', '"zap"'),
            "line 10: unknown type, got 'zap'; valid: nop, s, r, rcs",
        ),
        (PAIR.replace('ngpus="2"', 'ngpus="3"'), "ngpus must be the number of <gpu>, 2, got 3"),
        (PAIR.replace('ngpus="2"', 'ngpus="99999"'), "line 1: ngpus must be 1 to 4096, got 99999"),
        (
            PAIR.replace('gpu id="1"', 'gpu id="7"'),
            "line 8: ids of <gpu> must be 0 to 1, each once, got 7",
        ),
        (PAIR.replace('gpu id="1"', 'gpu id="0"'), "line 8: ids .* got 0 and no 1"),
        (PAIR.replace('s="1"', 's="4"'), "line 5: step must be 1, the next, got 4"),
        (
            PAIR.replace('send="1"', 'send="0"'),
            "line 3: rank 0, .*: send must be another rank or -1",
        ),
        (
            PAIR.replace('send="1"', 'send="5"'),
            "line 3: .*: send must be another rank or -1, got 5",
        ),
        (PAIR.replace('send="1"', 'send="-1"'), "line 4 .*: s needs a peer, got send=-1"),
        (PAIR.replace('recv="1"', 'recv="-1"'), "line 5 .*: r needs a peer, got recv=-1"),
        (PAIR.replace('srcbuf="i"', 'srcbuf="x"', 1), "line 4: srcbuf must be one of i, o, s, got"),
        (PAIR.replace('srcoff="0"', 'srcoff="-3"', 1), "line 4: srcoff must be 0 to .*, got -3"),
        (PAIR.replace('srcoff="0"', 'srcoff="a"', 1), "line 4: srcoff must be a whole number"),
        (PAIR.replace('depid="-1"', 'depid="0"', 1), "line 4: depid and deps must both be -1"),
        (
            PAIR.replace('depid="-1" deps="-1"', 'depid="3" deps="0"', 1),
            "line 4 .*: depends on step 0 of thread block 3, which rank 0 lacks",
        ),
        (
            PAIR.replace('depid="-1" deps="-1"', 'depid="0" deps="1"', 1),
            "line 4 .*: depends on line 5 .*, which has hasdep=0",
        ),
        (
            program([(1, -1, [step("s")]), (1, -1, [step("s")])], [(-1, 0, [step("rrc")])]).replace(
                'chan="1"', 'chan="0"'
            ),
            "line 6: rank 0, thread block 1: send 1 on channel 0 must be of one thread blo",
        ),
        (
            program([(-1, -1, [])], [(-1, -1, [])], coll="alltoall", chunks=3),
            "nchunksperloop must be a multiple of 2 ranks for alltoall, got 3",
        ),
    ],
)
def test_errors_name_the_line(text: str, complaint: str) -> None:
    with pytest.raises(ScheduleError, match=complaint):
        read(text, "a.xml")


def test_entities_are_not_expanded() -> None:
    bomb = '<!DOCTYPE a [<!ENTITY a "x"><!ENTITY b "&a;&a;">]><algo name="&b;"/>'
    with pytest.raises(ScheduleError, match="document types are not allowed"):
        read(bomb, "a.xml")


def can_be_written(schedule: Schedule) -> bool:
    return (
        schedule.codec is None
        and not schedule.servers
        and not schedule.columns.groups
        and (schedule.chunks % schedule.ranks == 0 or schedule.collective.value[-1] in "et")
    )


@settings(deadline=None)
@given(schedules(least=2, most=9, most_bytes=50_000).filter(can_be_written))
def test_what_is_written_is_read(schedule: Schedule) -> None:
    """Sums have the same bits; in place, the same chunks go the same ways."""
    found = load(write(schedule))
    facts = (schedule.collective, schedule.ranks, schedule.chunks, schedule.root)
    assert (found.collective, found.ranks, found.chunks, found.root) == facts
    assert find_faults(found, found.collective, found.root).first is None
    inputs = [torch.randn(schedule.chunks) for _ in range(schedule.ranks)]
    ours, theirs = execute(schedule, inputs), execute(found, inputs)
    assert all(
        torch.equal(a.view(torch.int32), b.view(torch.int32))
        for a, b in zip(ours, theirs, strict=True)
    )
    if schedule.collective is not Collective.ALL_TO_ALL:
        moves, again = ([row[1:] for row in rows_of(each)] for each in (schedule, found))
        assert sorted(moves) == sorted(again)


def test_what_is_written_keeps_the_rules() -> None:
    """A thread block has one peer each way, and each end of a channel is one thread block's."""
    rows = [Transfer(0, 0, 1, 0, Op.REDUCE), Transfer(1, 1, 0, 0, Op.COPY)]
    assert write(Schedule(Collective.ALLREDUCE, "by hand", 2, 1, rows)).splitlines() == [
        '<algo name="by hand" proto="Simple" nchannels="1" nchunksperloop="1" ngpus="2" '
        'coll="allreduce" inplace="1">',
        '  <gpu id="0" i_chunks="1" o_chunks="0" s_chunks="0">',
        '    <tb id="0" send="1" recv="-1" chan="0">',
        '      <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" '
        'depid="-1" deps="-1" hasdep="1" />',
        "    </tb>",
        '    <tb id="1" send="-1" recv="1" chan="0">',
        '      <step s="0" type="r" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" '
        'depid="0" deps="0" hasdep="0" />',
        "    </tb>",
        "  </gpu>",
        '  <gpu id="1" i_chunks="1" o_chunks="0" s_chunks="0">',
        '    <tb id="0" send="-1" recv="0" chan="0">',
        '      <step s="0" type="rrc" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" '
        'depid="-1" deps="-1" hasdep="1" />',
        "    </tb>",
        '    <tb id="1" send="0" recv="-1" chan="0">',
        '      <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" '
        'depid="0" deps="0" hasdep="0" />',
        "    </tb>",
        "  </gpu>",
        "</algo>",
    ]


def test_several_dependencies_stand_in_front_as_nops() -> None:
    """Rank 0 sends once it has added what two others sent, which two thread blocks receive."""
    rows = [
        Transfer(0, 1, 0, 0, Op.REDUCE),
        Transfer(0, 2, 0, 1, Op.REDUCE),
        *(Transfer(1, 0, 3, chunk, Op.REDUCE) for chunk in range(2)),
    ]
    text = write(Schedule(Collective.REDUCE, "by hand", 4, 2, rows, root=3))
    sender = text[: text.index('<gpu id="1"')].split("<tb ")[-1]
    assert [line.split('type="')[1][:4] for line in sender.splitlines() if "type" in line] == [
        'nop"',
        's" s',
    ]


def test_scratch_is_written_and_read() -> None:
    first = load((EXAMPLES / "allpairs.xml").read_text())
    again = load(write(first))
    assert again.scratch == first.scratch
    assert sorted(rows_of(again)) == sorted(rows_of(first))


@pytest.mark.parametrize(
    ("schedule", "complaint"),
    [
        (Schedule(Collective.ALLREDUCE, "x", 2, 1, (), servers=1), "must be no servers, got 1"),
        (Schedule(Collective.ALL_GATHER, "x", 2, 3, ()), "a multiple of 2 ranks, got 3"),
    ],
)
def test_some_schedules_are_no_programs(schedule: Schedule, complaint: str) -> None:
    with pytest.raises(ScheduleError, match=complaint):
        write(schedule)


RIGHT = "right"
OURS = ("a.xml: ", RIGHT)


def problem_of(text: str, segments: int | None = None) -> str:
    """Return the message that refuses a text, or RIGHT if its rows do what they promise."""
    try:
        found = load(text, segments=segments)
    except ScheduleError as error:
        return str(error)
    return str(find_faults(found, found.collective, found.root).first or RIGHT)


TEXTS = [(EXAMPLES / name).read_text() for name in ("ring.xml", "allpairs.xml")]


@settings(deadline=None)
@given(st.sampled_from(TEXTS), st.data())
def test_mutations_are_read_or_refused(text: str, data: st.DataObject) -> None:
    """Whatever is changed: a right program, or an error of ours that names the file."""
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        stop = start + data.draw(st.integers(0, 4))
        new = data.draw(st.sampled_from(["", "0", "1", "2", "-1", '"', "<", "s", "rrs", "re", "o"]))
        text = text[:start] + new + text[stop:]
    assert problem_of(text, data.draw(st.none() | st.integers(1, 3))).startswith(OURS)


@settings(deadline=None)
@given(st.sampled_from(TEXTS), st.data())
def test_changed_numbers_are_followed_or_refused(text: str, data: st.DataObject) -> None:
    """Well-formed programs that mean something else: they must not hang either."""
    parts = text.split('"')
    places = [
        i for i in range(1, len(parts), 2) if parts[i].lstrip("-").isdigit() or parts[i] in "io"
    ]
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.sampled_from(places))
        parts[place] = data.draw(st.sampled_from(["-1", "0", "1", "2", "3", "i", "o", "s"]))
    assert problem_of('"'.join(parts)).startswith(OURS)


def ring_of_three(*, copies: bool, attributes: str = "") -> str:
    """TACCL's form of an all-gather: a rank's own chunk is said to be copied, beside its steps."""
    ranks = []
    for rank in range(3):
        own, second = rank, (rank - 1) % 3
        steps = [
            step("s", "i0", f"o{own}"),
            step("r", "i0", f"o{second}"),
            step("s", f"o{second}", f"o{second}"),
            step("r", "o0", f"o{(rank + 1) % 3}"),
        ]
        ranks.append([((rank + 1) % 3, (rank - 1) % 3, steps)])
    text = program(*ranks, coll="allgather", chunks=3).replace(' name="test"', attributes)
    for rank in range(3):
        line = f'<gpu id="{rank}" s_chunks="0">'
        text = text.replace(line, f'{line}<copy i_off="0" o_off="{rank}"/>' if copies else line)
    return text


def test_a_copy_in_place_changes_nothing() -> None:
    """6 rows: each of 3 chunks goes to 2 ranks, one after the other."""
    found = load(ring_of_three(copies=True))

    assert rows_of(found) == rows_of(load(ring_of_three(copies=False)))
    assert (len(found.rows), found.steps, found.ranks, found.chunks) == (6, 2, 3, 3)


def all_to_all(copies: str) -> str:
    """Two ranks that exchange chunks from their inputs to their outputs, and copy their own."""
    text = program(
        [(1, 1, [step("s", "i1", "o0"), step("r", "i1", "o1")])],
        [(0, 0, [step("s", "i0", "o1"), step("r", "i0", "o0")])],
        coll="alltoall",
        chunks=2,
        in_place=0,
    )
    for rank, line in enumerate(copies.split("|")):
        gpu = f'<gpu id="{rank}" s_chunks="0">'
        text = text.replace(gpu, gpu + line)
    return text


OWN = '<copy i_off="0" o_off="0"/>|<copy i_off="1" o_off="1"/>'


def test_a_copy_brings_a_rank_s_own_chunk() -> None:
    """In rotated order, chunk 1 of each rank is for the other; it leaves from scratch memory."""
    assert sorted(rows_of(load(all_to_all(OWN)))) == [
        *[(0, 0, 2, 1, "copy"), (0, 1, 3, 1, "copy")],
        *[(1, 2, 1, 1, "copy"), (1, 3, 0, 1, "copy")],
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (all_to_all("|"), r"a.xml: rank 0, o\[0\]: has no result; last written by no step"),
        (all_to_all(OWN.replace('o_off="0"', 'o_off="2"')), r"<copy>: o has 2 chunks, got o\[2\]"),
        (all_to_all(OWN.replace('i_off="1"', 'i_off="x"')), "i_off must be a whole number"),
        (all_to_all(OWN.replace(' o_off="1"', "")), "<copy> needs o_off=, got none"),
        (
            all_to_all(OWN.replace('i_off="0"', 'i_off="1"')).replace('inplace="0"', 'inplace="1"'),
            r"line 2: <copy> must leave the input as it is, got o\[0\], which is in place",
        ),
        (all_to_all("<paste/>|"), "<gpu> must have <tb> or <copy> inside, got <paste>"),
    ],
)
def test_wrong_copies_are_refused(text: str, message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        load(text)


def test_ranks_may_come_in_any_order_and_collectives_in_capitals() -> None:
    """Programs that were sorted by text have rank 10 before rank 2: ids say which rank it is."""
    first, second = re.findall(r"<gpu.*?</gpu>", PAIR, re.DOTALL)
    turned = PAIR.replace(first, "?").replace(second, first).replace("?", second)

    assert rows_of(load(turned.replace("allreduce", "AllReduce"))) == rows_of(load(PAIR))


def test_attributes_without_effect_are_named_once() -> None:
    """Those that MSCCL's runtime knows, and that are another's here, are not."""
    known = ' minBytes="1" maxBytes="9" outofplace="0" redop="nop" proto="LL" nchannels="1"'
    text = ring_of_three(copies=True, attributes=f'{known} window="4"')
    text = text.replace('cnt="1"', 'cnt="1" prio="2"')

    assert read(ring_of_three(copies=True, attributes=known), "a.xml").notes == ()
    assert read(text, "a.xml").notes == (
        "a.xml: not used: window= of <algo> (line 1), prio= of <step> (line 4)",
    )
