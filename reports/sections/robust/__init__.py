"""Robust PCA: subspaces among outliers."""
