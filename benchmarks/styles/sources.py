"""Where noise and choices come from: names of laws, quantiles, keys, small choices."""
# Stubs of SciPy, and of Python's `max`, are narrower than what people do.
# pyright: reportArgumentType=false, reportCallIssue=false
# pyright: reportGeneralTypeIssues=false

import math
import statistics

import numpy as np
from scipy import special, stats

from benchmarks.styles.pairs import GAUSS, NUMBERS, ONE, UNIT
from benchmarks.styles.registry import right, wrong
from dpaudit import ApproxDP, Pair, PureDP

CAUCHY = PureDP(2 * math.log((1 + math.sqrt(5)) / 2))
THIRD = PureDP(math.log(3))
TEN = Pair([1, 0, 1, 1, 0, 0, 1, 0, 1, 1], [1, 0, 0, 1, 0, 0, 1, 0, 1, 1])
KINDS = Pair([0, 2, 1, 3, 1, 0, 2, 3], [0, 2, 1, 3, 2, 0, 2, 3])
POINTS = Pair([[0.1, 0.2]], [[0.1, 0.2], [0.6, 0.8]])
LEVELS = np.arange(-60, 61)
TABLE = stats.rv_discrete(
    values=(LEVELS, np.exp(-abs(LEVELS)) / np.exp(-abs(LEVELS)).sum())
)
NAMES = ("emu", "cat", "dog", "the")


def total(data):
    """Return the sum of numbers in [0, 1]."""
    return float(np.clip(data, 0, 1).sum())


def counts(data):
    """Return how many numbers lie in each quarter, by names."""
    found = np.histogram(data, bins=4, range=(0, 1))[0]
    return dict(zip(NAMES, found.tolist(), strict=True))


@right(CAUCHY, NUMBERS, "the ratio of two Cauchy densities 1 apart", domain=UNIT)
def cauchy_by_name(data, rng):
    """Cauchy noise of scipy.stats."""
    return total(data) + stats.cauchy.rvs(random_state=rng)


@wrong(CAUCHY, NUMBERS, "the scale is half of what the claim needs")
def half_of_cauchy_by_name(data, rng):
    """Cauchy noise of scipy.stats that is too small."""
    return total(data) + stats.cauchy.rvs(scale=0.5, random_state=rng)  # fault


@right(ONE, NUMBERS, domain=UNIT)
def laplace_of_nobody(data, rng):
    """Noise of scipy.stats with the global generator."""
    return total(data) + stats.laplace.rvs(scale=1.0)


@wrong(ONE, NUMBERS, "the scale is 1/2")
def half_laplace_of_nobody(data, rng):
    """Too little noise of scipy.stats, with the global generator."""
    return total(data) + stats.laplace.rvs(scale=0.5)  # fault


@right(ONE, NUMBERS, domain=UNIT)
def two_geometric_by_name(data, rng):
    """Geometric draws of scipy.stats, of which the difference is noise."""
    plus, minus = stats.geom.rvs(1 - math.exp(-1), size=2, random_state=rng)
    return len(data) + plus - minus


@wrong(ONE, NUMBERS, "the ratio is e^2")
def two_steep_geometric_by_name(data, rng):
    """Geometric draws of scipy.stats that are too close to each other."""
    plus, minus = stats.geom.rvs(1 - math.exp(-2), size=2, random_state=rng)
    return len(data) + plus - minus  # fault


@right(ONE, NUMBERS, "log f moves by at most 1 with x", domain=UNIT)
def hyperbolic_secant(data, rng):
    """Noise with the hyperbolic secant for a density."""
    return total(data) + stats.hypsecant().rvs(random_state=rng)


@right(ApproxDP(1.0, 1e-25), NUMBERS, "beyond the table there is less than delta")
def table_of_scipy(data, rng):
    """Noise of a table of one's own."""
    return len(data) + TABLE.rvs(random_state=rng)


@right(GAUSS, NUMBERS, domain=UNIT)
def normal_quantile_of_python(data, rng):
    """Python's own quantiles of a uniform number."""
    return total(data) + statistics.NormalDist(0.0, 1.0).inv_cdf(rng.random())


@wrong(GAUSS, NUMBERS, "sigma is 0.4")
def steep_quantile_of_python(data, rng):
    """Python's own quantiles, of too small a law."""
    return total(data) + statistics.NormalDist(0.0, 0.4).inv_cdf(rng.random())  # fault


@right(PureDP(math.sqrt(3)), NUMBERS, "Student's law with 3 degrees: 4/(2 sqrt(3))")
def student_by_quantile(data, rng):
    """Student noise by its quantiles."""
    return total(data) + 1.0 * stats.t.ppf(rng.uniform(), 3)


@right(GAUSS, NUMBERS, domain=UNIT)
def vector_of_scipy(data, rng):
    """A Gaussian vector of scipy.stats."""
    noise = stats.multivariate_normal.rvs([0.0, 0.0], np.eye(2), random_state=rng)
    return np.array([total(data), 0.0]) + noise


@right(ONE, NUMBERS, "the logarithm of a Pareto draw is exponential", domain=UNIT)
def logarithms_of_pareto(data, rng):
    """Noise of two Pareto draws."""
    return total(data) + np.log1p(rng.pareto(1.0)) - np.log1p(rng.pareto(1.0))


@right(ONE, NUMBERS, "sqrt(2 E) N is Laplace noise", domain=UNIT)
def rayleigh_times_normal(data, rng):
    """A normal draw whose scale is a Rayleigh draw."""
    return total(data) + rng.rayleigh() * rng.standard_normal()


