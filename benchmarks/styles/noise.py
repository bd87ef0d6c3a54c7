"""Noise that is made by hand, and what is made of it before data are added."""
# What stubs do not know.
# pyright: reportOperatorIssue=false

import math
import random

import numpy as np
from scipy import fft, stats

from benchmarks.styles.pairs import (
    APPROX,
    BALL,
    BITS,
    CODES,
    DIAGONAL,
    GAUSS,
    GROUPS,
    NUMBERS,
    ONE,
    SPHERE,
    SWAPPED,
    UNIT,
)
from benchmarks.styles.registry import right, wrong
from dpaudit import ApproxDP, GaussianDP, Pair

SPREAD = Pair([[0.5, 0.2, 0.0, 0.5]], [[0.5, 0.2, 0.0, 0.5], [0.5, 0.5, 0.5, 0.0]])


@right(ONE, NUMBERS, "the inverse of the distribution function", domain=UNIT)
def laplace_by_inverse(data, rng):
    """Laplace noise from one uniform number, by the inverse CDF."""
    u = rng.random() - 0.5
    return np.clip(data, 0, 1).sum() - np.sign(u) * np.log1p(-2 * abs(u))


@wrong(ONE, NUMBERS, "a factor of two is lost, and the noise ends at log 2")
def laplace_by_wrong_inverse(data, rng):
    """Laplace noise by the inverse CDF, of a uniform number that is not doubled."""
    u = rng.random() - 0.5
    noise = -np.sign(u) * np.log1p(-abs(u))  # part
    return np.clip(data, 0, 1).sum() + noise  # fault


@right(ONE, NUMBERS, "the inverse of the distribution function", domain=UNIT)
def laplace_by_math(data, rng):
    """Laplace noise by the inverse CDF, with math and an if, of the random module."""
    u = random.uniform(-0.5, 0.5)
    if u < 0:
        noise = math.log(1 + 2 * u)
    else:
        noise = -math.log(1 - 2 * u)
    return float(np.clip(data, 0, 1).sum()) + noise


@right(ONE, NUMBERS, "X - Y is Laplace for exponential X and Y", domain=UNIT)
def difference_of_exponentials(data, rng):
    """Laplace noise as a difference of two exponential draws."""
    noise = rng.exponential(1.0) - rng.exponential(1.0)
    return np.clip(data, 0, 1).sum() + noise


@wrong(ONE, SWAPPED, "the scale is 1/(2 epsilon) in place of 1/epsilon")
def difference_of_fast_exponentials(data, rng):
    """Laplace noise as a difference of two exponential draws of half the scale."""
    noise = rng.exponential(0.5) - rng.exponential(0.5)  # part
    return np.clip(data, 0, 1).sum() + noise  # fault


@right(ONE, NUMBERS, "X - Y is Laplace for exponential X and Y", domain=UNIT)
def difference_of_expovariates(data, rng):
    """Laplace noise as a difference of two draws of the random module."""
    total = sum(min(max(float(x), 0.0), 1.0) for x in data)
    return total + random.expovariate(1.0) - random.expovariate(1.0)


@wrong(ONE, NUMBERS, "noise of one sign: a release below the sum is impossible")
def one_sided_noise(data, rng):
    """Exponential noise, which has one side only."""
    return np.clip(data, 0, 1).sum() + rng.exponential(1.0)  # fault


@right(ONE, NUMBERS, "a random sign makes it Laplace", domain=UNIT)
def sign_times_exponential(data, rng):
    """Laplace noise as a sign of choice() times an exponential draw."""
    return np.clip(data, 0, 1).sum() + rng.choice([-1, 1]) * rng.exponential(1.0)


@wrong(ONE, NUMBERS, "the sign may be 0, and the exact sum is released then")
def sign_or_zero(data, rng):
    """Laplace noise as a sign of integers(-1, 2) times an exponential draw."""
    sign = rng.integers(-1, 2)  # fault
    return np.clip(data, 0, 1).sum() + sign * rng.exponential(1.0)  # part


@right(ONE, NUMBERS, "a random sign makes it Laplace", domain=UNIT)
def sign_by_coin(data, rng):
    """Laplace noise whose sign is decided by an if."""
    noise = rng.exponential(1.0)
    if rng.random() < 0.5:
        noise = -noise
    return np.clip(data, 0, 1).sum() + noise


