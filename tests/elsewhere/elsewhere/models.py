"""A model in a file of this package."""

from pathlib import Path

TINY = Path(__file__).with_name("tiny.yaml")
