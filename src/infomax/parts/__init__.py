"""Deep Graph Infomax as the paper writes it. Begin with ``deep_graph_infomax.py``: the five steps.

A file for each part of the paper: ``corruptions.py`` (C), ``encoders.py`` (E), ``readouts.py`` (R),
``discriminators.py`` (D) and ``objectives.py`` (Equation (1)). ``fused.py`` computes the same loss
and gradient faster, and says when. ``methods.py`` is what any method is, ``vectors.py`` the names
of the parts of a vector.
"""
