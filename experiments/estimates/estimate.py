"""An estimate of the memory and time that a run will need, before anything large is made.

It is of the run as it will go: long ones are simulated by all cores. The figures hold within a
factor of two where they were measured; `estimates/machine.py` says how much memory is free.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, log2, sqrt
from typing import TYPE_CHECKING

from ringleaf.collectives.algorithm import Algorithm
from ringleaf.collectives.collective import Collective
from ringleaf.collectives.compression.registry import COMPRESSORS
from ringleaf.collectives.cost import FEW_ROWS
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.core.threads import count_cores
from ringleaf.core.units import format_count, format_size
from ringleaf.errors import ConfigError
from ringleaf.experiments.estimates.pace import ALL, PACKETS, SETUP, START, RunPaces, Sort
from ringleaf.experiments.spec.choices import FLOW
from ringleaf.experiments.spec.kinds import GIVEN
from ringleaf.ina.registry import find_system
from ringleaf.ina.systems import Costs
from ringleaf.networks.flow.scope import LEAST_RANKS
from ringleaf.topologies.family import Counts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ringleaf.experiments.estimates.draft import ScheduleSize
    from ringleaf.experiments.spec.network import NetworkSpec
    from ringleaf.experiments.workloads.collective.spec import CollectiveSpec

NEAR = (
    *("ring", "allgather", "reducescatter", "halvingdoubling", "blueconnect", "hierring"),
    *("tree", "doubletree"),
)
"""Algorithms whose ranks send most to ranks with numbers, and thus places, near their own."""
LEAST_LINKS = 2  # between hosts of one switch
FLOAT32_BYTES = 4
FARTHER = 0.25  # of the links that the mean distance has more

# Bytes.
BASE_BYTES = 152 << 20  # Python and compiled code; to compile it takes as much again
TORCH_BYTES = 250 << 20  # more, if PyTorch is loaded
COPIES = 1.15  # of all ranks' tensors: in registered memory, and pieces of them
LEAST_BYTES = 64 << 20
"""Tensors of all ranks whose memory is worth the bookkeeping of leases, which is Python's."""

LEAST_CHUNK_BYTES = 128 << 10

LEASED = ("ring", "biring", "allgather")
"""Algorithms of which little is in memory at a time, if tensors are large."""
LEASED_SIZES = 4  # of a tensor: a result, and chunks that ranks are busy with
LEASED_BYTES = 4 << 20  # more, per rank: pages of which these are parts
SUMMED_BYTES = 1 << 20  # per rank: segments of a tensor that switches add
GATHERED = 4.0  # more copies, of sparse allreduces: what ranks wanted, left, gathered and added
REPLAYED = 4.0
"""More copies, where a codec writes messages: the oracle writes and reads them once more."""
USUAL = 0.5
"""Copies in buffers of schedules that can't be made without their topology."""
KEPT = 1.0  # one more, of inputs that can't be made again
PAIR_BYTES = 20  # per pair of hosts: rates of the paths between those that talk to one another
PORT_BYTES = 16 << 10  # per port: queues, and the bytes it carried, by time
ROUTE_BYTES = 100  # per switch and host: the route, the time on it, and its table entry
SWITCH_BYTES = 64 << 10  # registers, if switches just forward
ROW_BYTES = 220  # per row of a schedule: its columns, and those of bounds and checks
MESSAGE_BYTES = 550  # per message: in hosts' plans, and in the timeline
TURNED_BYTES = 36  # per message, where all ranks' parts are one's, turned: counts of their chunks
SERIES_BYTES = 4 << 10  # per direction of a link and row of the table: bytes carried, by time

