"""What must be said beside the table's numbers."""

from __future__ import annotations

USES = {
    "Raw features": "X",
    "LP": "A, Y",
    "DeepWalk": "A",
    "DeepWalk + features": "X, A",
    "GraphSAGE-GCN": "X, A",
    "GraphSAGE-mean": "X, A",
    "GraphSAGE-LSTM": "X, A",
    "GraphSAGE-pool": "X, A",
    "Random-Init": "X, A",
    "DGI": "X, A",
    "GCN": "X, A, Y",
    "Planetoid": "X, A, Y",
    "FastGCN": "X, A, Y",
    "Avg. pooling": "X, A, Y",
}
"""Method -> what it is given: X features, A edges, Y labels."""

NOTES = {
    "Raw features": "Nothing is trained but the probe: its runs are the probe's initialisations.",
    "LP": (
        "The paper's figures go back to Yang et al. (2016), who ran the Junto library. Ours is what the authors cited, "
        "Zhu et al. (2003), describe, the harmonic function with class mass normalisation, solved exactly, and better. "
        "Without the normalisation it has 71.7, 51.8 and 21.9 %: on Pubmed, with 60 labels among 19,717 nodes, one "
        "class takes nearly all. On Citeseer no label reaches 310 of the 1,000 test nodes."
    ),
    "DeepWalk": (
        "The paper's figures on the citation graphs go back to Yang et al. (2016): walks of ten steps, windows of "
        "three. Ours are of 40 and ten, as in DeepWalk's own paper, and better on validation nodes, too. With windows "
        "of five, the default of its program, two runs have 67.8 and 43.3 % on Cora and Citeseer."
    ),
    "DeepWalk + features": (
        "The paper does not tell how the two are scaled. Ours have features of length 1, the best on validation nodes; "
        "with features that sum to 1, as DGI has them, a single run has 71.2, 51.1 and 70.1 %."
    ),
    "Planetoid": (
        "Ours is the transductive Planetoid-T, whose authors have 75.7, 62.9 and 75.7 %. The 64.7 and 77.2 % that the "
        "paper prints for Citeseer and Pubmed are those of their inductive variant. Labels reach our vectors through "
        "the label context only; how much it counts was chosen on validation nodes."
    ),
    "PPI": (
        "1.25 % of our labels are not known; those nodes are in the graph but in no score. The table has DGI ahead of "
        "Random-Init by a probe of 100 steps; where the probe converges, the two come level."
    ),
    "generated Reddit": "A random graph of Reddit's shape: a test of the code. It says nothing about Reddit.",
}
"""Method or data set, as the table spells it -> the note."""
