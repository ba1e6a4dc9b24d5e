"""Training and embedding: the loop, checkpoints, run folders, the report."""
