"""The notes below the table."""

from __future__ import annotations

NOTES = {
    "Raw features": (
        "Only the probe is trained: the runs are its initialisations. On PPI the paper's 0.422 comes from Hamilton et "
        "al. (2017), whose probe makes five passes of stochastic gradient descent: with that probe ours has 0.423."
    ),
    "LP": (
        "The paper's figures come from Yang et al. (2016), who used the Junto program. Ours does the same as Junto's "
        "label propagation with its default settings: ten rounds, and no prediction for nodes that no label reaches "
        "(59, 312 and 0 of the 1,000 test nodes of Cora, Citeseer and Pubmed). The remaining difference may be the "
        "split: their program has other files for transductive methods than those that became the public split. On 50 "
        "random splits of the same sizes we have 69.4 ± 3.1, 43.3 ± 2.1 and 71.0 ± 4.1 % (recipes/splits.py)."
    ),
    "DeepWalk": (
        "The settings are the defaults of the authors' program: walks of 40 nodes, windows of five, 64 dimensions, "
        "five passes over the walks; the learning rate was chosen on validation nodes. The paper's figures on the "
        "citation graphs come from Yang et al. (2016): walks of ten, windows of three, 50 dimensions."
    ),
    "DeepWalk + features": (
        "The paper's authors ran this row themselves and do not say with which settings of DeepWalk, nor how vectors "
        "and features are scaled. Ours are features of length 1 beside vectors as they were learnt, the best of four "
        "ways on the validation nodes of all three graphs. Features scaled as for DGI, beside vectors of length 1, "
        "had 70.9, 52.2 and 70.0 %; windows of ten and 128 dimensions, as in DeepWalk's paper, 74.7, 56.9 and 75.2 % "
        "(two to five runs each)."
    ),
    "GCN": (
        "On the citation graphs, the paper's caption: a two-layer DGI encoder trained with labels, as wide as DGI's, "
        "with the dropout, weight decay and early stopping of Kipf and Welling (2017). The paper's figures are those "
        "of Kipf and Welling, whose network is 16 wide: over 50 runs ours has 81.5 ± 0.6, 71.0 ± 0.8 and 79.1 ± 0.3 % "
        "with it (recipes/gcn.py)."
    ),
    "Planetoid": (
        "Ours is the transductive Planetoid-T, for which its authors report 75.7, 62.9 and 75.7 %. The 64.7 and 77.2 "
        "% that the paper prints for Citeseer and Pubmed are those of their inductive variant. Labels influence our "
        "vectors only through the label context, whose weight was chosen on validation nodes."
    ),
    "PPI": (
        "The files were rebuilt from public sources: 714 of 56,944 nodes have no known labels; they are in the graph "
        "but in no score. With the paper's probe of 100 steps, as in the table, DGI is ahead of Random-Init; with a "
        "probe of 1,000 steps untrained encoders are ahead, 0.632 ± 0.003 against 0.624 ± 0.002, ten of each. The "
        "paper's GraphSAGE figures come from Hamilton et al. (2017), whose probe does not standardise the vectors and "
        "makes five passes of stochastic gradient descent: with that probe ours have 0.469 (GCN), 0.470 (mean), 0.447 "
        "(LSTM) and 0.479 (pool), and untrained encoders 0.466 (GCN), 0.464 (mean) and 0.458 (pool). Ours are trained "
        "1,000 steps at 1e-4, chosen on validation graphs; their authors take 17,541 steps at 2e-6 or less. As long "
        "as theirs, GraphSAGE-GCN has 0.497 (one run, against 0.495); the other three were not trained so long "
        "(recipes/ppi_baselines.py)."
    ),
    "generated Reddit": (
        "A random graph with the size of Reddit, to test the code. Its figures say nothing about Reddit. No setting "
        "was chosen on it. Its features are the mean of a community plus noise, which mean aggregators find and "
        "maximum aggregators do not."
    ),
}
"""Method or data set, as named in the table -> the note."""
