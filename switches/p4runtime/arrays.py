"""Arrays of counters, meters and registers (sections 9.3.2, 9.4.2 and 9.7)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from finsy.proto import p4d, p4r

from ringleaf.errors import Code
from ringleaf.switches.engine.updates import CounterUpdate, MeterUpdate, RegisterUpdate
from ringleaf.switches.p4runtime.direct import decode_count, encode_count
from ringleaf.switches.p4runtime.plane import Plane
from ringleaf.switches.p4runtime.rates import decode_rates, encode_rates
from ringleaf.switches.p4runtime.schema import check_index


class ArrayEntries:
    """Writes and reads p4.v1.CounterEntry, MeterEntry and RegisterEntry.

    A message without an index is for all cells; a read of id 0 is for all arrays.
    """

    def __init__(self, plane: Plane) -> None:
        self._plane = plane

    def write_counter(self, verb: str, message: Any) -> None:
        """Set a counter cell, or all cells; without data nothing changes."""
        self._plane.check_modify(verb, "counter")
        info = self._plane.schema.counter(message.counter_id)
        name, cell = info.preamble.name, self._cell(info, message)
        count = decode_count(self._plane, message, "data")
        if count is None:
            return
        if cell is None:
            self._plane.switch.fill_counter(name, count)
        else:
            self._plane.apply(CounterUpdate(name, cell, *count))

    def write_meter(self, verb: str, message: Any) -> None:
        """Configure a meter cell, or all cells; without a config they are reset to the default."""
        self._plane.check_modify(verb, "meter")
        info = self._plane.schema.meter(message.meter_id)
        name = info.preamble.name
        self._check_colors(message)
        cell = self._cell(info, message)
        rates = None
        if message.HasField("config"):
            rates = decode_rates(message.config, info.spec, f"{self._plane.where}: meter {name!r}")
        if cell is None:
            self._plane.switch.fill_meter(name, rates)
        else:
            self._plane.apply(MeterUpdate(name, cell, rates))

    def write_register(self, verb: str, message: Any) -> None:
        """Set a register cell, or all cells, to P4Data of the array's type."""
        self._plane.check_modify(verb, "register")
        info = self._plane.schema.register(message.register_id)
        name, cell = info.preamble.name, self._cell(info, message)
        where = f"{self._plane.where}: register {name!r}"
        value = self._plane.schema.types.decode(info.type_spec, message.data, where)
        if cell is None:
            self._plane.switch.fill_register(name, value)
        else:
            self._plane.apply(RegisterUpdate(name, cell, value))

    def read_counters(self, message: Any) -> Iterator[Any]:
        """Return the selected counter cells, as p4.v1.Entity."""
        schema, switch = self._plane.schema, self._plane.switch
        for number, info in _selected(message.counter_id, schema.counters, schema.counter):
            for cell in self._cells(info, message):
                entry = p4r.CounterEntry(
                    counter_id=number,
                    index=p4r.Index(index=cell),
                    data=encode_count(switch.read_counter(info.preamble.name, cell)),
                )
                yield p4r.Entity(counter_entry=entry)

    def read_meters(self, message: Any) -> Iterator[Any]:
        """Return the selected meter cells, as p4.v1.Entity; one without rates has no config."""
        schema, switch = self._plane.schema, self._plane.switch
        self._check_colors(message)
        for number, info in _selected(message.meter_id, schema.meters, schema.meter):
            for cell in self._cells(info, message):
                rates = switch.read_meter(info.preamble.name, cell)
                entry = p4r.MeterEntry(
                    meter_id=number,
                    index=p4r.Index(index=cell),
                    config=encode_rates(rates) if rates else None,
                )
                yield p4r.Entity(meter_entry=entry)

    def read_registers(self, message: Any) -> Iterator[Any]:
        """Return the selected register cells, as p4.v1.Entity."""
        schema = self._plane.schema
        for number, info in _selected(message.register_id, schema.registers, schema.register):
            for cell in self._cells(info, message):
                entry = p4r.RegisterEntry(
                    register_id=number,
                    index=p4r.Index(index=cell),
                    data=self._register(info, cell),
                )
                yield p4r.Entity(register_entry=entry)

    def _register(self, info: Any, cell: int) -> p4d.P4Data:
        name = info.preamble.name
        value = self._plane.switch.read_register(name, cell)
        return self._plane.schema.types.encode(info.type_spec, iter([value]), f"register {name!r}")

    def _cells(self, info: Any, message: Any) -> Iterable[int]:
        cell = self._cell(info, message)
        return range(info.size) if cell is None else [cell]

    def _cell(self, info: Any, message: Any) -> int | None:
        """Return the cell that a message is for; None for all."""
        if not message.HasField("index"):
            return None
        where = f"{self._plane.where}: {info.preamble.name!r}"
        return check_index(where, message.index, info.size)

    def _check_colors(self, message: Any) -> None:
        if message.HasField("counter_data"):
            raise self._plane.refuse(
                "meters do not count packets by color, got a count", Code.UNIMPLEMENTED
            )


def _selected(number: int, known: dict[int, Any], find: Any) -> list[tuple[int, Any]]:
    return [(number, find(number))] if number else list(known.items())
