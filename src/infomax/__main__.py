"""``python -m infomax``."""

from infomax.cli import main

main()