@right(ONE, NUMBERS, "sqrt(2 E) Z is Laplace of scale 1", domain=UNIT)
def normal_mixture(data, rng):
    """Laplace noise as a normal draw of exponential variance."""
    noise = np.sqrt(2 * rng.exponential()) * rng.standard_normal()
    return np.clip(data, 0, 1).sum() + noise


@wrong(ONE, NUMBERS, "the factor 2 under the root is lost: the scale is 0.71")
def short_normal_mixture(data, rng):
    """Laplace noise as a normal draw of exponential variance, without its factor."""
    noise = np.sqrt(rng.exponential()) * rng.standard_normal()  # part
    return np.clip(data, 0, 1).sum() + noise  # fault


@right(ONE, NUMBERS, "AB + CD is Laplace of scale 1", domain=UNIT)
def products_of_normals(data, rng):
    """Laplace noise as a determinant of four normal draws."""
    a, b, c, d = rng.normal(size=4)
    return np.clip(data, 0, 1).sum() + (a * b - c * d)


@right(ONE, NUMBERS, "the logarithm of a ratio of uniforms is Laplace", domain=UNIT)
def log_of_a_ratio(data, rng):
    """Laplace noise as the logarithm of a ratio of two uniform numbers."""
    return np.clip(data, 0, 1).sum() + np.log(rng.random() / rng.random())


@right(GAUSS, BALL, "Box-Muller gives two independent normal draws", domain=SPHERE)
def box_muller(data, rng):
    """Gaussian noise by Box-Muller."""
    u, v = rng.random((2, data.shape[1]))
    noise = np.sqrt(-2 * np.log1p(-u)) * np.cos(2 * np.pi * v)
    return data.sum(axis=0) + noise


@wrong(GAUSS, BALL, "log10 in place of log: the noise has deviation 0.66")
def box_muller_of_ten(data, rng):
    """Gaussian noise by Box-Muller with the logarithm to base ten."""
    u, v = rng.random((2, data.shape[1]))
    noise = np.sqrt(-2 * np.log10(1 - u)) * np.cos(2 * np.pi * v)  # part
    return data.sum(axis=0) + noise  # fault


@right(ONE, NUMBERS, domain=UNIT)
def ppf_of_uniform(data, rng):
    """Laplace noise by the quantile function of SciPy."""
    return np.clip(data, 0, 1).sum() + stats.laplace.ppf(rng.random())


@right(GAUSS, BALL, domain=SPHERE)
def frozen_distribution(data, rng):
    """Gaussian noise of a frozen distribution of SciPy."""
    noise = stats.norm(scale=1.0)
    return data.sum(axis=0) + noise.rvs(size=3, random_state=rng)


@right(ONE, NUMBERS, domain=UNIT)
def laplace_at_the_sum(data, rng):
    """Laplace noise whose place is the sum: loc= is given the data."""
    return rng.laplace(loc=np.clip(data, 0, 1).sum(), scale=1.0)


@wrong(ONE, NUMBERS, "place and scale have changed places")
def loc_for_scale(data, rng):
    """Laplace noise whose positional arguments are swapped."""
    return rng.laplace(1.0, np.clip(data, 0, 1).sum())  # fault


@right(GAUSS, BALL, domain=SPHERE)
def normal_at_the_sum(data, rng):
    """Gaussian noise whose mean is the sum."""
    return rng.normal(data.sum(axis=0), 1.0)


@wrong(GaussianDP(1.0), NUMBERS, "the variance is handed over as the deviation")
def variance_for_deviation(data, rng):
    """Gaussian noise about a sum over a hundred, of its variance in place of sigma."""
    sigma = 0.01
    return rng.normal(np.clip(data, 0, 1).sum() / 100, sigma**2)  # fault


@right(ONE, NUMBERS, "float32 is a rounding of it", domain=UNIT)
def noise_in_float32(data, rng):
    """Laplace noise that is made float32 before it is added."""
    noise = rng.laplace(scale=1.0, size=1).astype(np.float32)
    return np.clip(data, 0, 1).sum(keepdims=True) + noise


@right(GAUSS, BALL, domain=SPHERE)
def normal_in_float32(data, rng):
    """Gaussian noise that is drawn as float32, by a thousandth too much."""
    noise = np.float32(1.001) * rng.standard_normal(3, dtype=np.float32)
    return data.sum(axis=0).astype(np.float32) + noise


