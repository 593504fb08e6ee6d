"""HPCC: the rate follows the utilisation that switches report of each link on the way.

Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, section 3, with the update of
the authors' simulator (alibaba-edu/High-Precision-Congestion-Control). Switches run `p4/hpcc.p4`,
which writes rate, bytes sent, queue and time into data packets; receivers send them back. A link's
utilisation is its throughput over its rate, and its queue over the bytes of a round trip; the most
utilised link counts, averaged over a round trip. The rate is divided by utilisation over 0.95, or
raised by a step up to five times in a row. A window as large as a round trip at that rate bounds
what is in flight. Changes are for good once per round trip; others only last until then.

BMv2's clock counts microseconds, so a link's throughput is measured over at least two of them, and
acknowledgements before change nothing; averaging weighs by time, so it counts the same bytes.
Queues are counted in packets, as full ones. The step is a 2,000th of the line's rate, the
simulator's 50 Mbit/s at 100 Gbit/s, and the least rate a thousandth, its 100 Mbit/s. Losses are
ignored.
"""

from __future__ import annotations

from ringleaf.core.arena import Arena, Words
from ringleaf.core.compiled import handler, inline
from ringleaf.core.products import scaled
from ringleaf.core.units import PS_PER_S, PS_PER_US
from ringleaf.hosts.congestion.control import (
    HEARD_AT,
    IN_FLIGHT,
    LINE_BPS,
    MOST_WINDOW,
    OWN,
    PACKET_BYTES,
    RATE_BPS,
    RTT_PS,
    WINDOW,
    Controller,
)
from ringleaf.hosts.congestion.telemetry import (
    MOST_HOPS,
    QUEUE_PACKETS,
    RATE_KBPS,
    SENT_BYTES,
    TIME_US,
    hop_at,
    passed,
    word_of,
)

CURRENT_BPS = OWN  # Rc: the rate that lasts
UTILISATION = OWN + 1  # U, in units of 2**-20
STAGE = OWN + 2  # raises in a row
LEFT = OWN + 3  # packets until the next change for good
HOPS_SEEN = OWN + 4  # of the telemetry before
BEFORE = OWN + 5  # per hop: bytes sent, packets queued, time

HOP_WORDS = 3
ONE = 1 << 20
ETA = 0.95
MOST_STAGE = 5
ADDITIVE = 2000  # the line's rate over a step
LEAST = 1000  # over the least rate
LEAST_US = 2  # between two measurements


def begin(block: Words) -> None:
    """Start at the line's rate, and take links as fully used until telemetry says otherwise."""
    block[CURRENT_BPS] = block[LINE_BPS]
    block[UTILISATION] = ONE
    set_rate(block, 0, int(block[LINE_BPS]))


@inline
def set_rate(words: Words, at: int, rate_bps: int) -> None:
    """Pace at a rate, with a window of what it sends in a round trip."""
    line_bps = words[at + LINE_BPS]
    bits = 8 * words[at + PACKET_BYTES]
    packets = -scaled(-(rate_bps // bits), words[at + RTT_PS], PS_PER_S)
    words[at + WINDOW] = min(max(packets, 1), words[at + MOST_WINDOW])
    words[at + RATE_BPS] = 0 if rate_bps >= line_bps else rate_bps


@inline
def utilisation(arena: Arena, at: int, hop: int, telemetry_at: int, time_us: int) -> float:
    """Return a link's utilisation since the telemetry before, and keep what it says now."""
    words, telemetry = arena.words, arena.bytes
    before = at + BEFORE + HOP_WORDS * hop
    sent, queue = (
        word_of(telemetry, telemetry_at, SENT_BYTES),
        word_of(telemetry, telemetry_at, QUEUE_PACKETS),
    )
    rate_bps = 1000.0 * max(word_of(telemetry, telemetry_at, RATE_KBPS), 1)
    throughput_bps = 8e6 * passed(sent, words[before]) / max(time_us, 1)
    bits = 8.0 * min(queue, words[before + 1]) * words[at + PACKET_BYTES]
    capacity_bits = rate_bps * words[at + RTT_PS] / PS_PER_S
    words[before], words[before + 1] = sent, queue
    words[before + 2] = word_of(telemetry, telemetry_at, TIME_US)
    return throughput_bps / rate_bps + bits / capacity_bits


@inline
def measure(arena: Arena, at: int, hops: int) -> bool:
    """Update the average utilisation; return False if too little time has passed."""
    words = arena.words
    heard_at = words[at + HEARD_AT]
    is_first = words[at + HOPS_SEEN] != hops
    words[at + HOPS_SEEN] = hops
    most, most_us = 0.0, 0
    for hop in range(hops):
        told_at = hop_at(heard_at, hops, hop)
        time_us = passed(
            word_of(arena.bytes, told_at, TIME_US), words[at + BEFORE + HOP_WORDS * hop + 2]
        )
        if is_first or time_us >= LEAST_US:
            share = utilisation(arena, at, hop, told_at, time_us)
            if share > most:
                most, most_us = share, time_us
    if is_first or most_us == 0:
        return False
    weight = min(most_us * PS_PER_US / words[at + RTT_PS], 1.0)
    words[at + UTILISATION] = int((1 - weight) * words[at + UTILISATION] + weight * most * ONE)
    return True


@handler
def on_ack(arena: Arena, at: int, packets: int, _now_ps: int) -> int:
    """Set the rate by the utilisation that the newest packet's telemetry gives.

    The reference rate and the stage of raises change once per window of data only; in between, each
    acknowledgement computes the rate from the same reference.
    """
    words = arena.words
    words[at + LEFT] -= packets
    hops = min(int(arena.bytes[words[at + HEARD_AT]]), MOST_HOPS)
    if hops == 0 or not measure(arena, at, hops):
        return 0
    line_bps = words[at + LINE_BPS]
    over = words[at + UTILISATION] / (ETA * ONE)
    rate_bps, stage = words[at + CURRENT_BPS], words[at + STAGE] + 1
    if over >= 1 or words[at + STAGE] >= MOST_STAGE:
        rate_bps, stage = int(rate_bps / over), 0
    rate_bps = min(max(rate_bps + line_bps // ADDITIVE, line_bps // LEAST), line_bps)
    if words[at + LEFT] <= 0:
        # The next lasting change comes when all that is in flight now is acknowledged.
        words[at + LEFT] = max(words[at + IN_FLIGHT], 1)
        words[at + CURRENT_BPS], words[at + STAGE] = rate_bps, stage
    set_rate(words, at, rate_bps)
    return 0


CONTROLLER = Controller("hpcc", begin, on_ack=on_ack, program="hpcc")
