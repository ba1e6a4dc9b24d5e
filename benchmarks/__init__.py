"""Benchmarks of infomax and other implementations, measured in the same run; see README.md."""