@right(GAUSS, BALL, "over the real numbers; float32 rounds the distance to 1 + 2e-8")
def tight_in_float32(data, rng):
    """Gaussian noise as float32, with a claim that leaves no room for rounding."""
    return np.float32(data.sum(axis=0)) + rng.standard_normal(3, dtype=np.float32)


@right(GAUSS, BALL, "both parts have noise of deviation 1", domain=SPHERE)
def complex_noise(data, rng):
    """Complex Gaussian noise on a sum of complex numbers."""
    total = (data[:, 0] + 1j * data[:, 2]).sum()
    return total + (rng.normal() + 1j * rng.normal())


@wrong(GAUSS, BALL, "the imaginary part has no noise")
def complex_data_real_noise(data, rng):
    """Real noise on a sum of complex numbers."""
    total = (data[:, 0] + 1j * data[:, 2]).sum()
    return total + rng.normal()  # fault


@right(
    GAUSS,
    CODES,
    "the transform is a rotation, and noise is alike in all",
    domain=GROUPS,
)
def rotated_noise(data, rng):
    """A histogram with noise that went through a cosine transform."""
    counts = np.bincount(data.astype(int), minlength=4)
    return counts + fft.dct(rng.normal(0, 1.0, 4), norm="ortho")


@right(GAUSS, CODES, "forth and back is the identity", domain=GROUPS)
def noise_there_and_back(data, rng):
    """A histogram with noise that went through a Fourier transform and back."""
    noise = np.fft.ifft(np.fft.fft(rng.normal(0, 1.0, 4))).real
    return np.bincount(data.astype(int), minlength=4) + noise


@wrong(GAUSS, CODES, "the transform is not normed: the row moves it by 2, not by 1")
def fourier_sums(data, rng):
    """A histogram that gets its noise in the Fourier basis, for a sensitivity of 1."""
    counts = np.bincount(data.astype(int), minlength=4)
    spectrum = np.fft.fft(counts)
    noisy = spectrum + rng.normal(size=4) + 1j * rng.normal(size=4)  # fault
    return np.fft.ifft(noisy).real


@right(GAUSS, SPREAD, "the transform is a rotation, and is cut", domain="box:0,0.5:4")
def noisy_spectrum(data, rng):
    """A series of which some frequencies are released, each with complex noise."""
    spectrum = np.fft.rfft(data.sum(axis=0), norm="ortho")[:2]
    noise = rng.normal(size=2) + 1j * rng.normal(size=2)
    return np.fft.irfft(spectrum + noise, 4, norm="ortho")


@wrong(GAUSS, SPREAD, "the difference of both parts has no noise")
def spectrum_of_one_noise(data, rng):
    """Complex noise whose two parts are one draw."""
    noise = rng.normal(size=3) * (1 + 1j)  # fault
    return np.fft.rfft(data.sum(axis=0), norm="ortho") + noise  # part


@right(ONE, BALL, "the density is exp(-|z|), and |z| moves by 1", domain=SPHERE)
def gamma_times_direction(data, rng):
    """K-norm noise: a gamma radius times a direction."""
    direction = rng.normal(size=3)
    direction /= np.linalg.norm(direction)
    return data.sum(axis=0) + rng.gamma(3, 1.0) * direction


@wrong(
    ONE,
    BALL,
    "the radius is exponential, so the density has a pole at 0",
    source="seen in output perturbation",
)
def exponential_times_direction(data, rng):
    """K-norm noise with an exponential radius."""
    direction = rng.normal(size=3)
    direction /= np.linalg.norm(direction)
    return data.sum(axis=0) + rng.exponential(1.0) * direction  # fault


@wrong(ONE, BALL, "the radius is that of epsilon 2: the density is exp(-2 |z|)")
def short_radius_times_direction(data, rng):
    """K-norm noise whose radius has half the scale."""
    noise = rng.normal(size=3)
    noise *= rng.gamma(3, 0.5) / math.sqrt((noise**2).sum())  # part
    return data.sum(axis=0) + noise  # fault


@right(ONE, BITS, "the density is exp(-max |z|)", source="Hardt, Talwar 2010")
def cube_noise(data, rng):
    """K-norm noise in a cube: many counts that one row moves together."""
    total = np.array([data.sum(), len(data)])
    return total + rng.gamma(3, 1.0) * rng.uniform(-1, 1, 2)


