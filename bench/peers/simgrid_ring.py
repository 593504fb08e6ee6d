"""One ring allreduce in SimGrid, sizes only: prints its simulated time as a line of JSON.

`python3 simgrid_ring.py RANKS SIZE_BYTES RATE_BPS DELAY_NS`, by any Python that has the module
simgrid, so it imports nothing of ours. The hosts are a cluster around one switch: a message is a
flow over its sender's link up and its receiver's link down, and flows share links fairly. SimGrid's
own factors are left out: model CM02, and nothing for the traffic of acknowledgements.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

_OPTIONS = (
    "--cfg=network/model:CM02",
    "--cfg=network/crosstraffic:0",
    "--log=root.thres:error",
)
_FORM = (
    "<?xml version='1.0'?>\n"
    '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
    '<platform version="4.1">\n{inside}</platform>\n'
)
_CLUSTER = (
    '<cluster id="star" prefix="h" suffix="" radical="0-{last}" speed="1Gf" '
    'bw="{rate_bps}bps" lat="{delay_ns}ns" sharing_policy="SPLITDUPLEX"/>\n'
)
_ACTOR = '<actor host="h{rank}" function="rank"><argument value="{rank}"/></actor>\n'


def files(ranks: int, rate_bps: int, delay_ns: int) -> tuple[str, str]:
    """Return SimGrid's descriptions of the platform and of the actors on it, as XML."""
    cluster = _CLUSTER.format(last=ranks - 1, rate_bps=rate_bps, delay_ns=delay_ns)
    actors = "".join(_ACTOR.format(rank=rank) for rank in range(ranks))
    return _FORM.format(inside=cluster), _FORM.format(inside=actors)


def main() -> None:
    """Run the case that the arguments name."""
    import simgrid

    ranks, size_bytes, rate_bps, delay_ns = (int(text) for text in sys.argv[1:])

    def rank(text: str) -> None:
        """Send a part to the next rank and receive one from the last, 2(n-1) times."""
        here = int(text)
        inbox = simgrid.Mailbox.by_name(str(here))
        outbox = simgrid.Mailbox.by_name(str((here + 1) % ranks))
        for step in range(2 * (ranks - 1)):
            sending = outbox.put_async(step, size_bytes // ranks)
            inbox.get()
            sending.wait()

    engine = simgrid.Engine(["simgrid_ring", *_OPTIONS])
    with tempfile.TemporaryDirectory() as folder:
        platform, actors = Path(folder, "platform.xml"), Path(folder, "actors.xml")
        for path, text in zip((platform, actors), files(ranks, rate_bps, delay_ns), strict=True):
            path.write_text(text)
        engine.load_platform(str(platform))
        engine.register_actor("rank", rank)
        engine.load_deployment(str(actors))
    engine.run()
    sys.stdout.write(json.dumps({"time_us": simgrid.Engine.clock * 1e6}) + "\n")


if __name__ == "__main__":
    main()
