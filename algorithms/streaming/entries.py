"""The entries in the catalogue of the streaming family: Oja's algorithm, and DP-PCA."""

from dpaudit.algorithms.entries import Entry
from dpaudit.algorithms.streaming.dp_pca_entries import DP_PCA
from dpaudit.algorithms.streaming.oja_entries import OJA

__all__ = ["STREAMING"]

STREAMING: tuple[Entry, ...] = (*OJA, *DP_PCA)
