"""DP-PCA: the experiments of its paper, and what its lower bounds leave room for."""
