"""`make bench ONLY=compressors`: how fast compressors encode and decode, by one core.

Of 4 MiB of normal numbers: quantising and encoding together, then decoding; the best of some runs.
The adaptive ones make their first step. ATOMO, which decomposes a matrix, has 64 KiB.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

from ringleaf.collectives.codec import decoded, encoded
from ringleaf.collectives.compression.compressor import Feedback, codec_of
from ringleaf.collectives.compression.member import Member
from ringleaf.collectives.compression.registry import COMPRESSORS, parse_compressor

if TYPE_CHECKING:
    from bench.report import Emit, Figures

ELEMENTS, FEWER = 1 << 20, 1 << 14
RUNS = 5
SETTINGS = {
    "topk": "1%",
    "randomk": "1%",
    "gaussiank": "1%",
    "mstopk": "1%",
    "dgc": "1%",
    "sidco": "1%",
    "egc": "1%",
    "threshold": "2.5",
    "onebit-adam": "1",
}
"""The argument that a compressor is measured with, for those that need one."""


def text_of(name: str) -> str:
    """Return a compressor as people would write it."""
    return f"{name}:{SETTINGS[name]}" if name in SETTINGS else name


def run(emit: Emit, elements: int = ELEMENTS) -> Figures:
    """Measure all compressors, and print a table."""
    emit(f"#\n# compressors: {4 * elements >> 10} KiB of normal numbers, one core")
    emit(f"{'compressor':>14} {'encode':>8} {'decode':>8} {'bytes/elem':>10}")
    emit(f"{'':>14} {'(MB/s)':>8} {'(MB/s)':>8}")
    figures: Figures = {}
    for name in COMPRESSORS.shipped():
        found = measure(text_of(name), min(elements, FEWER) if name == "atomo" else elements)
        figures[name] = found
        decode = f"{found['decode_mb_s']:>8.0f}" if "decode_mb_s" in found else f"{'-':>8}"
        emit(
            f"{text_of(name):>14} {found['encode_mb_s']:>8.0f} {decode} "
            f"{found['bytes_per_element']:>10.4f}"
        )
    return figures


def measure(text: str, elements: int, runs: int = RUNS) -> dict[str, Any]:
    """Return a compressor's speeds, in MB of float32 per second, and its bytes per element."""
    import numpy as np

    values = np.random.default_rng(1).standard_normal(elements, np.float32)
    compressor = parse_compressor(text)
    codec, encode_s, decode_s, size = codec_of(compressor), [], [], 0
    for _ in range(runs):
        made = Feedback(compressor).copy()
        assert isinstance(made, Member)
        if made.name == "onebit-adam":
            made.result(made.carry(values, 0), elements)  # its first step sends no signs
        start = perf_counter()
        carried = made.carry(values, 1)
        data = None if codec is None else encoded(codec, carried)
        encode_s.append(perf_counter() - start)
        size = carried.nbytes if data is None else data.size
        if codec is not None and data is not None:
            start = perf_counter()
            decoded(codec, data, carried.size, carried.dtype)
            decode_s.append(perf_counter() - start)
    found = {
        "encode_mb_s": values.nbytes / min(encode_s) / 1e6,
        "bytes_per_element": size / elements,
    }
    return found | ({"decode_mb_s": values.nbytes / min(decode_s) / 1e6} if decode_s else {})
