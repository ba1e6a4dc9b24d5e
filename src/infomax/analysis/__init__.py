"""Figures and numbers that show what was learnt; all functions take arrays."""
