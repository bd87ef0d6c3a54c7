"""What the tests of all rooms draw from."""

import numpy as np


def rng(seed=0):
    return np.random.default_rng(seed)
