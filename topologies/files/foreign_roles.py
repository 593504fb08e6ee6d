"""Words of other programs for the roles of nodes: which are hosts, and which are switches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ringleaf.topologies.files.attributes import HOST, ROLES, SWITCH
from ringleaf.topologies.files.foreign_names import filled, plain

_HOSTS = (
    *("host", "server", "gpu", "npu", "xpu", "tpu", "accelerator", "client", "worker"),
    *("compute", "computenode", "endhost", "endpoint", "endsystem", "endnode"),
    *("workstation", "pc", "vm", "hca"),
)
_SWITCHES = (
    *("switch", "router", "gateway", "bridge", "tor", "topofrack", "leaf", "spine", "superspine"),
    *("edge", "agg", "aggregation", "core", "nvswitch", "ovs", "p4switch", "l2switch", "l3switch"),
    *("torswitch", "leafswitch", "spineswitch", "edgeswitch", "aggswitch", "coreswitch"),
    *("aggregationswitch", "corerouter", "edgerouter"),
)
_WORDS = {**dict.fromkeys(_HOSTS, HOST), **dict.fromkeys(_SWITCHES, SWITCH)}
_NAMES = (
    *("role", "type", "nodetype", "devicetype", "kind", "category", "class"),
    *("noderole", "devicerole", "nodekind", "nodeclass"),
)
_FLAGS = {
    **dict.fromkeys(("ishost", "isserver", "isgpu", "isendpoint"), (HOST, SWITCH)),
    **dict.fromkeys(("isswitch", "isrouter"), (SWITCH, HOST)),
}
"""Names of attributes that are true or false, and the roles that these mean."""
_ANSWERS = {**dict.fromkeys(("true", "yes", "1"), 0), **dict.fromkeys(("false", "no", "0"), 1)}


def role_of(name: str, value: str) -> str:
    """Return the role that an attribute of a node says; "" if it says none."""
    if plain(name) not in _FLAGS:
        return _WORDS.get(plain(value), "")
    answer = _ANSWERS.get(plain(value))
    return "" if answer is None else _FLAGS[plain(name)][answer]


def is_flag(name: str) -> bool:
    """Return whether an attribute says of a node, by true and false, that it has a role or not."""
    return plain(name) in _FLAGS


def role_name(rows: Iterable[Mapping[str, str]]) -> str:
    """Return the name of the attribute that says of nodes whether they are hosts or switches.

    All of its values must be known words; of several such attributes, one that names hosts comes
    first. Ours has its own words, which are left as they are.
    """
    roles: dict[str, set[str]] = {}
    own: set[str] = set()
    for values in rows:
        for name, value in filled(values, ("", "None", "nan")).items():
            if plain(name) in _NAMES or is_flag(name):
                roles.setdefault(name, set()).add(role_of(name, value))
            if name == "role":
                own.add(plain(value))
    if own and own <= {*ROLES}:
        return ""
    able = [name for name, known in roles.items() if "" not in known]
    return max(able, key=lambda name: HOST in roles[name], default="")
