"""Nodes by the names that a topology's file has for them, as people type them in options.

The names of an option are all the file's, or else all Ringleaf's (`h0`, `s0`): P4's tutorials begin
with `s1`, which is our `s0`, so what may be either is the file's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from ringleaf.topologies.files.description import Description, FileNode


class NodeNames(NamedTuple):
    """Our nodes by their names and labels in a file; a label of several nodes is no name.

    Attributes:
        hosts: Hosts alone.
        ends: Hosts and switches, at which links end; a server's end at the switch in it.
    """

    hosts: Mapping[str, str]
    ends: Mapping[str, str]

    def way(self, text: str) -> tuple[str, ...] | None:
        """Return the nodes of a way like `h1-s1-h2`, as our own; None if it is none.

        Its first and last node are hosts, if it has more than two.
        """
        names = next(_ways(text, self.ends), None)
        if names is None or len(names) < 3:
            return names and tuple(self.ends[name] for name in names)
        if names[0] not in self.hosts or names[-1] not in self.hosts:
            return None
        inner = [self.ends[name] for name in names[1:-1]]
        return self.hosts[names[0]], *inner, self.hosts[names[-1]]


def node_names(description: Description) -> NodeNames:
    """Return our nodes by the names in a file, as `building.build` numbers them."""
    servers = [each for each in description.hosts if each.is_server]
    hosts = [(each, f"h{rank}") for rank, each in enumerate(description.hosts)]
    switches = [
        (each, f"s{number}") for number, each in enumerate((*servers, *description.switches))
    ]
    plain = [(each, ours) for each, ours in hosts if not each.is_server]
    return NodeNames(_by_name(hosts), _by_name([*plain, *switches]))


def _by_name(nodes: Sequence[tuple[FileNode, str]]) -> dict[str, str]:
    count = Counter(each.label for each, _ in nodes)
    labels = {each.label: ours for each, ours in nodes if count[each.label] == 1}
    return labels | {each.name: ours for each, ours in nodes}


def _ways(text: str, names: Collection[str]) -> Iterator[tuple[str, ...]]:
    """Yield the ways to read a text as names with a `-` between, those of fewer names first."""
    if text in names:
        yield (text,)
    parts = text.split("-")
    for number in range(len(parts) - 1, 0, -1):
        head = "-".join(parts[:number])
        if head in names:
            for rest in _ways("-".join(parts[number:]), names):
                yield head, *rest
