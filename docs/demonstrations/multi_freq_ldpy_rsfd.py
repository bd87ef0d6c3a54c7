"""RSpFD_GRR_Client(epsilon=1) of multi-freq-ldpy 0.2.5, without dpaudit.

Of d = 2 binary attributes one, by a fair coin, is answered with randomised response at
the epsilon log(d (e - 1) + 1), and the other is a fair coin. So the law of what is sent
is known exactly. Local privacy is about any two inputs of one person.
"""

from itertools import product
from math import e

import numpy as np
from multi_freq_ldpy.mdim_freq_est.RSpFD_solution import RSpFD_GRR_Client
from scipy.stats import binom

N, HALF_ALPHA = 20_000, 5e-7
TRUTH = (2 * (e - 1) + 1) / (2 * (e - 1) + 2)  # that an answer is true


def chance(sent: tuple[int, int], held: tuple[int, int]) -> float:
    """Return the probability that a person who holds two values sends two others."""
    answers = [TRUTH if s == h else 1 - TRUTH for s, h in zip(sent, held, strict=True)]
    return sum(answers) / 4  # each of the two by one half, beside a coin


values = list(product((0, 1), repeat=2))
assert all(abs(sum(chance(y, x) for y in values) - 1) < 1e-12 for x in values)
one = max(chance(y, (0, 0)) / chance(y, (0, 1)) for y in values)
both = max(chance(y, (0, 0)) / chance(y, (1, 1)) for y in values)
assert abs(one - e) < 1e-12  # epsilon = 1, where one attribute differs ...
assert abs(both - (2 * e - 1)) < 1e-12  # ... and log(2 e - 1) = 1.49 where both do
for held in ((0, 0), (1, 1)):
    seen = sum(
        list(RSpFD_GRR_Client(list(held), [2, 2], 2, 1.0)) == [0, 0] for _ in range(N)
    )
    exact = chance((0, 0), held)  # two-sided, twice
    assert min(binom.cdf(seen, N, exact), binom.sf(seen - 1, N, exact)) > HALF_ALPHA / 2
    print(f"of {held} (0, 0) is sent {seen} times in {N}; exactly {exact:.4f}")
print(f"epsilon is {np.log(both):.3f}")
