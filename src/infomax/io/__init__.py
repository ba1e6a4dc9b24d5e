"""Files and frames of graphs and vectors: readers return a `Record` of arrays, writers take one."""
