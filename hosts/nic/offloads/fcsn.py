"""Inference of a neural network that streams through NICs, a part of its layers on each.

A sample goes from NIC to NIC. Each computes its layers on a message of some samples while the next
one arrives, so a stage takes the longer of its computation and its bytes over the line. Without
NICs that compute, each message goes up to the host first, which takes its time.

Source:
    FCsN, a framework for neural network inference on FPGA-centric SmartNICs, FPL 2022.

The paper's text was not at hand: control, communication and streaming kernels on NICs that overlap
with the network are from a survey. Chosen here: dense layers of 8-bit integers with a ReLU, a rate
of multiplications that is the same on NIC and host, and the host's latency of 5 us to 20 us.
"""

from __future__ import annotations

from ringleaf.hosts.nic.registry import Offload

OFFLOAD = Offload("layer pipeline (FCsN)", "ringleaf.experiments.workloads.nic.pipeline")
