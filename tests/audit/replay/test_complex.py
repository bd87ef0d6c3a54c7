"""Complex numbers with noise: laws by linear algebra, and the values of plain code."""

import warnings

import numpy as np
import pytest
from numpy.exceptions import ComplexWarning
from scipy import fft

from dpaudit import GaussianDP, Pair
from dpaudit.audit import replay
from dpaudit.audit.replay.execute.executor import execute
from dpaudit.audit.replay.follow.tape import EAGER, LAZY, Mode

PAIR = Pair([[0.5, 0.1, 0.2, 0.4]], [[0.5, 0.1, 0.2, 0.4], [0.0, 1.0, 0.0, 0.0]])
MATRIX = np.arange(16).reshape(4, 4) * (1 + 0.5j)
FOURIER = np.fft.rfft(np.eye(4)).T


def written(x, a, b):
    z = np.zeros(4, dtype=complex)
    z[::2] = a[:2] + 1j * b[:2]
    z.imag += b
    z[1] = complex(a[3], 2 * b[0])
    half = z.real
    half += 1.0
    return z - x


def moved(x, a, b):
    z = np.array([complex(p, q) for p, q in zip(a, b, strict=True)])
    z = np.concatenate([z[2:], np.roll(z, 1)[:2]]).reshape(2, 2).T.ravel()
    return np.where(np.arange(4) > 1, np.stack([z, x * z])[1], z.conj()), z.sum()


# What is done with the row sums x and two vectors of Gaussian draws a and b.
FUNCTIONS = {
    "parts": lambda x, a, b: (x * (1 + 1j) + a - 1j * b) / (2 - 1j),
    "there and back": lambda x, a, b: np.fft.ifft(np.fft.fft(x + a) * 1j + b),
    "half": lambda x, a, b: np.fft.irfft(np.fft.rfft(x + a)[:2] + 1j * b[:2], 5),
    "cosines": lambda x, a, b: x + fft.dct(a, norm="ortho") - fft.rfft(b, 6),
    "product": lambda x, a, b: MATRIX @ (a.astype(complex) + x) + 1j * b @ MATRIX,
    "pairs": lambda x, a, b: np.stack([x + a, b], axis=-1).view(complex).imag,
    "mirrored": lambda x, a, b: np.conj(x * 1j + a + 1j * b) + (b * 1j - x).conj(),
    "real alone": lambda x, a, b: np.fft.irfft((x + a)[:3] + 1j * b[:3], 4),
    "against": lambda x, a, b: x * (1 + np.vdot(1j * a + b, MATRIX[1])),
    **{"written": written, "moved": moved},
}


def parts(value):
    several = value if isinstance(value, tuple) else (value,)
    return [part for each in several for part in (np.real(each), np.imag(each))]


def flat(value):
    return np.concatenate([np.ravel(part) for part in parts(value)])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_laws_are_those_of_linear_algebra(name):
    function = FUNCTIONS[name]

    def mechanism(data, rng):
        a, b = rng.normal(size=4), rng.normal(size=4)
        return parts(function(data.sum(axis=0), a, b))

    x = PAIR.data.sum(axis=0)
    mean = flat(function(x, *np.zeros((2, 4))))
    columns = [flat(function(x, *one.reshape(2, 4))) - mean for one in np.eye(8)]
    for mode in (LAZY, EAGER, Mode(keeps=True)):
        trace = execute(mechanism, PAIR.data, 3, mode=mode)
        assert np.allclose(trace.value, trace.plainly().value, rtol=1e-9, atol=1e-12)
        again = trace.again(script=trace.tape.observations)
        assert np.allclose(trace.value, again.value, rtol=1e-9, atol=1e-12)
    trace = execute(mechanism, PAIR.data, 3)
    found = np.zeros((len(mean), 8))
    terms = trace.release
    rows, places = np.nonzero(terms.index >= 0)
    np.add.at(found, (rows, terms.index[rows, places]), terms.coef[rows, places])
    assert trace.open
    assert np.allclose(terms.centre, mean, rtol=1e-12, atol=1e-12)
    wanted = np.stack(columns, axis=1)
    assert np.allclose(found @ found.T, wanted @ wanted.T, rtol=1e-12, atol=1e-12)


def unfollowed_part(z, a, b):
    np.abs(z.real)
    return z.imag, b


def part_of_a_sum(z, a, b):
    one = (MATRIX @ z)[1]
    part = one.real
    np.abs(one)
    return part, one


