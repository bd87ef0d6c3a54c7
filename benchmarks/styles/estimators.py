"""Estimators in the manner of scikit-learn, and linear algebra on noisy moments."""
# What stubs do not know.
# pyright: reportOptionalMemberAccess=false
# pyright: reportOptionalSubscript=false
# pyright: reportIndexIssue=false

import numpy as np
from scipy import linalg
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler

from benchmarks.styles.pairs import (
    BALL,
    DIAGONAL,
    GAUSS,
    LONG,
    NUMBERS,
    ONE,
    SPHERE,
    TURNED,
    TWO,
)
from benchmarks.styles.registry import right, wrong
from dpaudit import GaussianDP, Pair

# Rows (x, y), of which |x| <= 1 and |y| <= 1.
POINTS = Pair(
    [[0.5, 0.5], [0.9, 0.8], [-0.4, -0.5]],
    [[0.5, 0.5], [0.9, 0.8], [-0.4, -0.5], [1.0, -1.0]],
)
SQUARE = "box:-1,1:2"
# Rows (x, class).
LABELLED = Pair(
    [[0.5, 0.0], [0.9, 1.0], [0.4, 1.0], [0.1, 0.0]],
    [[0.5, 0.0], [0.9, 1.0], [0.4, 1.0], [0.1, 0.0], [1.0, 0.0]],
)
ROOT = 2**0.5


