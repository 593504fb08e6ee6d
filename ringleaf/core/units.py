"""Sizes, rates and times as people write them, and as integers with a unit in the name."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

from ringleaf.errors import ConfigError

PS_PER_NS = 1_000
PS_PER_US = 1_000_000
PS_PER_MS = 1_000_000_000
PS_PER_S = 1_000_000_000_000

FOREVER_PS = (1 << 62) - 1
"""A deadline that never comes; adding a few of our times to it can't overflow int64."""

LONGEST_WHOLE = 18  # digits
LONGEST_NUMBER = 60  # letters, with a unit
MOST_BYTES = 1 << 60
MOST_BPS = 10**15

_BINARY = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_DECIMAL = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_NUMBER = r"(?:(?:0|[1-9]\d*)(?:\.\d+)?|\.\d+)(?:e[+-]?\d{1,2})?"
"""Not 096, the end of a 4,096 that is taken for a list."""

_TIME_PS = {"ps": 1, "ns": PS_PER_NS, "us": PS_PER_US, "ms": PS_PER_MS, "s": PS_PER_S}


def is_whole(text: str) -> bool:
    """Whether this is a whole number that fits int64; Python's own takes no end of digits."""
    text = text.strip()
    return text.isascii() and text.isdecimal() and len(text) <= LONGEST_WHOLE


def _split(where: str, text: str, pattern: str, example: str) -> re.Match[str]:
    text = text.strip()
    match = re.fullmatch(pattern, text, re.IGNORECASE | re.ASCII)
    if match is None or len(text) > LONGEST_NUMBER:
        raise ConfigError(f"{where}: not understood, got {text!r:.80}; write it like {example}")
    return match


def _at_most(where: str, text: str, value: int, most: int) -> int:
    if value > most:
        raise ConfigError(f"{where}: must be at most {most}, got {text!r}")
    return value


def parse_size(text: str, where: str = "size") -> int:
    """Bytes of `4MiB`, `64K` (as nccl-tests, 1024), `100MB` (10^6), `1e6` or `512`.

    Raises:
        ConfigError: If it is not understood, says bits (`Mb`), is not a whole number of bytes, or
            is more than any machine has.
    """
    match = _split(where, text, rf"({_NUMBER})\s*(?:([KMGT])(i?))?(B?)", "4MiB, 64K or 512")
    number, prefix, binary, unit = match.groups(default="")
    if unit == "b":
        in_bytes = f"{number}{prefix.upper()}{binary.lower()}B"
        raise ConfigError(
            f"{where}: must be in bytes, got {text!r}, where b stands for bits; write {in_bytes} "
            "if you mean bytes"
        )
    scale = _DECIMAL if unit and not binary else _BINARY
    size_bytes = Fraction(number) * scale[prefix.upper()]
    if size_bytes.denominator != 1:
        raise ConfigError(f"{where}: must be a whole number of bytes, got {text!r}")
    return _at_most(where, text, int(size_bytes), MOST_BYTES)


def parse_rate(text: str, where: str = "rate") -> int:
    """Bit/s of `100G`, `100Gbps`, `25Gbit/s`, `25Gb/s`, `25Gbits/sec` or `1000000`.

    Raises:
        ConfigError: If it is not understood, says bytes (`GB/s`) or 1024 (`Gi`), or is 0.
    """
    pattern = rf"({_NUMBER})\s*(?:([KMGT])(i?))?(bps|b(?:its?)?(?:/s(?:ec)?)?)?"
    match = _split(where, text, pattern, "100Gbps or 25G")
    number, prefix, binary, unit = match.groups(default="")
    prefix = prefix.upper()
    if unit[:1] == "B" and unit[1:].lower() in ("", "ps", "/s", "/sec"):
        bits = f"{float(number) * 8:g}{prefix}"
        raise ConfigError(
            f"{where}: must be in bit/s, got {text!r}, where B stands for bytes; write {bits} "
            f"if you mean bytes, {number}{prefix} if bits"
        )
    if binary:
        raise ConfigError(
            f"{where}: prefixes of rates are powers of 1000, got {text!r}; write {number}{prefix}"
        )
    rate_bps = round(float(number) * _DECIMAL[prefix])
    if rate_bps < 1:
        raise ConfigError(f"{where}: must be above 0, got {text!r}")
    return _at_most(where, text, rate_bps, MOST_BPS)


