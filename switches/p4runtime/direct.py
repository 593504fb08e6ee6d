"""Counters and meters of table entries (sections 9.1.8, 9.3.1 and 9.4.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from finsy.proto import p4r

from ringleaf.core.units import format_count
from ringleaf.errors import Code
from ringleaf.switches.engine.updates import (
    INSERT,
    Count,
    CounterUpdate,
    InstalledEntry,
    MeterRates,
    MeterUpdate,
)
from ringleaf.switches.p4runtime.plane import Plane
from ringleaf.switches.p4runtime.rates import decode_rates, encode_rates
from ringleaf.switches.p4runtime.schema import TableInfo


@dataclass(frozen=True, slots=True)
class Resources:
    """The direct resources that a write sets; a `count` of None leaves the counter as it is."""

    count: Count | None
    sets_rates: bool
    rates: MeterRates | None


class DirectResources:
    """Writes and reads the direct resources of entries."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane

    def decode(self, verb: str, table: TableInfo, message: Any) -> Resources:
        """Return the direct resources in a TableEntry.

        Raises:
            ConfigError: If the table has no such resource.
        """
        self._check_colors(message, "meter_counter_data")
        if message.HasField("counter_data"):
            self._check_has(table, table.counter, "direct counter")
        if message.HasField("meter_config"):
            self._check_has(table, table.meter, "direct meter")
        count = decode_count(self._plane, message, "counter_data")
        rates = self._rates(table, message, "meter_config")
        fresh = verb == INSERT and rates is None  # a new entry's meter has no rates anyway
        return Resources(count, bool(table.meter) and not fresh, rates)

    def check_none(self, table: TableInfo, message: Any) -> None:
        """Refuse direct resources of a default entry: BMv2 neither counts nor meters misses."""
        for name in ("counter_data", "meter_config", "meter_counter_data"):
            if message.HasField(name):
                raise self._plane.refuse(
                    f"table {table.name!r}: default entry has no {name}, got it set",
                    Code.UNIMPLEMENTED,
                )

    def apply(self, table: TableInfo, entry: InstalledEntry, resources: Resources) -> None:
        """Set the counter and meter of an entry, as far as a TableEntry has named them."""
        if resources.count is not None:
            packets, size = resources.count
            self._plane.apply(CounterUpdate(table.counter, None, packets, size, entry))
        if resources.sets_rates:
            self._plane.apply(MeterUpdate(table.meter, None, resources.rates, entry))

    def encode(self, table: TableInfo, entry: InstalledEntry, asked: Any, message: Any) -> None:
        """Put the resources that a read has `asked` for into `message`."""
        switch = self._plane.switch
        if asked.HasField("counter_data") and table.counter:
            count = switch.read_direct_counter(table.name, entry)
            message.counter_data.CopyFrom(encode_count(count))
        if asked.HasField("meter_config") and table.meter:
            rates = switch.read_direct_meter(table.name, entry)
            if rates is not None:
                message.meter_config.CopyFrom(encode_rates(rates))

    def write_counter(
        self, verb: str, table: TableInfo, entry: InstalledEntry, message: Any
    ) -> None:
        """Write a DirectCounterEntry."""
        self._plane.check_modify(verb, "direct counter")
        self._check_has(table, table.counter, "direct counter")
        self._plane.switch.read_direct_counter(table.name, entry)  # refuses if there is no entry
        count = decode_count(self._plane, message, "data")
        self.apply(table, entry, Resources(count, False, None))

    def write_meter(self, verb: str, table: TableInfo, entry: InstalledEntry, message: Any) -> None:
        """Write a DirectMeterEntry."""
        self._plane.check_modify(verb, "direct meter")
        self._check_has(table, table.meter, "direct meter")
        self._check_colors(message, "counter_data")
        rates = self._rates(table, message, "config")
        self.apply(table, entry, Resources(None, True, rates))

    def read_counter(self, table: TableInfo, entry: InstalledEntry, key: Any) -> Any:
        """Return an entry's counter, as p4.v1.Entity; `key` is its p4.v1.TableEntry."""
        self._check_has(table, table.counter, "direct counter")
        count = self._plane.switch.read_direct_counter(table.name, entry)
        return p4r.Entity(
            direct_counter_entry=p4r.DirectCounterEntry(table_entry=key, data=encode_count(count))
        )

    def read_meter(self, table: TableInfo, entry: InstalledEntry, key: Any) -> Any:
        """Return an entry's meter, as p4.v1.Entity; `key` is its p4.v1.TableEntry."""
        self._check_has(table, table.meter, "direct meter")
        rates = self._plane.switch.read_direct_meter(table.name, entry)
        config = encode_rates(rates) if rates else None
        return p4r.Entity(direct_meter_entry=p4r.DirectMeterEntry(table_entry=key, config=config))

    def _rates(self, table: TableInfo, message: Any, name: str) -> MeterRates | None:
        if not message.HasField(name):
            return None
        spec = self._plane.schema.resource(table.meter).spec
        where = f"{self._plane.where}: meter {table.meter!r}"
        return decode_rates(getattr(message, name), spec, where)

    def _check_has(self, table: TableInfo, resource: str, what: str) -> None:
        if not resource:
            raise self._plane.refuse(f"table has no {what}s, got {table.name!r}")

    def _check_colors(self, message: Any, name: str) -> None:
        if message.HasField(name):
            raise self._plane.refuse(
                "meters do not count packets by color, got a count", Code.UNIMPLEMENTED
            )


def decode_count(plane: Plane, message: Any, name: str) -> Count | None:
    """Return the count in a field of p4.v1.CounterData, None if it is not set."""
    if not message.HasField(name):
        return None
    data = getattr(message, name)
    if data.packet_count < 0 or data.byte_count < 0:
        got = (
            f"{format_count(data.packet_count, 'packet')}, {format_count(data.byte_count, 'byte')}"
        )
        raise plane.refuse(f"counters are never negative, got {got}")
    return Count(data.packet_count, data.byte_count)


def encode_count(count: Count) -> Any:
    """Return p4.v1.CounterData; its numbers are signed, so larger ones are cut to 63 bits."""
    low = (1 << 63) - 1
    return p4r.CounterData(packet_count=count.packets & low, byte_count=count.bytes & low)
