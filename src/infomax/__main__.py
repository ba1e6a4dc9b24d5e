"""``python -m infomax``."""

from infomax.cli import run

run()
