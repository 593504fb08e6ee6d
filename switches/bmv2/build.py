"""Finds out how the BMv2 on this machine was built: with its checks, or as a release without.

CMake builds BMv2 as Release unless told otherwise, with `-DNDEBUG`, and then its primitives do not
check whether an index is inside its array (`targets/simple_switch/primitives.cpp`):
registers, counters and meters are read and written outside of the array. It is faster, too. The
binary does not say how it was built, so it is asked to read a register two billion cells behind
its end: with its checks it goes on unharmed, without them it crashes.
"""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
import tempfile
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

from ringleaf.core.units import format_count
from ringleaf.errors import BackendError
from ringleaf.switches.bmv2.binaries import BINARY
from ringleaf.switches.bmv2.namespace import alone
from ringleaf.switches.bmv2.process import free_port

FAR = 1 << 31  # an index; cells have more than a byte, so nothing is mapped there
UNTOUCHED = 0x600DF00D  # initial value of the field that the register is read into
PATIENCE_S = 20.0
_POLL_S = 0.02
_PORT = 1
_MAGIC = 0xA1B2C3D4  # pcap, in microseconds
_FILE_HEAD = struct.Struct("<IHHiIII")
_PACKET_HEAD = struct.Struct("<4I")


def has_checks(binary: str = BINARY) -> bool:
    """Return whether a BMv2 on the PATH checks indices of arrays; each file is probed once.

    Raises:
        BackendError: If it is not there, or does not even read a register that is there.
    """
    path = shutil.which(binary)
    if path is None:
        raise BackendError(f"bmv2: {binary} must be on the PATH, got none")
    return _probe(path, Path(path).stat().st_mtime_ns)


def build_name(binary: str = BINARY) -> str:
    """Return the words by which figures describe how a BMv2 was built."""
    return "built with its checks" if has_checks(binary) else "a Release build, without its checks"


def beside(binary: str, *, is_there: bool) -> str:
    """Return a table's note on the BMv2 in it: a ratio of speeds means little without it."""
    if not is_there:
        return f"{binary} is not installed, so there is none beside it"
    return f"BMv2 is {binary}, {build_name(binary)}"


def kept_away_line(packets: int) -> str:
    """Return the message that packets were kept from a BMv2 that does not check its arrays."""
    return (
        f"this {BINARY} was built without its checks (Release): "
        f"{format_count(packets, 'packet')} that access"
        " registers, counters or meters out of range were kept away from it"
    )


@lru_cache
def _probe(path: str, changed_ns: int) -> bool:
    """Return whether this binary, as it is since `changed_ns`, survives a read out of range."""
    if _answers(path, FAR):
        return True
    if not _answers(path, 0):  # so the index was not the cause of the crash
        raise BackendError(f"bmv2: {path} must read a register that is there, got no answer")
    return False


def _answers(path: str, index: int) -> bool:
    """Return whether a fresh BMv2 answers a packet that makes it read a register at `index`."""
    with tempfile.TemporaryDirectory(prefix="bmv2-probe-") as name:
        folder = Path(name)
        program, stem = folder / "probe.json", folder / "port"
        program.write_text(json.dumps(_program()))
        packet = struct.pack("!II", index, UNTOUCHED)
        head = _FILE_HEAD.pack(_MAGIC, 2, 4, 0, 0, 65535, 1)
        Path(f"{stem}_in.pcap").write_bytes(
            head + _PACKET_HEAD.pack(0, 0, len(packet), len(packet)) + packet
        )
        command = alone(path, "-L", "off", "--thrift-port", str(free_port()), "--use-files", "0")
        command += ["-i", f"{_PORT}@{stem}", str(program)]
        if Path(path).name == BINARY:
            command += ["--", "--grpc-server-addr", f"unix:{folder / 'grpc'}"]
        switch = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            answer = _await_answer(switch, Path(f"{stem}_out.pcap"), len(packet))
        finally:
            switch.kill()
            switch.wait()
    return answer == (struct.pack("!II", index, 0) if index == 0 else packet)


