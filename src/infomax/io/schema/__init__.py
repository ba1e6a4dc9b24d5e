"""The schema: what every table of a graph and every column of it is, decided once."""
