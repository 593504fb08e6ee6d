"""A worker of `sum.p4`: `python3 sum_worker.py WORKER WORKERS A B C D`, on a host of the network.

It sends four numbers in a frame of its own type, and prints the four sums that come back.
"""

import socket
import struct
import sys
from pathlib import Path

ETHER_TYPE = 0x88B5
FRAME = struct.Struct("!6s6sHBBHiiii")
PATIENCE_S = 60


def main() -> None:
    worker, workers, *values = map(int, sys.argv[1:])
    (interface,) = [each.name for each in Path("/sys/class/net").iterdir() if each.name != "lo"]
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHER_TYPE)) as wire:
        wire.bind((interface, ETHER_TYPE))
        wire.settimeout(PATIENCE_S)
        source = wire.getsockname()[4]
        wire.send(FRAME.pack(b"\xff" * 6, source, ETHER_TYPE, workers, worker, 0, *values))
        while True:
            data, address = wire.recvfrom(2048)
            if address[2] != socket.PACKET_OUTGOING:
                sys.stdout.write(" ".join(map(str, FRAME.unpack(data[: FRAME.size])[6:])) + "\n")
                return


if __name__ == "__main__":
    main()
