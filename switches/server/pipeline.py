"""The forwarding pipelines of a device, the running and the next one (sections 7, 14 and 15)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from finsy.proto import p4r

from ringleaf.errors import Code, ConfigError
from ringleaf.switches.engine.updates import INSERT, MODIFY
from ringleaf.switches.p4runtime.schema import Schema
from ringleaf.switches.program import Program
from ringleaf.switches.switch import Switch

_Request = p4r.SetForwardingPipelineConfigRequest
_Get = p4r.GetForwardingPipelineConfigRequest

PART = 256  # entities that are carried over at a time

MakeSwitch = Callable[[Program], Switch]


@dataclass(frozen=True, slots=True)
class InstalledProgram:
    """A program as it was given, and a switch that runs it."""

    config: Any  # p4.v1.ForwardingPipelineConfig
    switch: Switch
    parts: dict[int, bytes] = field(default_factory=dict)  # encoded, by what was asked for


class Pipelines:
    """The committed pipeline of a device, and the one that is saved to be committed.

    A saved pipeline has a switch of its own, which takes the writes; so committing it is only
    to let packets go through that switch.

    Args:
        name: The device's name, for errors.
        make_switch: Makes the switch of a program; it is called with the lock.
        lock: The device's. Programs are read, which may take seconds, without it.
        compiles: Whether a new program is compiled at once, and not with the first packet.
    """

    def __init__(
        self,
        name: str,
        make_switch: MakeSwitch,
        lock: AbstractContextManager[object],
        *,
        compiles: bool = False,
    ) -> None:
        self._name = name
        self._make_switch = make_switch
        self._lock = lock
        self._compiles = compiles
        self._committed: InstalledProgram | None = None
        self._saved: InstalledProgram | None = None

    @property
    def is_committed(self) -> bool:
        """Return whether a pipeline is running."""
        return self._committed is not None

    @property
    def committed(self) -> InstalledProgram:
        """Return the running pipeline.

        Raises:
            ConfigError: If there is none yet.
        """
        if self._committed is None:
            raise self._missing()
        return self._committed

    @property
    def latest(self) -> InstalledProgram:
        """The pipeline whose entities controllers write and read."""
        latest = self._saved or self._committed
        if latest is None:
            raise self._missing()
        return latest

    def load(self, program: Program, text: bytes) -> None:
        """Commit a program that no controller has sent."""
        config = p4r.ForwardingPipelineConfig(p4info=program.p4info, p4_device_config=text)
        self._committed, self._saved = InstalledProgram(config, self._make_switch(program)), None

    def set(
        self, action: int, config: Any | None, permit: Callable[[], None] = lambda: None
    ) -> None:
        """Carry out a SetForwardingPipelineConfigRequest.

        Args:
            action: Its action.
            config: Its config, if it has one.
            permit: Is called with the lock before anything changes, and raises if it must not.

        Raises:
            ConfigError: If the program can't be run; the old one then goes on.
        """
        if action == _Request.COMMIT:
            with self._lock:
                permit()
                self._commit(config)
            return
        if action not in _ACTIONS:
            raise ConfigError(f"{self._name}: no action is set, got {action}")
        program = self._verify(config)
        with self._lock:
            permit()
            pipeline = InstalledProgram(config, self._make_switch(program))
            old = self._committed
        if action == _Request.RECONCILE_AND_COMMIT and old:
            self._carry_over(old.switch, pipeline.switch)
        with self._lock:
            permit()
            if action == _Request.VERIFY_AND_SAVE:
                self._saved = pipeline
            elif action != _Request.VERIFY:
                self._committed, self._saved = pipeline, None

    def get(self, kind: int) -> Any:
        """Return the latest config, or the part of it that is asked for; None if there is none."""
        latest = self._saved or self._committed
        return None if latest is None else _part(latest.config, kind)

    def get_encoded(self, kind: int) -> bytes:
        """Return a GetForwardingPipelineConfigResponse, which is encoded once for all callers."""
        latest = self._saved or self._committed
        if latest is None:
            return b""
        if kind not in latest.parts:
            answer = p4r.GetForwardingPipelineConfigResponse(config=_part(latest.config, kind))
            latest.parts.clear()  # a program may have some MiB
            latest.parts[kind] = answer.SerializeToString()
        return latest.parts[kind]

    def _commit(self, config: Any | None) -> None:
        if config is not None:
            raise ConfigError(f"{self._name}: commits what is saved, got another config")
        if self._saved is None:
            raise ConfigError(f"{self._name}: no config is saved, got a commit", Code.NOT_FOUND)
        self._committed, self._saved = self._saved, None

    def _verify(self, config: Any | None) -> Program:
        if config is None or not config.HasField("p4info") or not config.p4_device_config:
            raise ConfigError(f"{self._name}: needs P4Info and BMv2 JSON, got no such config")
        program = Program.parse(config.p4_device_config, config.p4info, self._name)
        if self._compiles:
            program.prepare()
        return program

    def _carry_over(self, old: Switch, new: Switch) -> None:
        """Write all that the old switch holds into the new one; take the lock for a bit of it."""
        state = _state(old)
        while True:
            with self._lock:
                part = list(islice(state, PART))
                for verb, entity in part:
                    self._carry(new, verb, entity)
            if len(part) < PART:
                break
        with self._lock:
            new.commit()

    def _carry(self, new: Switch, verb: str, entity: Any) -> None:
        try:
            new.entities.write(verb, entity)
        except ConfigError as exc:
            raise ConfigError(f"{self._name}: state can't be preserved: {exc}") from exc

    def _missing(self) -> ConfigError:
        return ConfigError(  # finsy looks for "no ... forwarding pipeline config"
            f"{self._name}: has no forwarding pipeline config yet", Code.FAILED_PRECONDITION
        )


_ACTIONS = (
    _Request.VERIFY,
    _Request.VERIFY_AND_SAVE,
    _Request.VERIFY_AND_COMMIT,
    _Request.RECONCILE_AND_COMMIT,
)


def _part(whole: Any, kind: int) -> Any:
    config = p4r.ForwardingPipelineConfig()
    config.CopyFrom(whole)
    if kind in (_Get.COOKIE_ONLY, _Get.DEVICE_CONFIG_AND_COOKIE):
        config.ClearField("p4info")
    if kind in (_Get.COOKIE_ONLY, _Get.P4INFO_AND_COOKIE):
        config.ClearField("p4_device_config")
    return config


def _state(switch: Switch) -> Iterator[tuple[str, Any]]:
    """Yield the writes that recreate a switch's state, referenced entities first."""
    read = switch.entities.read
    for entity in _everything(switch.program.schema):
        verb = MODIFY if entity.WhichOneof("entity") in _ALWAYS_THERE else INSERT
        for each in read(entity):
            if each.table_entry.is_const:
                continue
            is_default = each.table_entry.is_default_action
            yield MODIFY if is_default else verb, each