def _await_answer(switch: subprocess.Popen[bytes], answers: Path, size: int) -> bytes:
    """Return the packet that comes back; nothing if the switch ends instead."""
    deadline_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline_s:
        ended = switch.poll() is not None
        data = answers.read_bytes() if answers.exists() else b""
        if len(data) >= _FILE_HEAD.size + _PACKET_HEAD.size + size:
            return data[-size:]
        if ended:
            return b""
        time.sleep(_POLL_S)
    raise BackendError(f"bmv2: the probe must answer or end, got {PATIENCE_S} s of silence")


def _program() -> dict[str, Any]:
    """Return a program in BMv2's JSON: read a register at the packet's index, send it back."""
    index, value = ({"type": "field", "value": ["h", name]} for name in ("index", "value"))
    read = [value, {"type": "register_array", "value": "cells"}, index]
    spec = {"type": "field", "value": ["standard_metadata", "egress_spec"]}
    widths = {"ingress_port": 9, "egress_spec": 9, "egress_port": 9, "instance_type": 32}
    standard = [[name, bits, False] for name, bits in {**widths, "packet_length": 32}.items()]
    standard.append(["_padding", 5, False])
    table = {
        **{"name": "only", "id": 0, "key": [], "match_type": "exact", "type": "simple"},
        **{"max_size": 1, "with_counters": False, "support_timeout": False},
        **{"direct_meters": None, "action_ids": [0], "actions": ["look"]},
        **{"base_default_next": None, "next_tables": {"look": None}},
        "default_entry": {
            **{"action_id": 0, "action_const": True},
            **{"action_data": [], "action_entry_const": True},
        },
    }
    extract = {"op": "extract", "parameters": [{"type": "regular", "value": "h"}]}
    start = {
        **{"name": "start", "id": 0, "parser_ops": [extract], "transition_key": []},
        "transitions": [{"type": "default", "value": None, "mask": None, "next_state": None}],
    }
    nothing = (
        *("header_stacks", "header_union_types", "header_unions", "header_union_stacks"),
        *("field_lists", "errors", "enums", "parse_vsets", "meter_arrays", "counter_arrays"),
        *("calculations", "learn_lists", "checksums", "force_arith"),
        *("extern_instances", "field_aliases"),
    )
    egress = {"name": "egress", "id": 1, "init_table": None, "tables": []}
    ingress = {"name": "ingress", "id": 0, "init_table": "only", "tables": [table]}
    return {
        **{name: [] for name in nothing},
        "__meta__": {"version": [2, 23], "compiler": "none"},
        "header_types": [
            {"name": "standard", "id": 0, "fields": standard},
            {"name": "h_t", "id": 1, "fields": [["index", 32, False], ["value", 32, False]]},
        ],
        "headers": [
            {"name": name, "id": id_, "header_type": kind, "metadata": id_ == 0}
            for id_, (name, kind) in enumerate((("standard_metadata", "standard"), ("h", "h_t")))
        ],
        "register_arrays": [{"name": "cells", "id": 0, "size": 1, "bitwidth": 32}],
        "parsers": [{"name": "parser", "id": 0, "init_state": "start", "parse_states": [start]}],
        "deparsers": [{"name": "deparser", "id": 0, "order": ["h"], "primitives": []}],
        "actions": [
            {
                **{"name": "look", "id": 0, "runtime_data": []},
                "primitives": [
                    {"op": "register_read", "parameters": read},
                    {
                        "op": "assign",
                        "parameters": [spec, {"type": "hexstr", "value": f"{_PORT:#x}"}],
                    },
                ],
            }
        ],
        "pipelines": [
            {**pipeline, "action_profiles": [], "conditionals": []}
            for pipeline in (ingress, egress)
        ],
    }
