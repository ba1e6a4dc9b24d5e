"""The graph, its checks and the scaling of its features."""
