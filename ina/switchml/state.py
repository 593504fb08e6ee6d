"""The state of a SwitchML worker: its own words, a row per slot, its flight and its tensors."""

from __future__ import annotations

from typing import NamedTuple

from ringleaf.core.arena import Arena, Bytes, Store, Words
from ringleaf.core.compiled import inline
from ringleaf.core.ethernet import group_mac
from ringleaf.core.headers import write_udp
from ringleaf.core.units import FOREVER_PS
from ringleaf.core.views import window
from ringleaf.errors import ConfigError
from ringleaf.hosts.agent import AGENT_WORDS, make_agent
from ringleaf.ina.flight import FLIGHT_WORDS, Flight, make_flight, open_flight
from ringleaf.ina.job_numbers import check_job
from ringleaf.ina.switchml.scaling import fixed_exponent, headroom_bits
from ringleaf.ina.switchml.wire import (
    CODES,
    FIRST_UDP_PORT,
    HEADER_BYTES,
    JOB_AT,
    MAX_SLOTS,
    MESSAGE_AT,
    SIZE_NONE,
    SIZES,
    UDP_PORTS,
    UPDATE,
    group_address,
)
from ringleaf.ina.systems import MOST_TREES
from ringleaf.ina.tensors import TENSORS_WORDS, TensorQueue, make_tensors, open_tensors

# The worker's words.
JOB = 0
SLOTS = 1
LANES = 2
BITS = 3  # headroom_bits of the job's workers
SLOTS_AT = 4
TEMPLATES_AT = 5  # in arena.bytes: heads of packets without and with lanes
NEXT_SLOT = 6  # of the next tensor's first block
TREES = 7  # slot s is of tree s mod TREES; SwitchML has one
EXTRAS_AT = 8  # words of a worker of a system that has more of them: where they are
FIXED = 9  # the exponent that all blocks have; 0: workers agree on one for each block
ELEMENTS = 10  # of a block: LANES, or the bits of so many words
KEPT_AT = 11  # words of packets that are kept (`keeping.py`); 0: none are
FLIGHT = 12
TENSORS = FLIGHT + FLIGHT_WORDS
OWN_WORDS = TENSORS + TENSORS_WORDS

# A slot's words, besides those of its flight.
ROUND = 0
POSITION = 1  # block of its tensor; below 0: only the exponent of block + slots
EXPONENT = 2  # the workers' largest, of the block at POSITION
TENSOR = 3  # number of the tensor; of the next one that will be posted if it is idle
SLOT_WORDS = 4
IDLE = FOREVER_PS  # a position behind all blocks

TEMPLATE_BYTES = 64


class SwitchMLWorker(NamedTuple):
    """One worker; two-dimensional arrays are flat."""

    state: Words  # (OWN_WORDS,)
    slots: Words  # (slots, SLOT_WORDS)
    flight: Flight
    tensors: TensorQueue


