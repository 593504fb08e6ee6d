"""Meter configurations (section 9.4): a two-rate three-color meter, as BMv2 has it."""

from __future__ import annotations

from typing import Any

from finsy.proto import p4i, p4r

from ringleaf.errors import Code, ConfigError
from ringleaf.switches.engine.meters import check_rates
from ringleaf.switches.engine.updates import MeterRates


def decode_rates(config: Any, spec: Any, where: str) -> MeterRates:
    """Return the rates of a p4.v1.MeterConfig.

    Args:
        config: The message.
        spec: The meter's p4.config.v1.MeterSpec.
        where: The meter's name, for errors.

    Raises:
        ConfigError: If a number is negative, or does not fit the meter's type.
    """
    numbers = (config.cir, config.cburst, config.pir, config.pburst, config.eburst)
    if min(numbers) < 0:
        raise ConfigError(f"{where}: rates and bursts are never negative, got {numbers}")
    if spec.type == p4i.MeterSpec.TWO_RATE_THREE_COLOR:
        if config.eburst:
            raise ConfigError(f"{where}: two-rate meter has no eburst, got {config.eburst}")
    elif (config.cir, config.cburst) != (config.pir, config.pburst):
        raise ConfigError(f"{where}: single-rate meter has one rate and burst, got {numbers}")
    if config.eburst:
        raise ConfigError(
            f"{where}: excess bursts are not supported, got {config.eburst}", Code.UNIMPLEMENTED
        )
    rates = MeterRates(float(config.cir), config.cburst, float(config.pir), config.pburst)
    check_rates(where, rates)
    return rates


def encode_rates(rates: MeterRates) -> Any:
    """Return the p4.v1.MeterConfig of rates, which it has in whole units per second."""
    return p4r.MeterConfig(
        cir=round(rates.committed),
        cburst=rates.committed_burst,
        pir=round(rates.peak),
        pburst=rates.peak_burst,
    )