# Seconds, of packets.
HOPS_PER_S = 2.5e6  # queue pairs' packets
SYSTEMS_GAIN = 2.0  # packets of systems take half of what their costs say, which are older
SEND_S = 2.2e-6  # per message: when it is posted, and when it has come
FLOW_S = 4e-6  # per message that is a flow, whatever its size
SENT_BYTES_PER_S = 2.5e9  # of all messages: copied and added
LOGGED_BYTES = 260  # per packet and link of a run that is explained
MOST_LOGGED = 12_000_000
LONG_S = 1.0  # for packets: more is done by several threads
MOST_THREADS = 16  # unasked: each has boxes of mail for every other
THREAD_GAIN = 0.7  # of each thread after the first

# Seconds, before and after the packets.
START_S = 1.5  # imports, and loading compiled code
TORCH_S = 3.0  # more, if PyTorch is loaded
DRAW_S = 2.0
IMPORTS_S = 0.7  # of these, before a run can look at the clock
ROUTE_S = 8e-7  # per switch and host
ROW_S = 5e-7  # per row of a schedule
CHECK_S = 2.5e-10  # per row and rank: whose inputs are in it
MESSAGE_S = 2.8e-6  # per message
TURNED_S = 2e-7  # per message, where all ranks' parts are one's, turned
SWITCH_S = 3e-3  # per switch
CODED_BYTES_PER_S = 1e8  # of messages that codecs write and read, and the oracle once more
BYTES_PER_S = 7e8  # of all ranks' tensors: to make them, and to check results

TEDIOUS_S = 60.0
"""The time of a run for which one is told of skipping, if it takes less than half of it."""
SKIP = 0.001
"""What a time may be wrong by, of which one is told then, as a share."""
MOST_CARRIED = 30_000_000
"""The messages of ranks that stand for all, beyond which steps are skipped unasked: 15 s."""
ROUND = ("ring", "allgather", "reducescatter")  # their steps repeat, and all ranks do the same
CLASSES = 4.0  # classes of ranks, times the square root of these, where links are regular
TREE_CLASSES = 3.0  # likewise of a tree, times the power of 3/4
CLASS_LINK_BYTES = 5 << 10  # per link: topology, names, ways; series of its directions
CLASS_MESSAGE_BYTES = 20 << 10  # per class of ranks: queue pairs
CLASS_TREE_BYTES = 70 << 10  # likewise, of a tree: each has six peers' ends
CLASS_STEP_BYTES = 20  # per step of a class
CLASS_SERIES_BYTES = 192 << 20  # per row, at most: bins are wider for more links
CLASS_LINK_S = 9e-5  # per link
CLASS_MESSAGE_S = 1e-6  # per message of a class

EACH_END = 12
"""The steps that are simulated at the beginning, and at the end, where others are skipped."""

SUMMED_SHARE = 10 / 256
"""The share of elements that are simulated at first where switches add and others are skipped."""

CODED = ("ssar-double", "ssar-split", "dsar-split")

CONSTANT = RunPaces()
"""The paces of the machine that constants were fitted to."""

HOSTS_ADD = Costs(switch_bytes=SWITCH_BYTES, hops_per_s=HOPS_PER_S)


@dataclass(frozen=True, slots=True)
class Estimate:
    """The memory and time that one row of the table takes."""

    memory_bytes: int
    packet_hops: int
    setup_s: float
    packets_s: float  # by one thread
    threads: int = 1  # that simulate it
    cores: int = 1

    @property
    def run_s(self) -> float:
        """The time of packets, by all threads."""
        return run_s(self.packets_s, self.threads, self.cores)

    @property
    def time_s(self) -> float:
        """The time of the row as it will run."""
        return self.setup_s + self.run_s

    def paced(self, paces: RunPaces, sort: Sort) -> Estimate:
        """Return the estimate with the times of this machine, on as many threads."""
        return replace(
            self,
            setup_s=self.setup_s * paces.factor(sort, SETUP),
            packets_s=self.packets_s * paces.factor(sort, PACKETS),
        )


def run_s(packets_s: float, threads: int, cores: int) -> float:
    """Return the time of packets by some threads, of that by one."""
    return packets_s / (1 + THREAD_GAIN * (min(threads, cores) - 1))


