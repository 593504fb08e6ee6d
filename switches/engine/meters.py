"""Meters: two-rate three-colour markers, colour-blind (RFC 2698), as BMv2 runs them.

Source: behavioral-model `src/bm_sim/meters.cpp`. Both buckets fill by whole microseconds since
time 0, and tokens are whole packets or bytes. BMv2 computes `microseconds * rate` in doubles; here
it is exact, which differs where a double's error hides or adds the last token.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ringleaf.core.arena import Fields
from ringleaf.core.compiled import inline
from ringleaf.core.units import PS_PER_US
from ringleaf.errors import ConfigError
from ringleaf.switches.engine.updates import MeterRates

# Columns of a meter in `arena.fields`: its buckets, the peak's first.
CONFIGURED = 0  # 0: every packet is green
PEAK_AT = 1
COMMITTED_AT = 6
METER_WORDS = 11

# Columns of a bucket.
RATE = 0  # whole tokens per second
PART = 1  # and millionths
BURST = 2  # tokens that it holds
TOKENS = 3
FILLED = 4  # tokens that have come since time 0

# Colours, as v1model numbers them.
GREEN = 0
YELLOW = 1
RED = 2

_U0 = np.uint64(0)
_GREEN = np.uint64(GREEN)
_YELLOW = np.uint64(YELLOW)
_RED = np.uint64(RED)
_PEAK_AT = np.uint64(PEAK_AT)
_COMMITTED_AT = np.uint64(COMMITTED_AT)
_PART = np.uint64(PART)
_BURST = np.uint64(BURST)
_TOKENS = np.uint64(TOKENS)
_FILLED = np.uint64(FILLED)
_MILLION = np.uint64(1_000_000)
_TRILLION = np.uint64(1_000_000_000_000)
_PS_PER_US = np.uint64(PS_PER_US)


def meter_word(word: int) -> str:
    """Return the name of a meter's column."""
    if word == CONFIGURED:
        return "configured"
    bucket, start = ("peak", PEAK_AT) if word < COMMITTED_AT else ("committed", COMMITTED_AT)
    return f"{bucket} {('rate', 'rate x 10^-6', 'burst', 'tokens', 'tokens so far')[word - start]}"


@inline
def tokens_by(rate: np.uint64, part: np.uint64, micros: np.uint64) -> np.uint64:
    """Return how many tokens have come by `micros`, in steps that stay within 64 bits."""
    rest = (micros % _MILLION) * rate
    fraction = (rest % _MILLION) * _MILLION + micros * part
    return micros // _MILLION * rate + rest // _MILLION + fraction // _TRILLION


@inline
def take_tokens(fields: Fields, at: np.uint64, size: np.uint64, micros: np.uint64) -> bool:
    """Fill the bucket at `at`; take `size` tokens if it has them, and return whether it had."""
    came = tokens_by(fields[at], fields[at + _PART], micros)
    tokens = fields[at + _TOKENS] + came - fields[at + _FILLED]
    fields[at + _FILLED] = came
    tokens = min(tokens, fields[at + _BURST])
    enough = tokens >= size
    if enough:
        tokens -= size
    fields[at + _TOKENS] = tokens
    return enough


@inline
def meter_color(fields: Fields, at: np.uint64, size: np.uint64, now_ps: np.uint64) -> np.uint64:
    """Run the meter at `at` on a packet of `size` packets or bytes; return its colour."""
    if fields[at] == _U0:
        return _GREEN
    micros = now_ps // _PS_PER_US
    if not take_tokens(fields, at + _PEAK_AT, size, micros):
        return _RED
    if not take_tokens(fields, at + _COMMITTED_AT, size, micros):
        return _YELLOW
    return _GREEN


def check_rates(where: str, rates: MeterRates | None) -> None:
    """Raise ConfigError if a meter can't have these rates."""
    if rates is None:
        return
    numbers = (rates.committed, rates.committed_burst, rates.peak, rates.peak_burst)
    if min(numbers) < 0 or max(numbers) >= 1 << 44:  # the limit of the products in `tokens_by`
        raise ConfigError(f"{where}: rates and bursts must be in [0, 2**44), got {rates}")
    if rates.committed > rates.peak:  # BMv2's INVALID_INFO_RATE_VALUE
        raise ConfigError(f"{where}: committed rate must not exceed the peak rate, got {rates}")


def configure(rates: MeterRates | None) -> list[int]:
    """Return a meter's words; its buckets are full, as after BMv2's `set_rates`."""
    if rates is None:
        return [0] * METER_WORDS
    buckets = ((rates.peak, rates.peak_burst), (rates.committed, rates.committed_burst))
    words = [1]
    for rate, burst in buckets:
        whole, part = divmod(round(rate * 1_000_000), 1_000_000)
        words += [whole, part, burst, burst, 0]
    return words


def rates_of(words: Sequence[int]) -> MeterRates | None:
    """Return the configuration of a meter with these words."""
    if not words[CONFIGURED]:
        return None
    (peak, peak_burst), (committed, burst) = (
        (words[at + RATE] + words[at + PART] / 1_000_000, words[at + BURST])
        for at in (PEAK_AT, COMMITTED_AT)
    )
    return MeterRates(committed, burst, peak, peak_burst)
