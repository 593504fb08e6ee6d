"""Files that people have, and what they are by their first bytes.

A text that names a file is never taken for the name of something else, and an error about a file
says what it is. Kinds are told by contents, as people's files have any suffix.
"""

from __future__ import annotations

import glob
import os
import re
from pathlib import Path

from ringleaf.core.packing import LONGEST_START, packing, read_head

HEAD_BYTES = 1 << 16
"""Bytes at a file's start by which its kind is told."""

ASTRA_WORKLOAD = "a workload of ASTRA-sim 1.0 or SimAI"
BINARY_GOAL = "a GOAL schedule in LogGOPSim's binary form"
CAPTURE = "a capture of packets"
CHAKRA_JSON = "a Chakra trace as JSON"
CHAKRA_PRINTED = "a Chakra trace as Chakra's jsonizer prints it"
GOAL_TEXT = "a GOAL schedule"
HTSIM = "a connection matrix of htsim"
NS3_FLOWS = "flows of HPCC's ns-3"
UTF_16 = "text in UTF-16, not UTF-8"

NO_TEXT = (BINARY_GOAL, UTF_16, CAPTURE)
"""Kinds of files that are no text in UTF-8, even where nothing in them is damaged."""

_XML = rb"\s*+(?:(?><!--.*?-->|<[?!][^>]*>)\s*+)*+"  # comments and the like; never tried twice

_KINDS = tuple(
    (title, re.compile(pattern, re.DOTALL))
    for title, pattern in (
        (BINARY_GOAL, rb"\x7f\x10\0{6}"),
        (UTF_16, rb"\xff\xfe|\xfe\xff"),
        (
            CAPTURE,
            rb"\xa1\xb2[\xc3\x3c][\xd4\x4d]|[\xd4\x4d][\xc3\x3c]\xb2\xa1|\n\r\r\n",
        ),
        (CHAKRA_JSON, rb'\s*\{.*"workload_graph"\s*:'),
        ("an execution plan of MSCCL++", rb'\s*\{.*"(?:gpus|threadblocks)"\s*:\s*\['),
        (
            "an execution trace of PyTorch's host",
            rb'\s*\{(?=.*?"schema"\s*:)(?=.*?"nodes"\s*:\s*\[)',
        ),
        ("a Chrome trace", rb'\s*(?:\{.*"traceEvents"\s*:|\[\s*\{[^{}]*"ph"\s*:)'),
        (CHAKRA_PRINTED, rb'\s*\{\s*(?:\}|"version"\s*:|"attr"\s*:).*\}\s*\{\s*"(?:id|name)"\s*:'),
        ("an MSCCL program", _XML + rb"<algo\b"),
        ("a topology of NCCL", _XML + rb"<system\b"),
        ("graphs of NCCL", _XML + rb"<graphs\b"),
        (
            "a time-independent trace of SimGrid, which is not read: write GOAL",
            rb"\s*p?\d+ (?:init|compute|comm_size|i?send|i?recv|bcast|finalize)\b",
        ),
        (GOAL_TEXT, rb"(?>\s+|(?://|#)[^\r\n]*|/\*.*?\*/)*+num_ranks\s+\d"),
        (
            ASTRA_WORKLOAD,
            rb"(?>\s+|#[^\r\n]*)*+(?:MICRO|DATA|MODEL|HYBRID_[A-Z_]+|DISTRIBUTED_INFERENCE)\b"
            rb"[^\r\n]*[\r\n](?>\s+|#[^\r\n]*)*+\d+[ \t]*(?:[\r\n#]|$)",
        ),
        (
            HTSIM,
            rb"(?>\s+|#[^\n]*\n)*+Nodes[ \t]+\d+\s+(?:#[^\n]*\n\s*)*(?:Connections|Triggers)\b",
        ),
        (
            NS3_FLOWS,
            rb"\s*\d+[ \t]*\r?\n\s*(?:\d+[ \t]+){4,5}(?:[\d.]+[ \t]+)?[\d.]+(?:[eE]-\d+)?[ \t]*"
            rb"(?:\r?\n|$)",
        ),
        ("a topology of HPCC's ns-3", rb"\s*\d+[ \t]+\d+[ \t]+\d+[ \t]*\r?\n"),
        (
            "a distribution of sizes, which --flow-sizes takes",
            rb"(?>\s+|#[^\n]*\n)*+\d+[ \t,]+0(?:\.0*)?\s+(?:\d+[ \t,]+[\d.]+\s+)*"
            rb"\d+[ \t,]+(?:1|100)(?:\.0*)?\s*\Z",
        ),
    )
)


def find_file(text: str) -> Path | None:
    """Return the file that a text names, or the first of those that a pattern with `*` names."""
    if "\0" in text or not text:
        return None
    paths = [text] if os.path.isfile(text) else sorted(glob.glob(text)) if "*" in text else []
    return Path(paths[0]) if paths and os.path.isfile(paths[0]) else None


def separator(header: str) -> str:
    """Return what separates the cells of a table, by its header: as spreadsheets write it."""
    return next((each for each in ";\t" if each in header), ",")


def is_special(path: Path) -> bool:
    """Return whether a path is a pipe, a device or a socket: reading it might never end."""
    return path.exists() and not (path.is_file() or path.is_dir())


def kind_of(path: Path) -> str:
    """Return what a file is, by its contents; "": unknown, or it can't be read.

    Of a compressed one, it is what is in it, if that can be told.
    """
    if not path.is_file():  # reading a pipe might never end
        return ""
    try:
        head = read_head(path, HEAD_BYTES).removeprefix(b"\xef\xbb\xbf")
    except OSError:
        return ""
    return next((title for title, pattern in _KINDS if pattern.match(head)), "")


def tell_file(text: str) -> str:
    """Return `the file NAME (what it is)` for messages; "": the text names no file."""
    path = find_file(text)
    if path is None:
        return ""
    return ", ".join(each for each in (f"the file {text!r}", _packed(path), kind_of(path)) if each)


def _packed(path: Path) -> str:
    try:
        with path.open("rb") as file:
            name = packing(file.read(LONGEST_START))
    except OSError:
        return ""
    return f"compressed by {name}" if name else ""
