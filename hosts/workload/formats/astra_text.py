"""Workloads of ASTRA-sim 1.0 and SimAI, read into graphs of work.

    HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 ep: 1 pp: 1 all_gpus: 16
    1
    attention -1 556000 ALLREDUCE 16777216 1 NONE 0 1 ALLREDUCE 4096 100

The first line has the kind of parallelism and its sizes, the second one the number of layers. A
layer has its name, a number without meaning, three times a computation (ns), a collective and its
size (bytes), and the time (ns) from the end of each of its collectives until the result may be
used. The three are the forward pass, the gradients of inputs and those of weights.

Source:
    ASTRA-sim 1.0, workload/Workload.cc; SimAI's fork of it, and its groups (MockNcclGroup.cc).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ringleaf.core.units import format_count, is_whole
from ringleaf.errors import ConfigError
from ringleaf.hosts.workload.formats.astra_steps import (
    ALL,
    DP,
    DP_EP,
    EP,
    MOST_NODES,
    POLICIES,
    TP,
    AstraHeader,
    AstraLayer,
    AstraStep,
    GradientWait,
    Maker,
)
from ringleaf.hosts.workload.formats.framing import read_text
from ringleaf.hosts.workload.graph import CalledCollective, CallGroup, Graph, RankWork, check_ranks

MOST_LAYERS = 100_000

CALLS = {
    "ALLREDUCE": CalledCollective.ALLREDUCE,
    "ALLGATHER": CalledCollective.ALL_GATHER,
    "REDUCESCATTER": CalledCollective.REDUCE_SCATTER,
    "ALLTOALL": CalledCollective.ALL_TO_ALL,
    "BROADCAST": CalledCollective.BROADCAST,
}

COLUMNS = 12

_NUMBER = re.compile(r"-?\d+(\.\d*)?")
_SIGNS = re.compile(r"\s*[:=]\s*")

_COUNTS = {"model_parallel_NPU_group:": TP, "ep:": EP, "expert_parallel_npu_group:": EP}
_COUNTS |= {"pp:": "pp", "all_gpus:": ALL}
_LISTS = ("checkpoints:", "checkpoint_initiates:")
_UNUSED = ("vpp:", "ga:", "pp_comm", "pp_comm:", "mode:")  # of a pipeline, which has one stage
_ASTRA_SIM_S = ("model_parallel_NPU_group:", *_LISTS)
"""The words of ASTRA-sim's own files; all others are SimAI's, which passes over any word."""


def read_astra_text(path: Path, ranks: int | None = None) -> Graph:
    """Return the graph of one pass of a file.

    Args:
        path: The file.
        ranks: The number of ranks; None: as the file says.

    Raises:
        ConfigError: If the file can't be read, is wrong, or of a kind that is not read.
    """
    bare = (line.partition("#")[0] for line in read_text(path).splitlines())
    lines = [(at, line) for at, line in enumerate(bare, 1) if line.strip()]
    (first, text), (number, words), *rest = [*lines, (1, ""), (2, "")][: max(len(lines), 2)]
    header = _header(f"{path}: line {first}", _SIGNS.sub(": ", text).split())
    where, second = f"{path}: line {number}", words.split()
    if len(second) != 1 or not is_whole(second[0]) or not 1 <= int(second[0]) <= MOST_LAYERS:
        raise ConfigError(f"{where}: must be the number of layers, got {' '.join(second)!r:.80}")
    count = int(second[0])
    rows = [(at, line.split()) for at, line in rest]
    if len(rows) < count:
        raise ConfigError(f"{where}: must be the number of layers, {len(rows)}, got {count}")
    layers = [_layer(f"{path}: line {number}", row, header) for number, row in rows[:count]]
    size = check_ranks(str(path), _ranks(path, header, ranks))
    groups = _groups(header, size, f"{path}: line {first}")
    most = MOST_NODES // size
    work = tuple(
        RankWork(tuple(Maker(header, layers, groups, own, most).run()), str(path))
        for own in _own_groups(groups)
    )
    return Graph(path.stem, work, tuple(groups), tuple(_notes(path, header, layers, rows[count:])))


def _header(where: str, words: Sequence[str]) -> AstraHeader:
    kind = words[0] if words else ""
    if kind not in POLICIES:
        raise ConfigError(
            f"{where}: must be a kind of parallelism that is read, got {kind!r:.60}; these are "
            f"{', '.join(POLICIES)}"
        )
    sizes: dict[str, int] = {}
    lists: dict[str, frozenset[int]] = {}
    keys: list[str] = []
    at = 1
    while at < len(words):
        key, value = words[at], words[at + 1] if at + 1 < len(words) else ""
        at += 2
        keys.append(key)
        if key in _LISTS:
            count = _number(f"{where}: {key}", value)
            lists[key] = frozenset(_number(f"{where}: {key}", each) for each in words[at:][:count])
            at += count
        elif key in _COUNTS:
            sizes[_COUNTS[key]] = _number(f"{where}: {key}", value)
        else:
            _check_unused(where, key, value)
    if sizes.get("pp", 1) != 1:
        raise ConfigError(
            f"{where}: pp: must be 1, got {sizes['pp']}; the file has the layers of one stage, and "
            "no messages between stages"
        )
    if sizes.get(TP, 1) < 1 or sizes.get(EP, 1) < 1:
        raise ConfigError(f"{where}: groups must have 1 rank or more, got {dict(sizes)}")
    checkpoints, initiates = (lists.get(each, frozenset()) for each in _LISTS)
    is_simai_s = not {*keys} <= {*_ASTRA_SIM_S}
    unknown = tuple(key for key in keys if key not in (*_COUNTS, *_LISTS, *_UNUSED))
    return AstraHeader(kind, sizes, checkpoints, initiates, is_simai_s, unknown)


def _check_unused(where: str, key: str, value: str) -> None:
    """Check that a word without meaning here is one, and that a number follows it."""
    if (key not in _UNUSED and not key.endswith(":")) or not _NUMBER.fullmatch(value):
        valid = ", ".join((*_COUNTS, *_LISTS, *_UNUSED))
        raise ConfigError(
            f"{where}: must be one of {valid}, or another word with `:`, and a number, got "
            f"{f'{key} {value}'.strip()!r:.60}"
        )


def _number(where: str, text: str) -> int:
    if not is_whole(text):
        raise ConfigError(f"{where}: must be a whole number, got {text!r:.60}")
    return int(text)


def _layer(where: str, row: Sequence[str], header: AstraHeader) -> AstraLayer:
    if len(row) != COLUMNS:
        raise ConfigError(f"{where}: must have {COLUMNS} columns, got {len(row)}")
    own = TP if header.policy.divided else ALL
    of_weights = DP if header.policy.divided else ALL
    forward, inputs, weights = (
        _part(where, row[at : at + 3], group) for at, group in ((2, own), (5, own), (8, of_weights))
    )
    return AstraLayer(row[0], forward, inputs, weights, _number(f"{where}: column 12", row[11]))


def _part(where: str, cells: Sequence[str], group: str) -> AstraStep:
    time_ns, name, size = _number(where, cells[0]), cells[1], _number(where, cells[2])
    name = name.upper()
    if name == "NONE" or not size:
        return AstraStep(time_ns)
    call, _, suffix = name.partition("_")
    kinds = {"": group, "EP": EP, "DP_EP": DP_EP}
    if call not in CALLS or suffix not in kinds:
        raise ConfigError(
            f"{where}: must be a collective that is read, got {name!r:.60}; these are NONE, "
            f"{', '.join(CALLS)}, maybe with _EP or _DP_EP"
        )
    return AstraStep(time_ns, CALLS[call], ALL if group == ALL else kinds[suffix], size)


def _ranks(path: Path, header: AstraHeader, ranks: int | None) -> int:
    count = ranks or header.sizes.get(ALL)
    if count is None:
        raise ConfigError(f"{path}: line 1: says nothing of the number of ranks; give --ranks")
    return count


def _groups(header: AstraHeader, ranks: int, where: str) -> list[CallGroup]:
    """Return the groups of all kinds: neighbours are of one tensor, as SimAI has them."""
    if not header.policy.divided:
        return [CallGroup(ALL, tuple(range(ranks)))]
    tp, ep = header.sizes.get(TP, 1), header.sizes.get(EP, 1)
    if ranks % (tp * ep):
        raise ConfigError(
            f"{where}: must divide {format_count(ranks, 'rank')} by model_parallel_NPU_group x "
            f"ep, got {tp} x {ep}"
        )
    replicas = range(ranks // tp)
    members: dict[tuple[str, int], list[int]] = {}
    for replica in replicas:
        for part in range(tp):
            rank = replica * tp + part
            members.setdefault((TP, replica), []).append(rank)
            members.setdefault((DP, part), []).append(rank)
            members.setdefault((EP, replica // ep * tp + part), []).append(rank)
            members.setdefault((DP_EP, replica % ep * tp + part), []).append(rank)
    return [CallGroup(f"{kind}{at}", tuple(own_ranks)) for (kind, at), own_ranks in members.items()]


def _own_groups(groups: Sequence[CallGroup]) -> list[dict[str, int]]:
    """Return, by rank and kind, the place of its group."""
    ranks = 1 + max(max(group.ranks) for group in groups)
    by_rank: list[dict[str, int]] = [{} for _ in range(ranks)]
    for place, group in enumerate(groups):
        for rank in group.ranks:
            by_rank[rank][group.name.rstrip("0123456789")] = place
    return by_rank


def _notes(
    path: Path,
    header: AstraHeader,
    layers: Sequence[AstraLayer],
    others: Sequence[tuple[int, list[str]]],
) -> Iterator[str]:
    """Yield lines on what is not used, and on sizes that can be read in two ways."""
    policy, kind = header.policy, header.kind
    if header.unknown:
        yield f"{path}: words of the first line are passed over: {' '.join(header.unknown)}"
    if others:
        yield f"{path}: line {others[0][0]} and what follows are passed over: no layers are left"
    forward = any(layer.forward.call for layer in layers) and not policy.forward
    inputs = any(layer.inputs.call for layer in layers) and policy.inputs is GradientWait.NEVER
    weights = any(layer.weights.call for layer in layers) and not policy.weights
    unused = [
        what
        for what, is_so in (("forward", forward), ("inputs", inputs), ("weights", weights))
        if is_so
    ]
    if unused:
        yield f"{path}: collectives of {' and '.join(unused)} are passed over, as {kind} has none"
    yield from _unused_of_header(path, header, len(layers))
    yield from _readings(path, header, layers)


def _unused_of_header(path: Path, header: AstraHeader, layers: int) -> Iterator[str]:
    """Yield lines on sizes of groups where ranks are not divided, and layers that there are not."""
    words = {TP: "model_parallel_NPU_group", EP: "ep"}
    sizes = [f"{word}: {header.sizes[key]}" for key, word in words.items() if key in header.sizes]
    if not header.policy.divided and any(header.sizes.get(key, 1) > 1 for key in words):
        yield (
            f"{path}: {' and '.join(sizes)} are passed over, as {header.kind} has one group of "
            "all ranks"
        )
    lost = sorted(each for each in header.checkpoints | header.initiates if each >= layers)
    if lost and header.policy.backward:
        yield (
            f"{path}: checkpoints at layers {', '.join(map(str, lost))} are passed over, as there "
            f"are {format_count(layers, 'layer')}, from 0 on"
        )


def _readings(path: Path, header: AstraHeader, layers: Sequence[AstraLayer]) -> Iterator[str]:
    """Yield how a file is read of which ASTRA-sim 1.0 and SimAI make different work."""
    parts = [part for layer in layers for part in (layer.forward, layer.inputs, layer.weights)]
    gathers = any(part.call is CalledCollective.ALL_GATHER for part in parts)
    differs = gathers or any(layer.inputs.call for layer in layers)
    if differs and header.policy.divided and not header.is_simai_s:
        yield f"{path}: read as ASTRA-sim 1.0 does; with ep: 1 in the first line, as SimAI does"
    if gathers:
        size = "the whole result, as SimAI has it" if header.is_simai_s else "each rank's share"
        yield f"{path}: sizes of ALLGATHER are those of {size}"
