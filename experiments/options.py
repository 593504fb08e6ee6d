"""What an experiment is made of: options as people write them, and the resolved spec.

The same names serve the command line (`--loss`), make (`LOSS=`) and YAML (`loss:`).
"""

from __future__ import annotations

import hashlib
import re
import shlex
import sys
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ringleaf.collectives import registry
from ringleaf.collectives.compress.registry import parse_compressor
from ringleaf.disciplines import parse_scheduler
from ringleaf.errors import ConfigError, choose
from ringleaf.hosts.congestion.registry import CONTROLLERS
from ringleaf.marking import NEVER, Marking, parse_marking
from ringleaf.topologies.registry import TOPOLOGIES
from ringleaf.topologies.registry import parse as parse_topology
from ringleaf.units import exact_time, parse_fraction, parse_rate, parse_size, parse_time

ALGORITHMS = ("ring", "tree", "doubletree", "halvingdoubling", "blueconnect", "switchml")
"""What is compared unless something else is asked for."""

MAX_HOSTS = 4096
"""More can be drawn and routed, but not simulated packet by packet in any useful time."""

DTYPES = {"float32": 4, "int32": 4}
"""Element types and their bytes."""

LANES = (64, 256)
"""Values per SwitchML packet: one P4 program is built for each."""

MTUS = (256, 512, 1024, 2048, 4096)
"""Payload bytes per packet that RoCEv2 knows (InfiniBand specification, path MTU)."""

ROUTES = ("dealt", "ecmp")

FIXED = "fixed"
"""The congestion control that is none: known to want no marks without being loaded."""

PROGRAMS = ("forward", "tensorexpress")

VIRTUAL = "virtual"
MININET = "mininet"
NETWORKS = (VIRTUAL, MININET)
SWITCHES = ("embedded", "bmv2")

LIVE_SCALES = {"embedded": 1000, "bmv2": 100_000}
"""By how much links are slower on a live network than asked for, if nothing else is said.

Twenty BMv2s on two processors forward some 15 thousand packets/s in all, and fewer of SwitchML's.
"""

_YES = ("yes", "true", "1", "on")
_NO = ("no", "false", "0", "off")
_NAME_LENGTH = 120  # of a run directory; some file systems end at 255 bytes
_SWEEP = ("min", "max", "factor")


@dataclass(frozen=True, slots=True)
class Option:
    """One option as people meet it."""

    flags: str  # on the command line
    variable: str  # of make
    default: str  # as one would write it; "" where the default is worked out
    help: str