def symmetric(rng, size, sigma):
    """Return symmetric Gaussian noise from an upper triangle."""
    noise = np.zeros((size, size))
    noise[np.triu_indices(size)] = rng.normal(0, sigma, size * (size + 1) // 2)
    return noise + np.triu(noise, 1).T


@right(
    GAUSS,
    BALL,
    "a row moves the moments by 1 in Frobenius norm",
    domain=SPHERE,
    source="Dwork, Talwar, Thakurta, Zhang 2014",
)
def pca_of_noisy_moments(data, rng):
    """The first component of noisy second moments."""
    noisy = data.T @ data + symmetric(rng, 3, 1.0)
    return np.linalg.eigh(noisy)[1][:, -1]


@right(GAUSS, BALL, "a row moves the moments by 1 in Frobenius norm", domain=SPHERE)
def noisy_moments(data, rng):
    """Second moments with noise in an upper triangle that is mirrored."""
    noise = np.triu(rng.normal(0, 1.0, (3, 3)))
    return data.T @ data + noise + noise.T - np.diag(np.diag(noise))


@wrong(GAUSS, LONG, "rows are not brought to length 1")
def pca_of_long_rows(data, rng):
    """Noisy second moments of rows that nobody clips."""
    return data.T @ data + symmetric(rng, 3, 1.0)  # fault


@wrong(GAUSS, BALL, "components of the exact moments get noise for length 1: they turn")
def noise_on_components(data, rng):
    """The components of scikit-learn's PCA with noise of scale 1/n."""
    components = PCA(n_components=2, random_state=0).fit(data).components_
    return components + rng.normal(0, 1.0 / 100, components.shape)  # fault


@wrong(GAUSS, BALL, "rows are centred by their exact mean")
def centred_by_the_mean(data, rng):
    """Second moments of rows from which the exact mean is taken, and that mean."""
    mean = data.mean(axis=0)
    moments = (data - mean).T @ (data - mean)
    return mean, moments + symmetric(rng, 3, 2.0)  # fault


@right(GAUSS, POINTS, "two sums of at most 1 move by at most sqrt 2", domain=SQUARE)
def regression_of_noisy_moments(data, rng):
    """A slope from noisy sums of squares and products."""
    x, y = np.clip(data, -1, 1).T
    sigma = 2**0.5
    xx, xy = x @ x + rng.normal(0, sigma), x @ y + rng.normal(0, sigma)
    return xy / max(xx, 1.0)


@right(GAUSS, POINTS, "five sums of at most 1 move by at most sqrt 5", domain=SQUARE)
def ridge_by_solve(data, rng):
    """Ridge regression that is solved from noisy moments."""
    x = np.column_stack([np.ones(len(data)), np.clip(data[:, 0], -1, 1)])
    y = np.clip(data[:, 1], -1, 1)
    moments = x.T @ x + symmetric(rng, 2, 5**0.5)
    target = x.T @ y + rng.normal(0, 5**0.5, 2)
    return np.linalg.solve(moments + 20 * np.eye(2), target)


@wrong(GAUSS, POINTS, "the exact slope gets noise that no sensitivity explains")
def noisy_slope(data, rng):
    """The slope of LinearRegression with noise."""
    model = LinearRegression(fit_intercept=False).fit(data[:, :1], data[:, 1])
    return model.coef_ + rng.normal(0, 0.1, 1)  # fault


@wrong(GAUSS, POINTS, "the intercept has no noise")
def noiseless_intercept(data, rng):
    """A regression whose slope is noisy, and whose intercept is not."""
    model = LinearRegression().fit(data[:, :1], data[:, 1])
    noisy = model.coef_ + rng.normal(0, 50.0, 1)
    return np.append(noisy, model.intercept_)  # fault


@right(ONE, NUMBERS, "a scaler of public bounds", domain="scalar:0,1")
def scaler_of_public_bounds(data, rng):
    """A sum behind a MinMaxScaler that was fitted to public bounds."""
    scaler = MinMaxScaler(feature_range=(-1, 1), clip=True).fit([[0.0], [1.0]])
    rows = scaler.transform(data.reshape(-1, 1)) if len(data) else np.zeros((0, 1))
    return rows.sum() + rng.laplace(0, 1.0)


@wrong(
    ONE,
    Pair([0.25, 0.75, 0.5], [0.25, 0.75, 0.5, 40.0]),
    "the scaler is fitted to the rows",
)
def standardised(data, rng):
    """Squares behind a StandardScaler of the data, whose mean is released too."""
    scaler = StandardScaler().fit(data.reshape(-1, 1))
    rows = np.clip(scaler.transform(data.reshape(-1, 1)), -1, 1)
    return scaler.mean_[0], rows.sum() + rng.laplace(0, 1.0)  # fault


@right(ONE, NUMBERS, "each step sees a row alone, but the last", domain="scalar:0,1")
def pipeline_to_a_sum(data, rng):
    """A Pipeline of functions, whose last step adds noise."""
    pipeline = make_pipeline(
        FunctionTransformer(lambda x: np.clip(x, 0, 1)),
        FunctionTransformer(lambda x: x.sum(axis=0, keepdims=True)),
        FunctionTransformer(lambda x: x + rng.laplace(0, 1.0)),
    )
    return pipeline.fit_transform(np.asarray(data))


class NoisyMeans(BaseEstimator):
    """Means of two classes, as an estimator."""

    def __init__(self, epsilon=1.0, rng=None):
        self.epsilon = epsilon
        self.rng = rng

    def fit(self, x, y):
        """Keep noisy sums and sizes of both classes."""
        scale = 2 / self.epsilon
        self.sums_ = np.array([x[y == k].sum() for k in (0, 1)])
        self.sums_ = self.sums_ + self.rng.laplace(0, scale, 2)
        self.sizes_ = np.array([np.sum(y == k) for k in (0, 1)])
        self.sizes_ = self.sizes_ + self.rng.laplace(0, scale, 2)
        return self

    def means(self):
        """Return the means."""
        return self.sums_ / np.maximum(self.sizes_, 1.0)


@right(ONE, LABELLED, "a sum and a size of one class move, each at epsilon / 2")
def fitted_means(data, rng):
    """An estimator with fit(), that keeps noisy attributes."""
    return NoisyMeans(rng=rng).fit(data[:, 0], data[:, 1]).means()


@wrong(ONE, LABELLED, "the classes' means are exact inside of the model")
def noise_on_theta(data, rng):
    """GaussianNB with noise on its means, for one row in n."""
    model = GaussianNB().fit(data[:, :1], data[:, 1])
    return model.theta_.ravel() + rng.laplace(0, 1.0 / len(data), 2)  # fault


@right(
    GaussianDP(2.0),
    TURNED,
    "weights are cut to length 0.5, so they move by at most 1",
    source="Chaudhuri, Monteleoni, Sarwate 2011",
)
def output_perturbation(data, rng):
    """Ridge regression on rows (x, y), with noise for its sensitivity."""
    x, y, n, weight = data[:, :2], data[:, 2], len(data), 4.0
    w = np.linalg.solve(x.T @ x / n + weight * np.eye(2), x.T @ y / n)
    radius = min(1.0, 0.5 / max(np.linalg.norm(w), 1e-12))
    return w * radius + rng.normal(0, 0.5, 2)


@wrong(ONE, LABELLED, "the noise is for a strong regularisation that is not there")
def logistic_with_noise(data, rng):
    """LogisticRegression without regularisation, with noise on its weight."""
    model = LogisticRegression(C=100.0).fit(data[:, :1], data[:, 1])
    weight = model.coef_.ravel()
    return weight + rng.laplace(0, 0.1, 1)  # fault


@right(TWO, DIAGONAL, "two noisy sums, of bounds sqrt 3 and 1 in L1", domain=SPHERE)
def means_by_solve(data, rng):
    """A mean as the solution of a small system of noisy sums."""
    sums = data.sum(axis=0) + rng.laplace(0, 3**0.5, 3)
    count = len(data) + rng.laplace(0, 1.0)
    return linalg.solve(max(count, 1.0) * np.eye(3), sums)


@right(GAUSS, BALL, "a noisy matrix, cut to what is positive", domain=SPHERE)
def projected_moments(data, rng):
    """Noisy second moments that are made positive by their eigenvalues."""
    noise = rng.normal(0, 1.0, (3, 3))
    noise = (noise + noise.T) / ROOT
    values, vectors = np.linalg.eigh(data.T @ data + noise)
    return (vectors * np.maximum(values, 0)) @ vectors.T


@right(GAUSS, BALL, "the distance is that of Frobenius, which is 1", domain=SPHERE)
def averaged_noise(data, rng):
    """Second moments with a square of noise that is symmetrised by a mean."""
    noise = rng.normal(0, 1.0, (3, 3))
    return data.T @ data + (noise + noise.T) / 2


@wrong(GAUSS, BALL, "off the diagonal the deviation is 1/2")
def averaged_triangle(data, rng):
    """Second moments with a triangle of noise that is symmetrised by a mean."""
    noise = np.triu(rng.normal(0, 1.0, (3, 3)))
    noise = (noise + noise.T) / 2  # part
    return data.T @ data + noise  # fault


@wrong(GAUSS, BALL, "the trace of the exact moments divides")
def scaled_by_the_trace(data, rng):
    """Noisy second moments that are divided by their exact trace."""
    moments = data.T @ data
    noisy = moments + symmetric(rng, 3, 1.0)
    return noisy / max(np.trace(moments), 1.0)  # fault


@right(GAUSS, BALL, "a row moves the moments by 1", domain=SPHERE)
def svd_of_noisy_rows(data, rng):
    """Singular values of noisy moments of rows that are clipped one by one."""
    norms = np.linalg.norm(data, axis=1, keepdims=True)
    rows = data / np.maximum(norms, 1.0)
    return np.linalg.svd(rows.T @ rows + rng.normal(0, 1.0, (3, 3)), compute_uv=False)
