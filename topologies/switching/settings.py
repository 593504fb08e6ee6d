"""Settings of circuits as people write them: `helios,period=300us,dead=25us,senders=run`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ringleaf.core.registry import Registry
from ringleaf.core.units import exact_time, parse_time
from ringleaf.errors import ConfigError, choose

if TYPE_CHECKING:  # NumPy takes long to load
    from ringleaf.topologies.switching.plan import CircuitDemand, Circuits


@dataclass(frozen=True)
class CircuitController:
    """A controller of circuits, as the registry holds it.

    Attributes:
        summary: A line on what it does.
        decide: A function of the demand and the time that returns the circuits to have.
        usual: Settings as typed where the user gives none: period, dead, drain, senders.
        once: Whether it decides once, before a job starts.
        needs_core: Whether racks must reach one another without circuits.
        inside: Whether it changes circuits between the steps of a schedule.
        strides: The rule by which an allreduce over rings of racks takes their strides
            (`ringleaf.topologies.switching.strides.RULES`).
    """

    summary: str
    decide: Callable[[CircuitDemand, int], Circuits]
    usual: Mapping[str, str] = field(default_factory=dict)
    once: bool = False
    needs_core: bool = False
    inside: bool = False
    strides: str = "paper"


CONTROLLERS: Registry[CircuitController] = Registry(
    "circuits",
    "controller of circuits",
    "topologies/circuits",
    "CONTROLLER",
    kind=CircuitController,
)

RUN, PAUSE = SENDERS = ("run", "pause")
EMPTY = "empty"
"""The limit of draining that is none: until queues and lines are empty."""

_FIELDS = {"period": "period_ps", "dead": "dead_ps", "drain": "drain_ps", "senders": "pauses"}

USUAL = {"period": "100us", "dead": "25us", "drain": EMPTY, "senders": RUN}


@dataclass(frozen=True, slots=True)
class CircuitSettings:
    """A controller of circuits, and the times of a change.

    Attributes:
        name: The controller.
        period_ps: The time from when circuits are up until the controller decides again.
        dead_ps: The time from when the last packet has left circuits that go until new ones are up.
        drain_ps: The most time for packets to leave them; None: until they are empty.
        pauses: Whether hosts don't send from a decision until the new circuits are up.
    """

    name: str
    period_ps: int
    dead_ps: int
    drain_ps: int | None = None
    pauses: bool = False

    @property
    def controller(self) -> CircuitController:
        """The controller itself."""
        return CONTROLLERS[self.name]

    @property
    def keeps_order(self) -> bool:
        """Whether no packet overtakes another because of a change, so that none is sent again."""
        return self.controller.once or (self.pauses and self.drain_ps is None)

    @property
    def quiet_ps(self) -> int:
        """The time for which nothing that hosts send is answered, at each change.

        How long draining takes without a limit is up to queues, which timeouts allow for anyway.
        """
        changes = self.pauses and not self.controller.once
        return self.dead_ps + (self.drain_ps or 0) if changes else 0

    @property
    def idle(self) -> tuple[str, ...]:
        """The settings that are not the usual ones, and have no effect, as nothing ever changes."""
        if not self.controller.once:
            return ()
        usual = _settings(self.name, {**USUAL, **self.controller.usual}, self.name)
        return tuple(
            key for key, name in _FIELDS.items() if getattr(self, name) != getattr(usual, name)
        )

    def check_live(self, switch: str, where: str = "", *, captured: bool = False) -> None:
        """Check that a live network can have such circuits.

        Args:
            switch: The kind of its switches.
            where: The beginning of the message.
            captured: Whether packets are captured.

        Raises:
            ConfigError: If it can't.
        """
        if switch == "bmv2":
            raise ConfigError(
                f"{where}circuits: BMv2's lines stay as they are, got {self.name}; take "
                "switch=embedded"
            )
        if captured:
            raise ConfigError(
                f"{where}circuits: live captures are made of traces, which have a switch's routes "
                f"at the beginning, got {self.name} and a capture; leave out either of them"
            )
        if self.pauses and not self.controller.once:
            raise ConfigError(
                f"{where}circuits: live hosts don't pause, got {self.name},senders=pause; take "
                "senders=run, and a core (core=1)"
            )

    def at_scale(self, factor: int) -> CircuitSettings:
        """Return the same in a network that is so many times as slow."""
        return replace(
            self,
            period_ps=self.period_ps * factor,
            dead_ps=self.dead_ps * factor,
            drain_ps=None if self.drain_ps is None else self.drain_ps * factor,
        )

    def __str__(self) -> str:
        """Return the text that `parse_circuits` reads."""
        drain = EMPTY if self.drain_ps is None else _time(self.drain_ps)
        return (
            f"{self.name},period={_time(self.period_ps)},dead={_time(self.dead_ps)},"
            f"drain={drain},senders={PAUSE if self.pauses else RUN}"
        )


def _time(time_ps: int) -> str:
    return exact_time(time_ps) if time_ps else "0"


def parse_circuits(text: str, where: str) -> CircuitSettings | None:
    """Read a controller's name and settings; nothing is None.

    Raises:
        ConfigError: If one is not understood.
    """
    name, *options = (part.strip() for part in text.split(","))
    if not name and not options:
        return None
    controller = CONTROLLERS.find(name, where)
    own: dict[str, str] = {}
    for option in options:
        key, equals, value = (part.strip() for part in option.partition("="))
        if not equals:
            raise ConfigError(f"{where} {name}: option must be key=value, got {option!r}")
        choose(f"{where} {name}", "key", key, USUAL)
        if key in own:
            raise ConfigError(f"{where} {name}: {key} is there twice, got {text!r}")
        own[key] = value
    return _settings(name, {**USUAL, **controller.usual, **own}, f"{where} {name}")


def _settings(name: str, values: Mapping[str, str], where: str) -> CircuitSettings:
    period_ps = parse_time(values["period"], f"{where}: period")
    if period_ps == 0:
        raise ConfigError(f"{where}: period must be more than 0, got {values['period']!r}")
    drain = values["drain"]
    return CircuitSettings(
        name,
        period_ps,
        parse_time(values["dead"], f"{where}: dead"),
        None if drain == EMPTY else parse_time(drain, f"{where}: drain"),
        choose(where, "senders", values["senders"], SENDERS) == PAUSE,
    )