_CLOSED: dict[str, Callable[[int, int], int]] = {
    "ring": lambda n, _: 2 * n * (n - 1),
    "halvingdoubling": lambda n, steps: 2 * n * steps,
    "blueconnect": lambda n, steps: 4 * n * steps,
    "hierring": lambda n, steps: 4 * n * steps,
    "ps": lambda n, _: 2 * n * (n - 1),
    "ssar-double": lambda n, steps: n * steps,
    "ssar-split": lambda n, steps: n * (n - 1) + n * steps,
    "dsar-split": lambda n, steps: n * (n - 1) + n * steps,
    "reducescatter": lambda n, _: n * (n - 1),
    "allgather": lambda n, _: n * (n - 1),
    "alltoall": lambda n, _: n * (n - 1),
}
"""Messages of large schedules by their ranks, and the logarithm of these, rounded up."""


def draft(algorithm: Algorithm, ranks: int, size_bytes: int) -> ScheduleSize | None:
    """Return the size of an algorithm's schedule; None if it can't be built without a topology."""
    from ringleaf.experiments.estimates import draft as drafts  # loads NumPy

    return drafts.draft(algorithm, ranks, size_bytes)


def _is_known(algorithm: Algorithm) -> bool:
    """Return whether closed forms tell an algorithm's messages, so that none need be made."""
    known = (*_CLOSED, *PIPELINES)
    return algorithm.in_network or algorithm.method is not None or algorithm.name in known


