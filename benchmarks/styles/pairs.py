"""Pairs of neighbours that many mechanisms share, each at the edge of its domain."""

import numpy as np

from dpaudit import ApproxDP, GaussianDP, Pair, PureDP

ONE = PureDP(1.0)
TWO = PureDP(2.0)
GAUSS = GaussianDP(1.0)
APPROX = ApproxDP(1.0, 1e-5)

# Numbers in [0, 1]: one is added, or is replaced by its opposite.
NUMBERS = Pair([0.25, 0.75, 0.5], [0.25, 0.75, 0.5, 1.0])
SWAPPED = Pair([0.25, 0.75, 0.5, 0.0], [0.25, 0.75, 0.5, 1.0])
# A row that moves a sum and a count by different numbers.
HALF = Pair([0.25, 0.75], [0.25, 0.75, 0.5])
UNIT = "scalar:0,1"

# Numbers that have to be clipped to [0, 1].
FAR = Pair([0.25, 0.75, 0.5], [0.25, 0.75, 0.5, 40.0])
MISSING = Pair([0.25, 0.75, 0.5], [0.25, 0.75, 0.5, np.nan], allow_nonfinite=True)

# Answers 0 and 1.
BITS = Pair([1.0, 0.0, 1.0, 0.0], [1.0, 0.0, 1.0, 0.0, 1.0])
FLIPPED = Pair([1.0, 0.0, 1.0, 0.0], [1.0, 0.0, 1.0, 1.0])

# Codes of one of four groups.
CODES = Pair([0.0, 1.0, 1.0, 2.0, 3.0], [0.0, 1.0, 1.0, 2.0, 3.0, 1.0])
RECODED = Pair([0.0, 1.0, 1.0, 2.0, 3.0], [0.0, 1.0, 1.0, 2.0, 0.0])
RARE = Pair([0.0, 1.0, 1.0, 0.0], [0.0, 1.0, 1.0, 0.0, 3.0])
GROUPS = "codes:4"

# Vectors of length at most 1.
BALL = Pair(
    [[0.5, 0.5, 0.0], [0.0, -0.6, 0.8]],
    [[0.5, 0.5, 0.0], [0.0, -0.6, 0.8], [0.6, 0.0, 0.8]],
)
TURNED = Pair([[0.5, 0.5, 0.0], [0.6, 0.0, 0.8]], [[0.5, 0.5, 0.0], [-0.6, 0.0, -0.8]])
DIAGONAL = Pair([[0.5, 0.5, 0.0]], [[0.5, 0.5, 0.0], [3**-0.5, 3**-0.5, 3**-0.5]])
LONG = Pair(
    [[0.5, 0.5, 0.0], [0.0, -0.6, 0.8]],
    [[0.5, 0.5, 0.0], [0.0, -0.6, 0.8], [30.0, 0.0, 40.0]],
)
SPHERE = "ball:3"

# Records: a group of four, and an amount in [0, 1].
RECORDS = Pair(
    [[0.0, 0.5], [1.0, 0.25], [1.0, 1.0], [2.0, 0.75]],
    [[0.0, 0.5], [1.0, 0.25], [1.0, 1.0], [2.0, 0.75], [1.0, 1.0]],
)
NEWGROUP = Pair(
    [[0.0, 0.5], [1.0, 0.25], [1.0, 1.0]],
    [[0.0, 0.5], [1.0, 0.25], [1.0, 1.0], [3.0, 1.0]],
)
