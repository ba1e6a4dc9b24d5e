"""Ours beside other implementations, in one run; see README.md."""
