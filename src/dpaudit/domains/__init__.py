"""Data domains: which rows a dataset may hold.

A privacy claim speaks about all neighbouring datasets of some domain, and so a search
for the pair that breaks it needs to know what the domain is. A domain knows its rows:
how to draw one, which ones are extreme, what lies near a row, and which legal row is
nearest to any other. A dataset is legal if each of its rows is.
"""

from dpaudit.domains.base import Domain
from dpaudit.domains.kinds import Binary, Box, Categories, UnitBall, WithNonfinite
from dpaudit.domains.tables import Table

__all__ = [
    "Binary",
    "Box",
    "Categories",
    "Domain",
    "Table",
    "UnitBall",
    "WithNonfinite",
]