# Of z = x + a + 1j b, with Laplace draws: how often, and as what, noise is looked at.
LOOKED = {
    "parts": (unfollowed_part, [(4,)]),
    "by its source": (lambda z, a, b: np.abs(FOURIER @ z.real), [(4,)]),
    "by itself": (lambda z, a, b: np.abs(np.fft.fft(z)), [(2, 4)]),
    "by a matrix": (lambda z, a, b: np.abs(np.fft.fft(np.eye(4)) @ z), [(2, 4)]),
    "rounded": (lambda z, a, b: np.round(1j * z.real), [(2, 4)]),
    "product": (lambda z, a, b: z * z.conj(), [(2, 4)]),
}


@pytest.mark.parametrize("name", LOOKED)
@pytest.mark.parametrize("mode", [LAZY, Mode(keeps=True)])
def test_what_is_looked_at_of_complex_numbers(name, mode):
    function, shapes = LOOKED[name]

    def mechanism(data, rng):
        a, b = rng.laplace(size=4), rng.laplace(size=4)
        return function(data.sum(axis=0) + a + 1j * b, a, b)

    tape = execute(mechanism, PAIR.data, 3, mode=mode).tape
    assert [each.shape for each in tape.observations] == shapes
    assert not tape.unfollowed


# In the eager reading a sum is looked at, the parts of it that got noise, and data.
SUMS = {
    "imaginary": (lambda x, a, b: x + 1j * b, 0),
    "noise": (lambda x, a, b: (a + 1j * b) * (2 - 1j), 0),
    "both": (lambda x, a, b: x * (1 + 1j) + (b * 1j + a), 2),
    "mixed": (lambda x, a, b: (x + 1j * b) * (2 - 1j), 1),
}


@pytest.mark.parametrize("name", SUMS)
def test_sums_that_are_looked_at_at_once(name):
    function, count = SUMS[name]

    def mechanism(data, rng):
        return function(data.sum(axis=0), *rng.normal(size=(2, 4)))

    tape = execute(mechanism, PAIR.data, 3, mode=EAGER).tape
    assert [each.shape for each in tape.observations] == [(4,)] * count


def test_what_numpy_refuses_is_refused():
    def mechanism(data, rng):
        total = data.sum(axis=0) + rng.normal(size=4)
        total += 1j * rng.normal(size=4)
        return total

    trace = execute(mechanism, PAIR.data, 3)
    assert trace.layout == trace.plainly().layout
    assert trace.layout.startswith("raises")


def test_complex_draws_are_numbers_where_they_are_listed():
    listed = []

    def mechanism(data, rng):
        listed.extend([*(1j * rng.normal(size=2)).tolist(), (1j * rng.normal()).item()])
        return np.abs(1j * rng.integers(0, 3, 2))

    assert not execute(mechanism, PAIR.data, 3, mode=Mode(keeps=True)).raises
    assert {*map(type, listed)} == {complex}


def test_real_arrays_take_the_real_part():
    def mechanism(data, rng):
        z = data.sum(axis=0) + rng.normal(size=4) + 1j * rng.normal(size=4)
        like, real = np.zeros_like(z), np.zeros(4) + rng.normal(size=4)
        like[:] = z
        with warnings.catch_warnings(action="ignore", category=ComplexWarning):
            real[1:] = like[1:]
        return like, real

    trace = execute(mechanism, PAIR.data, 3)
    assert trace.agrees(trace.plainly(), rtol=1e-9, atol=1e-12)


def test_a_part_is_known_where_the_number_is():
    def mechanism(data, rng):
        noise = rng.normal(size=4) + 1j * rng.normal(size=4)
        return part_of_a_sum(data.sum(axis=0) + noise, None, None)

    trace = execute(mechanism, PAIR.data, 3)
    assert not trace.tape.unfollowed
    assert not trace.release.noisy


def spectrum(data):
    return np.fft.rfft(data.sum(axis=0), norm="ortho")


def reused(data, rng):
    noise = rng.normal(size=3)
    return spectrum(data) + noise * (1 + 1j)


def sizes(data, rng):
    return np.abs(spectrum(data) + rng.normal(size=3) + 1j * rng.normal(size=3))


def kept_view(data, rng):
    noise = np.fft.fft(rng.normal(size=4) + data.sum(axis=0))
    part = noise.real
    part += 1.0
    return np.abs(noise)


@pytest.mark.parametrize(
    ("mechanism", "mu", "verdict"),
    [
        (sizes, 1.0, "NOT_REFUTED"),
        (kept_view, 1.0, "NOT_REFUTED"),
        (reused, 1.0, "REFUTED"),
    ],
)
def test_claims_about_complex_releases(mechanism, mu, verdict):
    result = replay(mechanism, pair=PAIR, claim=GaussianDP(mu), budget=2)
    assert (result.verdict, result.proof) == (verdict, verdict == "REFUTED")
    assert np.isfinite(execute(mechanism, PAIR.data, 0).value).all()