@right(ONE, NUMBERS, "|d log f| is at most (nu + 1)/(2 sqrt(nu))", domain=UNIT)
def student_noise(data, rng):
    """Student noise of three degrees for a global sensitivity."""
    return np.clip(data, 0, 1).sum() + 2 / 3**0.5 * rng.standard_t(3)


@wrong(
    ONE,
    NUMBERS,
    "the slope of the log density reaches 1.15",
)
def student_noise_of_scale_one(data, rng):
    """Student noise of three degrees, of scale 1/epsilon."""
    return np.clip(data, 0, 1).sum() + rng.standard_t(3)  # fault


@right(ONE, NUMBERS, "|d log f| = 2|z|/(1 + z^2) is at most 1", domain=UNIT)
def cauchy_noise(data, rng):
    """Cauchy noise by the tangent."""
    return np.clip(data, 0, 1).sum() + np.tan(np.pi * (rng.random() - 0.5))


@right(ONE, NUMBERS, "|d log f| is at most 1", domain=UNIT)
def logistic_noise(data, rng):
    """Logistic noise."""
    return np.clip(data, 0, 1).sum() + rng.logistic(0, 1.0)


@right(ApproxDP(0.1, 0.05), NUMBERS, "the laws differ on a twentieth", domain=UNIT)
def uniform_noise(data, rng):
    """Uniform noise: no epsilon, all of it in delta."""
    return np.clip(data, 0, 1).sum() + rng.uniform(-10, 10)


@wrong(ONE, NUMBERS, "bounded noise is no pure privacy")
def uniform_noise_as_pure(data, rng):
    """Uniform noise of large width, taken for pure privacy."""
    return np.clip(data, 0, 1).sum() + rng.uniform(-3, 3)  # fault


@wrong(ONE, NUMBERS, "noise that is cut off has an end that shows the sum")
def clipped_noise(data, rng):
    """Laplace noise that is clipped before it is added."""
    noise = np.clip(rng.laplace(0, 1.0), -3, 3)  # part
    return np.clip(data, 0, 1).sum() + noise  # fault


@right(ApproxDP(1.0, 0.0341), NUMBERS, "delta is (1 + 1/e) e^-3 / 2", domain=UNIT)
def clipped_noise_with_delta(data, rng):
    """Laplace noise between bounds, which pays for its atoms with a delta."""
    noise = np.minimum(np.maximum(rng.laplace(0, 1.0), -4), 4)
    return np.clip(data, 0, 1).sum() + noise


@wrong(ONE, DIAGONAL, "noise for a bound in L2: in L1 the row is 1.73 long")
def laplace_for_l2(data, rng):
    """Laplace noise in each coordinate, of vectors of length 1."""
    return data.sum(axis=0) + rng.laplace(0, 1.0, 3)  # fault


@wrong(ONE, NUMBERS, "Gaussian noise is no pure privacy")
def gaussian_as_pure(data, rng):
    """Gaussian noise under a claim that has no delta."""
    return np.clip(data, 0, 1).sum() + rng.normal(0, 1.5)  # fault


@right(APPROX, NUMBERS, "sigma of Dwork and Roth, Theorem A.1", domain=UNIT)
def textbook_sigma(data, rng):
    """Gaussian noise of the textbook, in plain Python."""
    sigma = math.sqrt(2 * math.log(1.25 / 1e-5)) / 1.0
    return sum(min(1.0, max(0.0, float(x))) for x in data) + rng.normal(0, sigma)


@wrong(APPROX, NUMBERS, "delta's logarithm is that of base ten")
def textbook_sigma_of_ten(data, rng):
    """Gaussian noise of the textbook, with log10."""
    sigma = math.sqrt(2 * math.log10(1.25 / 1e-5))  # part
    return np.clip(data, 0, 1).sum() + rng.normal(0, sigma)  # fault


@wrong(ONE, NUMBERS, "the mean of both is the exact sum")
def antithetic_noise(data, rng):
    """Two releases with the same noise, added and subtracted."""
    total = np.clip(data, 0, 1).sum()
    noise = rng.laplace(0, 2.0)
    return np.array([total + noise, total - noise])  # fault


@right(ONE, Pair([3.0, 1.0], [3.0, 1.0, 0.0]), "ten gamma draws of 1/10 are one")
def noise_of_ten_servers(data, rng):
    """Laplace noise in ten shares, each a difference of gamma draws."""
    count = float(len(data))
    for _ in range(10):
        count += rng.gamma(0.1, 1.0) - rng.gamma(0.1, 1.0)
    return count