OPTIONS: dict[str, Option] = {
    "topo": Option(
        "--topo",
        "TOPO",
        "fattree",
        f"one of {', '.join(TOPOLOGIES)}, with parameters: fattree,k=8",
    ),
    "algo": Option(
        "--algo",
        "ALGO",
        ",".join(ALGORITHMS),
        f"one or several of a collective's, by comma: {', '.join(registry.ALGORITHMS)}",
    ),
    "size": Option("--size", "SIZE", "", "bytes per rank: 4MiB, 64K, or several: 1K,1M"),
    "min": Option("--min -b", "MIN", "1K", "sweep from this size (nccl-tests' -b)"),
    "max": Option("--max -e", "MAX", "16M", "sweep to this size (-e)"),
    "factor": Option("--factor -f", "FACTOR", "4", "each size this many times the one before (-f)"),
    "hosts": Option(
        "--hosts",
        "HOSTS",
        "",
        "how many, if not all of the topology; ranks, and servers if there are",
    ),
    "servers": Option(
        "--servers", "SERVERS", "0", "of the hosts, the last ones: they have no rank, and help"
    ),
    "rate": Option("--rate", "RATE", "100G", "of every link, in bit/s: 100G, 25Gbps"),
    "delay": Option("--delay", "DELAY", "1us", "of every link: 1us, 500ns"),
    "switch_delay": Option(
        "--switch-delay",
        "SWITCH_DELAY",
        "0",
        "of each packet in every switch: 400ns (docs/delays.md has published figures)",
    ),
    "host_delay": Option(
        "--host-delay",
        "HOST_DELAY",
        "0",
        "of each packet in hosts, between agent and line, each way: 600ns",
    ),
    "message_overhead": Option(
        "--message-overhead",
        "MESSAGE_OVERHEAD",
        "0",
        "of a host's processor for each message it sends or gets, LogGP's o: 500ns",
    ),
    "inject": Option(
        "--inject",
        "INJECT",
        "",
        "what a host sends into the network, all its server's ports together, if not RATE by each: "
        "100G; links' rate follows from it",
    ),
    "loss": Option("--loss", "LOSS", "0", "of packets on every link: 0.1%, 0.001"),
    "duplicate": Option("--duplicate", "DUP", "0", "of packets on every link come twice"),
    "reorder": Option("--reorder", "REORDER", "0", "of packets on every link come late"),
    "seed": Option("--seed", "SEED", "1", "of data, losses and all else that is random"),
    "dtype": Option("--dtype", "DTYPE", "float32", "of the tensors: float32 or int32"),
    "density": Option(
        "--density", "DENSITY", "100%", "of each rank's elements that are not zero: 1%"
    ),
    "cluster": Option(
        "--cluster", "CLUSTER", "1", "non-zero elements come in runs of so many; 1: at random"
    ),
    "overlap": Option(
        "--overlap", "OVERLAP", "0%", "of these runs that are at the same place on all ranks: 50%"
    ),
    "compress": Option(
        "--compress",
        "COMPRESS",
        "",
        "what of the tensors is sent, on each rank: topk:1%, randomk:1%, or a number: topk:100",
    ),
    "lanes": Option("--lanes", "LANES", "256", "values per aggregated packet: 64 or 256"),
    "slots": Option(
        "--slots", "SLOTS", "", "slots, or packets in flight per worker, if not as links need"
    ),
    "mtu": Option("--mtu", "MTU", "4096", "payload bytes per packet: 256, 512, 1024, 2048, 4096"),
    "window": Option("--window", "WINDOW", "", "packets in flight per connection, likewise"),
    "routes": Option(
        "--routes",
        "ROUTES",
        "dealt",
        "dealt: each host is reached by one of the equal paths; ecmp: flows are hashed to paths",
    ),
    "detours": Option(
        "--detours",
        "DETOURS",
        "",
        "ways that one host's packets to another take instead: h3-s1-h8, several by comma; ATP "
        "adds up at the first switch that is named",
    ),
    "ecn": Option(
        "--ecn",
        "ECN",
        "",
        "mark packets from this queue depth on, in packets (DCTCP's K), or between two with a "
        "probability that grows (RED): 5:200:1%; 0: never [what CC wants]",
    ),
    "cc": Option("--cc", "CC", FIXED, "hosts' congestion control: fixed (window), dctcp or dcqcn"),
    "queue": Option("--queue", "QUEUE", "", "room in each port's queue: 1MiB"),
    "scheduler": Option(
        "--scheduler",
        "SCHEDULER",
        "strict",
        "how a port serves its 8 queues: strict, wrr or drr, with weights: drr:1,1,1,1,2,2,4,4",
    ),
    "program": Option(
        "--program",
        "PROGRAM",
        "forward",
        "P4 of switches that aggregate nothing: forward; tensorexpress, with queues by job",
    ),
    "net": Option(
        "--net",
        "NET",
        VIRTUAL,
        "what carries the packets: virtual (simulated time), or mininet (wall-clock time; as root)",
    ),
    "switch": Option(
        "--switch", "SWITCH", "embedded", "what runs P4 on mininet: embedded, or bmv2"
    ),
    "scale": Option(
        "--scale",
        "SCALE",
        "",
        "divide links' rates by this, if not by 1, or on mininet by "
        f"{LIVE_SCALES['embedded']}, with bmv2 {LIVE_SCALES['bmv2']}",
    ),
    "stall": Option(
        "--stall", "STALL", "30s", "on mininet, give up when nothing gets through for so long"
    ),
    "pcap": Option("--pcap", "PCAP", "no", "write every port's packets as nanosecond pcap"),
    "record": Option(
        "--record", "RECORD", "", "folder for traces: what each switch received and sent, to replay"
    ),
    "out": Option("--out -o", "OUT", "", "folder for results, if not runs/NAME"),
}


