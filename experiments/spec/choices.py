"""The values that options of all experiments may have."""

from ringleaf.ina.systems import FORWARD

MAX_HOSTS = 4096
"""The most hosts: more can be drawn and routed, but not simulated in any useful time."""

LANES = (64, 256)
"""The values per SwitchML packet: one P4 program is built for each."""

MTUS = (256, 512, 1024, 2048, 4096)
"""The payload bytes per packet that RoCEv2 allows (InfiniBand specification, path MTU)."""

KSP = "ksp"
SOLVED = GRID, GOAT = ("grid", "goat")
"""Ways of one job's gradients to its parameter servers, solved for the topology."""
VALIANT, UGAL, DCELL = ("valiant", "ugal", "dcell")
ROUTES = ("dealt", "ecmp", KSP, VALIANT, UGAL, DCELL, *SOLVED)

FIXED = "fixed"
"""The name for no congestion control, which is known to need no marks without being loaded."""

PROGRAMS = (FORWARD, "tensorexpress")

VIRTUAL = "virtual"
FLOW = "flow"
MININET = "mininet"
NETWORKS = (VIRTUAL, FLOW, MININET)
SWITCHES = ("embedded", "bmv2")

LIVE_SCALES = {"embedded": 1000, "bmv2": 100_000}
"""The default factor by which links are slower on a live network than asked for.

Twenty BMv2s on two processors forward some 15 thousand packets/s in all, and fewer of SwitchML's.
"""