def messages(algorithm: Algorithm, ranks: int, size_bytes: int) -> int:
    """Estimate the number of messages of a schedule; in the network there are none."""
    if algorithm.in_network or ranks < 2:
        return 0
    if algorithm.ranks is not None:
        return len(algorithm.build(algorithm.ranks, size_bytes=size_bytes).columns)
    steps = ceil(log2(ranks))
    if (known := _CLOSED.get(algorithm.name)) is not None:
        return known(ranks, steps)
    if algorithm.name not in PIPELINES and (drafted := draft(algorithm, ranks, size_bytes)):
        return round(drafted.messages)
    segments = max(1, min(size_bytes // 4096, max(FEW_ROWS // (2 * ranks), ranks - 1)))
    if algorithm.name == "doubletree":
        segments = max(segments, 2)  # one in each tree
    return (1 if algorithm.collective.is_rooted else 2) * (ranks - 1) * segments


PIPELINES = ("tree", "doubletree", "chain", "broadcast", "reduce")
"""Algorithms that pass a tensor on in segments."""


def rows(algorithm: Algorithm, ranks: int, size_bytes: int) -> int:
    """Estimate the rows of a schedule: a message of several chunks has a row for each chunk."""
    if algorithm.ranks is not None:
        return len(algorithm.build(algorithm.ranks, size_bytes=size_bytes).rows)
    if algorithm.name == "halvingdoubling":  # surplus ranks send theirs to others, and get all back
        return 2 * (1 << max(ranks.bit_length() - 1, 0)) * (ranks - 1)
    if algorithm.name in ("blueconnect", "hierring", "ssar-split", "dsar-split"):
        return 2 * ranks * (ranks - 1)
    if not (_is_known(algorithm) or ranks < 2) and (drafted := draft(algorithm, ranks, size_bytes)):
        return round(drafted.rows)
    return messages(algorithm, ranks, size_bytes)


def _sent(spec: CollectiveSpec, algorithm: Algorithm, ranks: int, size_bytes: int) -> int:
    """Estimate the messages that hosts send: of several queue pairs, each carries single chunks."""
    if spec.queue_pairs == 1 or algorithm.in_network:
        return messages(algorithm, ranks, size_bytes)
    return rows(algorithm, ranks, size_bytes) * spec.queue_pairs


def sent_bytes(algorithm: Algorithm, ranks: int, size_bytes: int) -> int:
    """Estimate the bytes that all ranks send together, if nothing is zero."""
    if algorithm.in_network:
        return ranks * size_bytes
    if algorithm.ranks is not None:
        return algorithm.cost(algorithm.ranks, size_bytes=size_bytes).sent_bytes * ranks
    if algorithm.name == "ssar-double":
        return ranks * ceil(log2(ranks)) * size_bytes
    if not (_is_known(algorithm) or ranks < 2) and (drafted := draft(algorithm, ranks, size_bytes)):
        return round(drafted.sent_bytes)
    factor = 2 if algorithm.collective is Collective.ALLREDUCE else 1
    return factor * (ranks - 1) * size_bytes


def costs_of(algorithm: Algorithm) -> Costs:
    """Return the figures of switches and packets; an algorithm in the network has its system's."""
    return find_system(algorithm.name).costs if algorithm.in_network else HOSTS_ADD


def hops(
    spec: CollectiveSpec, algorithm: Algorithm, ranks: int, size_bytes: int, distance: float
) -> int:
    """Estimate the number of packet arrivals.

    Args:
        spec: The experiment, which gives the packets' sizes.
        algorithm: The algorithm that runs.
        ranks: Number of ranks.
        size_bytes: Size of each rank's tensor.
        distance: Mean number of links between two hosts.
    """
    sent = sent_bytes(algorithm, ranks, size_bytes)
    if algorithm.in_network:
        packets = max(ranks, sent / (4 * spec.lanes))
        return round(costs_of(algorithm).packets * packets * distance)
    count = _sent(spec, algorithm, ranks, size_bytes)
    packets = max(count, sent / spec.mtu_bytes)
    links = LEAST_LINKS + FARTHER * (distance - LEAST_LINKS) if algorithm.name in NEAR else distance
    return round((1.05 * packets + count) * links)


def estimate(
    spec: CollectiveSpec, algorithm: Algorithm, counts: Counts, size_bytes: int, distance: float
) -> Estimate:
    """Estimate the memory and time of one row on a network of a given size."""
    ranks = counts.hosts - spec.servers
    if without_classes(spec, algorithm, ranks, size_bytes) == "":
        return _by_classes(algorithm, counts, size_bytes, distance, spec)
    if spec.skip and algorithm.in_network and not find_system(algorithm.name).has_windows:
        size_bytes = round(size_bytes * SUMMED_SHARE)
    count = rows(algorithm, ranks, size_bytes) * spec.queue_pairs
    sent = _sent(spec, algorithm, ranks, size_bytes)
    routes, pairs = counts.switches * counts.hosts, counts.hosts**2
    is_round = algorithm.name in ROUND
    memory = (
        BASE_BYTES
        + TORCH_BYTES * loads_torch(spec)
        + _copies(spec, algorithm, ranks, size_bytes) * counts.hosts * size_bytes
        + PAIR_BYTES * pairs
        + 2 * PORT_BYTES * counts.links
        + ROUTE_BYTES * routes
        + costs_of(algorithm).switch_bytes * counts.switches
        + (TURNED_BYTES * sent if is_round else ROW_BYTES * count + MESSAGE_BYTES * sent)
    )
    rows_s = (ROW_S + CHECK_S * ranks) * count + MESSAGE_S * sent
    setup_s = (
        SWITCH_S * counts.switches
        + ROUTE_S * routes
        + (TURNED_S * sent if is_round else rows_s)
        + ranks * size_bytes * spec.has_data / BYTES_PER_S
        + _coded_s(spec, algorithm, ranks, size_bytes)
    )
    share = _simulated_share(spec.skip or 0.0, algorithm, sent / ranks)
    packet_hops = round(hops(spec, algorithm, ranks, size_bytes, distance) * share)
    memory += LOGGED_BYTES * min(packet_hops, MOST_LOGGED) * spec.explain
    packets_s = _packets_s(spec, algorithm, ranks, size_bytes, packet_hops)
    cores = count_cores()
    threads = count_threads(spec, packets_s, cores)
    return Estimate(round(memory), packet_hops, setup_s, packets_s, threads, cores)


def tolerance_of(spec: CollectiveSpec, algorithm: Algorithm, ranks: int, size_bytes: int) -> float:
    """Return what a time may be wrong by because of steps that are skipped, as a share.

    That is the option's, if it is given. Else nothing is skipped, but of rings of so many ranks
    that those which stand for all others would have more than `MOST_CARRIED` messages.
    """
    if spec.skip is not None:
        return spec.skip
    if algorithm.name not in ROUND or without_classes(spec, algorithm, ranks, size_bytes):
        return 0.0
    carried = CLASSES * sqrt(ranks) * messages(algorithm, ranks, size_bytes) / ranks
    return SKIP if carried > MOST_CARRIED and _may_skip(spec) else 0.0


def _simulated_share(tolerance: float, algorithm: Algorithm, steps: float) -> float:
    """Return the share of a collective's steps that is simulated where others are skipped."""
    if not tolerance or algorithm.name not in ROUND or steps == 0:
        return 1.0
    return min(1.0, 2 * EACH_END / steps)


def without_classes(spec: CollectiveSpec, algorithm: Algorithm, ranks: int, size_bytes: int) -> str:
    """Return why a run does not go by classes of ranks, in words; empty if it does."""
    elements = size_bytes // FLOAT32_BYTES
    is_power = ranks & (ranks - 1) == 0
    reasons = (
        (spec.net != FLOW, f"packets are carried by net={spec.net}"),
        (ranks < LEAST_RANKS, f"there are only {format_count(ranks, 'rank')}"),
        (not algorithm.symmetric, f"{algorithm.name} does not say which ranks do the same"),
        (spec.has_data, "there is data (take data=none)"),
        (
            spec.routes not in ("dealt", "dcell"),
            f"pairs of hosts are told apart by routes={spec.routes}",
        ),
        (spec.rank_order != GIVEN, f"rank_order={spec.rank_order} gives ranks other places"),
        (spec.queue_pairs > 1, "messages are cut (take queue_pairs=1)"),
        (spec.message_overhead_ps > 0, "messages wait for processors (take message_overhead=0)"),
        (
            bool(spec.servers or spec.compress or spec.detours),
            "servers, codecs and detours are not symmetric",
        ),
        (
            algorithm.name == "halvingdoubling" and not is_power,
            f"the number of ranks is no power of two, {ranks}",
        ),
        (
            algorithm.name != "tree" and elements % ranks > 0,
            f"chunks differ in size, as {ranks} do not divide {elements}",
        ),
    )
    return next((reason for is_so, reason in reasons if is_so), "")


def _by_classes(
    algorithm: Algorithm, counts: Counts, size_bytes: int, distance: float, spec: CollectiveSpec
) -> Estimate:
    """Estimate a run in which a few ranks stand for all."""
    ranks = counts.hosts
    sent = messages(algorithm, ranks, size_bytes)
    tolerance = tolerance_of(spec, algorithm, ranks, size_bytes)
    share = _simulated_share(tolerance, algorithm, sent / ranks)
    steps = share * sent / ranks
    classes = TREE_CLASSES * ranks**0.75 if algorithm.name == "tree" else CLASSES * sqrt(ranks)
    carried = min(share * sent, steps * classes)
    class_bytes = CLASS_TREE_BYTES if algorithm.name == "tree" else CLASS_MESSAGE_BYTES
    memory = (
        BASE_BYTES
        + CLASS_LINK_BYTES * counts.links
        + class_bytes * carried / max(steps, 1)
        + CLASS_STEP_BYTES * steps * CLASSES * sqrt(ranks)
    )
    setup_s = CLASS_LINK_S * counts.links
    hop_count = round(share * hops(spec, algorithm, ranks, size_bytes, distance))
    return Estimate(round(memory), hop_count, setup_s, CLASS_MESSAGE_S * carried)


def count_threads(spec: NetworkSpec, packets_s: float, cores: int) -> int:
    """Return how many threads simulate a measurement: all cores, if that takes a while."""
    if getattr(spec, "explain", False):
        return 1  # packets are seen one by one
    if spec.threads is not None:
        return spec.threads
    return min(cores, MOST_THREADS) if packets_s > LONG_S else 1


def carried_s(spec: NetworkSpec, packet_hops: int, messages: int, hops_per_s: float) -> float:
    """Return the time by one thread of what a network carries: of packets, or of flows."""
    return messages * FLOW_S if spec.net == FLOW else packet_hops / hops_per_s


def _packets_s(
    spec: CollectiveSpec, algorithm: Algorithm, ranks: int, size_bytes: int, packet_hops: int
) -> float:
    """Return the time of packets, by one thread."""
    if algorithm.in_network:
        hops_per_s = SYSTEMS_GAIN * costs_of(algorithm).hops_per_s
        return carried_s(spec, packet_hops, 2 * ranks, hops_per_s)  # up a tree, and down
    sent = _sent(spec, algorithm, ranks, size_bytes)
    return (
        carried_s(spec, packet_hops, sent, HOPS_PER_S)
        + SEND_S * sent
        + sent_bytes(algorithm, ranks, size_bytes) * spec.has_data / SENT_BYTES_PER_S
    )


def _coded_s(spec: CollectiveSpec, algorithm: Algorithm, ranks: int, size_bytes: int) -> float:
    """Return the time of codecs, in the network and in the oracle, and of compressors."""
    if not (spec.compress or algorithm.name in CODED):
        return 0.0
    return sent_bytes(algorithm, ranks, size_bytes) / CODED_BYTES_PER_S


def loads_torch(spec: NetworkSpec) -> bool:
    """Return whether a run may load PyTorch: for a compressor of another package."""
    name = getattr(spec, "compress", "").partition(":")[0]
    return bool(name) and name not in COMPRESSORS.shipped()


def pays_to_lease(spec: CollectiveSpec, ranks: int, chunks: int, size_bytes: int) -> bool:
    """Return whether tensors are so large that ranks should have memory only when they need it."""
    return (
        spec.has_data
        and spec.net == "virtual"
        and spec.density == 1
        and not spec.compress
        and ranks * size_bytes >= LEAST_BYTES
        and size_bytes >= chunks * LEAST_CHUNK_BYTES
    )


def _copies(spec: CollectiveSpec, algorithm: Algorithm, ranks: int, size_bytes: int) -> float:
    """Return the number of copies of all ranks' tensors that are in memory at a time.

    A message is added where it lands if what it is added to is there; else it waits in a buffer,
    of whose memory nothing is taken until then. How many wait depends on the topology and its
    routes: so the estimate is the mean, as a factor, of none and all.
    """
    if not spec.has_data:
        return 0
    is_kept = spec.density < 1 or bool(spec.compress)
    if algorithm.name in LEASED and pays_to_lease(spec, ranks, ranks, size_bytes):
        leased = LEASED_SIZES * size_bytes + LEASED_BYTES * ranks
        return min(COPIES, leased / (ranks * size_bytes))
    system = find_system(algorithm.name) if algorithm.in_network else None
    if system is not None and system.leases and pays_to_lease(spec, ranks, 1, size_bytes):
        return min(COPIES, (size_bytes + SUMMED_BYTES * ranks) / (ranks * size_bytes))
    gathered = GATHERED if algorithm.method is not None else 0.0
    base = COPIES + KEPT * is_kept + gathered
    if algorithm.method is not None or algorithm.in_network:
        return base
    drafted = draft(algorithm, ranks, size_bytes)
    scratch, buffers = (drafted.scratch, drafted.buffers) if drafted else (0.0, USUAL)
    if spec.compress or algorithm.name in CODED:
        return base + scratch + buffers + REPLAYED
    return mean_copies(base + scratch, buffers)


def mean_copies(base: float, buffers: float) -> float:
    """Return the geometric mean of copies without any of the buffers, and with all of them."""
    return sqrt(base * (base + buffers))


@dataclass(frozen=True, slots=True)
class Need:
    """The memory and time that a whole run needs."""

    memory_bytes: int
    time_s: float | None  # None: nobody knows
    skipping_s: float | None = None  # if what repeats is skipped; None: that is hardly less

    @property
    def known_s(self) -> float:
        """The time of a run that is known not to depend on a script."""
        assert self.time_s is not None
        return self.time_s

    def __str__(self) -> str:
        time = "" if self.time_s is None else f" and {format_wait(self.time_s)}"
        if self.skipping_s is not None:
            time += f" ({format_wait(self.skipping_s)} with --skip {SKIP:.1%})"
        return f"about {format_size(self.memory_bytes)} of memory{time}"


def need(spec: CollectiveSpec, counts: Counts, distance: float, paces: RunPaces = CONSTANT) -> Need:
    """Return the most memory that any row takes, and the time of all rows at a machine's paces."""
    estimates = [
        estimate(spec, ALGORITHMS[name], counts, size_bytes, distance).paced(
            paces, sort_of(spec, name)
        )
        for size_bytes in spec.sizes_bytes
        for name in spec.algos
    ]
    row_bytes = 2 * SERIES_BYTES * counts.links
    if not any(_in_full(spec, counts)):
        row_bytes = min(row_bytes, CLASS_SERIES_BYTES)
    series = row_bytes * len(estimates)
    time_s = start_s(spec, paces) + sum(each.time_s for each in estimates)
    skipping_s = None
    if time_s > TEDIOUS_S and _may_skip(spec):
        skipped = spec.model_copy(update={"skip": SKIP})
        skipping_s = need(skipped, counts, distance, paces).known_s
        skipping_s = skipping_s if 2 * skipping_s < time_s else None
    return Need(max(each.memory_bytes for each in estimates) + series, time_s, skipping_s)


def _may_skip(spec: CollectiveSpec) -> bool:
    """Return whether a run that skips nothing might skip what repeats."""
    is_changed = spec.faults or spec.network_faults or spec.circuits or spec.explain
    return not (spec.skip or spec.unskippable or is_changed)


def _in_full(spec: CollectiveSpec, counts: Counts) -> Iterator[bool]:
    """Yield for each row whether it does not go by classes of ranks."""
    for name in spec.algos:
        for size_bytes in spec.sizes_bytes:
            yield bool(without_classes(spec, ALGORITHMS[name], counts.hosts, size_bytes))


def sort_of(spec: NetworkSpec, program: str = ALL) -> Sort:
    """Return the sort of a run, or of its rows of one algorithm."""
    return Sort(type(spec).__name__.removesuffix("Spec").lower(), program, spec.net)


def start_s(spec: NetworkSpec, paces: RunPaces = CONSTANT) -> float:
    """Return the time before the first row, and behind the last one."""
    torch_s = TORCH_S if loads_torch(spec) else 0.0
    return (START_S + DRAW_S + torch_s) * paces.factor(sort_of(spec), START)


def note_start(paces: RunPaces, spec: NetworkSpec, taken_s: float) -> None:
    """Take note of the time of a run that its rows did not take."""
    paces.note(sort_of(spec), START, start_s(spec), IMPORTS_S + taken_s)


def check_memory(where: str, needed_bytes: int, free_bytes: int | None) -> None:
    """Check that a run fits into the free memory.

    An estimate may be twice the real need, so a run that may just fit is let through.

    Raises:
        ConfigError: If it can't.
    """
    if free_bytes is not None and needed_bytes > 2 * max(free_bytes, 0):
        raise ConfigError(
            f"{where}: needs {format_size(needed_bytes)} of memory, "
            f"{format_size(max(free_bytes, 0))} are free; take fewer hosts or smaller sizes"
        )


def format_wait(seconds: float) -> str:
    """Return a time as text: `12 s`, `3 min`, `2 h`, `5 days`."""
    for unit, scale in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * scale:
            return f"{seconds / scale:.0f} {unit}"
    return f"{seconds:.0f} s"
