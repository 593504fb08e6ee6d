"""Flows over links in SimGrid: prints when each ends, as a line of JSON.

`python3 simgrid_flows.py` reads the capacities of links in byte/s, and flows as pairs of a way, a
list of links, and a size in bytes and start in seconds, as JSON from stdin. Any Python that has the
module simgrid will do, so it imports nothing of ours. Links have no latency, and SimGrid's own
factors are left out: model CM02, and nothing for the traffic of acknowledgements.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

_OPTIONS = (
    "--cfg=network/model:CM02",
    "--cfg=network/crosstraffic:0",
    "--log=root.thres:error",
)
_FORM = (
    "<?xml version='1.0'?>\n"
    '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
    '<platform version="4.1">\n<zone id="all" routing="Full">\n{}</zone>\n</platform>\n'
)


def platform(capacities: Sequence[float], ways: Sequence[Sequence[int]]) -> str:
    """Return SimGrid's description of the links, and of two hosts for each flow, as XML."""
    lines = []
    for number in range(len(ways)):
        lines += [f'<host id="{end}{number}" speed="1Gf"/>' for end in "ab"]
    for number, capacity in enumerate(capacities):
        lines.append(f'<link id="l{number}" bandwidth="{capacity}Bps" latency="0us"/>')
    for number, way in enumerate(ways):
        links = "".join(f'<link_ctn id="l{link}"/>' for link in way)
        lines.append(f'<route src="a{number}" dst="b{number}" symmetrical="NO">{links}</route>')
    return _FORM.format("".join(f"{line}\n" for line in lines))


def main() -> None:
    """Run the flows that stdin has."""
    import simgrid

    capacities, flows = json.load(sys.stdin)
    ends = [0.0] * len(flows)

    def send(number: int, size: float, start: float) -> None:
        simgrid.this_actor.sleep_until(start)
        simgrid.Mailbox.by_name(str(number)).put(number, size)

    def receive(number: int) -> None:
        simgrid.Mailbox.by_name(str(number)).get()
        ends[number] = simgrid.Engine.clock

    engine = simgrid.Engine(["simgrid_flows", *_OPTIONS])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "platform.xml")
        path.write_text(platform(capacities, [way for way, _, _ in flows]))
        engine.load_platform(str(path))
    for number, (_, size, start) in enumerate(flows):
        ends_of = simgrid.Host.by_name
        simgrid.Actor.create("send", ends_of(f"a{number}"), send, number, size, start)
        simgrid.Actor.create("receive", ends_of(f"b{number}"), receive, number)
    engine.run()
    sys.stdout.write(json.dumps(ends) + "\n")


if __name__ == "__main__":
    main()
