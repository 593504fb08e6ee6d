import pytest

from ringleaf.errors import ConfigError
from ringleaf.ina.job_numbers import check_job


def test_one_byte_numbers_jobs_and_nobody() -> None:
    assert [check_job("here", job) for job in (1, 255)] == [1, 255]


@pytest.mark.parametrize("job", [0, 256, -1])
def test_job_out_of_range_is_refused(job: int) -> None:
    with pytest.raises(ConfigError, match=f"here: job must be 1 to 255, got {job}"):
        check_job("here", job)