@dataclass(frozen=True, slots=True)
class Spec:
    """An experiment, resolved: every value checked, every default filled in."""

    topo: str
    algos: tuple[str, ...]
    sizes_bytes: tuple[int, ...]
    hosts: int | None
    servers: int
    rate_bps: int
    delay_ps: int
    switch_delay_ps: int
    host_delay_ps: int
    message_overhead_ps: int
    inject_bps: int | None
    loss: float
    duplicate: float
    reorder: float
    seed: int
    dtype: str
    density: float
    cluster: int
    overlap: float
    compress: str
    lanes: int
    slots: int | None
    mtu_bytes: int
    window: int | None
    routes: str
    detours: tuple[tuple[str, ...], ...]
    cc: str
    ecn: Marking
    queue_bytes: int | None
    scheduler: str
    program: str
    net: str
    switch: str
    scale: int
    stall_ps: int
    pcap: bool
    record: Path | None
    out: Path


def as_plain(spec: Spec) -> dict[str, Any]:
    """The spec as JSON has it."""
    plain = {}
    for name, value in asdict(spec).items():
        plain[name] = list(value) if isinstance(value, tuple) else value
    return plain | {"out": str(spec.out), "record": str(spec.record) if spec.record else None}


def resolve(given: Mapping[str, str]) -> Spec:
    """Check the options that were given and fill in the rest.

    Raises:
        ConfigError: Naming the option, what was got and what is valid.
    """
    for name in given:
        choose("options", "option", name, OPTIONS)
    texts = {name: option.default for name, option in OPTIONS.items()} | dict(given)
    dtype = choose("dtype", "element type", texts["dtype"], DTYPES)
    spec = Spec(
        topo=_topology(texts["topo"]),
        algos=_algorithms(texts["algo"]),
        sizes_bytes=_sizes(texts, given, DTYPES[dtype]),
        hosts=_optional(texts["hosts"], lambda text: whole_number("hosts", text, 2, MAX_HOSTS)),
        servers=whole_number("servers", texts["servers"], 0, MAX_HOSTS),
        rate_bps=parse_rate(texts["rate"], "rate"),
        delay_ps=parse_time(texts["delay"], "delay"),
        switch_delay_ps=parse_time(texts["switch_delay"], "switch_delay"),
        host_delay_ps=parse_time(texts["host_delay"], "host_delay"),
        message_overhead_ps=parse_time(texts["message_overhead"], "message_overhead"),
        inject_bps=_inject(texts["inject"], given),
        loss=parse_fraction(texts["loss"], "loss"),
        duplicate=parse_fraction(texts["duplicate"], "duplicate"),
        reorder=parse_fraction(texts["reorder"], "reorder"),
        seed=whole_number("seed", texts["seed"], 0),
        dtype=dtype,
        density=_share("density", texts["density"]),
        cluster=whole_number("cluster", texts["cluster"], 1),
        overlap=_share("overlap", texts["overlap"]),
        compress=_compress(texts["compress"]),
        lanes=_one_of("lanes", texts["lanes"], LANES),
        slots=_optional(texts["slots"], lambda text: whole_number("slots", text, 1)),
        mtu_bytes=_one_of("mtu", texts["mtu"], MTUS),
        window=_optional(texts["window"], lambda text: whole_number("window", text, 1)),
        routes=choose("routes", "way", texts["routes"], ROUTES),
        detours=_detours(texts["detours"]),
        cc=choose("cc", "congestion controller", texts["cc"], CONTROLLERS),
        queue_bytes=_optional(texts["queue"], lambda text: parse_size(text, "queue")),
        scheduler=_scheduler(texts["scheduler"]),
        program=choose("program", "program", texts["program"], PROGRAMS),
        net=choose("net", "network", texts["net"], NETWORKS),
        switch=choose("switch", "kind", texts["switch"], SWITCHES),
        scale=whole_number("scale", texts["scale"] or _default_scale(texts), 1),
        stall_ps=_some_time("stall", texts["stall"]),
        pcap=parse_yes("pcap", texts["pcap"]),
        record=Path(texts["record"]) if texts["record"] else None,
        out=Path(texts["out"] or Path("runs") / run_name(given)),
        ecn=_ecn(texts["ecn"], texts["cc"]),  # last, as controllers take a second to load
    )
    _check_network(spec)
    return spec


