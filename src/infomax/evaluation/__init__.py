"""How good the vectors are: probes, splits and metrics. It sees arrays, never models."""
