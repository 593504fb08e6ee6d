import pytest
from hypothesis import settings

settings.register_profile("ringleaf", deadline=None, max_examples=50, print_blob=True)
settings.load_profile("ringleaf")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--p4c-samples",
        metavar="DIR",
        help="p4c's testdata/p4_16_samples, to run its STF tests",
    )