_ALWAYS_THERE = ("meter_entry", "counter_entry", "value_set_entry", "register_entry")


def _everything(schema: Schema) -> Iterator[Any]:
    """Yield the wildcards of all entities that the program has."""
    yield p4r.Entity(action_profile_member=p4r.ActionProfileMember())
    yield p4r.Entity(action_profile_group=p4r.ActionProfileGroup())
    for number, info in schema.tables.items():
        asked = p4r.TableEntry(table_id=number)
        asked.counter_data.SetInParent()
        asked.meter_config.SetInParent()
        yield p4r.Entity(table_entry=asked)
        if not info.message.const_default_action_id and not info.profile:
            default = p4r.TableEntry(table_id=number, is_default_action=True)
            yield p4r.Entity(table_entry=default)
    yield p4r.Entity(meter_entry=p4r.MeterEntry())
    yield p4r.Entity(counter_entry=p4r.CounterEntry())
    yield p4r.Entity(register_entry=p4r.RegisterEntry())
    yield p4r.Entity(value_set_entry=p4r.ValueSetEntry())
    yield p4r.Entity(digest_entry=p4r.DigestEntry())
    engine = p4r.PacketReplicationEngineEntry
    group = engine(multicast_group_entry=p4r.MulticastGroupEntry())
    session = engine(clone_session_entry=p4r.CloneSessionEntry())
    yield p4r.Entity(packet_replication_engine_entry=group)
    yield p4r.Entity(packet_replication_engine_entry=session)
