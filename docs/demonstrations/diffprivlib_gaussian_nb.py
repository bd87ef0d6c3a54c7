"""GaussianNB(epsilon=1).partial_fit of diffprivlib 0.6.6, without dpaudit.

The classes are given. Counts of classes that have a row get noise, and are at least 1;
those of classes without a row get none, and stay 0. So whether the count is 0 tells
whether anybody is of the class: 1 on D, where nobody is, and never on D'.
"""

import numpy as np
from diffprivlib.models import GaussianNB
from scipy.stats import beta

X = np.linspace(0, 1, 8)[:, None]
D = np.zeros(8, dtype=int)
D2 = np.append(D[:-1], 1)  # one row replaced
N, ALPHA = 100, 1e-6


def zeros(y: np.ndarray) -> int:
    """Return how often the second class has the count 0."""
    made = (
        GaussianNB(epsilon=1.0, bounds=(0, 1)).partial_fit(X, y, classes=[0, 1])
        for _ in range(N)
    )
    return sum(model.class_count_[1] == 0 for model in made)


seen, seen2 = zeros(D), zeros(D2)
assert (seen, seen2) == (N, 0)
# Clopper and Pearson: at confidence 1 - 2 ALPHA the ratio is at least ...
low, high = beta.ppf(ALPHA, N, 1), beta.ppf(1 - ALPHA, 1, N)
assert low > np.e * high  # ... more than e^1, which is what the claim allows
print(f"nobody of class 1: {seen} of {N} on D, {seen2} on D'")
print(f"epsilon is more than {np.log(low / high):.2g}")