def run_name(given: Mapping[str, str]) -> str:
    """A folder name that says what differs from the defaults: `fattree-loss=0.1%-seed=3`.

    The same options give the same name, so that running them anew replaces equal files.
    """
    parts = [given.get("topo", OPTIONS["topo"].default)]
    parts += [
        f"{name}={given[name].replace(' ', '')}"
        for name in OPTIONS
        if name not in ("topo", "record", "out")
        and given.get(name, OPTIONS[name].default) != OPTIONS[name].default
    ]
    text = file_name("-".join(parts))
    if len(text) > _NAME_LENGTH:
        text = f"{text[:_NAME_LENGTH]}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    return text


def file_name(text: str) -> str:
    """Return a text as the name of a file or folder, which says nothing of where that lies."""
    name = re.sub(r"[^A-Za-z0-9,=.%+_-]", "_", text)
    return name if name.strip(".") else "run"


def make_command(given: Mapping[str, str]) -> str:
    """What to type to run these options again; where results lie is left out."""
    left = ("record", "out")
    values = (f"{OPTIONS[k].variable}={shlex.quote(v)}" for k, v in given.items() if k not in left)
    return " ".join(("make exp", *values))


def _topology(text: str) -> str:
    parse_topology(text)
    return text


def _algorithms(text: str) -> tuple[str, ...]:
    known = registry.ALGORITHMS
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise ConfigError(f"algo: nothing to run, got {text!r}; valid: {', '.join(known)}")
    return tuple(dict.fromkeys(choose("algo", "algorithm", name, known) for name in names))


def _sizes(texts: Mapping[str, str], given: Mapping[str, str], unit_bytes: int) -> tuple[int, ...]:
    if texts["size"]:
        swept = [name for name in _SWEEP if name in given]
        if swept:
            raise ConfigError(
                f"size: can't go with {', '.join(swept)}, got {texts['size']!r}; give either"
            )
        return tuple(_size("size", text, unit_bytes) for text in texts["size"].split(","))
    size, last = (_size(name, texts[name], unit_bytes) for name in ("min", "max"))
    factor = whole_number("factor", texts["factor"], 2)
    if last < size:
        raise ConfigError(f"max: must not be below min ({texts['min']}), got {texts['max']!r}")
    sizes = []
    while size <= last:
        sizes.append(size)
        size *= factor
    return tuple(sizes)


def _inject(text: str, given: Mapping[str, str]) -> int | None:
    if text and "rate" in given:
        raise ConfigError(f"inject: can't go with rate, got {text!r}; give either")
    return _optional(text, lambda text: parse_rate(text, "inject"))


def _size(where: str, text: str, unit_bytes: int) -> int:
    size_bytes = parse_size(text, where)
    if size_bytes < unit_bytes or size_bytes % unit_bytes:
        raise ConfigError(
            f"{where}: must be whole elements of {unit_bytes} bytes and at least one, got {text!r}"
        )
    return size_bytes