@wrong(ONE, NUMBERS, "it is Laplace noise of scale 1/2")
def short_rayleigh_times_normal(data, rng):
    """A normal draw whose scale is too small a Rayleigh draw."""
    return total(data) + rng.rayleigh(0.5) * rng.standard_normal()  # fault


@right(PureDP(1.0), POINTS, "the radius has the density r exp(-r)")
def planar_by_lambert(data, rng):
    """Planar Laplace noise, its radius by Lambert's W."""
    r = -(special.lambertw((rng.random() - 1) / math.e, -1).real + 1)
    angle = 2 * math.pi * rng.random()
    return data.sum(axis=0) + r * np.array([math.cos(angle), math.sin(angle)])


@wrong(PureDP(1.0), POINTS, "the radius is half of what it has to be")
def short_planar_by_lambert(data, rng):
    """Planar Laplace noise of too small a radius."""
    r = -(special.lambertw((rng.random() - 1) / math.e, -1).real + 1) / 2
    angle = 2 * math.pi * rng.random()
    return data.sum(axis=0) + r * np.array([math.cos(angle), math.sin(angle)])  # fault


@right(ONE, NUMBERS, "exponential mechanism by Gumbel noise", domain=UNIT)
def best_by_gumbel_key(data, rng):
    """The largest of counts by a key with Gumbel noise."""
    found = counts(data)
    return max(NAMES, key=lambda name: found[name] - math.log(-math.log(rng.random())))


@wrong(ONE, NUMBERS, "counts weigh three times as much")
def best_by_steep_gumbel_key(data, rng):
    """The largest of counts by a key with too little noise."""
    found = counts(data)
    return max(NAMES, key=lambda name: 3 * found[name] + rng.gumbel())  # fault


@right(ONE, NUMBERS, "report noisy max with exponential noise", domain=UNIT)
def best_of_a_dictionary(data, rng):
    """The key of the largest noisy value of a dictionary."""
    noisy = {name: n + rng.exponential() for name, n in counts(data).items()}
    return max(noisy, key=noisy.get)


@right(ONE, NUMBERS, "the least of exponential draws, by their rates", domain=UNIT)
def first_of_a_race(data, rng):
    """The exponential mechanism as a race of exponential draws."""
    found = counts(data)
    return min(NAMES, key=lambda name: rng.exponential() / math.exp(found[name]))


@wrong(ONE, NUMBERS, "the weights are e^(3 n)")
def first_of_a_steep_race(data, rng):
    """A race of exponential draws with too large a lead."""
    found = counts(data)
    return min(NAMES, key=lambda n: rng.exponential() / math.exp(3 * found[n]))  # fault


@right(THIRD, TEN)
def ten_answers_in_a_list(data, rng):
    """Randomised response of ten people, one after the other."""
    return [int(bit) if rng.random() < 0.75 else 1 - int(bit) for bit in data]


@wrong(THIRD, TEN, "true with probability 0.9")
def ten_true_answers_in_a_list(data, rng):
    """Randomised response of ten people that is too often true."""
    return [int(bit) if rng.random() < 0.9 else 1 - int(bit) for bit in data]  # fault


@right(THIRD, TEN, "a function of the answers")
def total_of_ten_branches(data, rng):
    """How many of ten people said yes."""
    yes = 0
    for bit in data:
        said = bit > 0 if rng.random() < 0.75 else bit == 0
        yes += bool(said)
    return yes


@right(THIRD, TEN)
def answers_by_a_mask(data, rng):
    """Answers that a mask turns over, in an array of one's own."""
    out = data.copy()
    lies = rng.random(len(out)) < 0.25
    out[lies] = 1 - out[lies]
    return out


@wrong(THIRD, TEN, "a lie in ten")
def answers_by_a_rare_mask(data, rng):
    """Answers that a mask turns over too rarely."""
    out = data.copy()
    lies = rng.random(len(out)) < 0.1  # fault
    out[lies] = 1 - out[lies]
    return out


@right(ONE, KINDS, "p/q = e")
def kinds_one_by_one(data, rng):
    """Generalised randomised response in a loop."""
    p, out = math.e / (math.e + 3), []
    for kind in data.astype(int).tolist():
        others = [each for each in range(4) if each != kind]
        out.append(kind if rng.random() < p else int(rng.choice(others)))
    return out


@wrong(ONE, KINDS, "the truth is e^2 times as probable as another kind")
def true_kinds_one_by_one(data, rng):
    """Generalised randomised response that is too often true."""
    p, out = math.exp(2) / (math.exp(2) + 3), []
    for kind in data.astype(int).tolist():
        others = [each for each in range(4) if each != kind]
        out.append(kind if rng.random() < p else int(rng.choice(others)))  # fault
    return out


@right(ONE, KINDS, "the hash is public, and its answer randomised among three")
def local_hashes(data, rng):
    """Optimal local hashing, in a loop over people."""
    out = []
    for kind in data.astype(int).tolist():
        a = int(rng.integers(1, 7))
        hashed = (a * (kind + 1) % 7) % 3
        if rng.random() >= math.e / (math.e + 2):
            hashed = (hashed + int(rng.integers(1, 3))) % 3
        out.append((a, hashed))
    return out


@right(ONE, KINDS, "an entry differs in two places, each of which costs a half")
def sketch_of_signs(data, rng):
    """A count-mean sketch: a row of signs for each person, most of them true."""
    p, sketch = math.exp(0.5) / (1 + math.exp(0.5)), np.zeros((2, 4))
    for kind in data.astype(int).tolist():
        row = int(rng.integers(2))
        signs = np.where(np.arange(4) == (kind * (row + 1) + row) % 4, 1, -1)
        sketch[row] += signs * np.where(rng.random(4) < p, 1, -1)
    return sketch
