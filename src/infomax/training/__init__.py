"""Training and embedding: the loop, checkpoints, run folders, memory estimates, the report."""
