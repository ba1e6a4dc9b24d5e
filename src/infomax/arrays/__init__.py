"""Arrays of a graph, in memory or mapped from disk: features, edges, columns of nodes; nothing here knows a Graph."""