def _detours(text: str) -> tuple[tuple[str, ...], ...]:
    ways = [way.strip() for way in text.split(",") if way.strip()]
    for way in ways:
        if not re.fullmatch(r"h\d+(-s\d+)+-h\d+", way):
            raise ConfigError(
                f"detours: must be a host, switches and a host, got {way!r}; like h3-s1-h8"
            )
    return tuple(tuple(way.split("-")) for way in ways)


def _ecn(text: str, cc: str) -> Marking:
    if text:
        return parse_marking(text, "ecn")
    return NEVER if cc == FIXED else CONTROLLERS[cc].marking


def _scheduler(text: str) -> str:
    parse_scheduler(text)
    return text


def _share(where: str, text: str) -> float:
    """A fraction that may also be the whole."""
    return 1.0 if text.strip() in ("100%", "1") else parse_fraction(text, where)


def _compress(text: str) -> str:
    if text:
        parse_compressor(text)
    return text


def _optional(text: str, parse: Callable[[str], int]) -> int | None:
    return parse(text) if text else None


def whole_number(where: str, text: str, least: int, most: int | None = None) -> int:
    """The integer of `text`.

    Raises:
        ConfigError: If it is none, below `least` or above `most`.
    """
    try:
        value = int(text)
    except ValueError:
        raise ConfigError(f"{where}: must be a whole number, got {text!r}") from None
    if value < least:
        raise ConfigError(f"{where}: must be at least {least}, got {text!r}")
    if most is not None and value > most:
        raise ConfigError(f"{where}: must be at most {most}, got {text!r}")
    return value


def _some_time(where: str, text: str) -> int:
    time_ps = parse_time(text, where)
    if not time_ps:
        raise ConfigError(f"{where}: must be more than 0, got {text!r}")
    return time_ps


def _one_of(where: str, text: str, valid: tuple[int, ...]) -> int:
    return int(choose(where, "value", text, [str(value) for value in valid]))


def _default_scale(texts: Mapping[str, str]) -> str:
    return "1" if texts["net"] == VIRTUAL else str(LIVE_SCALES[texts["switch"]])


def _check_network(spec: Spec) -> None:
    """See to it that the network can do what is asked."""
    if spec.net == VIRTUAL:
        if spec.switch != SWITCHES[0]:
            raise ConfigError(f"switch: needs net={MININET}, got {spec.switch!r}")
        return
    if spec.switch == "bmv2" and spec.scheduler != OPTIONS["scheduler"].default:
        raise ConfigError(
            f"scheduler: BMv2's ports have strict priority only, got {spec.scheduler!r}; "
            "take switch=embedded"
        )
    for name in ("duplicate", "reorder", "switch_delay_ps", "host_delay_ps", "message_overhead_ps"):
        value = getattr(spec, name)
        if value:
            got = exact_time(value) if name.endswith("_ps") else value
            raise ConfigError(
                f"{name.removesuffix('_ps')}: not on a live network, got {got!r}; "
                f"take net={VIRTUAL}"
            )


def parse_yes(where: str, text: str) -> bool:
    """Return whether a text says yes: `yes`, `true`, `1`, `on`, in any letters.

    Raises:
        ConfigError: If it says neither yes nor no.
    """
    return choose(where, "answer", text.lower(), (*_YES, *_NO)) in _YES


def make_help() -> str:
    """The options as variables of `make exp`, a line or two each."""
    lines = []
    for option in OPTIONS.values():
        text = option.help + (f" [{option.default}]" if option.default else "")
        first, *others = textwrap.wrap(text, 76, break_on_hyphens=False)
        lines.append(f"  {option.variable + '=':<11}{first}")
        lines += [" " * 13 + other for other in others]
    return "\n".join((*lines, f"  {'SPEC=':<11}YAML file of these options, in small letters"))


if __name__ == "__main__":
    sys.stdout.write(f"{make_help()}\n")
