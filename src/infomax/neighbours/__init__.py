"""Nearest neighbours by cosine similarity: of some nodes or of all, exact."""