def make_worker(
    store: Store,
    *,
    host: int,
    ring: int,
    job: int,
    workers: int,
    slots: int,
    lanes: int,
    mac: int,
    address: int,
    min_timeout_ps: int,
    quiet_ps: int = 0,
    first_round: int = 0,
    trees: int = 1,
    first_port: int = FIRST_UDP_PORT,
    header_bytes: int = HEADER_BYTES,
    fraction_bits: int | None = None,
    elements: int | None = None,
) -> int:
    """Return the offset of a worker that has no tensor yet.

    Args:
        store: The store that holds its state.
        host: Its host's index.
        ring: Completion ring it reports to.
        job: The job's number, 1 to 255; jobs of one host differ modulo 16 (their UDP ports).
        workers: Number of the job's workers. As `slots` and `lanes`, the same for all of them.
        slots: Packets in flight, at most.
        lanes: Values in a packet, 64 or 256.
        mac: The host's Ethernet address.
        address: The host's IPv4 address.
        min_timeout_ps: Floor of the retransmission timeout; 4 times as much is its value
            before any sample, and 64 times as much its most.
        quiet_ps: Time for which the network may answer nothing although nothing is lost.
        first_round: Rounds that the job's slots have behind them in the switches.
        trees: Trees that the slots are dealt to in turn, 1 to 255; a divisor of `slots`.
        first_port: The first of the system's UDP ports.
        header_bytes: Bytes of the system's header.
        fraction_bits: Bits of fraction of fixed-point numbers; None: blocks have exponents.
        elements: Elements of a block, if that is not a lane each: lanes hold signs.

    Raises:
        ConfigError: If a number is out of range.
    """
    where = f"switchml worker on h{host}"
    check_job(where, job)
    if lanes not in CODES:
        raise ConfigError(f"{where}: lanes must be one of {list(SIZES)}, got {lanes!r}")
    if not 0 < slots <= MAX_SLOTS:
        raise ConfigError(f"{where}: slots must be 1 to {MAX_SLOTS}, got {slots!r}")
    if min_timeout_ps < 1:
        raise ConfigError(f"{where}: min_timeout_ps must be above 0, got {min_timeout_ps!r}")
    if not 0 < trees <= MOST_TREES or slots % trees:
        raise ConfigError(
            f"{where}: trees must be 1 to {MOST_TREES} and divide slots, got {trees!r}"
        )
    bits = headroom_bits(workers)
    port = first_port + job % UDP_PORTS
    at = make_agent(store, OWN_WORDS, host=host, ring=ring, udp_ports=(port, port))
    slots_at = store.allocate("words", slots * SLOT_WORDS)
    templates_at = store.allocate("bytes", 2 * TEMPLATE_BYTES)
    make_flight(
        *(store, at + AGENT_WORDS + FLIGHT, slots, min_timeout_ps),
        ways=trees,
        quiet_ps=quiet_ps,
        patient=True,
        host=host,
    )
    make_tensors(store, at + AGENT_WORDS + TENSORS)
    state = store.arena.words[at + AGENT_WORDS :][:OWN_WORDS]
    state[JOB], state[SLOTS], state[LANES], state[BITS] = job, slots, lanes, bits
    state[SLOTS_AT], state[TEMPLATES_AT], state[TREES] = slots_at, templates_at, trees
    state[ELEMENTS] = elements or lanes
    if fraction_bits is not None:
        state[FIXED] = fixed_exponent(fraction_bits, bits)
    rows = store.arena.words[slots_at:][: slots * SLOT_WORDS].reshape(-1, SLOT_WORDS)
    rows[:, ROUND] = first_round
    rows[:, POSITION] = IDLE
    for place, count in enumerate((0, lanes)):
        template = store.arena.bytes[templates_at + place * TEMPLATE_BYTES :][:TEMPLATE_BYTES]
        _write_template(template, job, (mac, address, port), header_bytes, count)
    return at


def _write_template(
    head: Bytes, job: int, own: tuple[int, int, int], header_bytes: int, lanes: int
) -> None:
    """Write the common head of all updates with so many lanes, or with none.

    `own` are the host's Ethernet and IPv4 addresses, and the UDP port.
    """
    mac, address, port = own
    group = group_address(job)
    macs, addresses = (mac, group_mac(group)), (address, group)
    write_udp(head, macs, addresses, (port, port), header_bytes + 4 * lanes)
    head[MESSAGE_AT] = UPDATE << 4 | (CODES[lanes] if lanes else SIZE_NONE)
    head[JOB_AT] = job


@inline
def open_worker(arena: Arena, at: int) -> SwitchMLWorker:
    """Return the worker of the agent at word `at`, as views of the arena."""
    words = arena.words
    own = at + AGENT_WORDS
    return SwitchMLWorker(
        window(words, own, OWN_WORDS),
        window(words, words[own + SLOTS_AT], words[own + SLOTS] * SLOT_WORDS),
        open_flight(arena, own + FLIGHT),
        open_tensors(arena, own + TENSORS),
    )
