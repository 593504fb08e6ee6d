"""Commands of BMv2's `simple_switch_CLI`, as students' exercises have them for each switch.

Those that change a switch are understood, but for those that P4Runtime has no words for; these are
refused by name. Those that only look at it are passed over.

Source: behavioral-model, `tools/runtime_CLI.py` and `targets/simple_switch/sswitch_CLI.py`.
Entries, members, groups and nodes have the numbers that they have there (`numbered`). Comments
begin with `#`, or a line with `//`: BMv2 calls such a line unknown, and goes on. An empty line
repeats the line before it, as in every `cmd.Cmd` of Python.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from finsy import P4Schema

from ringleaf.errors import ConfigError, choose
from ringleaf.experiments.programs.arrays import LastWrites
from ringleaf.experiments.programs.entries import Entries
from ringleaf.experiments.programs.replicas import PortedEntities, ReplicaSources

_LOOKS = re.compile(
    r"help|show_\w+|\w+_dump(_\w+)?|table_info|table_num_entries|table_show_actions|pvs_get"
    r"|(register|counter)_read|meter_get_rates|mirroring_get|switch_info|get_time_\w+"
    r"|write_config_to_file|serialize_state"
)
"""Commands that only look at a switch."""

_RESET, _OF_SESSIONS = "reset_state", "mirroring_"
"""The command that undoes all before it, and how those begin whose effect stays."""

_MAKES = re.compile(r"mc_node_create|(act_prof|table_indirect)_create_(member|group)")
"""The commands that do something more when they are repeated at once; others BMv2 refuses then."""

_COMMENT = re.compile(r"#|^\s*//")

_ELSEWHERE = {
    "set_queue_rate": "links have rates: say them in the topology, or by --rate",
    "set_queue_depth": "queues have the depth of --queue",
    "port_add": "the topology says which ports there are",
    "port_remove": "the topology says which ports there are",
    **dict.fromkeys(
        (
            "table_indirect_set_default",
            "table_indirect_set_default_with_group",
            "table_indirect_reset_default",
        ),
        "P4Runtime lets a table with an action profile have no default; add an entry for the rest",
    ),
    "mc_set_lag_membership": "say the ports of the group themselves",
    "load_new_config_file": "say the program by --program",
    "swap_configs": "say the program by --program",
    "set_crc16_parameters": "a hash has the algorithm that the program names",
    "set_crc32_parameters": "a hash has the algorithm that the program names",
    "set_toeplitz_hash_key": "a hash has the algorithm that the program names",
}
"""Commands that are not done, and what to do instead."""

Command = Callable[[str, Sequence[str]], None]


def read(text: str, where: str, schema: P4Schema) -> PortedEntities:
    """Return the entities that commands make.

    Raises:
        ConfigError: If one is not understood; the message has its line.
    """
    replicas = ReplicaSources()
    entries = Entries(schema)
    parts = replicas, LastWrites(schema, entries), entries
    known: dict[str, Command] = {}
    for part in parts:
        known |= part.commands()
    waiting: list[tuple[str, str, Sequence[str]]] = []
    last: Sequence[str] = ()
    for number, line in enumerate(text.splitlines(), start=1):
        words = _COMMENT.split(line, maxsplit=1)[0].split()
        if not line.strip() and last and _MAKES.fullmatch(last[0]):
            words = last
        last = words
        if not words or _LOOKS.fullmatch(words[0]):
            continue
        here = f"{where}:{number}"
        name, *rest = words
        if name in _ELSEWHERE:
            raise ConfigError(f"{here}: command is not done here, got {name!r}; {_ELSEWHERE[name]}")
        if name == _RESET:
            waiting = [each for each in waiting if each[0].startswith(_OF_SESSIONS)]
        else:
            waiting.append((choose(here, "command", name, known), here, rest))
    for name, here, arguments in waiting:
        known[name](here, arguments)
    commanded = PortedEntities(entity for part in parts for entity in part.entities())
    commanded.ports = replicas.ports()
    return commanded
