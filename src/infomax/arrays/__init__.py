"""Arrays of a graph, in memory or mapped from disk: features, edges, columns of nodes.

Nothing here knows a Graph.
"""
