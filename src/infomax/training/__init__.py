"""The training loop and what surrounds it: checkpoints, run folders, memory, health."""
