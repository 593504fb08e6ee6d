import numpy as np

from ringleaf.core.chance import draw64


def test_numbers_are_those_of_splitmix64() -> None:
    """From state 0, the first three that Java's SplittableRandom and Vigna's splitmix64.c give."""
    state = np.zeros(2, np.uint64)
    with np.errstate(over="ignore"):  # uncompiled, sums modulo 2^64 are warned about
        found = [int(draw64(state, 1)) for _ in range(3)]

    assert found == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert state[0] == 0
