"""LinearRegression(fit_intercept=False) of diffprivlib 0.6.6, without dpaudit.

The sum of x y gets Laplace noise of scale 3 (a third of epsilon is for it), the sum of
x x gets none. So the slope is Laplace around 1, of scale 3 / sum(x x), and the chance
that it is further than 10 from 1 is exp(-10 sum(x x) / 3): 0.77 on D and 0.028 on D'.
"""

import math

import numpy as np
from diffprivlib.models import LinearRegression
from scipy.stats import binom

D = np.full(8, 0.1)
D2 = np.append(np.full(7, 0.1), 1.0)  # one row replaced
N, HALF_ALPHA = 1_000, 5e-7


def far(x: np.ndarray) -> int:
    """Return how often a slope is further than 10 from 1."""
    made = LinearRegression(
        epsilon=1.0, bounds_X=(0, 1), bounds_y=(0, 1), fit_intercept=False
    )
    return sum(abs(made.fit(x[:, None], x).coef_[0] - 1) > 10 for _ in range(N))


exact, exact2 = (math.exp(-10 * (x @ x) / 3) for x in (D, D2))
assert exact > 25 * exact2  # e^1 = 2.7 is what the claim allows
seen, seen2 = far(D), far(D2)
for count, chance in ((seen, exact), (seen2, exact2)):  # two-sided
    assert min(binom.cdf(count, N, chance), binom.sf(count - 1, N, chance)) > HALF_ALPHA
print(f"|slope - 1| > 10: {seen} of {N} on D, {seen2} on D'; exact {exact}, {exact2}")
