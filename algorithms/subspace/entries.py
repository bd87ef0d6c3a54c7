"""The entries in the catalogue of mechanisms that release a subspace."""

from dpaudit.algorithms.entries import Entry

__all__ = ["SUBSPACE"]

SUBSPACE: tuple[Entry, ...] = ()
