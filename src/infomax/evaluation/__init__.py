"""How good the vectors are: probes, splits, metrics and the results table. Sees arrays, never models."""