def parse_time(text: str, where: str = "time") -> int:
    """Picoseconds of `1us`, `500ns`, `0.5ms`, `1usec`; `0` needs no unit.

    Raises:
        ConfigError: If it is not understood, or its unit is not quite one: `1m`, `1Ms`.
    """
    if text.strip() == "0":
        return 0
    match = _split(where, text, rf"({_NUMBER})\s*([a-z\u00b5\u03bc]+)", "1us or 500ns")
    unit = match[2].replace("\u00b5", "u").replace("\u03bc", "u")
    unit = re.sub(r"(?<=s)ecs?$", "", unit)  # as tc has them
    if unit not in _TIME_PS:
        raise ConfigError(
            f"{where}: unit must be {', '.join(_TIME_PS)}, got {text!r}; write it like 1us or 500ns"
        )
    time_ps = round(Fraction(match[1]) * _TIME_PS[unit])  # exact: hours are 2^53 ps
    return _at_most(where, text, time_ps, FOREVER_PS)


def parse_flops(text: str, where: str = "flops") -> float:
    """Floating-point operations per second of `9.4T`, `500GFLOPS` or `1e12`."""
    pattern = r"(\d+(?:\.\d+)?(?:e\d+)?)\s*([KMGT]?)(?:FLOPS|FLOP/s)?"
    match = _split(where, text, pattern, "9.4T or 500GFLOPS")
    rate = float(match[1]) * _DECIMAL[match[2].upper()]
    if not 0 < rate < float("inf"):
        raise ConfigError(f"{where}: must be above 0, got {text!r}")
    return rate


def parse_fraction(text: str, where: str = "fraction") -> float:
    """Probability of `0.1%` or `0.001`, within [0, 1)."""
    match = _split(where, text, r"(\d*\.?\d+(?:e-?\d+)?)\s*(%?)", "0.1% or 0.001")
    value = float(match[1]) / (100 if match[2] else 1)
    if not 0 <= value < 1:
        raise ConfigError(f"{where}: must be in [0, 1), got {text!r}")
    return value


def parse_number(text: str, where: str = "number") -> float:
    """Return a number of at least 0, like `97.5`, `0.97` or `1e6`.

    Raises:
        ConfigError: If it is not understood.
    """
    match = _split(where, text, r"(\d+(?:\.\d*)?(?:e[+-]?\d{1,2})?)", "97.5 or 1e6")
    return float(match[1])


def format_size(size_bytes: int) -> str:
    """`4 MiB`, `1.5 KiB`, `7 B`."""
    value = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.4g} {unit}"
        value /= 1024
    return f"{value:.4g} TiB"


def format_rate(rate_bps: float) -> str:
    """`100 Gbit/s`."""
    for unit, scale in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if rate_bps >= scale:
            return f"{rate_bps / scale:.4g} {unit}bit/s"
    return f"{rate_bps:.4g} bit/s"


def format_time(time_ps: float) -> str:
    """`160.8 us`."""
    for unit, scale in (("s", PS_PER_S), ("ms", PS_PER_MS), ("us", PS_PER_US), ("ns", PS_PER_NS)):
        if time_ps >= scale:
            return f"{time_ps / scale:.4g} {unit}"
    return f"{time_ps:.4g} ps"


def format_count(count: float, noun: str, form: str = "") -> str:
    """Return a number of things: `1 slot`, `2 slots`, `3 switches`; `form` is the number's."""
    ending = "es" if noun.endswith(("s", "x", "ch", "sh")) else "s"
    return f"{count:{form}} {noun}{'' if count == 1 else ending}"


def exact_rate(rate_bps: int) -> str:
    """`2.5G` or `7bps`: what `parse_rate` gives the same rate for; it has a unit."""
    unit = next((unit for unit in "TGMK" if rate_bps >= _DECIMAL[unit]), "")
    return f"{(Decimal(rate_bps) / _DECIMAL[unit]).normalize():f}{unit or 'bps'}"


def exact_time(time_ps: int) -> str:
    """`2.4ms`: what `parse_time` gives the same picoseconds for."""
    unit = next((unit for unit in ("s", "ms", "us", "ns") if time_ps >= _TIME_PS[unit]), "ps")
    return f"{(Decimal(time_ps) / _TIME_PS[unit]).normalize():f}{unit}"


def serialize_ps(size_bytes: int, rate_bps: int) -> int:
    """Time that `size_bytes` occupy a line of `rate_bps`, rounded up."""
    return -(-int(size_bytes) * 8 * PS_PER_S // int(rate_bps))  # NumPy's would overflow
