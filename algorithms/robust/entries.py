"""The entries in the catalogue of robust PCA: descent on GLAD, and on REAPER."""

from dpaudit.algorithms.entries import Entry
from dpaudit.algorithms.robust.ggd_entries import GGD
from dpaudit.algorithms.robust.reaper_entries import REAPER

__all__ = ["ROBUST"]

ROBUST: tuple[Entry, ...] = (*GGD, *REAPER)
