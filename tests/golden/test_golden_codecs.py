"""Codecs: messages written by hand, byte by byte."""

from __future__ import annotations

import struct

import numpy as np
import torch

from ringleaf.collectives.codec import CODECS


def check(name: str, values: list[float], message: bytes) -> None:
    """Check what is written, and that it is read back."""
    codec, array = CODECS[name], np.array(values, np.float32)
    data = codec.encode(torch.from_numpy(array))
    assert bytes(data.numpy()) == message
    assert codec.decode(data, array.size, torch.float32).numpy().tobytes() == array.tobytes()


def test_base3() -> None:
    """0 0 0 0 0 is 121, and 2 0 -2 0 0 of 2 is 21011 to the base 3. 70 zeros are one byte, 255."""
    unit = struct.pack("<f", 2)
    check("base3", [0, 0, 0, 0, 0, 2, 0, -2, 0, 0], unit + bytes([121, 2 * 81 + 27 + 0 + 3 + 1]))
    check("base3", [*[0] * 70, 2, 0, 0, 0, 0], unit + bytes([255, 202]))


def test_exponents() -> None:
    """A float32's exponent less 18: 127 is 109; the highest bit is the sign, and zero is 0."""
    check("exponents", [1, -2, 0], bytes([109, 0x80 | 110, 0]))


def test_levels() -> None:
    """Multiples 1, -1, 1, 1 of 1.5, plus 2, in two bits each; the unit's lowest byte has the 2."""
    header = struct.pack("<I", struct.unpack("<I", struct.pack("<f", 1.5))[0] | 2)
    check("levels", [1.5, -1.5, 1.5, 1.5], header + bytes([0b11_11_01_11]))


def test_signs() -> None:
    """The first element's bit is the lowest. Ones need no value, others have the positive one."""
    check("signs", [1, -1, 1, 1], bytes([0b1101]))
    check("signs", [2.5, -2.5, -2.5], struct.pack("<f", 2.5) + bytes([0b001]))
    check("signs", [2, 3, 3], struct.pack("<ff", 2, 3) + bytes([0b110]))


def test_sparse_stream() -> None:
    """Two pairs: their number, values and places. Three of four take 28 bytes, all take 20."""
    pairs = struct.pack("<IffII", 2, 5, -1, 2, 6)
    check("sparse-stream", [0, 0, 5, 0, 0, 0, -1, 0, 0, 0], pairs)
    check("sparse-stream", [1, 0, 2, 3], struct.pack("<Iffff", 0xFFFFFFFF, 1, 0, 2, 3))


def test_trimmed() -> None:
    check("trimmed", [1, 0, 2, 0, 0], struct.pack("<fff", 1, 0, 2))
