"""RFC 6298, section 2, computed by hand."""

import numpy as np

from ringleaf.core.round_trip import smooth, timeout_ps


def test_the_first_sample_is_the_average() -> None:
    words = np.zeros(2, np.int64)
    smooth(words, 0, 1, 1000, 1)

    assert words.tolist() == [1000, 500]  # 2.2: SRTT = R, RTTVAR = R/2
    assert timeout_ps(words[0], words[1], 0) == 3000  # RTO = SRTT + 4 RTTVAR
    assert timeout_ps(words[0], words[1], 5000) == 5000


def test_later_samples_count_an_eighth_and_a_quarter() -> None:
    words = np.array([1000, 500])
    smooth(words, 0, 1, 1800, 1)

    assert words.tolist() == [1100, 575]  # 2.3: 500 + (800 - 500) / 4, and 1000 + 800 / 8


def test_many_samples_in_a_round_trip_count_less() -> None:
    words = np.array([1000, 500])
    smooth(words, 0, 1, 1800, 10)

    assert words.tolist() == [1010, 507]  # 500 + 300 / 40, and 1000 + 800 / 80
